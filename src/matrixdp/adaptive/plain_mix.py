"""Post-processing of moments of the whole box, alone or together with those of learned coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from matrixdp.adaptive.ball_moment import BallMoment
from matrixdp.adaptive.plan import FinalPlan
from matrixdp.adaptive.postprocess import Fitted, about_mean, evident_share, nearest_possible
from matrixdp.answers.psd import nearest_psd
from matrixdp.types import Floats

_SURE = 1.5  # least excess of squared differences, in standard deviations, that is taken for clipping
_TINY = float(np.finfo(float).tiny) ** 0.5


def finish_plain(moment: BallMoment) -> Fitted:
    """Mean and covariance from one moment of the whole box."""
    d = moment.mean.size
    second, variances = moment.transform(np.eye(d), np.zeros(d))
    mean, covariance, std = with_std(second, variances)
    evident = evident_share(second, variances, moment.trace_std)
    return Fitted(
        mean=np.clip(mean, -1.0, 1.0),
        covariance=evident * nearest_possible(_nearest_psd(covariance, std**2)),
        evident=evident,
        second=_nearest_psd(second[1:, 1:], variances[1:, 1:]),
        mean_std=np.sqrt(variances[0, 1:]),
        std=std,
        unshrunk=covariance,
        noise_shape=np.eye(d),
        noise_std=moment.std,
        radius=math.sqrt(d),
        learned=True,
    )


def mix_plain(fitted: Fitted, final: BallMoment, plan: FinalPlan, plain: BallMoment) -> Fitted:
    """A fit in learned coordinates, averaged entry by entry with a moment of the whole box.

    Weights are precisions. The moment of the box has more noise and no bias; where the fit differs from it by more than
    noise can explain, the difference is what clipping took, and is added to the variance of the fit.
    """
    whole, noise = plain.transform(np.eye(fitted.mean.size), np.zeros(fitted.mean.size))
    mean, covariance, std = with_std(whole, noise)
    own = final.transform(plan.coordinates.inverse, -plan.coordinates.matrix @ plan.coordinates.centre)[1][1:, 1:]
    shrunk = fitted.second - np.multiply.outer(fitted.mean, fitted.mean)
    pairs = [
        _Pair(fitted.second, own, whole[1:, 1:], noise[1:, 1:]),
        _Pair(fitted.mean, fitted.mean_std**2, mean, noise[0, 1:]),
        _Pair(shrunk, fitted.std**2, covariance, std**2),
        _Pair(fitted.unshrunk, fitted.std**2, covariance, std**2),
    ]
    biased = any(pair.is_biased for pair in pairs[:2])  # whose entries have independent noise
    second, location, about, unshrunk = (pair.average(biased=biased) for pair in pairs)
    evident = max(fitted.evident, evident_share(whole, noise, plain.trace_std))
    return replace(
        fitted,
        mean=np.clip(location[0], -1.0, 1.0),
        covariance=evident * nearest_possible(_nearest_psd(*about)),
        evident=evident,
        second=_nearest_psd(*second),
        mean_std=np.sqrt(location[1]),
        std=np.sqrt(about[1]),
        unshrunk=unshrunk[0],
    )


@dataclass(frozen=True, eq=False)
class _Pair:
    """A result that may be biased and one that is not, of the same shape, and the variances of their noise."""

    mine: Floats
    variances: Floats
    other: Floats
    noise: Floats

    @property
    def excess(self) -> float:
        """Sum of squared differences, less what noise explains."""
        return float(((self.mine - self.other) ** 2).sum()) - float((self.variances + self.noise).sum())

    @property
    def spread(self) -> float:
        """Standard deviation of `excess` without bias; a symmetric matrix has nearly all entries twice."""
        return math.sqrt(2 * self.mine.ndim * float(((self.variances + self.noise) ** 2).sum()))

    @property
    def is_biased(self) -> bool:
        """Whether noise cannot explain the difference; the more exact the first result is, the surer one must be."""
        gain = float(self.noise.sum()) / max(float(self.variances.sum()), _TINY)
        return self.excess > max(1.0, _SURE + math.log(max(gain, 1.0)) / 2) * self.spread

    def average(self, *, biased: bool) -> tuple[Floats, Floats]:
        """Average by precisions, entry by entry, and its variances; `biased` adds the excess to the first variances."""
        variances = self.variances
        if biased and self.excess > 0:
            variances = variances * (1 + self.excess / max(float(variances.sum()), _TINY))
        weights = self.noise / np.maximum(variances + self.noise, _TINY)
        return weights * self.mine + (1 - weights) * self.other, weights * variances


def with_std(second: Floats, variances: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, covariance about it, and the covariance's standard deviations, from a noisy moment of (1, x)."""
    mean, covariance = about_mean(second, variances)
    own, squares = variances[0, 1:], mean**2
    cross = np.multiply.outer(squares, own)
    return mean, covariance, np.sqrt(variances[1:, 1:] + cross + cross.T + np.diag(2 * squares * own))


def _nearest_psd(matrix: Floats, variances: Floats) -> Floats:
    """Nearest positive semidefinite matrix in the norm of the noise."""
    return nearest_psd((matrix + matrix.T) / 2, np.sqrt((variances + variances.T) / 2))
