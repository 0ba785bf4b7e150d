"""Laplace noise on the entries of a matrix (Dwork, McSherry, Nissim, Smith 2006)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from matrixdp.baselines.answer_vector import answer_to_vector, vector_to_answer
from matrixdp.baselines.exact_laplace import draw_laplace
from matrixdp.errors import ParameterError, show
from matrixdp.mechanisms.mechanism import check_stream
from matrixdp.noise import Stream
from matrixdp.privacy import Privacy
from matrixdp.queries import Identity, SecondMoment
from matrixdp.release.mechanism_release import MechanismRelease
from matrixdp.release.registry import check_arguments, pure_cost, register_mechanism
from matrixdp.types import Floats

BEST_WEIGHT = 2 ** (1 / 3)
_BITS = 44
_HEADROOM = 61
_EPS = float(np.finfo(float).eps)


class Grid(NamedTuple):
    """The L1 sensitivity, the bound on each entry as a vector, the noise's scale ``2^bits``, and steps per unit."""

    sensitivity: float
    bound: Floats
    bits: int
    factor: float


def _grid(query: Identity | SecondMoment, privacy: Privacy, weight: float = BEST_WEIGHT) -> Grid:
    """The grid on which neighbours differ by at most ``epsilon 2^bits`` in L1.

    Each entry may move by one step through rounding, and by twice the error of its floats.
    """
    check_arguments(query, privacy)
    sensitivity, epsilon = l1_sensitivity(query, weight=weight), privacy.epsilon
    bound = answer_to_vector(query, np.broadcast_to(query.magnitude, query.shape), weight=weight)
    largest = float(bound.max()) * epsilon / sensitivity
    bits = min(_BITS, _HEADROOM - max(0, math.ceil(math.log2(largest))))
    floats = 2 * (query.relative_error + 8 * _EPS) * float(bound.sum()) / sensitivity
    left = epsilon * (1 - floats - 64 * _EPS) - bound.size * 2.0**-bits
    if left <= 0:
        raise ParameterError(
            f"epsilon must be larger for {bound.size} entries of these bounds, got {epsilon:g} instead: "
            "rounding alone would use it."
        )
    return Grid(sensitivity, bound, bits, left / sensitivity * 2.0**bits)


@register_mechanism("Laplace", cost=pure_cost, tasks=("records", "second-moment"), check=_grid)
def laplace(
    query: Identity | SecondMoment,
    privacy: Privacy,
    data: Any,
    *,
    stream: Stream | None = None,
    simulation: bool = False,
    weight: float = BEST_WEIGHT,
) -> MechanismRelease:
    """The answer with independent Laplace noise in every entry, of one scale, ``l1_sensitivity/epsilon``.

    Parameters
    ----------
    query : Identity or SecondMoment
        Holds the bounds.
    privacy : Privacy
        Its delta is not used.
    data : array or table of shape (records, m)
    stream, simulation
        As for `matrixdp.release.release`.
    weight : float
        For a second moment, of which one triangle is drawn: the ratio of the noise on the diagonal to that off it,
        above 0 and at most 2. The default minimises the mean square error over the whole matrix if all features have
        the same range.

    Privacy
    -------
    epsilon-DP, delta 0, for the query's neighbours. The noise is made of exact integers: ``floor(k + L) = k +
    floor(L)`` for an integer k, so the release is a post-processing of the ideal mechanism applied to the rounded
    answer, and rounding is included in the sensitivity.

    Examples
    --------
    >>> from matrixdp.domain.bounds import Bounds
    >>> query = Identity(Bounds([0, 0], [1, 1]), records=3)
    >>> result = laplace(query, Privacy(1, 1e-5), [[0, 1], [1, 1], [0.5, 0]])
    >>> result.matrix.shape, result.delta, round(result.parameters["scale"], 6)
    ((3, 2), 0.0, 2.0)
    """
    sensitivity, bound, bits, factor = _grid(query, privacy, weight)
    check_stream(stream, simulation=simulation)
    stream = Stream() if stream is None else stream
    answer = answer_to_vector(query, query.evaluate(data, clip=True, missing="error"), weight=weight)
    steps = np.rint(np.clip(answer, -bound, bound) * factor).astype(np.int64)
    noisy = ((steps + draw_laplace(stream, bits, steps.shape)).astype(np.float64) + 0.5) / factor
    return MechanismRelease(
        query=query,
        matrix=query.finish(vector_to_answer(query, noisy, weight=weight)),
        mechanism="Laplace",
        privacy=privacy,
        epsilon=privacy.epsilon,
        delta=0.0,
        comparison_only=False,
        simulation=simulation,
        std=vector_to_answer(query, np.full(steps.size, math.sqrt(2) * 2.0**bits / factor), weight=weight),
        parameters={"scale": 2.0**bits / factor, "sensitivity": sensitivity, "weight": weight},
    )


def l1_sensitivity(query: Identity | SecondMoment, *, weight: float = BEST_WEIGHT) -> float:
    """Largest change of the answer in L1, with entries below the diagonal times `weight`; rounded up.

    For records in a box (halfwidths c) the sum of widths, and for a second moment ``(sum c_i^2 + weight sum_{i<j} c_i
    c_j)/N``, which is attained by a corner and the midpoint; `docs/rivals.md` has the proof. With a radius the former
    is still the supremum and the latter a bound.

    Examples
    --------
    >>> from matrixdp.domain.bounds import Bounds
    >>> round(l1_sensitivity(SecondMoment(Bounds([-1] * 4, [1] * 4), records=1), weight=2.0), 9)  # not 2 * 4^2
    16.0
    """
    if isinstance(query, Identity):
        return 2 * _largest_l1(query.bounds.halfwidths, query.bounds.radius) * (1 + 64 * _EPS)
    if not isinstance(query, SecondMoment):
        raise ParameterError(
            f"query must be Identity or SecondMoment for Laplace noise, got {type(query).__name__} instead."
        )
    if not 0 < weight <= 2:
        raise ParameterError(f"weight must be greater than 0 and at most 2, got {show(weight)} instead.")
    change = query.record_change(query.neighbours)
    c, radius = change.halfwidths, change.radius
    value = weight / 2 * float(c.sum()) ** 2 + (1 - weight / 2) * float((c**2).sum())
    if radius is not None:
        # Cauchy-Schwarz: the triangle's weights times the Frobenius norm of the change.
        m = c.size
        norm = math.sqrt(m + weight**2 * m * (m - 1) / 4) * change.frobenius * query.records
        value = min(value, norm)
    return value / query.records * (1 + 64 * _EPS)


def _largest_l1(halfwidths: Floats, radius: float | None) -> float:
    """``max sum |x_i|`` over box and ball, rounded up: each coordinate is at a common level or at its bound."""
    if radius is None or radius**2 >= float((halfwidths**2).sum()):
        return float(halfwidths.sum())
    c = np.sort(halfwidths)
    used = np.concatenate([[0.0], np.cumsum(c**2)])[:-1]
    level = np.sqrt(np.maximum(radius**2 - used, 0.0) / np.arange(c.size, 0, -1))
    first = int(np.argmax(level <= c))
    return float(np.minimum(c, level[first]).sum()) * (1 + 64 * _EPS)
