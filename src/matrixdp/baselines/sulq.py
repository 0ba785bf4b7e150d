"""SuLQ: principal components of a noisy second moment (Blum, Dwork, McSherry, Nissim 2005)."""

from __future__ import annotations

from typing import Any

from matrixdp.checks import check_integer
from matrixdp.errors import ParameterError, show
from matrixdp.mechanisms.mechanism import check_stream
from matrixdp.noise import Stream
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.queries import Identity, SecondMoment
from matrixdp.release.directions import principal_directions
from matrixdp.release.mechanism_release import MechanismRelease
from matrixdp.release.registry import check_arguments, gaussian_cost, register_mechanism

SPLITS = ("mu", "epsilon")


def _check(query: Any, privacy: Any, components: int | None = None, share: float = 1.0, split: str = "mu") -> int:
    """The number of components, after a check of all arguments."""
    check_arguments(query, privacy)
    if not isinstance(query, Identity | SecondMoment) or getattr(query, "centre", None) is not None:
        raise ParameterError("query must be Identity or SecondMoment, about the midpoint of its bounds, for SuLQ.")
    if query.neighbours is not Neighbours.REPLACE:
        raise ParameterError(f"neighbours must be 'replace' for SuLQ, got {str(query.neighbours)!r} instead.")
    if split not in SPLITS:
        raise ParameterError(f"split must be 'mu' or 'epsilon', got {show(split)} instead.")
    if not 0 < share <= 1:
        raise ParameterError(f"share must be greater than 0 and at most 1, got {show(share)} instead.")
    m = query.bounds.size
    if components is None:
        return m
    return check_integer(components, "components", at_least=1, at_most=m)


@register_mechanism("SuLQ", cost=gaussian_cost, tasks=("components",), check=_check)
def sulq(
    query: Identity | SecondMoment,
    privacy: Privacy,
    data: Any,
    *,
    stream: Stream | None = None,
    simulation: bool = False,
    components: int | None = None,
    share: float = 1.0,
    split: str = "mu",
) -> MechanismRelease:
    """The first principal directions of the records about their bounds' midpoint, as columns, of shape (m, components).

    Parameters
    ----------
    query : Identity or SecondMoment
        Holds the bounds and the number of records.
    privacy : Privacy
        The whole budget.
    data, stream, simulation
        As for `matrixdp.release.release`.
    components : int, optional
        Number of directions; all m by default, at the same cost.
    share : float
        Part of the budget to spend; the paper's MVG-2 uses 0.2.
    split : 'mu' or 'epsilon'
        Spend a share of ``mu^2``, which leaves ``share=1 - share`` for a design; or, as in the paper, a share of
        epsilon and of delta, which leaves ``Privacy((1 - share) epsilon, (1 - share) delta)``.

    Privacy
    -------
    Replace-one neighbours. The result's (epsilon, delta) is what the directions cost, `mu` the same as Gaussian
    differential privacy. Exact noise.

    Examples
    --------
    >>> from matrixdp.domain.bounds import Bounds
    >>> query = Identity(Bounds([0, 0], [1, 1]), records=3)
    >>> budget = Privacy(1, 1e-5)
    >>> result = sulq(query, budget, [[0, 1], [1, 1], [0.5, 0]], share=0.2, split="epsilon")
    >>> result.matrix.shape, round(result.epsilon, 9)
    ((2, 2), 0.2)
    """
    columns = _check(query, privacy, components, share, split)
    check_stream(stream, simulation=simulation)
    if split == "epsilon" and share < 1:
        privacy, share = Privacy(share * privacy.epsilon, share * privacy.delta), 1.0
    found = principal_directions(
        data, query.bounds, privacy, records=query.records, share=share, stream=stream, simulation=simulation
    )
    design = found.release.design
    return MechanismRelease(
        query=query,
        matrix=found.directions[:, :columns].copy(),
        mechanism="SuLQ",
        privacy=privacy,
        epsilon=min(design.epsilon, privacy.epsilon),
        delta=privacy.delta,
        comparison_only=False,
        simulation=simulation,
        mu=found.mu,
        parameters={"components": columns, "std": design.rmse},
    )
