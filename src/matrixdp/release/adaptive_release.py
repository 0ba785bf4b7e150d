"""A covariance from an adaptive fit, with its guarantee and what follows from it.

Error bars of principal components and regressions come from the simulated fits of `matrixdp.adaptive.error_bars`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from matrixdp.adaptive.budget import Step
from matrixdp.adaptive.error_bars import sampling_bars, simulated_errors
from matrixdp.adaptive.moment import PrivateMoment
from matrixdp.adaptive.postprocess import Fitted
from matrixdp.adaptive.regression import hidden_std, joint_moment, solve_regression
from matrixdp.adaptive.settings import SETTINGS, settings_for
from matrixdp.answers import models
from matrixdp.answers.estimate import Estimate, settle
from matrixdp.answers.models import Regression, check_components, choose_predictors, find_components, hide_undetermined
from matrixdp.answers.moments import LARGEST_BAR, correlation_from_covariance, hide_uncertain
from matrixdp.checks import check_integer
from matrixdp.domain import Bounds, Person, least_sample
from matrixdp.errors import ParameterError, show
from matrixdp.intervals import Pair, Range, extend_range, interval, limit_products
from matrixdp.noise.matrix import check_orthonormal
from matrixdp.privacy import Neighbours, Privacy, Unit
from matrixdp.queries.base import parse_records
from matrixdp.release.options import FITTED
from matrixdp.release.released import Answering, SavedRelease, require
from matrixdp.serialise import from_json_content, to_json_content
from matrixdp.types import Floats
from matrixdp.version import __version__

_VECTORS = ("mean", "mean_std")  # fields of a fit of shape (d,); the others have the shape (d, d)
_SCALARS = ("noise_std", "radius", "learned", "evident")
_PARTS = {"privacy": Privacy, "bounds": Bounds, "steps": tuple, "fitted": Fitted}  # of a fit, in its JSON form


@dataclass(frozen=True, eq=False, repr=False)
class AdaptiveRelease(SavedRelease, Answering):
    """Mean and covariance from a fit that learned where the data lie with a part of its budget. Nothing is private.

    All answers are post-processing and cost nothing.

    Attributes
    ----------
    moment : PrivateMoment
        The result of the fit; its covariance is positive semidefinite.
    aim : str
        The question that it was made for.
    reason : str
        Why this method was used.
    version : str
    """

    FORMAT = "matrixdp adaptive covariance 1"

    moment: PrivateMoment
    aim: str
    reason: str
    version: str = __version__
    method: ClassVar[str] = "adaptive"

    def __repr__(self) -> str:
        size = f"N = {self.records:,}, {len(self.names)} columns"
        return f"<{type(self).__name__} for {self.aim}: {size}, {self._guarantee()}; print shows the numbers>"

    def __str__(self) -> str:
        return f"{self.method} release, {self._guarantee()}\n{self.reason}\n{self.means()}\n{self.correlation()}"

    def _show(self) -> tuple[str, list[tuple[str, str]], list[str]]:
        return "Private mean and covariance", self._show_method(), self._show_answers(correlation=True)

    def to_frame(self, *, long: bool = False, level: float = 0.95) -> Any:
        """The covariance as a pandas data frame; `Estimate.to_frame` explains the options."""
        return self.covariance().to_frame(long=long, level=level)

    def plot(self, *, ax: Any = None, title: str = "") -> Any:
        """Heat map of the correlation; returns matplotlib axes."""
        return self.correlation().plot(ax=ax, title=title)

    privacy = property(attrgetter("moment.privacy"), doc="The guarantee of all steps together.")
    neighbours = property(attrgetter("moment.neighbours"), doc="The neighbours that the guarantee is for.")
    unit = property(attrgetter("moment.unit"), doc="What the guarantee protects.")
    mu = property(attrgetter("moment.mu"), doc="What all steps spent, as Gaussian differential privacy.")
    steps = property(attrgetter("moment.steps"), doc="Cost of each step.")
    records = property(
        attrgetter("moment.records"), doc="The public number of records, of people, or of rows that count."
    )
    simulation = property(attrgetter("moment.simulation"), doc="Whether the release protects nothing.")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns; numbers where the bounds have none."""
        bounds = self.moment.bounds
        return bounds.names or tuple(map(str, range(bounds.size)))

    def means(self, by: str | None = None, group: Any = None) -> Estimate:
        """Mean and standard deviation of each number, with error bars; a fit has no categories to group `by`."""
        _refuse_groups(by, group)
        errors = self.moment.errors
        variances, bars = np.diagonal(self.moment.covariance), np.diagonal(errors.covariance_std)
        deviations = np.sqrt(variances)
        value = np.column_stack([self.moment.mean, deviations])
        std = np.column_stack([errors.mean_std, np.sqrt(variances + bars) - deviations])
        bounds, half = self.moment.bounds, self.moment.bounds.halfwidths
        possible = np.column_stack([bounds.lower, 0 * half]), np.column_stack([bounds.upper, half])
        return settle(value, std, self.names, ("mean", "standard deviation"), possible)

    def table(self, first: str, second: str, group: Any = None) -> Estimate:
        """Raise a `ParameterError`: a fit has no categories."""
        raise ParameterError("table needs two categories, and an adaptive release has numbers only.")

    def covariance(self, group: Any = None) -> Estimate:
        """Covariance about the mean, over N; positive semidefinite."""
        _refuse_groups(None, group)
        possible = limit_products(self.moment.bounds.halfwidths)
        return settle(self.moment.covariance, self.moment.errors.covariance_std, self.names, self.names, possible)

    def correlation(self, group: Any = None, *, shrunk: bool = False) -> Estimate:
        """Correlation, with error bars; a fit shrinks by itself, so that `shrunk` only leaves out no number."""
        _refuse_groups(None, group)
        found, bars = correlation_from_covariance(self.moment.covariance), self.moment.errors.correlation_std
        own = np.eye(len(found), dtype=bool)
        possible = np.where(own, 1.0, -1.0), np.ones(own.shape)
        value, std = np.where(own, 1.0, found), np.where(own, 0.0, bars)
        if shrunk:
            known = np.isfinite(value)
            value, std = np.where(known, value, 0.0), np.where(known, std, LARGEST_BAR)
            return settle(value, std, self.names, self.names, possible)
        value, std = hide_uncertain(value, std)
        ranges = _range_of(np.nan_to_num(found), np.where(np.isfinite(found), bars, np.inf), possible)
        return settle(value, std, self.names, self.names, possible, lambda: extend_range(ranges, possible))

    def components(self, count: int | None = None, group: Any = None) -> Estimate:
        """Principal components of the standardised numbers as columns; variances in the last row."""
        _refuse_groups(None, group)
        number, m = check_components(self.names, count), len(self.names)

        def error(fit: PrivateMoment, _: Floats, covariance: Floats) -> Floats:
            exact = _components(covariance)
            return (_components(fit.covariance, exact[:m]) - exact)[:, :number]

        found = _components(self.moment.covariance)[:, :number]
        if self._overlooks(self.names):
            found, error_bars = np.full_like(found, np.nan), np.full_like(found, np.nan)
        else:
            error_bars = simulated_errors(self.moment, error)
        return models.name_components(self.names, found, error_bars, lambda: None)

    def regression(self, target: str, on: Sequence[str] | None = None, group: Any = None) -> Regression:
        """Regression of one number on others, by default on all, with standard errors.

        Coefficients that may be noise are close to zero (`matrixdp.adaptive.solve_regression`). Where records were too
        few for learned directions, all are zero and the intercept is the private mean; none has an error bar then. Nor
        has one where noise hides the variance of a column altogether.
        """
        _refuse_groups(None, group)
        names = self.names
        if target not in names:
            raise ParameterError(f"target must be one of {', '.join(names[:20])}, got {show(target)} instead.")
        chosen = choose_predictors(names, target, on)
        order = np.array([names.index(name) for name in (*chosen, target)])

        sample, count = least_sample(self.records, self.moment.person), order.size

        def error(fit: PrivateMoment, mean: Floats, covariance: Floats) -> Floats:
            own, chosen = covariance[np.ix_(order, order)], _select(fit, order)
            slopes = np.linalg.pinv(own[:-1, :-1], rcond=1e-9, hermitian=True) @ own[:-1, -1]
            exact = np.append(mean[order[-1]] - slopes @ mean[order[:-1]], slopes)
            found = _describe_fit(chosen.mean, chosen.covariance, _coefficients(chosen), sample)
            return found - _describe_fit(mean[order], own, exact, sample)

        part = _select(self.moment, order)
        found = _describe_fit(part.mean, part.covariance, _coefficients(part), sample)
        errors = simulated_errors(self.moment, error)
        noise = np.diagonal(part.fitted.std) * part.bounds.halfwidths**2
        stds, most = np.sqrt(np.maximum(np.diagonal(part.covariance), noise)), float(part.bounds.halfwidths[-1])
        errors[:count] = np.maximum(errors[:count], hidden_std(joint_moment(part), found[1:count]))
        bars = errors[:count].copy()
        bars[1:] = hide_undetermined(bars[1:], stds[:-1], float(stds[-1]))
        least, ends = np.zeros(found.size), np.append(np.full(2 * count, np.inf), [1.0, most])
        least[:count] = -np.inf
        plausible = np.array(_range_of(found, errors, (least, ends)))
        terms, fit = plausible[:, :-2].reshape(3, 2, count).swapaxes(1, 2), plausible[:, -2:]
        if self._overlooks((*chosen, target)) or not part.fitted.learned:
            bars[:], terms[:], fit[1:, 0] = np.nan, np.nan, (0.0, 1.0)
        own = [float(end[names.index(target), 1]) for end in self.means().interval()]
        rest = np.sqrt(1 - fit[1:, 0])[::-1] * own  # the target's standard deviation, less what is explained
        fit[1:, 1] = min(fit[1, 1], rest[0]), max(fit[2, 1], rest[1])
        return models.name_regression(
            target,
            ("intercept", *chosen),
            found[:count],
            bars,
            most=most,
            ranges=(lambda: Range(*terms), lambda: Range(*fit)),
        )

    def _overlooks(self, names: Sequence[str]) -> bool:
        """Whether nothing tells the variance of one of these columns from zero; simulated fits do not show that."""
        return not np.diagonal(self.moment.covariance)[[self.names.index(name) for name in names]].all()

    def _sampling_std(self, kind: str) -> Floats:
        bars = sampling_bars(self.moment)
        return {"means": bars.mean_std, "covariance": bars.covariance_std, "correlation": bars.correlation_std}[kind]

    def _content(self) -> dict[str, Any]:
        moment = self.moment
        rows = None if moment.person is None else moment.person.rows
        content = {
            **super()._content(),
            "aim": self.aim,
            "method": self.method,
            "reason": self.reason,
            **({} if rows is None else {"rows_per_person": rows}),
            "basis": None if moment.basis is None else moment.basis.tolist(),
            "targets": moment.targets,
            "records": moment.records,
            "settings": moment.aim,
            **{name: to_json_content(getattr(moment, name)) for name in _PARTS},
        }
        return {**content, "digest": digest_content(content)}

    @classmethod
    def _read(cls, content: Any) -> AdaptiveRelease:
        require(content["digest"] == digest_content(content), "the digest must be that of the content")
        parts = {name: from_json_content(content[name]) for name in _PARTS}
        if any(not isinstance(parts[name], kind) for name, kind in _PARTS.items()):
            raise KeyError("parts")
        if not all(isinstance(step, Step) for step in parts["steps"]):
            raise KeyError("steps")
        basis, size = content["basis"], parts["bounds"].size
        unit, rows = Unit.parse(content["unit"]), content.get("rows_per_person")
        person = Person(unit.column, rows) if unit.kind == "person" and unit.column is not None else None
        if person is None and (unit.kind != "record" or rows is not None):
            raise KeyError("unit")
        moment = PrivateMoment(
            **parts,
            neighbours=Neighbours.parse(content["neighbours"]),
            mu=float(content["mu"]),
            simulation=content["simulation"],
            records=parse_records(content["records"]),
            aim=content["settings"],
            targets=check_integer(content["targets"], "targets", at_least=0, at_most=size - 1),
            basis=None if basis is None else check_orthonormal(basis, size),
            person=person,
        )
        settings_for(moment.aim)
        check_moment(moment)
        find_recipe(content["aim"])
        reason = content["reason"]
        worded = content["method"] == cls.method and isinstance(reason, str) and reason.isprintable()
        require(worded, f"method must be {cls.method!r}, with a reason in words")
        return cls(moment, content["aim"], reason, content["version"])


def _refuse_groups(by: str | None, group: Any) -> None:
    if by is not None or group is not None:
        raise ParameterError("by and group must be left out for an adaptive release: it has numbers only.")


def find_recipe(question: str) -> str:
    """The settings of an adaptive fit that serve a question best."""
    if question not in FITTED:
        raise ParameterError(f"«question» must be one of {', '.join(FITTED)}, got {show(question)} instead.")
    if question == "components":
        return "correlation"  # a release has components of standardised numbers
    return question if question in SETTINGS else "covariance"


def digest_content(content: dict[str, Any]) -> str:
    """Digest of a release's content. It finds altered texts, unless whoever altered them computes it again."""
    given = {name: value for name, value in content.items() if name != "digest"}
    return hashlib.sha256(json.dumps(given, sort_keys=True, allow_nan=False).encode()).hexdigest()


def check_moment(moment: PrivateMoment) -> None:
    """Raise a `ParameterError` unless the parts of a fit fit together: steps, guarantee, shapes and ranges."""
    fitted, d, steps, spent = moment.fitted, moment.bounds.size, moment.steps, moment.mu**2
    for field in fields(fitted):
        value = np.asarray(getattr(fitted, field.name))
        shape = (d,) if field.name in _VECTORS else () if field.name in _SCALARS else (d, d)
        require(value.shape == shape, f"{field.name} must have the shape {shape}")
        require(np.isfinite(value).all(), f"{field.name} must be finite")
    covariance, shares = fitted.covariance, [(step.mu / moment.privacy.mu) ** 2 for step in steps]
    require(np.allclose(covariance, covariance.T, rtol=1e-9, atol=1e-12), "covariance must be symmetric")
    require(np.linalg.eigvalsh(covariance)[0] >= -1e-9 * d, "covariance must be positive semidefinite")
    require((np.diagonal(covariance) <= 1 + 1e-9).all(), "variances must be possible within the bounds")
    require((np.abs(fitted.mean) <= 1).all(), "means must be within the bounds")
    require((fitted.std >= 0).all() and (fitted.mean_std >= 0).all(), "error bars must not be negative")
    require(steps and all(step.mu > 0 and step.releases > 0 for step in steps), "steps must cost")
    total = sum(step.mu**2 for step in steps)
    require(abs(total - spent) <= 1e-9 * spent, "mu must be what the steps spent together")
    require(0 < moment.mu <= moment.privacy.mu, "mu must be within the guarantee")
    told = zip(steps, shares, strict=True)
    require(all(abs(step.share - share) <= 1e-9 * share for step, share in told), "shares must be those of the steps")


def _components(covariance: Floats, reference: Floats | None = None) -> Floats:
    """Components of the correlations and, in the last row, their variances, of shape (m + 1, m).

    Signs are those of `reference`, or of the largest entry.
    """
    values, vectors = find_components(correlation_from_covariance(covariance, undefined=0.0), reference)
    return np.vstack([vectors, np.maximum(values, 0.0)])


def _select(moment: PrivateMoment, order: NDArray[np.intp]) -> PrivateMoment:
    """The fit of some of the columns, in this order: a marginal of the fit of all."""
    bounds, size, square = moment.bounds, moment.bounds.size, np.ix_(order, order)
    parts = {}
    for field in fields(moment.fitted):
        value = getattr(moment.fitted, field.name)
        shape = np.shape(value)
        parts[field.name] = value[square] if shape == (size, size) else value[order] if shape == (size,) else value
    return replace(moment, bounds=Bounds(bounds.lower[order], bounds.upper[order]), fitted=Fitted(**parts))


def _coefficients(moment: PrivateMoment) -> Floats:
    """Intercept and slopes for the last column."""
    slopes, intercept = solve_regression(moment, 1)
    return np.concatenate([intercept, slopes[0]])


def _describe_fit(mean: Floats, covariance: Floats, coefficients: Floats, sample: float) -> Floats:
    """Coefficients, their standard errors, the share of the variance that is explained, and the root of the rest."""
    slopes, features, total = coefficients[1:], covariance[:-1, :-1], max(float(covariance[-1, -1]), 0.0)
    residual = total - 2 * float(slopes @ covariance[:-1, -1]) + float(slopes @ features @ slopes)
    residual = min(max(residual, 0.0), total)
    rest = residual / max(sample - len(coefficients), 1)
    inverse = np.linalg.pinv(features, rcond=1e-9, hermitian=True)
    variances = np.append(1 + float(mean[:-1] @ inverse @ mean[:-1]), np.diagonal(inverse))
    share = 1 - residual / total if total > 0 else 0.0
    return np.concatenate([coefficients, np.sqrt(np.maximum(rest * variances, 0.0)), [share, np.sqrt(residual)]])


def _range_of(value: Floats, bars: Floats, possible: Pair) -> Range:
    """What is plausible by simulated errors."""
    reach = np.nan_to_num(bars, nan=1e300, posinf=1e300)
    return Range(np.clip(value, *possible), *interval(value, reach, 0.95, possible))
