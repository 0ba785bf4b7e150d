"""The Johnson-Lindenstrauss transform: Blocki, Blum, Datta, Sheffet (2012); Upadhyay (2014) for the data set itself.

The records X, of shape (N, m), get all singular values s raised to ``sqrt(s^2 + w^2)`` and are multiplied from the
left by a secret matrix of `draws` x N independent standard normals. The rows of the result are independent draws of
``N(0, X'X + w^2 I)``, so they are sampled from it, at the cost of a Cholesky factor instead of a projection.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from matrixdp.baselines.sketch import largest_leverage, sketch_epsilon
from matrixdp.errors import ParameterError
from matrixdp.ledger import Approximate
from matrixdp.mechanisms.mechanism import check_stream
from matrixdp.noise import Stream, draw_normal
from matrixdp.privacy import Privacy
from matrixdp.queries import Identity, SecondMoment
from matrixdp.release.mechanism_release import MechanismRelease
from matrixdp.release.registry import check_arguments, register_mechanism
from matrixdp.sensitivity import max_quadratic
from matrixdp.types import Floats


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
    privacy : Privacy
    data, stream, simulation
        As for `matrixdp.release.release`.
    draws : int, optional
        The dimension r that is projected on; the number of records by default. With the exact calibration more is
        better; with the published one the threshold grows with it, and there is a best value.
    calibration : 'exact', 'renyi' or 'published'
        How the threshold w is chosen; see `matrixdp.baselines.sketch.largest_leverage`.

    Privacy
    -------
    (epsilon, delta)-DP for replace-one neighbours, exactly, and so for add/remove neighbours, too. `epsilon` of the
    result is what the threshold gives, 0 for most published ones. Floating-point noise: for comparison only.

    Examples
    --------
    >>> from matrixdp.domain.bounds import Bounds
    >>> query = Identity(Bounds([0, 0], [1, 1]), records=3)
    >>> johnson_lindenstrauss(query, Privacy(1, 1e-5), [[0, 1], [1, 1], [0.5, 0]], draws=5).matrix.shape
    (5, 2)
    """
    check_arguments(query, privacy)
    draws = query.records if draws is None else draws
    w2 = threshold(query, privacy, draws, calibration) ** 2
    check_stream(stream, simulation=simulation)
    stream = Stream() if stream is None else stream
    sums = _sum_of_squares(query, data)
    sketch = draw_sketch(stream, sums, w2, draws)
    n = query.records
    if isinstance(query, Identity):
        matrix = query.finish(sketch / math.sqrt(n))
    else:
        matrix = query.finish((sketch.T @ sketch / draws - w2 * np.eye(len(sums))) / n)
    return MechanismRelease(
        query=query,
        matrix=matrix,
        mechanism="Johnson-Lindenstrauss",
        privacy=privacy,
        epsilon=min(privacy.epsilon, sketch_epsilon(_largest_norm(query) / w2, draws, privacy.delta)),
        delta=privacy.delta,
        comparison_only=True,
        simulation=simulation,
        parameters={"draws": draws, "threshold": math.sqrt(w2), "ridge": w2 / n},
    )


def threshold(query: Identity | SecondMoment, privacy: Privacy, draws: int, calibration: str = "exact") -> float:
    """The threshold w that all singular values are raised above.

    Examples
    --------
    >>> from matrixdp.domain.bounds import Bounds
    >>> query = SecondMoment(Bounds([-1] * 4, [1] * 4), records=2021)
    >>> [round(threshold(query, Privacy(1, 1 / 2021), 2021, name)) for name in ("exact", "renyi", "published")]
    [22, 24, 149203]
    """
    if not isinstance(query, Identity | SecondMoment):
        raise ParameterError(
            "query must be Identity or SecondMoment for the Johnson-Lindenstrauss transform, "
            f"got {type(query).__name__} instead."
        )
    return math.sqrt(_largest_norm(query) / largest_leverage(privacy, draws, calibration))


def draw_sketch(stream: Stream, sums: Floats, w2: float, draws: int) -> Floats:
    """Independent draws of ``N(0, sums + w2 I)``, of shape (draws, m)."""
    factor = np.linalg.cholesky(sums + w2 * np.eye(len(sums)))
    return draw_normal(stream, (draws, len(sums))) @ factor.T


def _largest_norm(query: Identity | SecondMoment) -> float:
    """Largest ``|x|^2`` of a record, measured from the query's centre."""
    change = query.bounds if isinstance(query, Identity) else query.record_change(query.neighbours)
    return max_quadratic(1.0, change.halfwidths, change.radius).value


def _sum_of_squares(query: Identity | SecondMoment, data: Any) -> Floats:
    """``X'X``, of shape (m, m)."""
    answer = query.evaluate(data, clip=True, missing="error")
    return answer.T @ answer if isinstance(query, Identity) else answer * query.records
