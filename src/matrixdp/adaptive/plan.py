"""The plan of the final moment, from the rough one: coordinates, and the sizes of noise and clipping error in them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from matrixdp.adaptive.ball_moment import BallMoment, denoise
from matrixdp.adaptive.coordinates import Coordinates
from matrixdp.adaptive.settings import Settings
from matrixdp.adaptive.shrinkage import partly_level
from matrixdp.types import Floats


@dataclass(frozen=True, eq=False)
class FinalPlan:
    """Public coordinates of the final moment, and what error to expect there.

    Errors are sizes in the Frobenius norm. Noise has the size ``noise r^2/(N mu)`` at the clipping norm r; clipping n
    records by t in ``|u|^2`` has the size ``clipping n t/N/mean_square``.

    Attributes
    ----------
    coordinates : Coordinates
        ``u = A (x - m)``.
    ratio : float
        Square of the constant that goes before each record, in units of r^2.
    mean_square : float
        Expected mean of ``|u|^2``.
    freedom : float
        ``|u|^2`` varies like a sum of that many squares of Gaussian numbers.
    noise, clipping : float
    covariance : float
        The covariance's part of `clipping`; the rest comes from the mean.
    """

    coordinates: Coordinates
    ratio: float
    mean_square: float
    freedom: float
    noise: float
    clipping: float
    covariance: float

    @property
    def longest(self) -> float:
        """A length ``|u|`` that no record in [-1, 1]^d exceeds."""
        centre = np.abs(self.coordinates.centre)
        return float(np.linalg.norm(np.abs(self.coordinates.matrix) @ (1 + centre)))

    @property
    def even(self) -> bool:
        """Whether clipping costs more by the covariance than by a mean that lies far from the midpoint.

        If not, the losses of the two may cancel in the second moment, and restoring one alone would hurt.
        """
        return 2 * self.covariance**2 > self.clipping**2

    def excess_limit(self, precision: float, settings: Settings) -> float:
        """How much of a square beyond r^2 to count, in units of r^2, when that number gets ``mu precision``.

        Small enough that its noise is small beside the moment's own.
        """
        return min(
            settings.tail_noise * self.noise * self.mean_square / self.covariance * precision, settings.tail_limit
        )


@dataclass(frozen=True)
class FinalBall:
    """The ball to which records of the final moment are clipped.

    Attributes
    ----------
    radius : float
        Clipping norm, in the plan's coordinates.
    clipped : float
        Share of the records that should lie outside.
    excess : float
        Noisy mean of what clipping takes from ``|u|^2``; zero where it is not measured.
    """

    radius: float
    clipped: float
    excess: float


def plan_final_moment(
    rough: BallMoment, settings: Settings, *, basis: Floats | None, levels: int, targets: int
) -> FinalPlan:
    """Coordinates along the rough moment's directions, and the constant with the least expected error there.

    Spends nothing: a function of the rough moment and public numbers.

    Parameters
    ----------
    rough : BallMoment
    settings : Settings
    basis : float64 array of shape (d, d), optional
        Public orthonormal columns to use; the rough moment's eigenvectors by default.
    levels : int
        Grid of the records, to which the centre is rounded.
    targets : int
        How many of the last features a regression predicts.
    """
    coordinates, variances, weight = new_coordinates(rough, settings, basis, levels, targets)
    return _expect_errors(coordinates, variances, settings, stretch=targets * (weight - 1))


def new_coordinates(
    rough: BallMoment, settings: Settings, basis: Floats | None, levels: int, targets: int
) -> tuple[Coordinates, Floats, float]:
    """Coordinates along the rough moment's directions, its variances along them, and the weight of the targets.

    Variances are raised by some of their noise. For a regression, coordinates are turned so that the last ones are the
    residuals of the targets, and those are stretched by the square root of the weight.
    """
    spectrum = partly_level(settings.rough_level)
    mean, covariance = denoise(rough.second, rough.constant, rough.std, spectrum)
    if basis is None:
        values, basis = np.linalg.eigh(covariance)
    else:
        values = np.einsum("ji,jk,ki->i", basis, covariance, basis)
    values = np.maximum(values, 0.0)
    variances = values + settings.floor * math.sqrt(2) * rough.std
    matrix, weight = (basis / variances**settings.power).T, 1.0
    if targets and settings.stretch_targets:
        real = float((values / variances).mean())
        weight = target_weight(values.size - targets, targets, real, settings.least_target_weight)
        matrix = np.asarray(np.linalg.qr(matrix[:, ::-1], mode="r"))[::-1, ::-1]  # turned, into a lower triangle
        matrix[-targets:] *= math.sqrt(weight)
    centre = pull_to_midpoint(np.clip(mean, -1.0, 1.0), basis, variances, settings.pull)
    return Coordinates.of(matrix, centre, levels), variances, weight


def pull_to_midpoint(mean: Floats, basis: Floats, variances: Floats, pull: float) -> Floats:
    """The mean, `pull` standard deviations nearer to the midpoint, or the midpoint itself if that is nearer.

    Records that lie far from the midpoint of their box have more room on its side: long ones lie there more often than
    not. And a noisy mean that is not far may be noise. Noise also shows as variance on the way to the midpoint, which
    therefore counts up to the mean variance only.
    """
    far = float(np.linalg.norm(mean))
    if not far:
        return mean
    variance = min(float(variances @ (mean @ basis / far) ** 2), float(variances.mean()))
    return mean * max(0.0, 1 - pull * math.sqrt(variance) / far)


def target_weight(features: int, targets: int, real: float, least: float) -> float:
    """Square of the factor on targets that balances the noise of their moments with that of the features' own.

    With m features and t targets of variance `real` (the rest is room left for noise), and the weight w, noise is
    ``m real + t w``; it counts ``1/w`` by the targets' moments, and by the features' own ``|b|^2``, taken for
    ``1/(2 real)``: half of the variance is explained. So ``w^2/real + w = real m/t``. It is at least `least`:
    coefficients are shrunk, which takes more from the second kind of noise.
    """
    return max(real * (math.sqrt(1 + 4 * features / targets) - 1) / 2, least)


def _expect_errors(coordinates: Coordinates, variances: Floats, settings: Settings, *, stretch: float) -> FinalPlan:
    """The ratio with the least error of the moment, and the sizes that follow.

    All noise grows with ``1 + y``. The mean's is ``1/sqrt(y)`` times larger, and moves the second moment about the
    midpoint by its product with the centre, as clipping does when it is lopsided; about the mean it hardly matters.
    `stretch` is the squared length that stretched coordinates have beyond their variance.
    """
    back = variances ** (2 * settings.power)
    within = variances ** (1 - 2 * settings.power)
    inner, outer = float(within.sum()) + stretch, float(back.sum())
    freedom = float(within.sum() ** 2 / (within @ within))
    norm = float(np.linalg.norm(variances))
    if settings.about_mean:
        ratio = settings.least_ratio
        return FinalPlan(coordinates, ratio, inner, freedom, (1 + ratio) * outer, norm, norm)
    ratios = 2.0 ** np.arange(
        math.log2(settings.least_ratio), math.log2(settings.most_ratio) + 0.01, settings.ratio_step
    )
    far = float(coordinates.centre @ coordinates.centre)
    errors = (1 + ratios) ** 2 * (outer**2 + float((back**2).sum()) + 2 * far * outer / inner / ratios)
    best = int(np.argmin(errors))
    clipping = math.sqrt(norm**2 + settings.lopsided**2 * far * float(variances.sum()) / 2)
    return FinalPlan(coordinates, float(ratios[best]), inner, freedom, math.sqrt(float(errors[best])), clipping, norm)
