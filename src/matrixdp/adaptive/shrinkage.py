"""Estimators of a symmetric matrix from one with Gaussian noise of known size; post-processing."""

from __future__ import annotations

import numpy as np

from matrixdp.types import Floats


def shrink_eigenvalues(values: Floats, std: float) -> Floats:
    """Estimates of the eigenvalues without noise, from those of a matrix with symmetric Gaussian noise.

    ``y_i - 2 s^2 sum_j 1/(y_i - y_j)``, s the standard deviation off the diagonal: in high dimension the best
    estimator that keeps the eigenvectors (Bun, Allez, Bouchaud, Potters 2016). Its poles are smoothed to width s.
    """
    gaps = values[:, None] - values
    width = max(std, float(np.finfo(float).tiny) ** 0.5)
    return np.asarray(values - 2 * std**2 * (gaps / (gaps**2 + width**2)).sum(axis=1))


def clean_spectrum(values: Floats, std: float) -> Floats:
    """Shrunk eigenvalues, projected onto non-negative ones of the same sum."""
    return project_simplex(shrink_eigenvalues(values, std))


def shrink_spectrum(values: Floats, std: float, *, level: float) -> Floats:
    """Clean eigenvalues, with those that may be noise alone, up to ``2 s sqrt(d)``, moved towards their mean.

    Differences between them are mostly noise, and so are their directions. `level` is how far they move, from 0 to 1.
    """
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


def project_simplex(values: Floats) -> Floats:
    """Nearest non-negative numbers of the same sum, or zeros if the sum is negative.

    Examples
    --------
    >>> project_simplex(np.array([3.0, 1.0, -1.0])).tolist()
    [2.5, 0.5, 0.0]
    """
    total = float(values.sum())
    if total <= 0:
        return np.zeros_like(values)
    ordered = -np.sort(-values)
    excess = (np.cumsum(ordered) - total) / np.arange(1, values.size + 1)
    level = excess[np.flatnonzero(ordered > excess)[-1]]
    return np.asarray(np.maximum(values - level, 0.0))


def nearest_of_same_trace(matrix: Floats) -> Floats:
    """Nearest positive semidefinite matrix with the trace of `matrix`, of shape (d, d).

    Setting negative eigenvalues to zero would raise the trace, which is known better than the entries.
    """
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    result = (vectors * project_simplex(values)) @ vectors.T
    return np.asarray((result + result.T) / 2)
