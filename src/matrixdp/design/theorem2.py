"""The paper's sufficient condition, as printed and corrected. Greek letters are those of the paper.

Theorem 2: the mechanism is (epsilon, delta)-DP if ``||sigma(Sigma^-1)||_2 ||sigma(Psi^-1)||_2 <= phi^2``, where phi
solves ``alpha phi^2 + beta phi = 2 epsilon``. The printed root ``(-beta + sqrt(beta^2 + 8 alpha epsilon))/(2 alpha)``
loses all digits to cancellation when beta is large; ``4 epsilon/(beta + sqrt(beta^2 + 8 alpha epsilon))`` is the same
number.

Variants (see `docs/mathematics.md`):

- ``theorem2``: as printed.
- ``theorem2-corrected``: Laurent and Massart bound ``||N||_F^2`` by zeta, not by its square, so beta has the root of
  zeta.
- ``theorem2-psd``: besides, ``alpha = 4 H_r gamma s2``, the form that the authors' longer version gives for positive
  semidefinite queries, and that holds for every query.
"""

import math

import numpy as np

from matrixdp.errors import ParameterError, show
from matrixdp.privacy import Privacy

VARIANTS = ("theorem2", "theorem2-corrected", "theorem2-psd")
CALIBRATIONS = ("exact", *VARIANTS)  # exact: the answer may move by `mu` standard deviations, no more


def precision_budget(
    privacy: Privacy, shape: tuple[int, int], *, sensitivity: float, gamma: float, variant: str = "theorem2"
) -> float:
    """The paper's ``phi^2``, the right side of its condition, for answers of shape (m, n).

    `sensitivity` is s2, the largest change in Frobenius norm, and `gamma` the largest Frobenius norm of the answer.

    Privacy
    -------
    Sufficient, not necessary: it requires 50 to 2 x 10^9 times the noise of the exact condition
    (`benchmarks/calibrations.py`).
    """
    if variant not in VARIANTS:
        raise ParameterError(f"variant must be one of {', '.join(VARIANTS)}, got {show(variant)} instead.")
    m, n = shape
    s2 = sensitivity
    order = np.arange(1, min(m, n) + 1)
    h, h_half = float((1 / order).sum()), float((1 / np.sqrt(order)).sum())
    zeta = 2 * math.sqrt(-m * n * math.log(privacy.delta)) - 2 * math.log(privacy.delta) + m * n
    alpha = (h + h_half) * gamma**2 + 2 * h * gamma * s2
    if variant == "theorem2-psd":
        alpha = 4 * h * gamma * s2
    beta = 2 * (m * n) ** 0.25 * h * s2 * (zeta if variant == "theorem2" else math.sqrt(zeta))
    phi = 4 * privacy.epsilon / (beta + math.sqrt(beta**2 + 8 * alpha * privacy.epsilon))
    return float(phi**2)
