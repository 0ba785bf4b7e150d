"""Analyze Gauss: symmetric Gaussian noise on a second moment (Dwork, Talwar, Thakurta, Zhang 2014)."""

from __future__ import annotations

from typing import Any

from matrixdp.baselines.classical_gaussian import classical_design
from matrixdp.design import Design, isotropic, make_design
from matrixdp.errors import ParameterError, show
from matrixdp.noise import Stream
from matrixdp.privacy import Privacy
from matrixdp.queries import MatrixQuery
from matrixdp.release.mechanism_release import MechanismRelease
from matrixdp.release.registry import check_arguments, gaussian_cost, register_mechanism


def _design(query: MatrixQuery, privacy: Privacy, calibration: str = "exact") -> Design:
    """The design behind a release, after a check of the arguments."""
    check_arguments(query, privacy)
    if not query.symmetric:
        raise ParameterError(
            f"query must be symmetric for Analyze Gauss, such as SecondMoment, got {type(query).__name__} instead."
        )
    if calibration not in ("exact", "classical"):
        raise ParameterError(f"calibration must be 'exact' or 'classical', got {show(calibration)} instead.")
    exact = calibration == "exact"
    return make_design(query, privacy, allocation=isotropic()) if exact else classical_design(query, privacy)


@register_mechanism("Analyze Gauss", cost=gaussian_cost, tasks=("second-moment",), check=_design)
def analyze_gauss(
    query: MatrixQuery,
    privacy: Privacy,
    data: Any,
    *,
    stream: Stream | None = None,
    simulation: bool = False,
    calibration: str = "exact",
) -> MechanismRelease:
    """A symmetric answer with symmetric Gaussian noise, drawn for one triangle.

    The paper gives all entries of the triangle the same noise. An entry off the diagonal counts twice in the Frobenius
    norm, so a standard deviation smaller by sqrt(2) costs the same there; it is used here.

    Parameters
    ----------
    query : MatrixQuery
        A symmetric one, such as SecondMoment; it holds the bounds.
    privacy : Privacy
    data, stream, simulation
        As for `matrixdp.release.release`.
    calibration : 'exact' or 'classical'
        As small as possible, or the published ``sqrt(2 ln(1.25/delta))/epsilon``, for epsilon up to 1.

    Privacy
    -------
    (epsilon, delta)-DP for the query's neighbours. Exact noise.

    Examples
    --------
    >>> from matrixdp.domain.bounds import Bounds
    >>> from matrixdp.queries import SecondMoment
    >>> query = SecondMoment(Bounds([-1] * 2, [1] * 2), records=2)
    >>> analyze_gauss(query, Privacy(1, 1e-5), [[0.1, 0.2], [0.3, -0.4]]).matrix.shape
    (2, 2)
    """
    released = _design(query, privacy, calibration).release(data, stream=stream, simulation=simulation)
    return MechanismRelease.from_release("Analyze Gauss", released)
