"""A module as a user writes it: mechanisms of her own, one for each task."""

import numpy as np

from matrixdp import Stream
from matrixdp.noise import draw_gaussian
from matrixdp.release.registered import MechanismRelease, gaussian_cost, register_mechanism


def noisy(name, query, privacy, data, stream, simulation, *, simplify=lambda matrix: matrix):
    """The answer with Gaussian integers on a grid of a billionth of their standard deviation."""
    stream = Stream() if stream is None else stream
    std = query.sensitivity.frobenius / privacy.mu * (1 + 1e-6)
    steps = np.rint(query.evaluate(data, clip=True, missing="error") / std * 2.0**30).astype(np.int64)
    matrix = (steps + draw_gaussian(stream, 30, shape=steps.shape)) * 2.0**-30 * std
    return MechanismRelease(
        query=query,
        matrix=simplify(query.finish(matrix)),
        mechanism=name,
        privacy=privacy,
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        comparison_only=False,
        simulation=simulation,
        mu=privacy.mu,
    )


@register_mechanism("plain noise", cost=gaussian_cost, tasks=("records", "second-moment"))
def plain_noise(query, privacy, data, *, stream=None, simulation=False):
    """Independent noise in every entry."""
    return noisy("plain noise", query, privacy, data, stream, simulation)


@register_mechanism("first column", cost=gaussian_cost, tasks=("components", "regression"))
def first_column(query, privacy, data, *, stream=None, simulation=False):
    """The first column of a noisy second moment, of length one."""

    def simplify(matrix):
        return matrix[:, :1] / np.linalg.norm(matrix[:, :1])

    return noisy("first column", query, privacy, data, stream, simulation, simplify=simplify)
