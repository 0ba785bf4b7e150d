"""A covariance from an adaptive fit, with its guarantee and what follows from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from matrixdp.adaptive.budget import Step
from matrixdp.adaptive.method import MethodChoice
from matrixdp.adaptive.moment import PrivateMoment, prepare_fit
from matrixdp.adaptive.settings import SETTINGS
from matrixdp.answers.estimate import HIDDEN, Estimate
from matrixdp.answers.models import Regression
from matrixdp.answers.moments import correlation_from_covariance, hide_uncertain
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.person import Person
from matrixdp.errors import ParameterError, show
from matrixdp.noise import Stream
from matrixdp.privacy import Neighbours, Privacy, Unit
from matrixdp.release.fit_models import fit_components, fit_regression
from matrixdp.release.notebook import ShownRelease
from matrixdp.release.options import FITTED
from matrixdp.serialise import to_json_content
from matrixdp.version import __version__

FORMAT = "matrixdp adaptive covariance 1"
_RECIPES = {"means": "covariance", "correlation": "regression"}  # where a question has no settings of its own
_SAMPLE = 16  # made-up records
_VECTORS = ("mean", "mean_std")  # fields of a fit of shape (d,); the others have the shape (d, d)
_SCALARS = ("noise_std", "radius", "learned", "evident")


@dataclass(frozen=True, eq=False, repr=False)
class AdaptiveRelease(ShownRelease):
    """Mean and covariance from a fit that learned where the data lie with a part of its budget. Nothing is private.

    All answers are post-processing and cost nothing.

    Attributes
    ----------
    moment : PrivateMoment
        The result of the fit; its covariance is positive semidefinite.
    choice : MethodChoice
    aim : str
    version : str
    """

    moment: PrivateMoment
    choice: MethodChoice
    aim: str
    version: str = __version__

    @property
    def method(self) -> str:
        """How the release was made."""
        return self.choice.method

    @property
    def reason(self) -> str:
        """Why this method was used."""
        return self.choice.reason

    def __repr__(self) -> str:
        size = f"N = {self.records:,}, {len(self.names)} columns"
        return f"<{type(self).__name__} for {self.aim}: {size}, {self._guarantee()}; print shows the numbers>"

    def __str__(self) -> str:
        return f"{self.method} release, {self._guarantee()}\n{self.reason}\n{self.means()}\n{self.correlation()}"

    def _guarantee(self) -> str:
        mark = ", A SIMULATION THAT PROTECTS NOTHING" if self.simulation else ""
        return f"({self.privacy.epsilon:g}, {self.privacy.delta:.3g})-DP, {self.neighbours} neighbours{mark}"

    @property
    def privacy(self) -> Privacy:
        """The guarantee of all steps together."""
        return self.moment.privacy

    @property
    def neighbours(self) -> Neighbours:
        """The neighbours that the guarantee is for."""
        return self.moment.neighbours

    @property
    def unit(self) -> Unit:
        """What the guarantee protects."""
        return self.moment.unit

    @property
    def mu(self) -> float:
        """What all steps spent, as Gaussian differential privacy."""
        return self.moment.mu

    @property
    def steps(self) -> tuple[Step, ...]:
        """Cost of each step."""
        return self.moment.steps

    @property
    def records(self) -> int:
        """The public number of records, of people, or of rows that count."""
        return self.moment.records

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns; numbers where the bounds have none."""
        bounds = self.moment.bounds
        return bounds.names or tuple(map(str, range(bounds.size)))

    @property
    def simulation(self) -> bool:
        """Whether the release protects nothing."""
        return self.moment.simulation

    def means(self, by: str | None = None, group: Any = None) -> Estimate:
        """Mean and standard deviation of each number, with error bars; a fit has no categories to group `by`."""
        _refuse_groups(by, group)
        errors = self.moment.errors
        variances, bars = np.diagonal(self.moment.covariance), np.diagonal(errors.covariance_std)
        deviations = np.sqrt(variances)
        with np.errstate(all="ignore"):
            std = np.where(deviations > 0, np.minimum(bars / (2 * deviations), np.sqrt(bars)), np.sqrt(bars))
        value, std = np.column_stack([self.moment.mean, deviations]), np.column_stack([errors.mean_std, std])
        return Estimate(value, std, self.names, ("mean", "standard deviation"))

    def table(self, first: str, second: str, group: Any = None) -> Estimate:
        """Raise a `ParameterError`: a fit has no categories."""
        raise ParameterError("table needs two categories, and an adaptive release has numbers only.")

    def covariance(self, group: Any = None) -> Estimate:
        """Covariance about the mean, over N; positive semidefinite."""
        _refuse_groups(None, group)
        return Estimate(self.moment.covariance, self.moment.errors.covariance_std, self.names, self.names)

    def correlation(self, group: Any = None) -> Estimate:
        """Correlation, with error bars; NaN where a variance is zero or the error bar says nothing."""
        _refuse_groups(None, group)
        moment = self.moment
        value, std = hide_uncertain(correlation_from_covariance(moment.covariance), moment.errors.correlation_std)
        return Estimate(value, std, self.names, self.names, np.full(value.shape, HIDDEN, object))

    def components(self, count: int | None = None, group: Any = None) -> Estimate:
        """Principal components of the standardised numbers as columns; variances in the last row."""
        _refuse_groups(None, group)
        return fit_components(self.moment, self.names, count)

    def regression(self, target: str, on: Sequence[str] | None = None, group: Any = None) -> Regression:
        """Regression of one number on others, by default on all, with standard errors.

        Coefficients that may be noise are close to zero (`matrixdp.adaptive.solve_regression`).
        """
        _refuse_groups(None, group)
        return fit_regression(self.moment, self.names, target, on)

    def error_parts(self, kind: str = "means") -> Estimate:
        """Each number with the error that privacy causes, the error of the records as a sample, and both together.

        `kind` is 'means', 'covariance' or 'correlation'.
        """
        from matrixdp.release.error_parts import error_parts

        return error_parts(self, kind)

    def to_json(self) -> str:
        """The release as JSON text; `from_json` gives it back bit by bit."""
        moment = self.moment
        rows = None if moment.person is None else moment.person.rows
        content = {
            "format": FORMAT,
            "version": self.version,
            "aim": self.aim,
            "method": self.method,
            "reason": self.reason,
            "simulation": moment.simulation,
            "neighbours": str(moment.neighbours),
            "unit": str(moment.unit),
            **({} if rows is None else {"rows_per_person": rows}),
            "basis": None if moment.basis is None else moment.basis.tolist(),
            "records": moment.records,
            "mu": moment.mu,
            "settings": moment.aim,
            "privacy": to_json_content(moment.privacy),
            "bounds": to_json_content(moment.bounds),
            "steps": to_json_content(moment.steps),
            "fitted": to_json_content(moment.fitted),
        }
        return json.dumps({**content, "digest": digest_content(content)}, allow_nan=False)


def _refuse_groups(by: str | None, group: Any) -> None:
    if by is not None or group is not None:
        raise ParameterError("by and group must be left out for an adaptive release: it has numbers only.")


def find_recipe(question: str) -> str:
    """The settings of an adaptive fit that serve a question best."""
    if question not in FITTED:
        raise ParameterError(f"«question» must be one of {', '.join(FITTED)}, got {show(question)} instead.")
    return question if question in SETTINGS else _RECIPES[question]


def make_sample_release(
    bounds: Bounds,
    privacy: Privacy,
    records: int,
    neighbours: Neighbours,
    *,
    aim: str = "covariance",
    person: Person | None = None,
) -> AdaptiveRelease:
    """A release of a few made-up records that fill their bounds evenly, as if they were `records`. Reads no data.

    It is marked as a simulation; to try whether a release can be shown before anything is charged.

    Examples
    --------
    >>> sample = make_sample_release(Bounds([0], [6]), Privacy(1, 1e-6), 100, Neighbours.REPLACE)
    >>> sample.moment.covariance.shape, sample.records, sample.simulation
    ((1, 1), 100, True)
    """
    made_up = np.random.default_rng(0).uniform(bounds.lower, bounds.upper, (_SAMPLE, bounds.size))
    prepared = prepare_fit(
        made_up,
        replace(bounds, names=None),
        privacy,
        aim=find_recipe(aim),
        records=_SAMPLE,
        neighbours=neighbours,
        stream=Stream(seed=0),
        simulation=True,
    )
    moment = replace(prepared.fit(), bounds=bounds, records=records, person=person)
    return AdaptiveRelease(moment, MethodChoice("adaptive", "This is an example."), aim)


def digest_content(content: dict[str, Any]) -> str:
    """Digest of a release's content. It finds altered texts, unless whoever altered them computes it again."""
    given = {name: value for name, value in content.items() if name != "digest"}
    return hashlib.sha256(json.dumps(given, sort_keys=True, allow_nan=False).encode()).hexdigest()


def check_adaptive(release: AdaptiveRelease) -> None:
    """Raise a `ParameterError` unless the parts of a release fit together: steps, guarantee, shapes and ranges."""
    moment, fitted = release.moment, release.moment.fitted
    d = moment.bounds.size
    for field in fields(fitted):
        value = np.asarray(getattr(fitted, field.name))
        shape = (d,) if field.name in _VECTORS else () if field.name in _SCALARS else (d, d)
        _require(value.shape == shape, f"{field.name} must have the shape {shape}")
        _require(bool(np.isfinite(value).all()), f"{field.name} must be finite")
    covariance = fitted.covariance
    _require(bool(np.allclose(covariance, covariance.T, rtol=1e-9, atol=1e-12)), "covariance must be symmetric")
    _require(float(np.linalg.eigvalsh(covariance)[0]) >= -1e-9 * d, "covariance must be positive semidefinite")
    _require(bool((np.diagonal(covariance) <= 1 + 1e-9).all()), "variances must be possible within the bounds")
    _require(bool((np.abs(fitted.mean) <= 1).all()), "means must be within the bounds")
    _require(bool((fitted.std >= 0).all() and (fitted.mean_std >= 0).all()), "error bars must not be negative")
    _check_steps(moment)


def _check_steps(moment: PrivateMoment) -> None:
    """Raise unless the steps make up what was spent, and that is within the guarantee."""
    total = sum(step.mu**2 for step in moment.steps)
    _require(bool(moment.steps) and all(step.mu > 0 and step.releases > 0 for step in moment.steps), "steps must cost")
    _require(abs(total - moment.mu**2) <= 1e-9 * moment.mu**2, "mu must be what the steps spent together")
    _require(0 < moment.mu <= moment.privacy.mu, "mu must be within the guarantee")
    for step in moment.steps:
        share = (step.mu / moment.privacy.mu) ** 2
        _require(abs(step.share - share) <= 1e-9 * share, "shares must be those of the steps")


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise ParameterError(f"{rule}; the text was altered.")
