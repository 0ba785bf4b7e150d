"""The private mean and covariance of a data set, as one pure function."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from matrixdp.adaptive.budget import FitBudget, Step, charge_fit
from matrixdp.adaptive.fit import check_designs, fit_moment
from matrixdp.adaptive.grid_records import check_features
from matrixdp.adaptive.out_of_core import validate_records
from matrixdp.adaptive.people_records import validate_people
from matrixdp.adaptive.postprocess import Fitted
from matrixdp.adaptive.settings import settings_for
from matrixdp.domain.bounds import Bounds, check_bounds
from matrixdp.domain.person import Person
from matrixdp.errors import DataError, ParameterError
from matrixdp.noise import Stream
from matrixdp.noise.covariance import check_orthonormal
from matrixdp.privacy import RECORD, Neighbours, Privacy, Unit, check_privacy
from matrixdp.queries.base import check_domain, parse_records
from matrixdp.types import Floats


@dataclass(frozen=True, eq=False)
class PrivateMoment:
    """A private mean and covariance, and their privacy cost. Safe to publish.

    Attributes
    ----------
    mean, mean_std : float64 arrays of shape (m,)
        In the data's units; the standard deviation is that of the noise, before shrinkage and to first order.
    covariance, covariance_std : float64 arrays of shape (m, m)
        About the mean, over N; positive semidefinite.
    fitted : Fitted
        Results for records scaled to [-1, 1].
    bounds : Bounds
    privacy : Privacy
        The guarantee of all steps together.
    neighbours : Neighbours
    mu : float
        Gaussian differential privacy of all steps; at most `privacy.mu`.
    steps : tuple of Step
        Cost of each step.
    simulation : bool
        Whether the noise is reproducible, hence not private.
    records : int
        The public number of records, or of people.
    unit : Unit
        What the guarantee protects: one record or one person.
    """

    fitted: Fitted
    bounds: Bounds
    privacy: Privacy
    neighbours: Neighbours
    mu: float
    steps: tuple[Step, ...]
    simulation: bool
    records: int
    unit: Unit = RECORD

    @property
    def mean(self) -> Floats:
        """Mean of each feature, of shape (m,)."""
        return self.bounds.midpoint + self.bounds.halfwidths * self.fitted.mean

    @property
    def mean_std(self) -> Floats:
        """Standard deviation of the noise in each mean, of shape (m,)."""
        return np.asarray(self.bounds.halfwidths * self.fitted.mean_std)

    @property
    def covariance(self) -> Floats:
        """Covariance about the mean, of shape (m, m)."""
        return self._in_units(self.fitted.covariance)

    @property
    def covariance_std(self) -> Floats:
        """Standard deviation of the noise in each covariance, of shape (m, m)."""
        return self._in_units(self.fitted.std)

    @property
    def second_moment(self) -> Floats:
        """Second moment about the box's midpoint, of shape (m, m)."""
        return self._in_units(self.fitted.second)

    def _in_units(self, matrix: Floats) -> Floats:
        return np.asarray(matrix * np.multiply.outer(self.bounds.halfwidths, self.bounds.halfwidths))


def private_moment(
    data: Any,
    bounds: Bounds,
    privacy: Privacy,
    *,
    aim: str = "covariance",
    directions: str | ArrayLike = "learned",
    records: int | None = None,
    neighbours: str = Neighbours.REPLACE,
    person: str | Person | None = None,
    ledger: str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    allowance: str | None = None,
    stream: Stream | None = None,
    simulation: bool = False,
) -> PrivateMoment:
    """Private mean and covariance, in coordinates learned with a part of the budget.

    Parameters
    ----------
    data : array, pandas, polars or Arrow table of shape (n, m), or what `open_records` takes
        Finite numbers; values outside the bounds are clipped to them. Out-of-core records are read up to six times.
    bounds : Bounds
        Public; never taken from the data.
    privacy : Privacy
        The whole budget.
    aim : 'covariance', 'components' or 'regression'
        Use of the result; selects the settings.
    directions : 'learned', 'standard' or array_like of shape (m, m)
        Directions of the coordinates of the final moment; a matrix must have orthonormal columns, for features scaled
        to [-1, 1].
    records : int, optional
        Public number of records; required for add-remove neighbours, and should be about right.
    neighbours : 'replace' or 'add-remove'
    person : str, optional
        The column that says whose row it is, if people may have several rows: each person counts once, and `records`
        is the number of people.
    ledger : path, optional
        Ledger that is charged for the whole fit, before the first random bit is drawn.
    dataset : str, optional
        Name of the data set in the ledger.
    allowance : str, optional
        The allowance of the data set that pays for the fit. Without one, what is not allotted pays for it.
    stream, simulation
        As for `matrixdp.release.release`.

    Privacy
    -------
    `privacy` for the given neighbours, all steps together. Errors in data or parameters are raised before anything is
    charged or drawn. docs/estimators.md has the proof of each step.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> data = rng.normal(size=(4000, 1)) * [1.0, 0.9] + 0.1 * rng.normal(size=(4000, 2))
    >>> moment = private_moment(data, Bounds([-5, -5], [5, 5]), Privacy(1, 1e-6))
    >>> moment.mu <= moment.privacy.mu
    True
    >>> [step.name for step in moment.steps]
    ['radius', 'rough moment', 'second radius', 'tail', 'final moment']
    """
    settings = settings_for(aim)
    check_bounds(bounds)
    check_features(bounds.size)
    check_privacy(privacy)
    who = Person.parse(person)
    budget = FitBudget(privacy, Neighbours.parse(neighbours), stream, simulation, person=who)
    basis = _basis(directions, bounds.size)
    count, on_grid = validate_records(data, bounds) if who is None else validate_people(data, bounds, who)
    public = public_records(records, count, budget.neighbours)
    check_designs(budget, bounds.size, public)
    description = {"query": "learned moment", "aim": aim, "shape": [bounds.size, bounds.size], "records": public}
    charge = charge_fit(budget, description, ledger=ledger, dataset=dataset, allowance=allowance)
    with np.errstate(all="ignore"):  # a warning would reveal something about private data
        grid_records = on_grid(public)
        with charge:
            fitted = fit_moment(grid_records, settings, budget, public=public, basis=basis)
    spent = budget.mu, budget.steps
    return PrivateMoment(fitted, bounds, privacy, budget.neighbours, *spent, simulation, public, budget.unit)


def _basis(directions: Any, size: int) -> Floats | None:
    if isinstance(directions, str):
        if directions not in ("learned", "standard"):
            raise ParameterError(
                f"directions must be 'learned', 'standard' or an orthonormal matrix, got {directions!r} instead."
            )
        return None if directions == "learned" else np.eye(size)
    return check_orthonormal(directions, size)


def public_records(records: Any, found: int, neighbours: Neighbours) -> int:
    """Validated public number of records; for replace neighbours it is the number in the data."""
    if found < 1:
        raise DataError("data must have at least one record.")
    if neighbours is Neighbours.REPLACE:
        if records is not None and parse_records(records) != found:
            raise ParameterError(
                f"records must be {found}, as the data have, or be left out, for replace neighbours, got {records!r} "
                "instead."
            )
        return found
    if records is None:
        raise ParameterError("records must be given for add-remove neighbours: their true number is private.")
    public = parse_records(records)
    check_domain(found, public, neighbours)
    return public
