"""Posterior mean of regression coefficients, given a noisy moment; post-processing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matrixdp.types import Floats

_EXPLAINED = np.array([0.0, 1 / 64, 1 / 16, 1 / 4, 1.0])  # shares of the target's variance, equally likely
_ROUNDS = 3  # fixed-point iterations: the noise depends on the coefficients
_TINY = float(np.finfo(float).tiny) ** 0.5


@dataclass(frozen=True, eq=False)
class Posterior:
    """Posterior mean of coefficients, and what shrinkage may have taken from them.

    Attributes
    ----------
    coefficients : float64 array of shape (m,)
    shrinkage : float64 array of shape (m, m)
        Mean square of what shrinkage takes from the coefficients, for coefficients from the prior.
    """

    coefficients: Floats
    shrinkage: Floats


def posterior_coefficients(
    gram: Floats,
    cross: Floats,
    shape: Floats,
    *,
    target: tuple[Floats, float],
    variance: float,
    std: float,
    records: float,
) -> Posterior:
    """Posterior mean of the coefficients b in ``cross = gram b + noise``.

    In coordinates in which the noise of `gram` is isotropic, the prior of the coefficients is Gaussian with one
    variance, for which they explain a share of the target's variance on average. The shares, from none to all, are
    averaged with their likelihood given `cross`. The noise of `gram` adds ``s^2 |b - a|^2``
    to the variance ``s^2 l`` of `cross`, for a and l given in `target`, and sampling adds the residual variance over
    the number of records. So the coefficients are close to zero where `cross` may be noise alone.

    Parameters
    ----------
    gram, cross : float64 arrays of shape (m, m) and (m,)
        Positive semidefinite covariance of the features, and their noisy covariances with the target.
    shape : float64 array of shape (m, m)
        Shape of the noise among the features (`Fitted.noise_shape`).
    target : float64 array of shape (m,) and float
        Shape of the noise between features and target, and of the target alone.
    variance : float
        Variance of the target.
    std : float
        Standard deviation of the noise off the diagonal, in coordinates in which it is isotropic.
    records : float
        Infinite where coefficients of these records are wanted, not of the population that they are a sample of.

    Examples
    --------
    >>> options = {"target": (np.zeros(2), 1.0), "variance": 1.0, "records": 10**6}
    >>> cross = np.array([0.5, 0.0])
    >>> posterior_coefficients(np.eye(2), cross, np.eye(2), std=1e-3, **options).coefficients.round(3).tolist()
    [0.5, 0.0]
    >>> bool(posterior_coefficients(np.eye(2), cross, np.eye(2), std=1.0, **options).coefficients[0] < 0.2)
    True
    """
    lengths, axes = np.linalg.eigh(shape)
    whiten = axes / np.sqrt(np.maximum(lengths, max(float(lengths[-1]) * 1e-15, _TINY)))
    values, vectors = np.linalg.eigh(whiten.T @ gram @ whiten)
    turn = whiten @ vectors
    values = np.maximum(values, _TINY)
    seen, centre = cross @ turn, target[0] @ turn
    own = max(target[1] - float(centre @ centre), 0.0)
    priors = _EXPLAINED[:, None] * (max(variance, _TINY) / values.sum())
    found, kept = np.zeros(values.size), np.zeros(values.size)
    for _ in range(_ROUNDS):
        noise = std**2 * (own + float(((centre - found) ** 2).sum())) + values * variance / records
        spread = priors * values**2 + noise + _TINY**2
        evidence = -0.5 * (seen**2 / spread + np.log(spread)).sum(axis=1)
        weights = np.exp(evidence - evidence.max())
        kept = (weights / weights.sum()) @ (priors * values / spread)
        found = kept * seen
    evenly = max(variance, _TINY) / values.size / (values + std)
    lost = np.maximum(float(priors[-1, 0]), evenly) * (1 - kept * values) ** 2
    return Posterior(np.asarray(turn @ found), np.asarray((turn * lost) @ turn.T))
