"""What the errors of a private moment will be for data that are described in public, before any of them is read.

By simulation of the fit itself, on records of the families in `simulation` that match the description. The errors
of a fit depend on the shape of the data, which a description does not tell, so the forecast is a range.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from matrixdp.adaptive.error_bars import MomentErrors
from matrixdp.adaptive.records import check_features
from matrixdp.adaptive.settings import settings_for
from matrixdp.adaptive.simulation import FAMILIES, FitOptions, simulate_errors
from matrixdp.answers.described_table import factor_loadings
from matrixdp.display import short_repr
from matrixdp.domain.bounds import Bounds, check_bounds
from matrixdp.domain.person import Person
from matrixdp.errors import ParameterError
from matrixdp.privacy import Neighbours, Privacy, check_privacy
from matrixdp.queries.base import parse_records
from matrixdp.types import Floats

_REPETITIONS = 3
_SEED = 1


@dataclass(frozen=True, eq=False)
class Description:
    """Public guesses about the data; the defaults are typical of tables in bounds somewhat wider than their range.

    Attributes
    ----------
    spread : float or array_like of shape (m,)
        Standard deviation of each feature, as a share of the width of its bounds: from 0 to 0.5.
    position : float or array_like of shape (m,)
        Mean of each feature, as a share of the width above the lower bound: from 0 to 1.
    correlation : float
        Root mean square of the correlations: from 0 to 1.
    """

    spread: ArrayLike = 0.15
    position: ArrayLike = 0.3
    correlation: float = 0.3

    __repr__ = short_repr

    def moments(self, size: int) -> tuple[Floats, Floats]:
        """Mean and covariance of records scaled to [-1, 1], of shape (size,) and (size, size).

        A spread that is not possible at its position is reduced to the largest that is.
        """
        mean = 2 * _within("position", self.position, 1.0, size) - 1
        std = np.minimum(2 * _within("spread", self.spread, 0.5, size), np.sqrt(1 - mean**2))
        wanted = float(_within("correlation", self.correlation, 1.0, 1)[0])
        loadings, common = factor_loadings(wanted, size)
        correlation = common * (loadings @ loadings.T)
        np.fill_diagonal(correlation, 1.0)
        return mean, correlation * np.multiply.outer(std, std)


@dataclass(frozen=True, eq=False)
class Forecast:
    """Root mean square errors to expect against the same records without privacy, in the data's units.

    Attributes
    ----------
    friendly : MomentErrors
        For Gaussian features.
    typical : MomentErrors
        Mean over all families of simulated records.
    hostile : MomentErrors
        For the family with the largest error of each number.
    """

    friendly: MomentErrors
    typical: MomentErrors
    hostile: MomentErrors

    __repr__ = short_repr


def forecast(
    bounds: Bounds,
    records: int,
    privacy: Privacy,
    *,
    description: Description | None = None,
    aim: str = "covariance",
    neighbours: str = Neighbours.REPLACE,
    person: str | Person | None = None,
) -> Forecast:
    """Errors of a private moment to expect for data that match a public description.

    Above some thousand records, fewer are simulated, each of which counts as several: their noise is that of all, but
    rare records are missing. The same arguments give the same forecast.

    Parameters
    ----------
    bounds : Bounds
    records : int
        The public number of records.
    privacy : Privacy
    description : Description, optional
        Guesses about the data; by default typical ones.
    aim, neighbours, person
        As for `private_moment`. With a person, `records` is the number of people, or of rows that count.

    Privacy
    -------
    Reads no data.

    Examples
    --------
    >>> box = Bounds([0, 0, 0], [10, 10, 10])
    >>> found = forecast(box, 3000, Privacy(1, 1e-6), description=Description(spread=0.1))
    >>> bool(found.friendly.mean_std.max() <= found.hostile.mean_std.max() < 0.2)
    True
    """
    settings_for(aim)
    check_bounds(bounds)
    check_features(bounds.size)
    check_privacy(privacy)
    who = {"neighbours": Neighbours.parse(neighbours), "person": Person.parse(person)}
    options = FitOptions(bounds=bounds, privacy=privacy, records=parse_records(records), aim=aim, **who)
    mean, covariance = (description or Description()).moments(bounds.size)
    found = {
        family: simulate_errors(family, mean, covariance, options, _SEED + index, _REPETITIONS).errors
        for index, family in enumerate(FAMILIES)
    }
    every, names, half = list(found.values()), list(found["Gaussian"]), bounds.halfwidths
    return Forecast(
        friendly=MomentErrors.in_units(found["Gaussian"], half),
        typical=MomentErrors.in_units({name: np.mean([one[name] for one in every], axis=0) for name in names}, half),
        hostile=MomentErrors.in_units({name: np.max([one[name] for one in every], axis=0) for name in names}, half),
    )


def _within(name: str, value: ArrayLike, most: float, size: int) -> Floats:
    """One number for each feature, from 0 to `most`."""
    array = np.asarray(value, dtype=np.float64)
    if array.shape not in ((), (size,)) or not ((array >= 0) & (array <= most)).all():
        raise ParameterError(
            f"{name} must be a number from 0 to {most:g}, or one for each of {size} features, got {value!r} instead."
        )
    return np.broadcast_to(array, (size,))
