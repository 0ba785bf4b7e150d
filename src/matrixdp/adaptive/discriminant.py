"""Linear discriminant analysis from a noisy joint moment of features and indicators of the classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matrixdp.adaptive.regression import JointMoment
from matrixdp.adaptive.shrinkage import nearest_of_same_trace
from matrixdp.types import Floats

_LEAST = 1e-6  # of the share of variance that is within the classes


@dataclass(frozen=True, eq=False)
class LinearDiscriminant:
    """Scores ``coefficients @ x + intercepts`` of the classes, and what they follow from; all in the data's units.

    Attributes
    ----------
    coefficients : float64 array of shape (classes, m)
    intercepts : float64 array of shape (classes,)
    means : float64 array of shape (classes, m)
    covariance : float64 array of shape (m, m)
        Within the classes; positive semidefinite.
    priors : float64 array of shape (classes,)
    """

    coefficients: Floats
    intercepts: Floats
    means: Floats
    covariance: Floats
    priors: Floats


def solve_discriminant(
    joint: JointMoment, features: int, share_std: Floats, *, learned: bool = True
) -> LinearDiscriminant:
    """Linear discriminant analysis by regression of the indicators of the classes on the features; post-processing.

    With B the coefficients of that regression, P the shares of the classes and M their means about the overall mean,
    ``S^-1 M = B P^-1``, S being the covariance. That within the classes is ``W = S - M P M'``, hence ``W^-1 M = S^-1 M
    (I - P M' S^-1 M)^-1``. B is a posterior mean, so that directions that noise hides get no weight, and where it hides
    all of them the largest class is predicted. Without noise this is the usual discriminant analysis.

    Parameters
    ----------
    joint : JointMoment
        Its last columns are the indicators of all classes, or of the second class where there are two.
    features : int
    share_std : float64 array
        Standard deviation of the noise in the mean of each indicator, scaled as `joint`.
    learned : bool
        Whether the covariance can be used; without it all coefficients are zero.
    """
    m, half = features, joint.half[:features]
    slopes = np.array([one.coefficients for one in joint.regress(m)]) if learned else np.zeros((share_std.size, m))
    scale = joint.half[m:, None]
    shares, slopes = joint.location[m:], slopes * scale
    cross = joint.covariance[m:, :m] * scale if learned else np.zeros_like(slopes)
    stds = share_std * joint.half[m:]
    if len(shares) == 1:
        shares = np.array([1 - shares[0], shares[0]])
        slopes, cross, stds = np.vstack([-slopes, slopes]), np.vstack([-cross, cross]), np.tile(stds, 2)
    floor = np.maximum(stds, 0.5 / joint.records)
    priors = np.maximum(shares, floor)
    priors = priors / priors.sum()
    divide = priors / (priors**2 + stds**2)  # one over a share, smaller where noise hides it
    total = nearest_of_same_trace(joint.covariance[:m, :m])
    directions = slopes * divide[:, None]
    root = np.sqrt(priors)
    sizes = np.multiply.outer(root, root)
    explained = directions @ total @ directions.T * sizes
    noise = np.sqrt(m) * joint.noise_std * (directions @ joint.noise_shape[:m, :m] @ directions.T) * sizes
    values, vectors = np.linalg.eigh(np.eye(len(root)) - explained + noise)
    inverse = (vectors / np.clip(values, _LEAST, 1.0)) @ vectors.T
    coefficients = (inverse * root / root[:, None]) @ directions
    lengths = np.diagonal(inverse - np.eye(len(root))) / priors
    apart = cross * divide[:, None]
    means = joint.mean[:m] + apart
    covariance = nearest_of_same_trace(total - (apart.T * priors) @ apart)
    coefficients = coefficients / half
    intercepts = np.log(priors) - lengths / 2 - coefficients @ joint.location[:m]
    return LinearDiscriminant(
        coefficients,
        intercepts,
        joint.middle[:m] + half * means,
        covariance * np.multiply.outer(half, half),
        priors,
    )
