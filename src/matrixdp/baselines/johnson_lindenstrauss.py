"""The Johnson-Lindenstrauss transform: Blocki, Blum, Datta, Sheffet (2012); Upadhyay (2014) for the data set itself.

The records X, of shape (N, m), get all singular values s raised to ``sqrt(s^2 + w^2)`` and are multiplied from the
left by a secret matrix of `draws` x N independent standard normals. The rows of the result are independent draws of
``N(0, X'X + w^2 I)``, so they are sampled from it, at the cost of a Cholesky factor instead of a projection.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaincc, gammainccinv, gammaincinv, gammaln

from matrixdp.baselines.pure import largest_norm
from matrixdp.checks import check_integer
from matrixdp.errors import ParameterError, show
from matrixdp.ledger import Approximate
from matrixdp.mechanisms.mechanism import check_stream
from matrixdp.noise import Stream, draw_normal
from matrixdp.privacy import Privacy
from matrixdp.queries import Identity, SecondMoment
from matrixdp.release.registered import MechanismRelease, check_arguments, register_mechanism
from matrixdp.types import Floats

CALIBRATIONS = ("exact", "published")
_TAIL = 1e-30
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(256)


@register_mechanism(
    "Johnson-Lindenstrauss",
    cost=lambda privacy: Approximate(privacy.epsilon, privacy.delta),
    tasks=("records", "second-moment"),
    comparison_only=True,
)
def johnson_lindenstrauss(
    query: Identity | SecondMoment,
    privacy: Privacy,
    data: Any,
    *,
    stream: Stream | None = None,
    simulation: bool = False,
    draws: int | None = None,
    calibration: str = "exact",
) -> MechanismRelease:
    """A projected data set, or the second moment that it estimates.

    Parameters
    ----------
    query : Identity or SecondMoment
        Holds the bounds. For Identity the result has shape (draws, m): pseudo-records about the midpoint of the
        bounds, each with the law ``N(0, (X'X + w^2 I)/N)``. Their second moment estimates that of the records plus
        ``parameters["ridge"] = w^2/N`` on the diagonal. For SecondMoment it is the estimate of the moment, the ridge
        taken off.
    privacy, data, stream, simulation
        As for `matrixdp.Design.release`.
    draws : int, optional
        The dimension r that is projected on; the number of records by default. With the exact calibration more is
        better; with the published one the threshold grows with it, and there is a best value.
    calibration : 'exact' or 'published'
        How the threshold w is chosen; see `matrixdp.baselines.johnson_lindenstrauss.largest_leverage`.

    Privacy
    -------
    (epsilon, delta)-DP for replace-one neighbours, exactly, and so for add/remove neighbours, too. `epsilon` of the
    result is what the threshold gives, 0 for most published ones. Floating-point noise: for comparison only.
    """
    check_arguments(query, privacy)
    draws = query.records if draws is None else draws
    w2 = threshold(query, privacy, draws, calibration) ** 2
    check_stream(stream, simulation=simulation)
    answer, n = query.evaluate(data, clip=True, missing="error"), query.records
    sums = answer.T @ answer if isinstance(query, Identity) else answer * n  # X'X
    sketch = draw_sketch(stream or Stream(), sums, w2, draws)
    if isinstance(query, Identity):
        matrix = query.finish(sketch / math.sqrt(n))
    else:
        matrix = query.finish((sketch.T @ sketch / draws - w2 * np.eye(len(sums))) / n)
    epsilon = min(privacy.epsilon, sketch_epsilon(largest_norm(query) / w2, draws, privacy.delta))
    known: dict[str, Any] = {"comparison_only": True, "simulation": simulation}
    known["parameters"] = {"draws": draws, "threshold": math.sqrt(w2), "ridge": w2 / n}
    return MechanismRelease(query, matrix, "Johnson-Lindenstrauss", privacy, epsilon, privacy.delta, **known)


def threshold(query: Identity | SecondMoment, privacy: Privacy, draws: int, calibration: str = "exact") -> float:
    """The threshold w that all singular values are raised above."""
    if not isinstance(query, Identity | SecondMoment):
        raise ParameterError(
            "query must be Identity or SecondMoment for the Johnson-Lindenstrauss transform, "
            f"got {type(query).__name__} instead."
        )
    return math.sqrt(largest_norm(query) / largest_leverage(privacy, draws, calibration))


def draw_sketch(stream: Stream, sums: Floats, w2: float, draws: int) -> Floats:
    """Independent draws of ``N(0, sums + w2 I)``, of shape (draws, m)."""
    factor = np.linalg.cholesky(sums + w2 * np.eye(len(sums)))
    return draw_normal(stream, (draws, len(sums))) @ factor.T


@cache
def largest_leverage(privacy: Privacy, draws: int, calibration: str = "exact") -> float:
    """Largest leverage ``q/w^2`` at which a sketch of `draws` vectors of ``N(0, X'X + w^2 I)`` meets `privacy`.

    With one record x separated from the others, the covariance is ``B + xx'``, with ``B >= w^2 I``, and ``B + yy'`` for
    a neighbour. Let q be the largest ``|x|^2`` and ``leverage = q/w^2``. For any B, the two distributions are images
    of::

        N(0, diag(1 + leverage, 1))   and   N(0, diag(1, 1 + leverage))

    under one channel, and two orthogonal records of norm ``sqrt(q)``, all others zero, give exactly these
    (`docs/rivals.md` has the proof). So their divergence is the privacy of the sketch, and not only a bound. With
    independent Gamma variables U and V of shape ``draws/2`` the loss is ``leverage U - leverage/(1 + leverage) V``.

    It is chosen by the exact divergence; or as the published ``w = 16 sqrt(draws ln(2/delta))
    ln(16 draws/delta)/epsilon`` for records that change by at most one in norm (Blocki, Blum, Datta, Sheffet 2012).

    Privacy
    -------
    Every calibration is checked with the exact divergence.
    """
    if calibration not in CALIBRATIONS:
        raise ParameterError(f"calibration must be one of {', '.join(CALIBRATIONS)}, got {show(calibration)} instead.")
    epsilon, delta, draws = privacy.epsilon, privacy.delta, check_integer(draws, "draws", at_least=1)
    if calibration == "exact":
        return _root(lambda leverage: math.log(sketch_delta(leverage, draws, epsilon) / delta))
    # Records of norm sqrt(q) differ by 2 sqrt(q) at most.
    w = 16 * math.sqrt(draws * math.log(2 / delta)) * math.log(16 * draws / delta) / epsilon
    leverage = 1 / (2 * w) ** 2
    if sketch_delta(leverage, draws, epsilon) > delta:
        raise ParameterError(
            f"epsilon must be smaller for the published calibration, got {epsilon:g} instead: use 'exact'."
        )
    return leverage


def sketch_delta(leverage: float, draws: int, epsilon: float) -> float:
    """Smallest delta at which the sketch is (epsilon, delta)-DP, rounded up.

    ``E (1 - exp(epsilon - loss))_+``, in closed form over U, by quadrature over ``V = s^2``.
    """
    k = draws / 2
    low, high = math.sqrt(gammaincinv(k, _TAIL)), math.sqrt(gammainccinv(k, _TAIL))
    s = low + (high - low) * (_NODES + 1) / 2
    v = s**2
    weights = _WEIGHTS * (high - low) * np.exp((2 * k - 1) * np.log(s) - v - gammaln(k))
    start = epsilon / leverage + v / (1 + leverage)
    first = gammaincc(k, start)
    tilt = epsilon + leverage / (1 + leverage) * v - k * math.log1p(leverage)
    second = np.exp(np.minimum(tilt, 700.0)) * gammaincc(k, (1 + leverage) * start)
    value = float(weights @ np.maximum(first - second, 0.0))
    # Bounds the error of the quadrature, its truncated tails and the incomplete Gamma functions.
    return min(1.0, value * (1 + 1e-9) + 1e-12 * float(weights @ first) + 2 * _TAIL)


def sketch_epsilon(leverage: float, draws: int, delta: float) -> float:
    """Smallest epsilon at which the sketch is (epsilon, delta)-DP, rounded up; may be 0."""
    if sketch_delta(leverage, draws, 0.0) <= delta:
        return 0.0
    return 1 / _root(lambda inverse: math.log(sketch_delta(leverage, draws, 1 / inverse) / delta))


def _root(excess: Callable[[float], float]) -> float:
    """Largest positive number, up to rounding, at which `excess`, which grows with it, is not positive."""
    low = high = 1.0
    while excess(low) > 0:
        low /= 4
    while excess(high) <= 0:
        high *= 4
    logarithm = brentq(lambda x: max(-50.0, excess(math.exp(x))), math.log(low), math.log(high), xtol=1e-12)
    found = math.exp(logarithm)
    while excess(found) > 0:
        found *= 1 - 1e-12
    return found
