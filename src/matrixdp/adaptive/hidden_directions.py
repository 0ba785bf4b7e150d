"""What noise leaves open about regression coefficients, in directions whose variance it hides; post-processing."""

from __future__ import annotations

import numpy as np

from matrixdp.adaptive.regression import JointMoment
from matrixdp.adaptive.shrinkage import nearest_of_same_trace
from matrixdp.types import Floats

_HIDDEN = 1.5
_TINY = 1e-300
_MOST_PENALTY = 1e60  # for features in [-1, 1]; makes all coefficients zero


def hidden_std(joint: JointMoment, slopes: Floats, target: int = 0, *, alpha: float = 0.0) -> Floats:
    """Standard deviations of an intercept and slopes that noise leaves open, of shape (m + 1,), the intercept first.

    New draws of the noise about a private moment, and records simulated from it, do not show what lies in directions
    that noise hides, as it does for features that are nearly collinear: there, a slope may be anything that the
    variance of the target allows. Along each direction in which the noise is isotropic, with variance v and noise n in
    the covariance with the target, this is ``1/(v^2/n + 1/p)``, where the prior variance p of the slope would let it
    explain the target alone. A hidden variance, which may be anything from zero to ``2 s sqrt(m)`` for noise of
    standard deviation s, counts as `_HIDDEN` s.

    Parameters
    ----------
    joint : JointMoment
    slopes : float64 array of shape (m,)
        In the data's units.
    target : int
        Which of the targets they are for.
    alpha : float
        Ridge penalty, as for `solve_regression`.
    """
    m = slopes.size
    own, half, shape = m + target, joint.half, joint.noise_shape
    seen = nearest_of_same_trace(joint.covariance)
    lengths, axes = np.linalg.eigh(shape[:m, :m])
    whiten = axes / np.sqrt(np.maximum(lengths, max(float(lengths[-1]) * 1e-15, _TINY)))
    with np.errstate(over="ignore"):
        penalty = np.diag(np.minimum(alpha / joint.records / half[:m] ** 2, _MOST_PENALTY))
    values, vectors = np.linalg.eigh(whiten.T @ (seen[:m, :m] + penalty) @ whiten)
    turn = whiten @ vectors
    scaled = np.linalg.solve(turn, slopes * half[:m] / half[own])
    centre = shape[:m, own] @ turn
    apart = max(float(shape[own, own]) - float(centre @ centre), 0.0)
    noise = joint.noise_std**2 * (apart + float(((centre - scaled) ** 2).sum()))
    prior = max(float(seen[own, own]), _TINY) / np.maximum(values, _HIDDEN * joint.noise_std)
    variances = 1 / (np.square(np.maximum(values, 0.0)) / max(noise, _TINY) + 1 / prior)
    spread = (turn * variances) @ turn.T * half[own] ** 2 / np.multiply.outer(half[:m], half[:m])
    location = joint.location[:m]
    return np.asarray(np.sqrt(np.append(location @ spread @ location, np.diagonal(spread))))
