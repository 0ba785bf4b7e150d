"""The exponential mechanism for a whole matrix (McSherry & Talwar 2007; after Blum, Ligett, Roth 2008).

With the quality ``-||X - S||_F`` of an output S the density is ``exp(-rate ||X - S||_F)`` up to its normaliser, which
does not depend on X since S ranges over all matrices. It is drawn exactly and directly: S - X has a uniform direction
and, in d dimensions, a radius of the Gamma law of shape d. No Markov chain, whose guarantee holds only in the limit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from matrixdp.baselines.laplace import answer_to_vector, vector_to_answer
from matrixdp.mechanisms.mechanism import check_stream
from matrixdp.noise import Stream, draw_normal
from matrixdp.privacy import Privacy
from matrixdp.queries import MatrixQuery
from matrixdp.release.registered import MechanismRelease, check_arguments, pure_cost, register_mechanism
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
    """The answer with noise of uniform direction and Gamma radius.

    Parameters
    ----------
    query : MatrixQuery
        Any; it holds the bounds.
    privacy : Privacy
        Its delta is not used.
    data, stream, simulation
        As for `matrixdp.release.matrix.release`.
    halved : bool
        Use epsilon/2, as the textbook's general form does for a normaliser that depends on the data. Here the
        normaliser does not, so half the budget is unused.

    Privacy
    -------
    epsilon-DP (epsilon/2 when halved), delta 0, for the query's neighbours: the exponents of neighbours differ by
    ``rate ||D||_F`` at most. Floating-point noise: for comparison only.

    Examples
    --------
    >>> from matrixdp.domain.bounds import Bounds
    >>> from matrixdp.queries import Identity
    >>> query = Identity(Bounds([0, 0], [3, 4]), records=2)
    >>> result = exponential(query, Privacy(1, 1e-5), [[1, 2], [3, 4]])
    >>> result.matrix.shape, result.comparison_only, round(result.parameters["mean_radius"], 6)
    ((2, 2), True, 20.0)
    """
    check_arguments(query, privacy)
    check_stream(stream, simulation=simulation)
    stream = Stream() if stream is None else stream
    epsilon = privacy.epsilon / 2 if halved else privacy.epsilon
    scale = query.sensitivity.frobenius / epsilon
    answer = answer_to_vector(query, query.evaluate(data, clip=True, missing="error"))
    noisy = answer + scale * draw_radial(stream, answer.size, 1)[0]
    return MechanismRelease(
        query=query,
        matrix=query.finish(vector_to_answer(query, noisy)),
        mechanism="exponential",
        privacy=privacy,
        epsilon=epsilon,
        delta=0.0,
        comparison_only=True,
        simulation=simulation,
        std=vector_to_answer(query, np.full(answer.size, scale * math.sqrt(answer.size + 1))),
        parameters={"scale": scale, "mean_radius": scale * answer.size},
    )


def draw_radial(stream: Stream, dimension: int, size: int) -> Floats:
    """Draws with density proportional to ``exp(-|z|)``, of shape (size, dimension).

    Examples
    --------
    >>> draw_radial(Stream(seed=1), 3, 2).shape
    (2, 3)
    """
    return draw_directions(stream, dimension, size) * draw_gamma(stream, dimension, size)[:, None]


def draw_uniform(stream: Stream, size: int) -> Floats:
    """Uniform numbers strictly between 0 and 1, of shape (size,).

    Examples
    --------
    >>> 0 < float(draw_uniform(Stream(seed=1), 1)[0]) < 1
    True
    """
    return np.asarray((stream.words(size) >> np.uint64(12)) * 2.0**-52 + 2.0**-53)


def draw_gamma(stream: Stream, shape: int, size: int) -> Floats:
    """Gamma variables of integer `shape` and unit scale, as sums of exponentials; of shape (size,).

    Examples
    --------
    >>> round(float(draw_gamma(Stream(seed=1), 10**6, 1)[0] / 10**6), 1)
    1.0
    """
    logs = np.log(draw_uniform(stream, shape * size))
    return np.asarray(-logs.reshape(size, shape).sum(axis=1))


def draw_directions(stream: Stream, dimension: int, size: int) -> Floats:
    """Uniform points on the unit sphere, of shape (size, dimension).

    Examples
    --------
    >>> round(float(np.linalg.norm(draw_directions(Stream(seed=1), 5, 1))), 12)
    1.0
    """
    normals = draw_normal(stream, (size, dimension))
    return np.asarray(normals / np.linalg.norm(normals, axis=1, keepdims=True))
