"""The true second moment of public records, and principal components."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matrixdp.types import Floats


class Spectrum(NamedTuple):
    """Records of shape (n, m), their second moment about the origin, and its eigenvalues, the largest first."""

    records: Floats
    moment: Floats
    values: Floats


def true_spectrum(records: Floats) -> Spectrum:
    """What the error of components is measured against."""
    moment = records.T @ records / len(records)
    return Spectrum(records, moment, np.asarray(np.linalg.eigvalsh(moment)[::-1], np.float64))


def components(moment: Floats) -> Floats:
    """Eigenvectors as columns, the largest eigenvalue's first, of shape (m, m)."""
    return np.linalg.eigh(moment)[1][:, ::-1]
