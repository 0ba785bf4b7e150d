"""PPCA: the first principal component by the exponential mechanism (Chaudhuri, Sarwate, Sinha 2012)."""

from __future__ import annotations

from typing import Any

from matrixdp.baselines.bingham import draw_bingham
from matrixdp.errors import ParameterError
from matrixdp.mechanisms.mechanism import check_stream
from matrixdp.noise import Stream
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.queries import SecondMoment
from matrixdp.release.mechanism_release import MechanismRelease
from matrixdp.release.registry import check_arguments, pure_cost, register_mechanism
from matrixdp.sensitivity import max_quadratic


@register_mechanism("PPCA", cost=pure_cost, tasks=("components",), comparison_only=True)
def ppca(
    query: SecondMoment, privacy: Privacy, data: Any, *, stream: Stream | None = None, simulation: bool = False
) -> MechanismRelease:
    """A unit vector v of shape (m, 1) with density proportional to ``exp(concentration v'Av)``, A the second moment.

    Parameters
    ----------
    query : SecondMoment
        Holds the bounds.
    privacy : Privacy
        Its delta is not used.
    data, stream, simulation
        As for `matrixdp.release.release`.

    Privacy
    -------
    epsilon-DP, delta 0, for the query's neighbours (`concentration`). Drawn exactly by rejection, not by a Markov
    chain; in floating-point numbers: for comparison only.

    Examples
    --------
    >>> from matrixdp.domain.bounds import Bounds
    >>> query = SecondMoment(Bounds([-1, -1], [1, 1]), records=2)
    >>> ppca(query, Privacy(1, 1e-5), [[0.5, 0.5], [1, 1]]).matrix.shape
    (2, 1)
    """
    check_arguments(query, privacy)
    rate = concentration(query, privacy.epsilon)
    check_stream(stream, simulation=simulation)
    stream = Stream() if stream is None else stream
    moment = query.evaluate(data, clip=True, missing="error")
    return MechanismRelease(
        query=query,
        matrix=draw_bingham(stream, rate * moment).T.copy(),
        mechanism="PPCA",
        privacy=privacy,
        epsilon=privacy.epsilon,
        delta=0.0,
        comparison_only=True,
        simulation=simulation,
        parameters={"concentration": rate},
    )


def concentration(query: SecondMoment, epsilon: float) -> float:
    """Largest factor on ``v'Av`` that is epsilon-DP.

    One record moves the quality by ``((v'x)^2 - (v'y)^2)/N``, between -q/N and q/N, q the largest ``|x|^2`` of the
    domain. The loss is the factor times the width of that range (Dong, Durfee, Rogers 2020), so the factor is
    ``epsilon N/(2q)``; for add/remove neighbours the quality moves in one direction only, and it is ``epsilon N/q``.

    Examples
    --------
    >>> from matrixdp.domain.bounds import Bounds
    >>> round(concentration(SecondMoment(Bounds([-1] * 4, [1] * 4), records=2021), 1.0), 3)
    252.625
    """
    if not isinstance(query, SecondMoment):
        raise ParameterError(f"query must be SecondMoment for PPCA, got {type(query).__name__} instead.")
    change = query.record_change(query.neighbours)
    largest = max_quadratic(1.0, change.halfwidths, change.radius).value
    width = largest if query.neighbours is Neighbours.ADD_REMOVE else 2 * largest
    return epsilon * query.records / width
