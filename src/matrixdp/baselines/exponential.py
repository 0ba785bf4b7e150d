"""The exponential mechanism, drawn exactly: for a whole matrix, and for the first principal component (PPCA).

For a matrix (McSherry & Talwar 2007; after Blum, Ligett, Roth 2008) the quality of an output S is ``-||X - S||_F``, and
its density ``exp(-rate ||X - S||_F)`` up to a normaliser that does not depend on X, since S ranges over all matrices:
S - X has a uniform direction and, in d dimensions, a radius of the Gamma law of shape d. Neither is drawn by a Markov
chain, whose guarantee holds only in the limit; both in floating-point numbers, so for comparison only.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq

from matrixdp.baselines.laplace import answer_to_vector, vector_to_answer
from matrixdp.errors import ParameterError
from matrixdp.mechanisms.mechanism import check_stream
from matrixdp.noise import Stream, draw_normal
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.queries import MatrixQuery, SecondMoment
from matrixdp.release.registered import MechanismRelease, check_arguments, pure_cost, register_mechanism
from matrixdp.sensitivity import max_quadratic
from matrixdp.types import Floats


@register_mechanism("exponential", cost=pure_cost, tasks=("records", "second-moment"), comparison_only=True)
def exponential(
    query: MatrixQuery,
    privacy: Privacy,
    data: Any,
    *,
    stream: Stream | None = None,
    simulation: bool = False,
    halved: bool = False,
) -> MechanismRelease:
    """The answer to any query with noise of uniform direction and Gamma radius.

    Parameters
    ----------
    query, privacy, data, stream, simulation
        As for `matrixdp.Design.release`; delta is not used.
    halved : bool
        Use epsilon/2, as the textbook's general form does for a normaliser that depends on the data. Here the
        normaliser does not, so half the budget is unused.

    Privacy
    -------
    epsilon-DP (epsilon/2 when halved), delta 0, for the query's neighbours: the exponents of neighbours differ by
    ``rate ||D||_F`` at most. Floating-point noise: for comparison only.

    Examples
    --------
    >>> from matrixdp import Bounds, Identity
    >>> query = Identity(Bounds([0, 0], [3, 4]), records=2)
    >>> result = exponential(query, Privacy(1, 1e-5), [[1, 2], [3, 4]])
    >>> result.matrix.shape, result.comparison_only, round(result.parameters["mean_radius"], 6)
    ((2, 2), True, 20.0)
    """
    check_arguments(query, privacy)
    check_stream(stream, simulation=simulation)
    epsilon = privacy.epsilon / 2 if halved else privacy.epsilon
    scale = query.sensitivity.frobenius / epsilon
    answer = answer_to_vector(query, query.evaluate(data, clip=True, missing="error"))
    noisy = vector_to_answer(query, answer + scale * draw_radial(stream or Stream(), answer.size, 1)[0])
    known: dict[str, Any] = {"comparison_only": True, "simulation": simulation}
    known["std"] = vector_to_answer(query, np.full(answer.size, scale * math.sqrt(answer.size + 1)))
    known["parameters"] = {"scale": scale, "mean_radius": scale * answer.size}
    return MechanismRelease(query, query.finish(noisy), "exponential", privacy, epsilon, 0.0, **known)


@register_mechanism("PPCA", cost=pure_cost, tasks=("components",), comparison_only=True)
def ppca(
    query: SecondMoment, privacy: Privacy, data: Any, *, stream: Stream | None = None, simulation: bool = False
) -> MechanismRelease:
    """The first component, by Chaudhuri, Sarwate, Sinha (2012).

    It is a unit vector v of shape (m, 1) with density proportional to ``exp(concentration v'Av)``, A the second moment
    that is asked for. Parameters are those of `matrixdp.Design.release`; delta is not used.

    Privacy
    -------
    epsilon-DP, delta 0, for the query's neighbours (`concentration`). Drawn exactly by rejection, in floating-point
    numbers: for comparison only.

    Examples
    --------
    >>> from matrixdp import Bounds
    >>> query = SecondMoment(Bounds([-1, -1], [1, 1]), records=2)
    >>> ppca(query, Privacy(1, 1e-5), [[0.5, 0.5], [1, 1]]).matrix.shape
    (2, 1)
    """
    check_arguments(query, privacy)
    rate = concentration(query, privacy.epsilon)
    check_stream(stream, simulation=simulation)
    moment = query.evaluate(data, clip=True, missing="error")
    vector = draw_bingham(stream or Stream(), rate * moment).T.copy()
    known: dict[str, Any] = {"comparison_only": True, "simulation": simulation, "parameters": {"concentration": rate}}
    return MechanismRelease(query, vector, "PPCA", privacy, privacy.epsilon, 0.0, **known)


def concentration(query: SecondMoment, epsilon: float) -> float:
    """Largest factor on ``v'Av`` that is epsilon-DP.

    One record moves the quality by ``((v'x)^2 - (v'y)^2)/N``, between -q/N and q/N, q the largest ``|x|^2`` of the
    domain. The loss is the factor times the width of that range (Dong, Durfee, Rogers 2020), so the factor is
    ``epsilon N/(2q)``; for add/remove neighbours the quality moves in one direction only, and it is ``epsilon N/q``.
    """
    if not isinstance(query, SecondMoment):
        raise ParameterError(f"query must be SecondMoment for PPCA, got {type(query).__name__} instead.")
    change = query.record_change(query.neighbours)
    largest = max_quadratic(1.0, change.halfwidths, change.radius).value
    width = largest if query.neighbours is Neighbours.ADD_REMOVE else 2 * largest
    return epsilon * query.records / width


def draw_bingham(stream: Stream, matrix: Floats, size: int = 1) -> Floats:
    """Unit vectors with density proportional to ``exp(x' matrix x)``, of shape (size, m); x and -x are equally likely.

    This is the Bingham distribution, sampled exactly by rejection (Kent, Ganeiban, Mardia 2013). With ``B = max
    eigenvalue - A`` the density is ``exp(-x'Bx)``, and for every b > 0::

        exp(-u) <= exp(-(m - b)/2) (m/b)^(m/2) (1 + 2u/b)^(-m/2),    u = x'Bx >= 0

    where ``(x'(I + 2B/b)x)^(-m/2)`` is the density of a normalised Gaussian of covariance ``(I + 2B/b)^-1``. The best b
    solves ``sum 1/(b + 2 lambda_i) = 1``, lambda the eigenvalues of B; acceptance stays high at any concentration.
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


def draw_radial(stream: Stream, dimension: int, size: int) -> Floats:
    """Draws with density proportional to ``exp(-|z|)``, of shape (size, dimension)."""
    return draw_directions(stream, dimension, size) * draw_gamma(stream, dimension, size)[:, None]


def draw_uniform(stream: Stream, size: int) -> Floats:
    """Uniform numbers strictly between 0 and 1, of shape (size,)."""
    return np.asarray((stream.words(size) >> np.uint64(12)) * 2.0**-52 + 2.0**-53)


def draw_gamma(stream: Stream, shape: int, size: int) -> Floats:
    """Gamma variables of integer `shape` and unit scale, as sums of exponentials; of shape (size,)."""
    logs = np.log(draw_uniform(stream, shape * size))
    return np.asarray(-logs.reshape(size, shape).sum(axis=1))


def draw_directions(stream: Stream, dimension: int, size: int) -> Floats:
    """Uniform points on the unit sphere, of shape (size, dimension)."""
    normals = draw_normal(stream, (size, dimension))
    return np.asarray(normals / np.linalg.norm(normals, axis=1, keepdims=True))
