"""What is read off a private moment, and its sampling error."""

from __future__ import annotations

import numpy as np

from matrixdp.answers.moments import correlation_from_covariance
from matrixdp.types import Floats

Statistics = dict[str, Floats]


def read_off(mean: Floats, covariance: Floats, units: Floats, second: Floats | None = None) -> Statistics:
    """Everything that is read off a mean and a covariance of records in [-1, 1]^d.

    Parameters
    ----------
    mean, covariance : float64 arrays of shape (d,) and (d, d)
    units : float64 array of shape (d,)
        Units of the features, for eigenvalues: the other statistics are in units of the halfwidths of the bounds.
    second : float64 array of shape (d, d), optional
        Second moment about the midpoint, where it does not follow from mean and covariance.

    Examples
    --------
    >>> {name: value.tolist() for name, value in read_off(np.zeros(1), np.ones((1, 1)), np.array([2.0])).items()}
    {'mean': [0.0], 'second_moment': [[1.0]], 'covariance': [[1.0]], 'correlation': [[1.0]], 'eigenvalue': [4.0]}
    """
    return {
        "mean": mean,
        "second_moment": covariance + np.multiply.outer(mean, mean) if second is None else second,
        "covariance": covariance,
        "correlation": np.clip(correlation_from_covariance(covariance, undefined=0.0), -1.0, 1.0),
        "eigenvalue": np.asarray(np.linalg.eigvalsh(covariance * np.multiply.outer(units, units))[::-1], np.float64),
    }


def moments_of(records: Floats) -> tuple[Floats, Floats]:
    """Mean and covariance, over N, of records of shape (n, d)."""
    mean = records.mean(axis=0)
    centred = records - mean
    return mean, centred.T @ centred / len(records)


def sampling_errors(records: Floats, count: float, units: Floats) -> Statistics:
    """Standard deviation of each statistic for samples of `count` records from a population like `records`.

    To first order, from the influence of each record.

    Parameters
    ----------
    records : float64 array of shape (n, d)
    count : float
    units : float64 array of shape (d,)
    """
    mean, covariance = moments_of(records)
    centred = records - mean
    std = np.sqrt(np.diagonal(covariance))
    white = centred / np.where(std > 0, std, np.inf)
    correlation = read_off(mean, covariance, units)["correlation"]
    fourth, third = _mean_product(white**2, white**2), _mean_product(white**3, white)
    own = np.diagonal(fourth)
    relative = (
        fourth - correlation * (third + third.T) + correlation**2 * (own[:, None] + own[None, :] + 2 * fourth) / 4
    )
    values, vectors = np.linalg.eigh(covariance * np.multiply.outer(units, units))
    scores = (centred * units) @ vectors
    variances = {
        "mean": np.diagonal(covariance),
        "second_moment": _mean_product(records**2, records**2) - _mean_product(records, records) ** 2,
        "covariance": _mean_product(centred**2, centred**2) - covariance**2,
        "correlation": relative,
        "eigenvalue": ((scores**4).mean(axis=0) - values**2)[::-1],
    }
    return {name: np.sqrt(np.maximum(variance, 0.0) / count) for name, variance in variances.items()}


def _mean_product(left: Floats, right: Floats) -> Floats:
    return np.asarray(left.T @ right / len(left))
