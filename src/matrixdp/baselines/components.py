"""Principal components: PPCA by the exponential mechanism, and SuLQ from a noisy second moment."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq

from matrixdp.baselines.exponential import draw_uniform
from matrixdp.checks import check_integer
from matrixdp.errors import ParameterError, show
from matrixdp.mechanisms.mechanism import check_stream
from matrixdp.noise import Stream, draw_normal
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.queries import Identity, SecondMoment
from matrixdp.release.matrix import principal_directions
from matrixdp.release.registered import MechanismRelease, check_arguments, gaussian_cost, pure_cost, register_mechanism
from matrixdp.sensitivity import max_quadratic
from matrixdp.types import Floats

SPLITS = ("mu", "epsilon")


def draw_bingham(stream: Stream, matrix: Floats, size: int = 1) -> Floats:
    """Unit vectors with density proportional to ``exp(x' matrix x)``, of shape (size, m); x and -x are equally likely.

    This is the Bingham distribution, sampled exactly by rejection (Kent, Ganeiban, Mardia 2013). With ``B = max
    eigenvalue - A`` the density is ``exp(-x'Bx)``, and for every b > 0::

        exp(-u) <= exp(-(m - b)/2) (m/b)^(m/2) (1 + 2u/b)^(-m/2),    u = x'Bx >= 0

    where ``(x'(I + 2B/b)x)^(-m/2)`` is the density of a normalised Gaussian of covariance ``(I + 2B/b)^-1``. The best b
    solves ``sum 1/(b + 2 lambda_i) = 1``, lambda the eigenvalues of B; acceptance stays high at any concentration.

    Parameters
    ----------
    stream : Stream
    matrix : float64 array of shape (m, m)
        Symmetric.
    size : int

    Examples
    --------
    >>> draw_bingham(Stream(seed=1), np.diag([1e6, 0.0])).round(1).__abs__().tolist()
    [[1.0, 0.0]]
    """
    eigenvalues, vectors = np.linalg.eigh(matrix)
    rates = eigenvalues[-1] - eigenvalues
    m = rates.size
    b = _best_b(rates)
    spread = 1 / np.sqrt(1 + 2 * rates / b)
    offset = (m - b) / 2 - m / 2 * math.log(m / b)
    kept: list[Floats] = []
    missing = size
    while missing > 0:
        normals = draw_normal(stream, (2 * missing + 8, m)) * spread
        points = normals / np.linalg.norm(normals, axis=1, keepdims=True)
        u = points**2 @ rates
        accepted = np.log(draw_uniform(stream, len(points))) < offset - u + m / 2 * np.log1p(2 * u / b)
        kept.append(points[accepted])
        missing -= len(kept[-1])
    return np.asarray(np.concatenate(kept)[:size] @ vectors.T)


def _best_b(rates: Floats) -> float:
    """The root of ``sum 1/(b + 2 rates) = 1``; it lies between 1, since one rate is zero, and m."""
    if rates.size == 1 or not rates.any():
        return float(rates.size)
    return float(brentq(lambda b: float((1 / (b + 2 * rates)).sum()) - 1, 1.0, float(rates.size)))


@register_mechanism("PPCA", cost=pure_cost, tasks=("components",), comparison_only=True)
def ppca(
    query: SecondMoment, privacy: Privacy, data: Any, *, stream: Stream | None = None, simulation: bool = False
) -> MechanismRelease:
    """The first component, by Chaudhuri, Sarwate, Sinha (2012).

    It is a unit vector v of shape (m, 1) with density proportional to ``exp(concentration v'Av)``, A the second moment.

    Parameters
    ----------
    query : SecondMoment
        Holds the bounds.
    privacy : Privacy
        Its delta is not used.
    data, stream, simulation
        As for `matrixdp.release.matrix.release`.

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

    They are those of a noisy second moment (Blum, Dwork, McSherry, Nissim 2005).

    Parameters
    ----------
    query : Identity or SecondMoment
        Holds the bounds and the number of records.
    privacy : Privacy
        The whole budget.
    data, stream, simulation
        As for `matrixdp.release.matrix.release`.
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
