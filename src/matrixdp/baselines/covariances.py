"""Peers that take several steps: covariances and regressions from Gaussian releases that share one budget.

SeparateCov and AdaptiveCov (Dong, Liang, Yi 2022), CoinPress (Biswas, Dong, Kamath, Ullman 2020), and AdaSSP (Wang
2018). Records are scaled to [-1, 1] first.
"""

import math
from typing import Any

import numpy as np

from matrixdp.answers.psd import nearest_psd
from matrixdp.design import isotropic, make_design
from matrixdp.domain.bounds import Bounds
from matrixdp.errors import ParameterError
from matrixdp.noise import Stream
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.queries import MatrixQuery, Query, SecondMoment
from matrixdp.release.registered import MechanismRelease, check_arguments, gaussian_cost, register_mechanism
from matrixdp.sensitivity import FrobeniusBall
from matrixdp.types import Floats

_SEARCH, _TRACE = 0.125, 0.125  # shares of mu^2 for the radius and the trace
_COINPRESS_FAILURE, _COINPRESS_SHARES = 0.1, (0.125, 0.125, 0.75)  # of three rounds
_ADASSP_FAILURE = 0.05


def unit_records(query: Any, privacy: Any, data: Any, mechanism: str) -> tuple[SecondMoment, Floats]:
    """The query, and records of shape (n, m) in [-1, 1] about the midpoint of its box."""
    check_arguments(query, privacy)
    if not isinstance(query, SecondMoment) or query.centre is not None or query.neighbours is not Neighbours.REPLACE:
        raise ParameterError(f"query must be SecondMoment about the midpoint, for replace neighbours, for {mechanism}.")
    query.evaluate(data, clip=True, missing="error")  # raises every error of the data
    return query, np.clip(query.bounds.centre(data) / query.bounds.halfwidths, -1.0, 1.0)


class SharedBudget:
    """Releases with isotropic Gaussian noise, each for a share of one budget's ``mu^2``."""

    def __init__(self, privacy: Privacy, stream: Stream | None, simulation: bool) -> None:
        self.privacy, self.stream, self.simulation = privacy, stream, simulation

    def release(self, query: MatrixQuery, data: Any, share: float) -> tuple[Floats, float]:
        """The noisy answer, and the standard deviation of the noise in its first entry."""
        design = make_design(query, self.privacy, allocation=isotropic(), share=share)
        released = design.release(data, stream=self.stream, simulation=self.simulation)
        return released.matrix, float(design.std[0, 0])

    def second_moment(self, records: Floats, radius: float, share: float) -> tuple[Floats, float]:
        """Noisy second moment of records clipped to a ball, and the standard deviation on its diagonal."""
        d = records.shape[1]
        bounds = Bounds(np.full(d, -radius), np.full(d, radius), radius=radius)
        return self.release(SecondMoment(bounds, len(records)), records, share)

    def vector(self, value: Floats, sensitivity: float, bound: float, share: float) -> tuple[Floats, float]:
        """A noisy vector whose L2 sensitivity is known."""
        query = Query((1, value.size), FrobeniusBall(sensitivity * (1 + 1e-9)), bound=bound)
        matrix, std = self.release(query, value[None], share)
        return matrix[0], std


def peer_release(
    mechanism: str, query: SecondMoment, budget: SharedBudget, matrix: Floats, **parameters: float
) -> MechanismRelease:
    """The release of a whole budget, for comparison only: steps are in floats. Scaled moments get the data's units."""
    privacy = budget.privacy
    if matrix.shape == query.shape:
        matrix = matrix * np.multiply.outer(query.bounds.halfwidths, query.bounds.halfwidths)
    known: dict[str, Any] = {"comparison_only": True, "simulation": budget.simulation, "parameters": parameters}
    return MechanismRelease(query, matrix, mechanism, privacy, privacy.epsilon, privacy.delta, mu=privacy.mu, **known)


def clip_rows(records: Floats, radius: float) -> Floats:
    """Rows scaled into a ball about the origin."""
    lengths = np.linalg.norm(records, axis=1)
    return np.asarray(records * np.minimum(1.0, radius / np.maximum(lengths, radius))[:, None])


@register_mechanism("SeparateCov", cost=gaussian_cost, tasks=("second-moment",), comparison_only=True)
def separate_cov(
    query: MatrixQuery, privacy: Privacy, data: Any, *, stream: Stream | None = None, simulation: bool = False
) -> MechanismRelease:
    """Eigenvectors of a noisy second moment with noisy eigenvalues of the true one.

    Parameters are those of `matrixdp.Design.release`; the query is a SecondMoment about the midpoint of its
    bounds, which are scaled to [-1, 1].

    Privacy
    -------
    (epsilon, delta)-DP for replaced records. Half of ``mu^2`` goes to each part. Eigenvalues of two symmetric matrices
    differ by at most ``||A - B||_F`` in L2 (Hoffman and Wielandt), so they have the sensitivity of the matrix.
    """
    moment, records = unit_records(query, privacy, data, "SeparateCov")
    budget = SharedBudget(privacy, stream, simulation)
    radius = math.sqrt(records.shape[1])
    return peer_release("SeparateCov", moment, budget, separate(records, radius, budget, 1.0))


def separate(records: Floats, radius: float, budget: SharedBudget, share: float) -> Floats:
    """SeparateCov of records clipped to a ball, for a share of the budget; of shape (m, m)."""
    noisy, _ = budget.second_moment(records, radius, share / 2)
    inside = clip_rows(records, radius)
    values = np.asarray(np.linalg.eigvalsh(inside.T @ inside / len(inside)), np.float64)
    bound = radius**2 * (1 + 1e-9)
    values, _ = budget.vector(values, math.sqrt(2) * radius**2 / len(inside), bound, share / 2)
    vectors = np.linalg.eigh(noisy)[1]
    return np.asarray((vectors * np.maximum(np.sort(values), 0.0)) @ vectors.T)


@register_mechanism("AdaptiveCov", cost=gaussian_cost, tasks=("second-moment",), comparison_only=True)
def adaptive_cov(
    query: MatrixQuery, privacy: Privacy, data: Any, *, stream: Stream | None = None, simulation: bool = False
) -> MechanismRelease:
    """Second moment of records clipped at a private radius, by the mechanism with the smaller error bound.

    The paper finds the radius on a grid of powers of two by the sparse vector technique. Here it is found on the same
    grid by bisection of counts with Gaussian noise, which needs fewer counts. The two mechanisms are compared by error
    bounds of the paper's form at a private trace. The split of the budget and the constants follow the paper's text,
    not the authors' code.

    Parameters are those of `separate_cov`.

    Privacy
    -------
    (epsilon, delta)-DP for replaced records: Gaussian releases whose shares of ``mu^2`` sum to one.
    """
    moment, records = unit_records(query, privacy, data, "AdaptiveCov")
    budget = SharedBudget(privacy, stream, simulation)
    n, d = records.shape
    # The radius is a power of two times sqrt(m) that about d/mu records exceed, at most half of them.
    lengths, grid = np.linalg.norm(records, axis=1), math.sqrt(d) * 2.0 ** np.arange(-7, 1)
    low, high, steps = 0, len(grid) - 1, 3
    for _ in range(steps):
        middle = (low + high) // 2
        count, _ = budget.vector(np.array([float((lengths > grid[middle]).sum())]), 1.0, 2.0 * n, _SEARCH / steps)
        low, high = (middle + 1, high) if count[0] > min(d / privacy.mu, n / 2) else (low, middle)
    radius = float(grid[min(low, len(grid) - 1)])
    lengths = np.minimum(lengths, radius)
    square = np.array([float(np.mean(lengths**2))])
    trace, _ = budget.vector(square, radius**2 / n, radius**2 * (1 + 1e-9), _TRACE)
    share = 1 - _SEARCH - _TRACE
    noise = math.sqrt(2) * radius**2 / (n * privacy.mu * math.sqrt(share))
    separate_error = math.sqrt(max(float(trace[0]), 0.0) * noise * math.sqrt(2 * d)) + noise * math.sqrt(2 * d)
    if noise * d <= separate_error:
        matrix = nearest_psd(budget.second_moment(records, radius, share)[0])
    else:
        matrix = separate(records, radius, budget, share)
    return peer_release("AdaptiveCov", moment, budget, matrix, radius=radius)


@register_mechanism("CoinPress", cost=gaussian_cost, tasks=("second-moment",), comparison_only=True)
def coinpress(
    query: MatrixQuery, privacy: Privacy, data: Any, *, stream: Stream | None = None, simulation: bool = False
) -> MechanismRelease:
    """Second moment about the midpoint: each round whitens with the upper bound of the last round, clips, adds noise.

    Designed for Gaussian records, whose lengths after whitening are known; others are clipped too much or too little.
    The last round has three quarters of the budget. The split, the slack added to the bound, and two safeguards (the
    bound never grows, no ball is larger than the box) follow the paper's text, not the authors' code.

    Parameters are those of `separate_cov`.

    Privacy
    -------
    (epsilon, delta)-DP for replaced records. The rounds are Gaussian releases with shares of ``mu^2`` that sum to one.
    """
    moment, records = unit_records(query, privacy, data, "CoinPress")
    budget = SharedBudget(privacy, stream, simulation)
    n, d = records.shape
    tail = math.log(n / _COINPRESS_FAILURE)
    radius = math.sqrt(d + 2 * math.sqrt(d * tail) + 2 * tail)
    whiten = np.eye(d) / math.sqrt(d)  # the moment is at most d times the identity
    noisy = np.eye(d)
    for share in _COINPRESS_SHARES:
        reach = math.sqrt(d) * float(np.linalg.norm(whiten, 2))  # no record of the box is longer
        noisy, std = budget.second_moment(records @ whiten.T, min(radius, reach), share * (1 - 1e-12))
        last = whiten
        sampling = 2 * math.sqrt((d + tail) / n)
        slack = std / math.sqrt(2) * (2 * math.sqrt(d) + math.sqrt(2 * tail)) + sampling
        values, vectors = np.linalg.eigh(noisy)
        bound = np.minimum(np.maximum(values, 0.0) + slack, 1.0)  # whitened, the moment was at most 1 before
        whiten = (vectors / np.sqrt(bound)).T @ last
    back = np.linalg.inv(last)
    values, vectors = np.linalg.eigh(noisy)
    root = back @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    return peer_release("CoinPress", moment, budget, root @ root.T, radius=radius)


@register_mechanism("AdaSSP", cost=gaussian_cost, tasks=("regression",), comparison_only=True)
def adassp(
    query: MatrixQuery, privacy: Privacy, data: Any, *, stream: Stream | None = None, simulation: bool = False
) -> MechanismRelease:
    """Intercept and coefficients, of shape (m, 1), for the last of m features, with all scaled to [-1, 1].

    Parameters are those of `separate_cov`. The last feature is the target.

    Privacy
    -------
    (epsilon, delta)-DP for replaced records. A third of ``mu^2`` each for the least eigenvalue, the features' second
    moment and their products with the target; the paper splits epsilon and delta instead, with more noise.
    """
    moment, records = unit_records(query, privacy, data, "AdaSSP")
    if records.shape[1] < 2:
        raise ParameterError("query must have at least two features, the last of them the target.")
    budget = SharedBudget(privacy, stream, simulation)
    x = np.column_stack([np.ones(len(records)), records[:, :-1]])
    n, d = x.shape
    third = (1 - 1e-12) / 3
    least = np.linalg.eigvalsh(x.T @ x / n)[:1]
    square = float(d)  # of the longest row
    noisy_least, std = budget.vector(least, square / n, square + 1, third)
    gram, noise = budget.second_moment(x, math.sqrt(square), third)
    product, _ = budget.vector(x.T @ records[:, -1] / n, 2 * math.sqrt(square) / n, 1.0 + 1e-9, third)
    certain = max(0.0, float(noisy_least[0]) - std * math.sqrt(2 * math.log(2 / _ADASSP_FAILURE)))
    spectral = noise / math.sqrt(2) * (2 * math.sqrt(d) + math.sqrt(2 * math.log(2 / _ADASSP_FAILURE)))
    ridge = max(0.0, spectral - certain)
    coefficients = np.linalg.lstsq(gram + ridge * np.eye(d), product, rcond=None)[0]
    return peer_release("AdaSSP", moment, budget, np.asarray(coefficients, np.float64)[:, None], ridge=ridge)
