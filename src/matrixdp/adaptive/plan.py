"""The plan of the final moment, from the rough one: coordinates, and the sizes of noise and clipping error in them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from matrixdp.adaptive.ball_moment import BallMoment, denoise
from matrixdp.adaptive.clipped_tail import ClippedTail
from matrixdp.adaptive.coordinates import Coordinates
from matrixdp.adaptive.settings import Settings
from matrixdp.adaptive.shrinkage import shrink_spectrum
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
    """

    coordinates: Coordinates
    ratio: float
    mean_square: float
    freedom: float
    noise: float
    clipping: float

    @property
    def longest(self) -> float:
        """A length ``|u|`` that no record in [-1, 1]^d exceeds."""
        centre = np.abs(self.coordinates.centre)
        return float(np.linalg.norm(np.abs(self.coordinates.matrix) @ (1 + centre)))


@dataclass(frozen=True)
class FinalBall:
    """The ball to which records of the final moment are clipped.

    Attributes
    ----------
    radius : float
        Clipping norm, in the plan's coordinates.
    excess : float
        Noisy mean of what clipping takes from ``|u|^2``; zero where it is not measured.
    tail : ClippedTail, optional
        Noisy moment of what clipping takes, where that is much.
    """

    radius: float
    excess: float
    tail: ClippedTail | None = None


def plan_final_moment(rough: BallMoment, settings: Settings, *, basis: Floats | None, levels: int) -> FinalPlan:
    """Step 3: coordinates along the rough moment's directions, and the constant with the least expected error there.

    Spends nothing: a function of the rough moment and public numbers.

    Parameters
    ----------
    rough : BallMoment
    settings : Settings
    basis : float64 array of shape (d, d), optional
        Public orthonormal columns to use; the rough moment's eigenvectors by default.
    levels : int
        Grid of the records, to which the centre is rounded.
    """
    coordinates, variances = new_coordinates(rough, settings, basis, levels)
    return _expect_errors(coordinates, variances, settings)


def new_coordinates(
    rough: BallMoment, settings: Settings, basis: Floats | None, levels: int
) -> tuple[Coordinates, Floats]:
    """Coordinates along the rough moment's directions, and its variances along them, raised by some of their noise.

    Each coordinate is divided by the fourth root of its variance: of all powers, 1/4 has the least noise in the
    Frobenius norm for a given clipping error. For correlations, features are first divided by their rough standard
    deviations, and variances are those of scaled features.
    """
    spectrum = partial(shrink_spectrum, level=settings.level)
    mean, covariance = denoise(rough.second, rough.constant, rough.std, spectrum)
    noise = math.sqrt(2) * rough.std
    scales = np.ones(len(mean))
    if settings.scaled:
        scales = np.sqrt(np.maximum(np.diagonal(covariance), 0.0) + noise)
        covariance = covariance / np.multiply.outer(scales, scales)
        noise = noise * float(np.mean(scales**-2))
    if basis is None:
        values, basis = np.linalg.eigh(covariance)
    else:
        values = np.einsum("ji,jk,ki->i", basis, covariance, basis)
    values = np.maximum(values, 0.0)
    variances = values + settings.floor * noise
    matrix = (basis / variances**0.25).T / scales
    centre = pull_to_midpoint(np.clip(mean, -1.0, 1.0), basis, variances, settings.pull)
    return Coordinates.of(matrix, centre, levels), variances


def pull_to_midpoint(mean: Floats, basis: Floats, variances: Floats, pull: float) -> Floats:
    """The mean, `pull` standard deviations nearer to the midpoint, or the midpoint itself if that is nearer.

    If the mean is far from the midpoint, the box extends further on the midpoint's side, where most long records lie;
    if it is close, it may be noise. The standard deviation is that along the line to the midpoint, where noise of the
    mean adds to it; so it is limited to the root of the mean variance.
    """
    far = float(np.linalg.norm(mean))
    if not far:
        return mean
    variance = min(float(variances @ (mean @ basis / far) ** 2), float(variances.mean()))
    return mean * max(0.0, 1 - pull * math.sqrt(variance) / far)


def _expect_errors(coordinates: Coordinates, variances: Floats, settings: Settings) -> FinalPlan:
    """Plan with the ratio y that has the least expected error, and the sizes of noise and clipping error.

    All noise is proportional to ``1 + y``, and that of the mean to ``(1 + y)/sqrt(y)``. The mean's error changes the
    second moment about the midpoint by its product with the centre; the covariance hardly depends on it. Where the
    records that are clipped lie on one side, so does clipping: a record of length ``sqrt(2 |u|^2)`` that loses t in its
    square moves the mean by about ``t/sqrt(8 mean_square)`` in u.
    """
    total, trace = float(np.sqrt(variances).sum()), float(variances.sum())
    freedom, clipping = total**2 / trace, float(np.linalg.norm(variances))
    if settings.about_mean:
        ratio = settings.least_ratio
        return FinalPlan(coordinates, ratio, total, freedom, (1 + ratio) * total, clipping)
    far = float(coordinates.centre @ coordinates.centre)
    own = total**2 + trace
    best = (math.sqrt(far**2 + 4 * own * far) - far) / (2 * own)  # least (1 + y)^2 (own + 2 far/y)
    ratio = max(best, settings.least_ratio)
    noise = (1 + ratio) * math.sqrt(own + 2 * far / ratio)
    shift = settings.one_sided * math.sqrt(far * trace / 2)
    clipping = math.hypot(clipping, shift)
    return FinalPlan(coordinates, ratio, total, freedom, noise, clipping)
