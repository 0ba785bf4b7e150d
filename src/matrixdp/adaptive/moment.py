"""The private mean and covariance of a data set, as one pure function."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from matrixdp.adaptive.budget import FitBudget, Step
from matrixdp.adaptive.error_bars import MomentErrors, error_bars
from matrixdp.adaptive.fit import Purpose, fit_moment
from matrixdp.adaptive.measure import PrivateMeasurements, check_designs
from matrixdp.adaptive.postprocess import Fitted
from matrixdp.adaptive.records import PrivateRecords, check_features, validate_records
from matrixdp.adaptive.settings import settings_for
from matrixdp.adaptive.simulation import FitOptions, RepeatedFit, repeat_fit
from matrixdp.answers.models import find_components
from matrixdp.checks import check_integer
from matrixdp.display import short_repr
from matrixdp.domain.bounds import Bounds, check_bounds
from matrixdp.domain.person import Person, find_unit
from matrixdp.errors import DataError, ParameterError
from matrixdp.mechanisms.mechanism import current_answer
from matrixdp.noise import Stream
from matrixdp.noise.matrix import check_orthonormal
from matrixdp.privacy import Neighbours, Privacy, Unit, warn_large_delta
from matrixdp.queries.base import VARIES, check_domain, parse_records
from matrixdp.types import Floats


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PrivateMoment(FitOptions):
    """A private mean and covariance, and their privacy cost. Safe to publish.

    Attributes
    ----------
    fitted : Fitted
        Results for records scaled to [-1, 1].
    bounds, neighbours, aim, targets, person
        As for `private_moment`.
    privacy : Privacy
        The guarantee of all steps together.
    mu : float
        Gaussian differential privacy of all steps; at most `privacy.mu`.
    steps : tuple of Step
        Cost of each step.
    simulation : bool
        Whether the noise is reproducible, hence not private.
    records : int
        The public number of records, of people, or of rows that count.
    basis : float64 array of shape (m, m) or None
        Public directions; None if they are learned.
    """

    fitted: Fitted
    mu: float
    steps: tuple[Step, ...]
    simulation: bool

    @property
    def unit(self) -> Unit:
        """What the guarantee protects: one record or one person."""
        return find_unit(self.person)

    @property
    def mean(self) -> Floats:
        """Mean of each feature in the data's units, of shape (m,)."""
        return self.bounds.midpoint + self.bounds.halfwidths * self.fitted.mean

    @property
    def covariance(self) -> Floats:
        """Covariance about the mean, over N, of shape (m, m); positive semidefinite."""
        return self.fitted.covariance * np.multiply.outer(self.bounds.halfwidths, self.bounds.halfwidths)

    @property
    def second_moment(self) -> Floats:
        """Second moment about the box's midpoint, of shape (m, m); most exact with ``aim='second moment'``."""
        return self.fitted.second * np.multiply.outer(self.bounds.halfwidths, self.bounds.halfwidths)

    @cached_property
    def simulated(self) -> RepeatedFit:
        """The fit repeated on simulated records, from which error bars come."""
        return repeat_fit(self.fitted, self)

    @cached_property
    def errors(self) -> MomentErrors:
        """Error bars of all that is read off the moment: noise, clipping and shrinkage, from private answers alone."""
        return error_bars(self)

    def __repr__(self) -> str:
        mark = ", A SIMULATION THAT PROTECTS NOTHING" if self.simulation else ""
        guarantee = f"({self.privacy.epsilon:g}, {self.privacy.delta:.3g})-DP, {self.neighbours} neighbours{mark}"
        return f"<PrivateMoment of {self.bounds.size:,} columns, N = {self.records:,}, {guarantee}>"


def private_moment(
    data: Any,
    bounds: Bounds,
    privacy: Privacy,
    *,
    aim: str = "covariance",
    targets: int = 1,
    directions: str | ArrayLike = "learned",
    records: int | None = None,
    neighbours: str = Neighbours.REPLACE,
    person: str | Person | None = None,
    stream: Stream | None = None,
    simulation: bool = False,
) -> PrivateMoment:
    """Private mean and covariance, in coordinates learned with a part of the budget.

    Parameters
    ----------
    data : array, pandas, polars or Arrow table of shape (n, m), or what open_records takes
        Finite numbers; values outside the bounds are clipped to them. Out-of-core records are read up to eight times.
    bounds : Bounds
        Public; never taken from the data.
    privacy : Privacy
        The whole budget.
    aim : 'covariance', 'means', 'second moment', 'correlation', 'components' or 'regression'
        Use of the result; selects the settings.
    targets : int
        Number of last features that a regression predicts, and whose mean is measured alone where noise hides all else;
        with 0 it never is. Other aims have none.
    directions : 'learned', 'standard' or array_like of shape (m, m)
        Directions of the coordinates of the final moment; a matrix must have orthonormal columns, for features scaled
        to [-1, 1].
    records : int, optional
        Public number of records; required for add-remove neighbours, and should be about right.
    neighbours : 'replace' or 'add-remove'
    person : str or Person, optional
        The column that says whose row it is, if people may have several rows: each person counts once, and `records`
        is the number of people. With ``Person(column, rows=k)`` each row counts, at most k a person; `records` is then
        required, a public constant near the number of rows that count.
    stream, simulation
        As for `matrixdp.Design.release`.

    Privacy
    -------
    `privacy` for the given neighbours, all steps together. Errors in data or parameters are raised before anything is
    drawn. Nothing is charged: `matrixdp.release.charging.release_fit` charges a ledger first.
    docs/adaptive-privacy.md has the proof of each step.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> data = rng.normal(size=(4000, 1)) * [1.0, 0.9] + 0.1 * rng.normal(size=(4000, 2))
    >>> moment = private_moment(data, Bounds([-5, -5], [5, 5]), Privacy(1, 1e-6))
    >>> moment.mu <= moment.privacy.mu
    True
    >>> [step.name for step in moment.steps]
    ['location', 'radius', 'rough moment', 'second radius', 'tail', 'box moment', 'final moment']
    """
    options: dict[str, Any] = {"neighbours": neighbours, "person": person, "stream": stream, "simulation": simulation}
    asked: dict[str, Any] = {"aim": aim, "targets": targets, "directions": directions, "records": records}
    prepared = prepare_fit(data, bounds, privacy, **asked, **options)
    prepared.warn()
    return prepared.fit()


@dataclass(frozen=True, eq=False)
class PreparedFit:
    """A fit whose data and parameters have been checked, and which has not spent anything yet. Private."""

    records: PrivateRecords
    bounds: Bounds
    aim: str
    budget: FitBudget
    public: int
    basis: Floats | None = None
    targets: int = 0

    @property
    def description(self) -> dict[str, Any]:
        """What is fitted, for the ledger."""
        shape = [self.bounds.size, self.bounds.size]
        return {"query": "learned moment", "aim": self.aim, "shape": shape, "records": self.public}

    def warn(self) -> None:
        """Warn if delta is above one over the number of records, unless nothing is protected."""
        if not self.budget.simulation and current_answer() is None:  # nor in an audit
            warn_large_delta(self.budget.privacy, self.public)

    def fit(self) -> PrivateMoment:
        """Spend the budget. Whatever pays for it must have been charged before."""
        budget = self.budget
        with np.errstate(all="ignore"):  # a warning would reveal something about private data
            measure = PrivateMeasurements(self.records, budget, self.public)
            fitted = fit_moment(measure, Purpose(settings_for(self.aim), self.basis, self.targets))
        names = "privacy", "neighbours", "person", "mu", "steps", "simulation"
        spent: dict[str, Any] = {name: getattr(budget, name) for name in names}
        own: dict[str, Any] = {"bounds": self.bounds, "records": self.public, "aim": self.aim, "basis": self.basis}
        return PrivateMoment(fitted=fitted, targets=self.targets, **own, **spent)


def prepare_fit(
    data: Any,
    bounds: Bounds,
    privacy: Privacy,
    *,
    aim: str,
    targets: int = 1,
    directions: str | ArrayLike = "learned",
    records: int | None = None,
    **options: Any,
) -> PreparedFit:
    """Check data and parameters of `private_moment`; raises every error that they have. `options`: of `FitBudget`."""
    settings_for(aim)
    check_bounds(bounds)
    check_features(bounds.size)
    budget = FitBudget(privacy, **options)
    predicted = check_integer(targets, "targets", at_least=0, at_most=bounds.size - 1) if aim == "regression" else 0
    basis = None
    if not isinstance(directions, str):
        basis = check_orthonormal(directions, bounds.size)
    elif directions == "standard":
        basis = np.eye(bounds.size)
    elif directions != "learned":
        raise ParameterError(
            f"directions must be 'learned', 'standard' or an orthonormal matrix, got {directions!r} instead."
        )
    count, on_grid = validate_records(data, bounds, budget.person)
    public = public_records(records, count, budget.neighbours, budget.person)
    check_designs(budget, bounds.size, public)
    with np.errstate(all="ignore"):  # a warning would reveal something about private data
        return PreparedFit(on_grid(public), bounds, aim, budget, public, basis, predicted)


def public_records(records: Any, found: int, neighbours: Neighbours, person: Person | None = None) -> int:
    """Validated public number of records; where it is public, it is the number in the data.

    Privacy
    -------
    Where the number is private, no records are as good as one: an error would tell the two apart, at no cost.
    """
    private = person is not None and person.rows is not None
    if neighbours is Neighbours.REPLACE and not private:
        if found < 1:
            raise DataError("data must have at least one record.")
        if records is not None and parse_records(records) != found:
            raise ParameterError(
                f"records must be {found}, as the data have, or be left out, for replace neighbours, got {records!r} "
                f"instead. {VARIES}"
            )
        return found
    if records is None:
        what = "rows of a person that count" if private else "add-remove neighbours"
        raise ParameterError(f"records must be given for {what}: their true number is private.")
    public = parse_records(records)
    check_domain(found, public, Neighbours.ADD_REMOVE)
    return public


@dataclass(frozen=True, eq=False)
class Components:
    """Principal components as rows, of shape (k, m), and the variance along each, of shape (k,)."""

    components: Floats
    variances: Floats
    ratios: Floats

    __repr__ = short_repr


def principal_components(moment: Any, count: int | float | None = None) -> Components:
    """Principal components of a private moment, in the data's units; post-processing.

    Parameters
    ----------
    moment : PrivateMoment
        Fitted with ``aim='components'``.
    count : int, float or None
        Number of components, share of the variance that they must explain, or None for all.
    """
    values, vectors = find_components(moment.covariance)
    values = np.maximum(values, 0.0)
    total = float(values.sum())
    ratios = values / total if total > 0 else np.full(values.size, 1 / values.size)
    k = check_count(count, values.size)
    if isinstance(k, float):
        k = min(int(np.searchsorted(np.cumsum(ratios), k)) + 1, values.size)
    return Components(vectors.T[:k], values[:k], ratios[:k])


def check_count(count: Any, size: int) -> int | float:
    """Validated number of components from 1 to `size`, or share of the variance strictly between 0 and 1."""
    if count is None:
        return size
    if isinstance(count, float | np.floating) and 0 < count < 1:
        return float(count)
    rule = f"an integer from 1 to {size}, or a share strictly between 0 and 1"
    return check_integer(count, "n_components", at_least=1, at_most=size, rule=rule)
