"""Coefficients that a noisy moment makes likely, at no cost in privacy."""

from __future__ import annotations

import numpy as np

from matrixdp.adaptive.settings import Settings
from matrixdp.types import Floats

_TINY = float(np.finfo(float).tiny) ** 0.5


def posterior_coefficients(
    gram: Floats,
    cross: Floats,
    shape: Floats,
    *,
    target: tuple[Floats, float],
    variance: float,
    std: float,
    records: int,
    settings: Settings,
) -> Floats:
    """Mean of the coefficients b in ``cross = gram b + noise``, given what is known of the noise, of shape (m,).

    In coordinates in which the noise of `gram` is isotropic, coefficients are independent a priori, with one variance.
    It is not known: each of five explains a given share of the target's variance, and each answer counts by the
    likelihood of what was seen (Bayesian model averaging). So the answer is near zero where all may be noise. Noise
    of the gram matrix counts as ``s^2 |b - a|^2`` beside the ``s^2 l`` of the cross moments, and so do the finitely
    many records.

    Parameters
    ----------
    gram, cross : float64 arrays of shape (m, m) and (m,)
        Positive semidefinite covariance of the features, and their noisy covariances with the target.
    shape : float64 array of shape (m, m)
        What the features' noise takes for the identity.
    target : float64 array of shape (m,) and float
        The same between features and target, and for the target alone.
    variance : float
        Of the target.
    std : float
        Standard deviation of the noise off the diagonal, where it is isotropic.
    records : int
    settings : Settings

    Examples
    --------
    >>> from matrixdp.adaptive.settings import settings_for
    >>> options = {"target": (np.zeros(2), 1.0), "variance": 1.0, "records": 10**6}
    >>> options["settings"] = settings_for("regression")
    >>> cross = np.array([0.5, 0.0])
    >>> posterior_coefficients(np.eye(2), cross, np.eye(2), std=1e-3, **options).round(3).tolist()
    [0.5, 0.0]
    >>> bool(posterior_coefficients(np.eye(2), cross, np.eye(2), std=1.0, **options)[0] < 0.2)
    True
    """
    lengths, axes = np.linalg.eigh(shape)
    whiten = axes / np.sqrt(np.maximum(lengths, max(float(lengths[-1]) * 1e-15, _TINY)))
    values, vectors = np.linalg.eigh(whiten.T @ gram @ whiten)
    turn = whiten @ vectors
    values = np.maximum(values, _TINY)
    seen, centre = cross @ turn, target[0] @ turn
    own = max(target[1] - float(centre @ centre), 0.0)
    shares = 2.0 ** -np.arange(float(settings.prior_levels))[:, None]
    prior = shares * max(variance, _TINY) / values.sum()
    found = np.zeros((len(shares), values.size))
    for _ in range(settings.posterior_rounds):
        noise = std**2 * (own + ((centre - found) ** 2).sum(axis=1, keepdims=True)) + values * variance / records
        spread = prior * values**2 + noise + _TINY**2
        found = prior * values / spread * seen
    likely = -0.5 * (seen**2 / spread + np.log(spread)).sum(axis=1)
    weights = np.exp(likely - likely.max())
    return np.asarray(turn @ (weights @ found / weights.sum()))
