"""The paper's two algorithms under their own names, with the paper's inputs and orientation: features are rows."""

from __future__ import annotations

from numpy.typing import ArrayLike

from matrixdp.checks import check_integer
from matrixdp.design.allocation_rules import check_theta, shares
from matrixdp.design.builder import make_design
from matrixdp.design.design import Design
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.queries import paper_query


def unimodal(
    *,
    epsilon: float,
    delta: float,
    sensitivity: float,
    gamma: float,
    theta: ArrayLike,
    columns: int,
    directions: ArrayLike | None = None,
    calibration: str = "theorem2",
    neighbours: str = Neighbours.REPLACE,
) -> Design:
    """Algorithm 1, unimodal directional noise: covariance Sigma between rows, independent columns.

    Parameters
    ----------
    epsilon, delta : float
    sensitivity : float
        s2(f), the largest change of the answer in Frobenius norm.
    gamma : float
        Largest Frobenius norm of the answer.
    theta : array_like of shape (m,)
        Precision allocation, positive, summing to one.
    columns : int
        n.
    directions : array_like of shape (m, m), optional
        W_Sigma, one direction per column; the standard basis by default.
    calibration : str
        'theorem2' as printed, 'theorem2-corrected', 'theorem2-psd', or 'exact' for the sensitivity's Frobenius ball.
    neighbours : 'replace' or 'add-remove'
        Those that `sensitivity` was derived for.

    Returns
    -------
    Design
        ``design.release(answer)`` takes the answer f(X), of shape (m, n).

    Privacy
    -------
    The neighbours that `sensitivity` was derived for; (epsilon, delta)-DP by the paper's Theorem 2. `distance` says
    what is really spent.

    Examples
    --------
    >>> design = unimodal(
    ...     epsilon=1, delta=1 / 248, sensitivity=6**0.5, gamma=(6 * 248) ** 0.5, columns=248,
    ...     theta=[0.475, 0.475, 0.0125, 0.0125, 0.0125, 0.0125],
    ... )
    >>> [f"{std:.2e}" for std in design.std[1:3, 0]]
    ['2.99e+05', '7.43e+05']
    """
    columns = check_integer(columns, "columns", at_least=1)
    shares_ = check_theta(theta)
    query = paper_query(
        (shares_.size, columns), sensitivity=sensitivity, gamma=gamma, side="rows", neighbours=neighbours
    )
    return make_design(
        query,
        Privacy(epsilon, delta),
        allocation=shares(shares_),
        directions=directions,
        calibration=calibration,
    )


def equimodal(
    *,
    epsilon: float,
    delta: float,
    sensitivity: float,
    gamma: float,
    theta: ArrayLike,
    directions: ArrayLike | None = None,
    calibration: str = "theorem2",
    neighbours: str = Neighbours.REPLACE,
) -> Design:
    """Algorithm 2, equi-modal directional noise: the same covariance between rows and between columns.

    For a symmetric answer of shape (m, m); the release draws one triangle, which is the paper's noise symmetrised.
    Parameters are those of `unimodal`.

    Examples
    --------
    >>> design = equimodal(epsilon=1, delta=1 / 2021, sensitivity=8 / 2021, gamma=4, theta=[0.475, 0.025, 0.025, 0.475])
    >>> [round(float(std), 2) for std in design.noise.std[0]]
    [9.72, 20.29, 20.29, 9.72]
    """
    shares_ = check_theta(theta)
    query = paper_query(
        (shares_.size, shares_.size), sensitivity=sensitivity, gamma=gamma, side="both", neighbours=neighbours
    )
    return make_design(
        query,
        Privacy(epsilon, delta),
        allocation=shares(shares_),
        directions=directions,
        calibration=calibration,
    )
