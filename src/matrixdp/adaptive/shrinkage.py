"""Estimators of a symmetric matrix from one with Gaussian noise of known size; post-processing."""

import math
from collections.abc import Callable

import numpy as np

from matrixdp.answers.psd import project_simplex
from matrixdp.types import Floats

_TINY = float(np.finfo(float).tiny)
Spectrum = Callable[[Floats, float], Floats]  # eigenvalues without noise, from noisy ones and the size of the noise


def shrink_eigenvalues(values: Floats, std: float) -> Floats:
    """Estimates of the eigenvalues without noise, from those of a matrix with symmetric Gaussian noise.

    ``y_i - 2 s^2 sum_j 1/(y_i - y_j)``, s the standard deviation off the diagonal: in high dimension the best
    estimator that keeps the eigenvectors (Bun, Allez, Bouchaud, Potters 2016). Its poles are smoothed to width s.
    """
    gaps = values[:, None] - values
    width = max(std, _TINY**0.5)
    return np.asarray(values - 2 * std**2 * (gaps / (gaps**2 + width**2)).sum(axis=1))


def clean_spectrum(values: Floats, std: float) -> Floats:
    """Shrunk eigenvalues, projected onto non-negative ones of the same sum."""
    return project_simplex(shrink_eigenvalues(values, std))


def shrink_spectrum(values: Floats, std: float, *, level: float) -> Floats:
    """Clean eigenvalues; those that may be noise alone, up to ``2 s sqrt(d)``, are moved by `level` to their mean."""
    clean = clean_spectrum(values, std)
    within = values <= 2 * std * np.sqrt(values.size)
    if within.any():
        clean[within] += level * (clean[within].mean() - clean[within])
    return clean


def keep_spikes(values: Floats, std: float) -> Floats:
    """Estimates of eigenvalues that exceed those of symmetric Gaussian noise; the rest of the trace is spread evenly.

    Noise alone reaches ``2 s sqrt(d)``. An eigenvalue l beyond is seen as ``y = l + s^2 d/l``, and its eigenvector has
    the squared cosine ``1 - s^2 d/l^2`` with the true one, so that ``l - s^2 d/l`` has the least error. Better than
    `shrink_eigenvalues` where nearly all is noise.
    """
    reach = std**2 * values.size
    above = values > 2 * np.sqrt(reach)
    without = (values + np.sqrt(np.maximum(values**2 - 4 * reach, 0.0))) / 2
    spikes = np.where(above, without - reach / np.where(above, without, 1.0), 0.0)
    total, found = max(float(values.sum()), 0.0), float(spikes.sum())
    if found > total:
        return np.asarray(spikes * (total / found))
    return np.asarray(spikes + (total - found) / values.size)


def find_directions(matrix: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues and eigenvectors of a symmetric matrix; the signs of the vectors do not depend on the processor."""
    values, vectors = np.linalg.eigh(matrix)
    side = 1 / np.sqrt(2 + np.arange(len(matrix))) @ vectors  # no simple vector is orthogonal to these weights
    return values, vectors * np.where(side < 0, -1.0, 1.0)


def psd_root(matrix: Floats) -> Floats:
    """R with ``R R'`` the positive semidefinite part of a symmetric matrix; the last column leads."""
    values, vectors = find_directions(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def nearest_of_same_trace(matrix: Floats) -> Floats:
    """Nearest positive semidefinite matrix of the same trace, which is known better than the entries; (d, d)."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    result = (vectors * project_simplex(values)) @ vectors.T
    return np.asarray((result + result.T) / 2)


def denoise(second: Floats, constant: float, std: float, spectrum: Spectrum) -> tuple[Floats, Floats]:
    """Mean and covariance from a noisy moment of ``(1, u)``, after shrinking its eigenvalues.

    The whole matrix is shrunk, so that a mean far from the origin, which dominates the leading eigenvector, is kept.
    The mean is the first column of the result over the square root of its first entry; the covariance is then a Schur
    complement, hence positive semidefinite.
    """
    scale = np.ones(len(second))
    scale[0] = constant
    values, vectors = np.linalg.eigh(second * np.multiply.outer(scale, scale))
    clean = (vectors * spectrum(values, std)) @ vectors.T
    mean = clean[0, 1:] / math.sqrt(max(float(clean[0, 0]), _TINY))
    return mean, clean[1:, 1:] - np.multiply.outer(mean, mean)
