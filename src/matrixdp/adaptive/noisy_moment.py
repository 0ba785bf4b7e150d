"""Noisy moments of records, the law of their noise, and what is computed from several of them; post-processing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from matrixdp.adaptive.queries import TracedMoments, box_query
from matrixdp.adaptive.shrinkage import clean_spectrum
from matrixdp.design import make_design
from matrixdp.mechanisms.mechanism import NoisyAnswer
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.types import Floats

_TINY = float(np.finfo(float).tiny)
Spectrum = Callable[[Floats, float], Floats]  # eigenvalues without noise, from noisy ones and the size of the noise


@dataclass(frozen=True, eq=False)
class NoisyMoment:
    """Noisy ``(1/N) sum (1, u)(1, u)'`` of records u, and the size of its noise.

    For ``(c, u)`` in place of ``(1, u)``, c being `constant`, the noise is isotropic but for the diagonal, with
    standard deviation `std` off it, and `trace_std` in the trace of ``sum u u'/N``. `second`, of shape (d + 1, d + 1),
    has one at (0, 0). `count` is the number of records as a fraction of the public number; noisy where the number is
    private. `diagonal`, of shape (d,), is the variance of the noise on the diagonal of ``sum u u'/N`` for moments of
    the whole box; by default twice that off the diagonal.
    """

    second: Floats
    constant: float
    std: float
    trace_std: float = math.nan
    count: float = 1.0
    diagonal: Floats | None = None

    @property
    def mean(self) -> Floats:
        """Mean of u, of shape (d,)."""
        return self.second[0, 1:]

    def over(self, count: float) -> NoisyMoment:
        """The same sums over another number of records, a fraction of the public number."""
        factor = self.count / count
        second = self.second * factor
        second[0, 0] = 1.0
        return replace(
            self,
            second=second,
            std=self.std * factor,
            trace_std=self.trace_std * factor,
            count=count,
            diagonal=None if self.diagonal is None else self.diagonal * factor**2,
        )

    def transform(self, matrix: Floats | None = None, centre: Floats | float = 0.0) -> tuple[Floats, Floats]:
        """Moment of ``(1, A (u - m))``, by default of (1, u), and the variance of the noise in each entry.

        Noise of the form ``K G K'``, G symmetric with variance s^2 off the diagonal and 2 s^2 on it, has the variances
        ``s^2 (L_ii L_jj + L_ij^2)``, ``L = K K'``; what is more exact on the diagonal is subtracted.
        """
        turn = np.eye(len(self.second))
        if matrix is not None:
            turn[1:, 1:], turn[1:, 0] = matrix, -matrix @ np.broadcast_to(centre, self.mean.size)
        own = turn.copy()
        own[:, 0] /= self.constant
        spread = own @ own.T
        sizes = np.diagonal(spread)
        variances = self.std**2 * (np.multiply.outer(sizes, sizes) + spread**2)
        if self.diagonal is not None:
            squares = own[:, 1:] ** 2
            variances = variances - (squares * (2 * self.std**2 - self.diagonal)) @ squares.T
        return turn @ self.second @ turn.T, variances

    def add_noise(self, rng: np.random.Generator, public: int, *, public_number: bool) -> NoisyMoment:
        """The moment with simulated noise of its own law; for moments of simulated records."""
        d = len(self.second) - 1
        noise = rng.standard_normal((d + 1, d + 1)) * self.std
        noise[1:, 0] /= self.constant
        lower = np.tril(noise, -1)
        noise = lower + lower.T
        alone = rng.standard_normal(d)
        own = 2 * self.std**2 if self.diagonal is None else float(self.diagonal[0])
        even = self.trace_std**2 / d
        rest = max((own - even / d) / (1 - 1 / d), 0.0) if d > 1 else 0.0
        diagonal = math.sqrt(rest) * (alone - alone.mean()) + math.sqrt(even) * alone.mean()
        noise[np.arange(1, d + 1), np.arange(1, d + 1)] = diagonal
        noisy = replace(self, second=self.second + noise)
        if public_number:
            return noisy
        std = math.sqrt(2) * self.std / self.constant**2
        return noisy.over(positive_count(1 + std * float(rng.standard_normal()), std, public))


def positive_count(noisy: float, std: float, public: int) -> float:
    """Noisy fraction of the public number of records, but at least its noise and at least one record."""
    return max(noisy, std, 1 / public)


def read_ball(released: NoisyAnswer, public: int) -> NoisyMoment:
    """Moment from a release of `ball_query`, over the noisy number of records where that is private."""
    query = released.design.query
    if isinstance(query, TracedMoments):
        d, std = query.moments.bounds.size, float(released.std[0, 0])
        trace_std = std * math.sqrt(d / (1 + d * query.weight))
        return NoisyMoment(query.matrix(released.matrix[0]), query.constant, std / math.sqrt(2), trace_std)
    variances, d = released.design.colcov.variances, len(released.matrix) - 1
    std, constant = float(variances[1]), math.sqrt(variances[1] / variances[0])
    noisy = NoisyMoment(released.matrix, constant, std / math.sqrt(2), std * math.sqrt(d))
    return noisy.over(positive_count(float(released.matrix[0, 0]), float(released.std[0, 0]), public))


def read_box(released: NoisyAnswer, public: int) -> NoisyMoment:
    """Moment from a release of `BoxMoments`, over the noisy number of records where that is private."""
    query, variances = released.design.query, released.design.colcov.variances
    constant, off = math.sqrt(variances[1] / variances[0]), float(variances[1]) / math.sqrt(2)
    diagonal = np.asarray(np.diagonal(released.std)[1:] ** 2)
    trace_std = math.sqrt(_trace_variance(diagonal, off, constant, query.neighbours))
    noisy = NoisyMoment(released.matrix, constant, off, trace_std, diagonal=diagonal)
    if query.public_number:
        return noisy.over(1.0)
    return noisy.over(positive_count(float(released.matrix[0, 0]), float(released.std[0, 0]), public))


def ball_noise(
    second: Floats, radius: float, ratio: float, reach: float, neighbours: Neighbours, *, traced: bool
) -> NoisyMoment:
    """An exact moment, of shape (d + 1, d + 1), with the law of the noise that `ball_query` has.

    `reach` is the public number of records times mu, and `traced` says whether the trace is measured as well, as where
    the number of records is public.
    """
    d = len(second) - 1
    std = (1 + ratio) * radius**2 / reach * (math.sqrt(2) if neighbours is Neighbours.REPLACE else 1.0)
    trace_std = std * math.sqrt(d / (1 + d * (1 + 2 * ratio)) if traced else d)
    return NoisyMoment(second, math.sqrt(ratio) * radius, std / math.sqrt(2), trace_std)


def box_noise(second: Floats, ratio: float, reach: float, neighbours: Neighbours = Neighbours.REPLACE) -> NoisyMoment:
    """An exact moment with the law of the noise that `box_query` has; parameters as for `ball_noise`.

    For replaced records the precision of the squares, relative to that of ``K G K'``, is ``1 + 1.5 d + 2 c^2``, and
    ``1 + d + 2 c^2`` that of their sum.
    """
    d = len(second) - 1
    std, square = d * (1 + ratio) / reach, ratio * d
    part = (1 - 1 / d) / (1 + 1.5 * d + 2 * square) + 1 / d / (1 + d + 2 * square)
    if neighbours is not Neighbours.REPLACE:
        std, part = std / math.sqrt(2), _added_squares(d, ratio)
    diagonal, constant = np.full(d, 2 * std**2 * part), math.sqrt(square)
    trace_std = math.sqrt(_trace_variance(diagonal, std, constant, neighbours))
    return NoisyMoment(second, constant, std, trace_std, diagonal=diagonal)


def _trace_variance(diagonal: Floats, std: float, constant: float, neighbours: Neighbours) -> float:
    """Variance of the noise in the trace: its precision is ``1 + d + 2 c^2`` instead of 1 for replaced records."""
    d = diagonal.size
    precision = 1 + d + 2 * constant**2 if neighbours is Neighbours.REPLACE else 1.0
    return max(2 * d * std**2 / precision, float(diagonal.sum()) / d)


@lru_cache(maxsize=256)
def _added_squares(size: int, ratio: float) -> float:
    """Variance of a square, relative to that of ``K G K'``, where records are added or removed."""
    design = make_design(box_query(size, 1000, Neighbours.ADD_REMOVE, ratio), Privacy(1.0, 1e-6), allocation="uniform")
    return float(design.std[1, 1] ** 2 / design.colcov.variances[1] ** 2)


def share_count(*moments: NoisyMoment) -> tuple[NoisyMoment, ...]:
    """The same moments over one number of records: the average of their noisy numbers by precisions.

    Where the number is public, moments are returned as they are.
    """
    if all(moment.count == 1.0 for moment in moments):
        return moments
    precisions = np.array([(moment.constant**2 / (moment.std * moment.count)) ** 2 for moment in moments])
    count = float(precisions @ [moment.count for moment in moments] / precisions.sum())
    return tuple(moment.over(count) for moment in moments)


def denoise(second: Floats, constant: float, std: float, spectrum: Spectrum = clean_spectrum) -> tuple[Floats, Floats]:
    """Mean and covariance from a noisy moment of ``(1, u)``, after shrinking its eigenvalues.

    The whole matrix is shrunk, so that a mean far from the origin, which dominates the leading eigenvector, is kept.
    The mean is the first column of the result over the square root of its first entry; the covariance is then a Schur
    complement, hence positive semidefinite. `spectrum` gives non-negative eigenvalues without noise, from noisy ones
    and the noise's standard deviation.
    """
    scale = np.ones(len(second))
    scale[0] = constant
    values, vectors = np.linalg.eigh(second * np.multiply.outer(scale, scale))
    clean = (vectors * spectrum(values, std)) @ vectors.T
    mean = clean[0, 1:] / math.sqrt(max(float(clean[0, 0]), _TINY))
    return mean, clean[1:, 1:] - np.multiply.outer(mean, mean)
