"""A frozen plan for one release, made without the data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from matrixdp.calibration import CALIBRATIONS, precision_budget
from matrixdp.design.allocation import Allocation, isotropic, uniform
from matrixdp.design.grid import Grid, fit_grid
from matrixdp.design.solver import best_covariance
from matrixdp.errors import ParameterError
from matrixdp.ledger import Gaussian
from matrixdp.noise.covariance import Covariance, Floats, check_orthonormal
from matrixdp.noise.matrix import MatrixGaussian
from matrixdp.plain import plain
from matrixdp.privacy import Neighbours, Privacy, gdp_epsilon, share_mu
from matrixdp.queries import MatrixQuery
from matrixdp.sensitivity import Distance, Vertices

if TYPE_CHECKING:
    from matrixdp.release import Release


_NO_GRID = Grid(0, 0, math.inf)


@plain
@dataclass(frozen=True, eq=False)
class Design:
    """What will be released, with how much noise, and at what cost. Made by `make_design`, `unimodal` or `equimodal`.

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

    @cached_property
    def noise(self) -> MatrixGaussian:
        """Law of the noise."""
        return MatrixGaussian(self.rowcov, self.colcov)

    def ideal_distance(self) -> Distance:
        """Distance between neighbours before rounding, for the covariances as they are."""
        changes = self.query.sensitivity
        return (changes.flat() if self.flat and isinstance(changes, Vertices) else changes).distance(
            self.rowcov, self.colcov
        )

    def check(self) -> None:
        """An error unless the stored distance covers what query and noise imply, and the budget covers the distance."""
        grid = fit_grid(self.query, self.noise, self.ideal_distance().value, flat=self.flat)
        stored = self.grid
        if (grid.bits, grid.limit) != (stored.bits, stored.limit) or not (
            grid.distance <= stored.distance * (1 + 1e-12) and stored.distance <= self.mu
        ):
            raise ParameterError("the design's guarantee does not follow from its query and its noise; it was altered.")

    @property
    def mu(self) -> float:
        """The budget, in standard deviations."""
        return share_mu(self.privacy.mu, self.share)

    @property
    def distance(self) -> float:
        """What a release spends: how far neighbours can be apart, in standard deviations, with all rounding in it."""
        return self.grid.distance

    @property
    def exact(self) -> bool:
        """Whether some pair of neighbours attains the distance, up to rounding."""
        return self.attained >= self.distance * (1 - 1e-6)

    @property
    def epsilon(self) -> float:
        """What a release spends, as epsilon at the delta that was asked for."""
        return gdp_epsilon(self.distance, self.privacy.delta)

    @property
    def event(self) -> Gaussian:
        """What a release costs in a ledger."""
        return Gaussian(self.distance)

    @property
    def neighbours(self) -> Neighbours:
        """The neighbours that the guarantee is for."""
        return self.query.neighbours

    @cached_property
    def std(self) -> Floats:
        """Standard deviation of each released entry, of the answer's shape; zero where the entry is public."""
        if self.flat:
            return _flat_std(self.query, self.noise)
        if not self.query.symmetric:
            return self.noise.std
        std = self.noise.symmetric_std
        if self.query.public is not None:
            std[self.query.public] = 0.0
        return std

    @property
    def rmse(self) -> float:
        """Root mean square of the standard deviations."""
        std = self.std[:1] if self.std.strides[0] == 0 else self.std  # rows that are alike are taken once
        return float(np.sqrt(np.square(std).mean()))

    @property
    def directional(self) -> bool:
        """Whether the noise differs between directions."""
        return self.flat or not (self.rowcov.scalar and self.colcov.scalar)

    @property
    def relative_error(self) -> float:
        """Root mean square of the standard deviations over the largest absolute value that each entry can have."""
        rows = 1 if self.std.strides[0] == 0 else None
        return float(np.sqrt(np.square(self.std[:rows] / self.query.magnitude[:rows]).mean()))

    @cached_property
    def isotropic(self) -> Design:
        """Exactly calibrated noise that is the same in every direction, for comparison."""
        if self.calibration == "exact" and not self.directional:
            return self
        return make_design(self.query, self.privacy, share=self.share, allocation=isotropic())

    @property
    def gain(self) -> float:
        """How many times smaller the relative error is than with isotropic noise."""
        return self.isotropic.relative_error / self.relative_error

    def alternatives(self) -> dict[str, float]:
        """Root mean square error under each calibration, with the same directions and allocation."""
        if self.flat:
            return {self.calibration: self.rmse}
        return {name: rmse for name in CALIBRATIONS if (rmse := self._rmse_under(name)) is not None}

    def _rmse_under(self, calibration: str) -> float | None:
        """None where Theorem 2 has no epsilon to work with, since delta alone covers the share."""
        if calibration == self.calibration:
            return self.rmse
        if calibration != "exact" and gdp_epsilon(self.mu, self.privacy.delta) == 0.0:
            return None
        options: dict[str, Any] = {"allocation": self.allocation, "directions": self.directions, "share": self.share}
        return make_design(self.query, self.privacy, calibration=calibration, **options).rmse

    @property
    def directions(self) -> Floats | None:
        """Directions of the features, one a column; None for the standard basis."""
        directions = self._side.directions
        if directions is None or self.query.features == self._side.size:
            return directions
        return directions[1:, 1:]  # without the constant of moments

    @property
    def _side(self) -> Covariance:
        return self.rowcov if self.query.side == "rows" else self.colcov

    def release(self, data: Any, **options: Any) -> Release:
        """Release the query's answer on private data; see `matrixdp.release.release`."""
        from matrixdp.release import release  # the one door from a design to the data

        return release(self, data, **options)

    def __str__(self) -> str:
        from matrixdp.design.explain import explain

        return explain(self)


def make_design(
    query: MatrixQuery,
    privacy: Privacy,
    *,
    allocation: Allocation | None = None,
    directions: ArrayLike | None = None,
    calibration: str = "exact",
    share: float = 1.0,
) -> Design:
    """A design that meets `privacy` for `query`.

    Parameters
    ----------
    query : MatrixQuery
    privacy : Privacy
    allocation : Allocation, optional
        `uniform()` by default: noise proportional to each feature's range.
    directions : array_like of shape (features, features), optional
        Orthonormal columns, chosen without the data or from an earlier private release. The standard basis by default.
    calibration : str
        'exact', or the paper's 'theorem2', 'theorem2-corrected', 'theorem2-psd'.
    share : float
        Share of ``privacy.mu^2`` to use, for a budget that is split among releases.

    Privacy
    -------
    Looks at no data. With 'exact', as little noise as the sensitivity set allows for this shape of noise.

    Examples
    --------
    >>> from matrixdp.bounds import Bounds
    >>> from matrixdp.queries import Identity
    >>> query = Identity(Bounds([0] * 6, [1] * 6), records=248)
    >>> design = make_design(query, Privacy(epsilon=1, delta=1 / 248))
    >>> round(float(design.std[0, 0]), 2)
    5.3
    """
    allocation = uniform() if allocation is None else allocation
    _check(query, privacy, allocation, calibration)
    share_mu(privacy.mu, share)
    if allocation.rule == "optimal" and isinstance(query.sensitivity, Vertices):
        if directions is not None or calibration != "exact":
            raise ParameterError("directions and calibration must be left out when vertices are allocated optimally.")
        return _optimal_over_vertices(query, query.sensitivity, privacy, share, allocation)
    basis = None if directions is None else check_orthonormal(directions, query.features)
    if calibration == "exact":
        variances = allocation.variances(query, basis)
    else:
        variances = 1 / np.sqrt(allocation.precisions(query))
    rowcov, colcov = _sides(query, *query.lift(variances, basis))
    plan = Design(query, privacy, share, calibration, allocation, rowcov, colcov, _NO_GRID, 0.0)
    if calibration == "exact":
        return _fit(plan, plan.ideal_distance().value / plan.mu)
    return _fit(plan, _theorem2_scale(query, privacy, share, calibration, rowcov, colcov))


def _fit(plan: Design, scale: float) -> Design:
    """The plan with its noise multiplied by `scale`, or by the little more that rounding calls for."""
    for attempt in range(30):
        rowcov, colcov = _scaled(plan, scale)
        scaled = replace(plan, rowcov=rowcov, colcov=colcov)
        ideal = scaled.ideal_distance()
        grid = fit_grid(plan.query, scaled.noise, ideal.value, flat=plan.flat)
        if grid.distance <= plan.mu:
            return replace(scaled, grid=grid, attained=ideal.attained)
        scale *= max(grid.distance / plan.mu, 1.0) * (1 + 2.0 ** (attempt - 52))
    raise ParameterError(
        f"the bounds are too wide for epsilon {plan.privacy.epsilon:g} at delta {plan.privacy.delta:g}: rounding "
        "alone would use the budget. Give narrower bounds or a larger epsilon."
    )


def _scaled(plan: Design, scale: float) -> tuple[Covariance, Covariance]:
    """The plan's covariances with all standard deviations multiplied by `scale`."""
    if plan.flat or plan.query.side == "rows":
        return plan.rowcov.scaled(scale**2), plan.colcov
    if plan.query.side == "both":
        side = plan.colcov.scaled(scale)
        return side, side
    return plan.rowcov, plan.colcov.scaled(scale**2)


def _sides(query: MatrixQuery, variances: Floats, directions: Floats | None) -> tuple[Covariance, Covariance]:
    alike = directions is None and bool((variances == variances[0]).all())
    side = Covariance.identity(variances.size, variances[0]) if alike else Covariance(variances, directions)
    if query.side == "both":
        return side, side
    if query.side == "rows":
        return side, Covariance.identity(query.shape[1])
    return Covariance.identity(query.shape[0]), side


def _theorem2_scale(
    query: MatrixQuery, privacy: Privacy, share: float, variant: str, rowcov: Covariance, colcov: Covariance
) -> float:
    """Factor on the standard deviations after which ``||sigma(rowcov^-1)|| ||sigma(colcov^-1)|| = phi^2``."""
    if share != 1.0:
        mu = share_mu(privacy.mu, share)
        privacy = Privacy(gdp_epsilon(mu, privacy.delta), privacy.delta)
    budget = precision_budget(
        privacy, query.shape, sensitivity=query.sensitivity.frobenius, gamma=query.gamma, variant=variant
    )
    norms = [math.sqrt(float((1 / cov.variances**2).sum())) for cov in (rowcov, colcov)]
    return math.sqrt(norms[0] * norms[1] / budget)


def _optimal_over_vertices(
    query: MatrixQuery, changes: Vertices, privacy: Privacy, share: float, allocation: Allocation
) -> Design:
    size = query.shape[0] * query.shape[1]
    weights = (
        np.ones(size) if allocation.values is None else np.broadcast_to(allocation.values, query.shape).reshape(-1)
    )
    solution = best_covariance(changes.changes.reshape(-1, size), weights)
    rowcov, colcov = Covariance.dense(solution.covariance), Covariance.identity(1)
    plan = Design(query, privacy, share, "exact", allocation, rowcov, colcov, _NO_GRID, 0.0, flat=True)
    return _fit(plan, plan.ideal_distance().value / plan.mu)


def _flat_std(query: MatrixQuery, noise: MatrixGaussian) -> Floats:
    if not query.symmetric:
        return np.sqrt(noise.rowcov.marginal()).reshape(query.shape)
    m = query.shape[0]
    covariance = noise.rowcov.matrix().reshape(m, m, m, m)
    own = np.einsum("ijij->ij", covariance)
    return np.asarray(np.sqrt((own + own.T + 2 * np.einsum("ijji->ij", covariance)) / 4))


def _check(query: Any, privacy: Any, allocation: Any, calibration: Any) -> None:
    if not isinstance(query, MatrixQuery):
        raise ParameterError(
            f"query must be a query such as Moments(bounds, records=...), got {type(query).__name__} instead."
        )
    if not isinstance(privacy, Privacy):
        raise ParameterError(f"privacy must be Privacy(epsilon, delta), got {type(privacy).__name__} instead.")
    if not isinstance(allocation, Allocation):
        raise ParameterError("allocation must be uniform(), isotropic(), binary(...), shares(...) or optimal(...).")
    if calibration not in CALIBRATIONS:
        raise ParameterError(f"calibration must be one of {', '.join(CALIBRATIONS)}, got {calibration!r} instead.")
