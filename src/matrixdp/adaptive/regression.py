"""Regression coefficients and their error bars, from a noisy joint moment of features and targets."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from matrixdp.adaptive.moment import PrivateMoment
from matrixdp.adaptive.posterior import Posterior, posterior_coefficients
from matrixdp.adaptive.shrinkage import nearest_of_same_trace
from matrixdp.answers.noise_law import robust_spread
from matrixdp.checks import check_integer
from matrixdp.types import Floats

DRAWS = 300  # of the noise, for error bars: their own error is about 4%
_MOST_PENALTY = 1e60  # for features in [-1, 1]; makes all coefficients zero


@dataclass(frozen=True, eq=False)
class JointMoment:
    """Noisy mean and covariance of features, followed by targets, all scaled to about [-1, 1]; public.

    Attributes
    ----------
    mean, covariance : float64 arrays of shape (d,) and (d, d)
        Before shrinkage; the covariance may have negative eigenvalues.
    noise_shape : float64 array of shape (d, d)
        The matrix B B' for which the noise of the covariance is ``B G B'``, G symmetric with independent entries.
    noise_std : float
        Standard deviation of the entries of G off the diagonal.
    middle, half : float64 arrays of shape (d,)
        A feature in its own units is ``middle + half * scaled``.
    records : int
        Their public number.
    sample_size : float
        As `records` of `posterior_coefficients`.
    """

    mean: Floats
    covariance: Floats
    noise_shape: Floats
    noise_std: float
    middle: Floats
    half: Floats
    records: int
    sample_size: float

    @property
    def location(self) -> Floats:
        """The mean in its own units, of shape (d,)."""
        return np.asarray(self.middle + self.half * self.mean)

    def regress(self, features: int, *, alpha: float = 0.0) -> list[Posterior]:
        """Posterior coefficients of each target on the first features, in scaled units."""
        m, shape = features, self.noise_shape
        seen = nearest_of_same_trace(self.covariance)
        with np.errstate(over="ignore"):
            penalty = np.diag(np.minimum(alpha / self.records / self.half[:m] ** 2, _MOST_PENALTY))
        return [
            posterior_coefficients(
                seen[:m, :m] + penalty,
                self.covariance[:m, k],
                shape[:m, :m],
                target=(shape[:m, k], float(shape[k, k])),
                variance=float(seen[k, k]),
                std=self.noise_std,
                records=self.sample_size,
            )
            for k in range(m, len(seen))
        ]

    def coefficients(self, features: int, *, alpha: float = 0.0) -> tuple[Floats, Floats]:
        """Coefficients of shape (targets, m) and intercepts of shape (targets,), in the data's units."""
        scaled = np.array([one.coefficients for one in self.regress(features, alpha=alpha)])
        coefficients = scaled * self.half[features:, None] / self.half[:features]
        return coefficients, self.location[features:] - coefficients @ self.location[:features]

    def coefficient_std(
        self, features: int, draws: Iterable[tuple[Floats, Floats]], *, alpha: float = 0.0
    ) -> tuple[Floats, Floats]:
        """Standard deviations of the errors of what `coefficients` returns, of the same shapes.

        Parameters
        ----------
        features : int
        draws : iterable of (mean, covariance)
            The moment with noise drawn again: public. Each is fitted anew, and the results vary as the coefficients do.
        alpha : float

        Notes
        -----
        What shrinkage takes from the coefficients is added, for coefficients from their prior.
        """
        m, targets = features, len(self.half) - features
        found = []
        for mean, covariance in draws:
            fit = dataclasses.replace(self, mean=mean, covariance=covariance).coefficients(m, alpha=alpha)
            found.append(np.column_stack(fit))
        spread = robust_spread(np.array(found))
        centre = self.location[:m]
        for k, posterior in enumerate(self.regress(m, alpha=alpha)):
            lost = posterior.shrinkage * self.half[m + k] ** 2 / np.multiply.outer(self.half[:m], self.half[:m])
            own = np.append(np.diagonal(lost), centre @ lost @ centre)
            spread[k] = np.sqrt(spread[k] ** 2 + np.maximum(own, 0.0))
        return spread[:, :m], spread[:, m].reshape(targets)


def joint_moment(moment: PrivateMoment) -> JointMoment:
    """The joint moment of an adaptive fit with ``aim='regression'``."""
    fitted, bounds = moment.fitted, moment.bounds
    noise = fitted.noise_shape, fitted.noise_std
    units = bounds.midpoint, bounds.halfwidths
    return JointMoment(fitted.mean, fitted.unshrunk, *noise, *units, moment.records, moment.records)


def solve_regression(moment: PrivateMoment, targets: int, *, alpha: float = 0.0) -> tuple[Floats, Floats]:
    """Coefficients of shape (targets, m) and intercepts of shape (targets,), from a joint private moment.

    Post-processing: `posterior_coefficients` of the covariance before shrinkage. Where records were too few for learned
    coordinates, coefficients are zero and intercepts are the private mean.

    Parameters
    ----------
    moment : PrivateMoment
        Fitted with ``aim='regression'``; its last features are the targets.
    targets : int
    alpha : float
        Ridge penalty in the data's units, for sums over records.
    """
    m = _count_features(moment, targets)
    if not moment.fitted.learned:
        return np.zeros((targets, m)), moment.mean[m:]
    return joint_moment(moment).coefficients(m, alpha=alpha)


def regression_std(moment: PrivateMoment, targets: int, *, alpha: float = 0.0) -> tuple[Floats, Floats]:
    """Standard deviations of the errors of what `solve_regression` returns, of the same shapes; post-processing.

    They cover noise and shrinkage, not clipping or sampling. NaN where records were too few for a regression.
    """
    m = _count_features(moment, targets)
    if not moment.fitted.learned:
        return np.full((targets, m), np.nan), np.full(targets, np.nan)
    return joint_moment(moment).coefficient_std(m, _draw_moments(moment), alpha=alpha)


def _count_features(moment: PrivateMoment, targets: int) -> int:
    d = moment.bounds.size
    return d - check_integer(targets, "targets", at_least=1, at_most=d - 1)


def _draw_moments(moment: PrivateMoment) -> Iterator[tuple[Floats, Floats]]:
    """Means and covariances of an adaptive fit with noise drawn again, about the private ones."""
    rng = np.random.default_rng(0)  # this noise is public
    fitted = moment.fitted
    values, vectors = np.linalg.eigh(fitted.noise_shape)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    of_mean = float(np.sqrt(np.median(fitted.mean_std**2 / np.diagonal(fitted.noise_shape))))
    for _ in range(DRAWS):
        noise = rng.standard_normal(root.shape)
        noise = (noise + noise.T) * (fitted.noise_std / np.sqrt(2))
        mean = fitted.mean + of_mean * (root @ rng.standard_normal(len(root)))
        yield mean, fitted.unshrunk + root @ noise @ root.T
