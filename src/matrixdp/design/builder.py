"""From a query and a budget to a design: `make_design`, the paper's two algorithms, and the error at other epsilons."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from matrixdp.checks import check_integer, check_magnitude, power_of_two, to_floats
from matrixdp.design.allocations import Allocation, Kernel, noise_sides, parse_allocation, shares
from matrixdp.design.design import Design
from matrixdp.design.grid import Grid, fit_grid
from matrixdp.design.theorem2 import CALIBRATIONS, precision_budget
from matrixdp.display import load_pandas, short_repr
from matrixdp.errors import ParameterError, show
from matrixdp.gdp import gdp_epsilon, share_mu
from matrixdp.noise.matrix import Covariance, check_orthonormal
from matrixdp.plots import BLUE, ORANGE, open_axes
from matrixdp.privacy import Neighbours, Privacy, check_privacy
from matrixdp.queries import Query
from matrixdp.queries.base import MatrixQuery, check_query
from matrixdp.sensitivity import FrobeniusBall
from matrixdp.sensitivity.quadratic import ENUMERATE
from matrixdp.types import Floats

_NO_NOISE, _NO_GRID = Covariance.identity(1), Grid(0, 0, math.inf)  # of drafts
_LARGEST_SCALE = 1e150
_POINTS, _FACTOR = 9, 10.0  # by default, from a tenth of the design's epsilon to ten times of it


def make_design(
    query: MatrixQuery,
    privacy: Privacy,
    *,
    allocation: Allocation | str | None = None,
    directions: ArrayLike | None = None,
    calibration: str = "exact",
    share: float = 1.0,
    structured: bool = True,
) -> Design:
    """A design that meets `privacy` for `query`.

    Parameters
    ----------
    query : MatrixQuery
    privacy : Privacy
    allocation : Allocation or its name, optional
        `uniform()` by default: noise proportional to each feature's range. For a Gram matrix against public points
        the default is 'kernel', noise with the kernel's own covariance, where that has less total variance.
    directions : array_like of shape (features, features) or PrincipalDirections, optional
        Orthonormal columns, chosen without the data or from an earlier private release. The standard basis by default.
    calibration : str
        'exact', or the paper's 'theorem2', 'theorem2-corrected', 'theorem2-psd'.
    share : float
        Share of ``privacy.mu^2`` to use, for a budget that is split among releases.
    structured : bool
        Whether the noise may follow the structure of the query: additional precision for a moment's diagonal, which
        costs no privacy, and noise on the edges of a Laplacian. False gives noise with one covariance for rows and
        columns, as in the paper. Isotropic noise and the paper's calibrations are never structured.

    Privacy
    -------
    Looks at no data. With 'exact', as little noise as the sensitivity set allows for this shape of noise.

    Examples
    --------
    >>> from matrixdp.domain.bounds import Bounds
    >>> from matrixdp.queries import Identity
    >>> query = Identity(Bounds([0] * 6, [1] * 6), records=248)
    >>> design = make_design(query, Privacy(epsilon=1, delta=1 / 248))
    >>> round(float(design.std[0, 0]), 2)
    5.3
    """
    directions = getattr(directions, "directions", directions)
    default = allocation is None and directions is None and calibration == "exact"
    allocation = parse_allocation(allocation)
    check_query(query)
    check_privacy(privacy)
    if calibration not in CALIBRATIONS:
        raise ParameterError(f"calibration must be one of {', '.join(CALIBRATIONS)}, got {show(calibration)} instead.")
    share_mu(privacy.mu, share)
    draft = Design(query, privacy, share, calibration, allocation, _NO_NOISE, _NO_NOISE, _NO_GRID, 0.0)
    try:
        with np.errstate(all="ignore"):  # infinities and NaN raise below
            design = _shape_noise(draft, directions, structured=structured)
            if default and query.own_covariance is not None:  # where it has less noise; both are public
                other = _shape_noise(replace(draft, allocation=Kernel()), None, structured=structured)
                return other if other.rmse < 0.9995 * design.rmse else design
            return design
    except (ArithmeticError, np.linalg.LinAlgError):
        raise ParameterError(
            f"no noise can be computed for {type(query).__name__} with these parameters: they are too far apart. "
            "Change the units, or give weights and shares that are closer to each other."
        ) from None


def _shape_noise(draft: Design, directions: ArrayLike | None, *, structured: bool) -> Design:
    """The draft with the noise of its allocation and calibration."""
    query, allocation, exact = draft.query, draft.allocation, draft.calibration == "exact"
    entries = allocation.entry_covariance(query)
    if entries is not None:
        if directions is not None or not exact:
            raise ParameterError("directions and calibration must be left out when vertices are allocated optimally.")
        return _fit(replace(draft, rowcov=entries, flat=True))
    if directions is not None and allocation.chooses_directions:
        raise ParameterError(f"directions must be left out for the allocation {allocation.rule!r}, which chooses them.")
    basis = None if directions is None else check_orthonormal(directions, query.features)
    basis = allocation.own_directions(query) if allocation.chooses_directions else basis
    if basis is not None and allocation.named:
        raise ParameterError("important must be numbers of directions when directions are given; names mean features.")
    variances = allocation.variances(query, basis) if exact else 1 / np.sqrt(allocation.precisions(query))
    rowcov, colcov = noise_sides(query, _normalise(variances, query.features), basis)
    draft = replace(draft, rowcov=rowcov, colcov=colcov)
    drafts = [draft]
    if exact and structured and allocation.structured and query.structured:
        structure = query.sensitivity.free_structure(colcov)
        if structure is not None:
            refined = replace(draft, structure=structure)
            # In a rotated basis of few features the bound without squares is exact, and that with them is not.
            drafts = [refined, draft] if basis is not None and query.features <= ENUMERATE else [refined]
    fitted = [_fit(one) for one in drafts]
    return fitted[0] if len(fitted) == 1 else min(fitted, key=lambda design: design.relative_error)


def _normalise(variances: Floats, features: int) -> Floats:
    """Variances of an allocation in other units, the largest in [1, 4); a power of four loses no bit."""
    array = np.asarray(variances, np.float64)
    if array.shape != (features,) or not (np.isfinite(array) & (array > 0)).all():
        raise ParameterError(f"the allocation must give {features} finite and positive variances, one a direction.")
    return array / power_of_two(math.sqrt(float(array.max()))) ** 2


def _fit(draft: Design) -> Design:
    """The draft with as much noise as its calibration asks for, or a little more to allow for rounding."""
    scale = draft.ideal_distance().value / draft.mu if draft.calibration == "exact" else _theorem2_scale(draft)
    for attempt in range(30):
        if not 1 / _LARGEST_SCALE <= scale <= _LARGEST_SCALE:  # or NaN
            break
        design = scale_design(draft, scale)
        if design.distance <= draft.mu:
            design.mark_checked()
            return design
        scale *= max(design.distance / draft.mu, 1.0) * (1 + 2.0 ** (attempt - 52))
    raise ParameterError(
        f"the bounds are too wide for epsilon {draft.privacy.epsilon:g} at delta {draft.privacy.delta:g}: rounding "
        "alone would use the budget. Give narrower bounds or a larger epsilon."
    )


def scale_design(design: Design, factor: float, **changes: Any) -> Design:
    """The design with all standard deviations multiplied by `factor`, and its grid; `changes` are of other fields.

    With another query it is for answers that are read off several releases of one design, whose noise is a combination
    of theirs.
    """
    rowcov, colcov = design.rowcov, design.colcov
    if design.flat or design.query.side == "rows":
        rowcov = rowcov.scaled(factor**2)
    elif design.query.side == "both":
        rowcov = colcov = colcov.scaled(factor)
    else:
        colcov = colcov.scaled(factor**2)
    structure = None if design.structure is None else design.structure.scaled(factor)
    scaled = replace(design, rowcov=rowcov, colcov=colcov, structure=structure, **changes)
    ideal = scaled.ideal_distance()
    grid = fit_grid(scaled.query, scaled.noise, ideal.value, flat=scaled.flat, structure=structure)
    return replace(scaled, grid=grid, attained=ideal.attained)


def _theorem2_scale(draft: Design) -> float:
    """Factor on the standard deviations after which ``||sigma(rowcov^-1)|| ||sigma(colcov^-1)|| = phi^2``."""
    query, privacy = draft.query, draft.privacy
    if draft.share != 1.0:
        privacy = Privacy(gdp_epsilon(mu=draft.mu, delta=privacy.delta), privacy.delta)
    budget = precision_budget(
        privacy, query.shape, sensitivity=query.sensitivity.frobenius, gamma=query.gamma, variant=draft.calibration
    )
    if not 0 < budget < math.inf:
        raise ParameterError(
            f"epsilon must be larger for calibration {draft.calibration!r}, got {privacy.epsilon:g} instead."
        )
    norms = []  # of the inverse variances
    for variances in (draft.rowcov.variances, draft.colcov.variances):
        unit = power_of_two(float(variances.min()))
        norms.append(math.sqrt(float((1 / (variances / unit) ** 2).sum())) / unit)
    return math.sqrt(norms[0] * norms[1] / budget)


def unimodal(
    *,
    epsilon: float,
    delta: float,
    sensitivity: float,
    gamma: float,
    theta: ArrayLike,
    columns: int,
    directions: ArrayLike | None = None,
    calibration: str = "theorem2",
    neighbours: str = Neighbours.REPLACE,
) -> Design:
    """Algorithm 1, unimodal directional noise: covariance Sigma between rows, independent columns.

    Parameters
    ----------
    epsilon, delta : float
    sensitivity : float
        s2(f), the largest change of the answer in Frobenius norm.
    gamma : float
        Largest Frobenius norm of the answer.
    theta : array_like of shape (m,)
        Precision allocation, positive, summing to one.
    columns : int
        n.
    directions : array_like of shape (m, m), optional
        W_Sigma, one direction per column; the standard basis by default.
    calibration : str
        'theorem2' as printed, 'theorem2-corrected', 'theorem2-psd', or 'exact' for the sensitivity's Frobenius ball.
    neighbours : 'replace' or 'add-remove'
        Those that `sensitivity` was derived for.

    Returns
    -------
    Design
        ``design.release(answer)`` takes the answer f(X), of shape (m, n).

    Privacy
    -------
    The neighbours that `sensitivity` was derived for; (epsilon, delta)-DP by the paper's Theorem 2. `distance` says
    what is really spent.

    Examples
    --------
    >>> design = unimodal(
    ...     epsilon=1, delta=1 / 248, sensitivity=6**0.5, gamma=(6 * 248) ** 0.5, columns=248,
    ...     theta=[0.475, 0.475, 0.0125, 0.0125, 0.0125, 0.0125],
    ... )
    >>> [f"{std:.2e}" for std in design.std[1:3, 0]]
    ['2.99e+05', '7.43e+05']
    """
    allocation = shares(theta)
    shape = len(allocation.values), check_integer(columns, "columns", at_least=1)
    query = _paper_query(shape, sensitivity, gamma, "rows", neighbours)
    privacy = Privacy(epsilon, delta)
    return make_design(query, privacy, allocation=allocation, directions=directions, calibration=calibration)


def _paper_query(shape: tuple[int, int], sensitivity: float, gamma: float, side: str, neighbours: str) -> Query:
    """The paper's view of a query: its L2 sensitivity and a bound on its norm, nothing else."""
    s2, most = check_magnitude(sensitivity, "sensitivity"), check_magnitude(gamma, "gamma")
    return Query(shape, FrobeniusBall(s2), most, side=side, neighbours=Neighbours.parse(neighbours), gamma_bound=most)


def equimodal(
    *,
    epsilon: float,
    delta: float,
    sensitivity: float,
    gamma: float,
    theta: ArrayLike,
    directions: ArrayLike | None = None,
    calibration: str = "theorem2",
    neighbours: str = Neighbours.REPLACE,
) -> Design:
    """Algorithm 2, equi-modal directional noise: the same covariance between rows and between columns.

    For a symmetric answer of shape (m, m); the release draws one triangle, which is the paper's noise symmetrised.
    Parameters are those of `unimodal`.

    Examples
    --------
    >>> design = equimodal(epsilon=1, delta=1 / 2021, sensitivity=8 / 2021, gamma=4, theta=[0.475, 0.025, 0.025, 0.475])
    >>> [round(float(std), 2) for std in design.noise.std[0]]
    [9.72, 20.29, 20.29, 9.72]
    """
    allocation = shares(theta)
    m = len(allocation.values)
    query = _paper_query((m, m), sensitivity, gamma, "both", neighbours)
    privacy = Privacy(epsilon, delta)
    return make_design(query, privacy, allocation=allocation, directions=directions, calibration=calibration)


@dataclass(frozen=True, eq=False)
class ErrorCurve:
    """Noise of the same design at several epsilons.

    Attributes
    ----------
    design : Design
    epsilons : float64 array of shape (k,)
        Increasing; all at the delta of the design.
    rmse, median_std, relative_error : float64 arrays of shape (k,)
        Of the standard deviations of all entries; the median of those that have noise; the root mean square of each
        over the largest absolute value that its entry can have.
    """

    design: Design
    epsilons: Floats
    rmse: Floats
    median_std: Floats
    relative_error: Floats

    __repr__ = short_repr

    def to_frame(self) -> Any:
        """A pandas data frame with one row an epsilon."""
        columns = {"rmse": self.rmse, "median_std": self.median_std, "relative_error": self.relative_error}
        pandas = load_pandas()
        return pandas.DataFrame(columns, index=pandas.Index(self.epsilons, name="epsilon"))

    def plot(self, *, ax: Any = None) -> Any:
        """The relative error against epsilon, both on logarithmic scales; returns matplotlib axes."""
        ax = open_axes(ax)
        ax.loglog(self.epsilons, self.relative_error, marker="o", color=BLUE)
        own = self.design.privacy.epsilon
        ax.plot([own], [self.design.relative_error], marker="o", markersize=9, color=ORANGE, linestyle="none")
        ax.annotate(
            f"this design, epsilon {own:g}", (own, self.design.relative_error), (8, 8), textcoords="offset points"
        )
        ax.set_xlabel(f"epsilon, at delta {self.design.privacy.delta:.3g}")
        ax.set_ylabel("noise, share of the largest value possible")
        ax.grid(visible=True, alpha=0.3)
        return ax


def error_curve(design: Design, epsilons: ArrayLike | None = None) -> ErrorCurve:
    """The error of a design if it had another epsilon; its query, delta, directions and allocation stay.

    Parameters
    ----------
    design : Design
    epsilons : array_like of shape (k,), optional
        By default nine, from a tenth of the design's own to ten times of it.

    Privacy
    -------
    Looks at no data and costs nothing.

    Examples
    --------
    >>> from matrixdp import Bounds, Identity, make_design
    >>> design = make_design(Identity(Bounds([0], [1]), records=100), Privacy(epsilon=1, delta=1e-6))
    >>> error_curve(design, [0.5, 1, 2]).rmse.round(2).tolist()
    [8.06, 4.22, 2.23]
    """
    if not isinstance(design, Design):
        raise ParameterError(f"design must be a Design, got {type(design).__name__} instead.")
    own = design.privacy.epsilon
    given = own * np.geomspace(1 / _FACTOR, _FACTOR, _POINTS) if epsilons is None else to_floats(epsilons, "epsilons")
    if given.ndim != 1 or not given.size:
        raise ParameterError(f"epsilons must be a vector of at least one number, got shape {given.shape} instead.")
    points = np.unique(given)
    others = [Privacy(float(epsilon), design.privacy.delta) for epsilon in points]
    found = [design if privacy == design.privacy else design.remade(privacy=privacy) for privacy in others]
    errors = [(one.rmse, np.median(one.distinct_std[one.distinct_std > 0]), one.relative_error) for one in found]
    return ErrorCurve(design, points, *np.array(errors).T)
