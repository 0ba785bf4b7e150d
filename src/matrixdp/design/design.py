"""A frozen plan for one release, made without the data."""

from __future__ import annotations

import math
import operator
import os
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from matrixdp.checks import root_mean_square
from matrixdp.design.allocations import Allocation, isotropic
from matrixdp.design.explain import describe_in_a_line, explain, plot_design, render_design, summarise
from matrixdp.design.grid import Grid, fit_grid, rounds_entrywise
from matrixdp.design.theorem2 import CALIBRATIONS
from matrixdp.errors import ParameterError
from matrixdp.gdp import gdp_epsilon, share_mu
from matrixdp.ledger import Gaussian, Ledger
from matrixdp.noise.matrix import Covariance, MatrixGaussian, adjusted_std
from matrixdp.noise.stream import Stream
from matrixdp.noise.structure import NoiseStructure
from matrixdp.privacy import Privacy, warn_large_delta
from matrixdp.queries import MatrixQuery
from matrixdp.queries.base import OfQuery
from matrixdp.sensitivity import Distance
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats

if TYPE_CHECKING:
    from matrixdp.release.result import Release


@builtin_kind
@dataclass(frozen=True, eq=False)
class Design(OfQuery):
    """A plan of what to release, with how much noise, and at what cost; from `make_design`, `unimodal` or `equimodal`.

    Attributes
    ----------
    query : MatrixQuery
    privacy : Privacy
        The guarantee that was asked for.
    share : float
        Share of ``privacy.mu^2`` that this design may use.
    calibration : str
    allocation : Allocation
    rowcov, colcov : Covariance
        Of the noise; for an optimal allocation over vertices, of the answer's entries in one column.
    grid : Grid
    attained : float
        Distance, before rounding, that some pair of neighbours has.
    flat : bool
        Whether the noise treats the answer's entries as one column.
    structure : NoiseStructure or None
        What is measured beside the answer in its noise, at no cost to privacy: the squares of the features of a
        moment.

    Privacy
    -------
    A release of this design is `distance`-GDP, and `distance` is at most `mu`, for the query's neighbours. It is
    exact where `exact` says so; otherwise `distance` is an upper bound.
    """

    query: MatrixQuery
    privacy: Privacy
    share: float
    calibration: str
    allocation: Allocation
    rowcov: Covariance
    colcov: Covariance
    grid: Grid
    attained: float
    flat: bool = False
    structure: NoiseStructure | None = field(default=None, metadata={"omit_none": True})

    @cached_property
    def noise(self) -> MatrixGaussian:
        """Law of the noise; a `structure` lowers it further."""
        return MatrixGaussian(self.rowcov, self.colcov)

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: cached properties may be as large as the answer and are not sent to other processes."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Set the fields only: what follows from them is computed again, and must be checked again."""
        self.__dict__.update({item.name: state[item.name] for item in fields(self)})

    @property
    def _state(self) -> tuple[Any, ...]:
        """The values of all fields."""
        return tuple(getattr(self, item.name) for item in fields(self))

    @cached_property
    def entrywise(self) -> bool:
        """True if the records are rounded entry by entry, so that a release can do so block by block."""
        return rounds_entrywise(self.query, self.noise)

    def ideal_distance(self) -> Distance:
        """Distance between neighbours before rounding, for the covariances as they are."""
        changes = self.query.sensitivity
        if self.structure is not None:
            found = changes.structured_distance(self.colcov, self.structure)
        else:
            found = (changes.flat() if self.flat else changes).distance(self.rowcov, self.colcov)
        if not isinstance(found, Distance) or not 0 < found.value < math.inf or not found.attained <= found.value:
            raise ParameterError(
                f"{type(changes).__name__}.distance must return a Distance whose value is finite and greater than 0, "
                "and whose attained distance is not above it."
            )
        return found

    def check(self) -> None:
        """Raise a `ParameterError` unless query and noise imply the stored distance, and the budget covers it."""
        if not _fits_together(self):
            raise ParameterError("the parts of the design do not fit together; it was altered.")
        with np.errstate(all="ignore"):
            ideal = self.ideal_distance()
            grid = fit_grid(self.query, self.noise, ideal.value, flat=self.flat, structure=self.structure)
        stored = self.grid
        # Eigenvalues differ a little between machines, and so may certified bounds for rotated noise.
        certain = self.rowcov.directions is None and self.colcov.directions is None
        loose = 1e-6 if certain else 1e-4
        if (grid.bits, grid.limit) != (stored.bits, stored.limit) or not (
            stored.distance * (1 - loose) <= grid.distance <= stored.distance * (1 + 1e-12)
            and stored.distance <= self.mu
            and 0 <= self.attained <= (ideal.attained if certain else ideal.value) * (1 + 1e-6)
        ):
            raise ParameterError("the design's guarantee does not follow from its query and its noise; it was altered.")

    def check_once(self) -> None:
        """`check`, unless this very object was checked before or comes from `make_design`; copies are checked again."""
        checked = self.__dict__.get("_checked", ())
        if checked and all(map(operator.is_, checked, self._state)):
            return
        for name in set(self.__dict__) - {item.name for item in fields(self)}:
            del self.__dict__[name]  # computed from other fields
        self.check()
        self.mark_checked()

    def mark_checked(self) -> None:
        """Note that the design needs no check as long as its fields stay as they are."""
        self.__dict__["_checked"] = self._state

    @cached_property
    def mu(self) -> float:
        """The budget, in standard deviations."""
        return share_mu(self.privacy.mu, self.share)

    @property
    def distance(self) -> float:
        """Mu that a release spends: the largest distance of neighbours, in standard deviations, with all rounding."""
        return self.grid.distance

    @property
    def exact(self) -> bool:
        """True if some pair of neighbours attains the distance, up to rounding."""
        return self.attained >= self.distance * (1 - 1e-6)

    @property
    def epsilon(self) -> float:
        """Epsilon that a release spends, at the delta that was asked for."""
        return gdp_epsilon(mu=self.distance, delta=self.privacy.delta)

    @property
    def event(self) -> Gaussian:
        """The cost of a release in a ledger."""
        return Gaussian(self.distance)

    @cached_property
    def std(self) -> Floats:
        """Standard deviation of each released entry, of the answer's shape; zero where the entry is public.

        For a symmetric answer it is after symmetrisation, ``(Y + Y')/2``: off the diagonal smaller by sqrt(2) than
        `noise.std`, the ``sqrt(sigma_i sigma_j)`` of the paper, and on the diagonal smaller by what `structure` adds.
        """
        if self.flat:
            if not self.query.symmetric:
                return np.sqrt(self.rowcov.marginal()).reshape(self.query.shape)
            m = self.query.shape[0]
            covariance = self.rowcov.matrix().reshape(m, m, m, m)
            own = np.einsum("ijij->ij", covariance)
            return np.asarray(np.sqrt((own + own.T + 2 * np.einsum("ijji->ij", covariance)) / 4))
        if self.query.total is not None:
            return adjusted_std(self.noise)
        if self.structure is not None:
            std = np.sqrt(self.structure.variances(self.noise))
        elif self.query.symmetric:
            std = self.noise.symmetric_std
        else:
            return self.noise.std
        if self.query.public is not None:
            std[self.query.public] = 0.0
        return std

    @property
    def distinct_std(self) -> Floats:
        """`std`, or its first row where all rows are alike."""
        return self.std[:1] if self.std.strides[0] == 0 else self.std

    @property
    def rmse(self) -> float:
        """Root mean square of the standard deviations."""
        return root_mean_square(self.distinct_std)

    @property
    def directional(self) -> bool:
        """True if the noise differs between directions, apart from a structure's part."""
        return self.flat or not (self.rowcov.scalar and self.colcov.scalar)

    @property
    def relative_error(self) -> float:
        """Root mean square of the standard deviations over the largest absolute value that each entry can have."""
        std = self.distinct_std
        return root_mean_square(std / self.query.magnitude[: len(std)])

    @cached_property
    def limit(self) -> float | None:
        """Lower bound on the total squared error of every Gaussian noise of any covariance that meets the same budget.

        The sum of all squared standard deviations, each divided by the entry's `error_units`, which are the largest
        absolute values of the entries for most queries. None where no bound is known.
        """
        query = self.query
        units = np.broadcast_to(query.error_units, query.shape)
        least = query.sensitivity.least_error(units, symmetric=query.symmetric)
        return None if least is None else least / self.mu**2

    @property
    def excess(self) -> float | None:
        """Upper bound on the total squared error, in the units of `limit`, over the least of any Gaussian noise."""
        if self.limit is None:
            return None
        std = self.distinct_std
        mean = root_mean_square(std / self.query.error_units[: len(std)]) ** 2
        return mean * math.prod(self.query.shape) / self.limit

    @cached_property
    def isotropic(self) -> Design:
        """Exactly calibrated noise that is the same in every direction, for comparison."""
        if self.calibration == "exact" and not self.directional and self.structure is None:
            return self
        return self.remade(allocation=isotropic(), directions=None, calibration="exact")

    def remade(self, **changes: Any) -> Design:
        """The design that `make_design` makes of the same options but for `changes`."""
        from matrixdp.design.builder import make_design

        options = {
            "privacy": self.privacy,
            "allocation": self.allocation,
            "directions": self.given_directions,
            "calibration": self.calibration,
            "share": self.share,
            "structured": self.structure is not None,
        }
        return make_design(self.query, **{**options, **changes})

    @property
    def gain(self) -> float:
        """Relative error with isotropic noise, over that of this design."""
        return self.isotropic.relative_error / self.relative_error

    def alternatives(self) -> dict[str, float]:
        """Root mean square error under each calibration, with the same directions and allocation."""
        others = [name for name in CALIBRATIONS if name != self.calibration and not self.flat]
        if gdp_epsilon(mu=self.mu, delta=self.privacy.delta) == 0.0:  # delta alone covers the share
            others = [name for name in others if name == "exact"]  # which leaves no epsilon for Theorem 2
        found = {name: self.remade(calibration=name, structured=True).rmse for name in others}
        return {self.calibration: self.rmse, **found}

    @property
    def directions(self) -> Floats | None:
        """Directions of the features, one per column; None for the standard basis."""
        directions = self._side.directions
        if directions is None or self.query.features == self._side.size:
            return directions
        return directions[1:, 1:]  # without the constant of moments

    @property
    def given_directions(self) -> Floats | None:
        """`directions`, unless the allocation chose them."""
        return None if self.allocation.chooses_directions else self.directions

    @property
    def _side(self) -> Covariance:
        return self.rowcov if self.query.side == "rows" else self.colcov

    def release(
        self,
        data: Any,
        *,
        clip: bool = True,
        missing: str = "error",
        ledger: Ledger | str | os.PathLike[str] | None = None,
        dataset: str | None = None,
        request: str | None = None,
        allowance: str | None = None,
        stream: Stream | None = None,
        simulation: bool = False,
    ) -> Release:
        """Release the query's answer on private data.

        Parameters
        ----------
        data : array, pandas, polars or Arrow table of shape (records, features), or what the query takes
            Arrays on a GPU (CuPy, PyTorch, JAX) are summed there; a noisy data set stays there (`Release.to_host`).
        clip : bool
            Move records into their bounds; otherwise one outside is an error.
        missing : 'error' or 'midpoint'
            Whether NaN and infinity raise an error or are replaced with the midpoint of their bounds.
        ledger : Ledger or path, optional
            Where the release is charged, before its first random bit is drawn.
        dataset : str, optional
            Name of the data set in the ledger.
        request : str, optional
            Request id. A later call with the same id and the same options returns the stored release, without a charge
            and without reading the data: after a correction of the data, use a new id. With another design, `clip`,
            `missing` or way to read the data, it is refused with a `LedgerError` that names what differs. If another
            process releases the same request, its release is waited for (`Ledger.wait`).
        allowance : str, optional
            The allowance of the data set that pays for the release. Without one, what is not allotted pays for it.
        stream : Stream, optional
            For simulations only. A release that protects anything draws from a new stream, keyed from the operating
            system.
        simulation : bool
            Must be True if a stream is given. The release is permanently marked as a simulation.

        Privacy
        -------
        `distance`-GDP for `neighbours`, under the assumption that AES-256 in counter mode cannot be told from random
        bits. Errors in the data are raised before anything is charged or drawn. Without a ledger, the cumulative
        privacy loss is not tracked.
        """
        from matrixdp.release.charging import open_account  # the only imports of a higher layer
        from matrixdp.release.result import release_design

        records = getattr(self.query, "records", None)
        if records is not None and not simulation:
            warn_large_delta(self.privacy, records)
        account = open_account(ledger, dataset, request, allowance, stream=stream, simulation=simulation)
        options: dict[str, Any] = {"clip": clip, "missing": missing, "stream": stream, "simulation": simulation}
        released: Release = release_design(self, data, account, **options).release
        return released

    explain = explain
    plot = plot_design
    _repr_html_ = render_design
    __repr__ = describe_in_a_line
    __str__ = summarise


def check_design(design: Any) -> None:
    """Raise a `ParameterError` unless `design` is a design whose guarantee holds; each design is checked once."""
    if not isinstance(design, Design):
        raise ParameterError(f"design must be a Design, as make_design returns, got {type(design).__name__} instead.")
    design.check_once()


def _fits_together(design: Design) -> bool:
    """True if all fields have their types, and the covariances have the size of the answer."""
    first: tuple[Any, ...] = (MatrixQuery, Privacy, int | float, str, Allocation, Covariance, Covariance)
    kinds = (*first, Grid, int | float, bool, NoiseStructure | None)
    matching = all(isinstance(value, kind) for value, kind in zip(design._state, kinds, strict=True))
    if not matching or design.calibration not in CALIBRATIONS:
        return False
    height, width = design.query.shape
    if design.structure is not None:
        alike = not design.query.symmetric or design.rowcov.same_as(design.colcov)
        if design.flat or not alike or not design.query.structured or not design.structure.fits(design.query.shape):
            return False
    sizes = (height * width, 1) if design.flat else (height, width)
    whole = {type(design.grid.bits), type(design.grid.limit)} == {int}
    return whole and (design.rowcov.size, design.colcov.size) == sizes
