"""The error that privacy adds and the sampling error, separately; post-processing."""

from __future__ import annotations

from typing import Any

import numpy as np

from matrixdp.adaptive.error_bars import sampling_bars
from matrixdp.answers.estimate import HIDDEN, Estimate
from matrixdp.domain.person import least_sample
from matrixdp.errors import ParameterError, show
from matrixdp.queries import Moments, TableMoments
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.release.result import Release
from matrixdp.types import Floats

KINDS = ("means", "covariance", "correlation")
COLUMNS = ("value", "privacy std", "sampling std", "both")


def error_parts(release: AdaptiveRelease | Release, kind: str = "means") -> Estimate:
    """Each number with the error that privacy causes, the error of the records as a sample, and both together.

    For an adaptive release, sampling errors are those of records like the ones that its error bars are simulated with.
    For a plain release they are those of Gaussian records. Where k rows of a person count, they are those of a sample
    of records/k people, the fewest possible: rows of one person may all be the same.

    Parameters
    ----------
    release : AdaptiveRelease or Release
        A `Release` must be of `TableMoments`.
    kind : 'means', 'covariance' or 'correlation'

    Examples
    --------
    >>> import matrixdp as mdp
    >>> data = np.random.default_rng(0).normal(size=(2000, 3))
    >>> bounds = mdp.Bounds([-5] * 3, [5] * 3, names=["a", "b", "c"])
    >>> released = mdp.release_table(data, bounds, mdp.Privacy(1, 1e-6), question="covariance")
    >>> 0.015 < released.error_parts("means")["a", "sampling std"] < 0.04
    True
    """
    if kind not in KINDS:
        raise ParameterError(f"kind must be one of {', '.join(KINDS)}, got {show(kind)} instead.")
    if not isinstance(release, AdaptiveRelease) and not _is_table(release):
        raise ParameterError("release must be a covariance, or the moments of a table (--query everything or means).")
    found = _find(release, kind)
    sampling = _sample_fit(release, kind) if isinstance(release, AdaptiveRelease) else _sample_plain(release, kind)
    if kind == "means":
        names, places = found.rows, (np.arange(len(found.rows)), np.zeros(len(found.rows), int))
        sampling = sampling[:, None]
    else:
        pairs = np.tril_indices(len(found.rows), -1 if kind == "correlation" else 0)
        names = tuple(found.rows[i] if i == j else f"{found.rows[i]}, {found.rows[j]}" for i, j in np.transpose(pairs))
        places = pairs
    parts = [array[places] for array in (found.value, found.std, sampling)]
    value = np.column_stack([*parts, np.hypot(parts[1], parts[2])])
    value = np.where(np.isfinite(parts[0])[:, None], value, np.nan)
    return Estimate(value, np.zeros_like(value), names, COLUMNS, np.full(value.shape, HIDDEN, object))


def _is_table(release: object) -> bool:
    return isinstance(release, Release) and isinstance(release.design.query, Moments | TableMoments)


def _find(release: AdaptiveRelease | Release, kind: str) -> Estimate:
    if kind == "means":
        return release.means()
    found = release.covariance() if kind == "covariance" else release.correlation()
    assert isinstance(found, Estimate)
    return found


def _sample_fit(release: AdaptiveRelease, kind: str) -> Floats:
    bars = sampling_bars(release.moment)
    return {"means": bars.mean_std, "covariance": bars.covariance_std, "correlation": bars.correlation_std}[kind]


def _sample_plain(release: Release, kind: str) -> Floats:
    """For Gaussian records: ``v_i/n``, ``(v_i v_j + c_ij^2)/n`` and ``(1 - r_ij^2)^2/n`` are the variances."""
    query: Any = release.design.query
    records = least_sample(query.records, query.person)
    if kind == "correlation":
        return np.asarray((1 - _find(release, kind).value ** 2) / np.sqrt(records))
    covariance = _find(release, "covariance").value
    variances = np.maximum(np.diagonal(covariance), 0.0)
    if kind == "means":
        return np.asarray(np.sqrt(variances / records))
    return np.asarray(np.sqrt((np.multiply.outer(variances, variances) + covariance**2) / records))
