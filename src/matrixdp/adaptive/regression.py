"""Regression coefficients and their error bars, from a noisy joint moment of features and targets."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from matrixdp.adaptive.moment import PrivateMoment
from matrixdp.adaptive.postprocess import Fitted
from matrixdp.adaptive.shrinkage import nearest_of_same_trace, psd_root
from matrixdp.answers.noise_law import robust_spread
from matrixdp.checks import check_integer
from matrixdp.types import Floats

DRAWS = 300  # of the noise, for error bars: their own error is about 4%
_CHOICE_DRAWS = 60  # of records and noise, to choose a penalty
_EXPLAINED = np.array([0.0, 1 / 64, 1 / 16, 1 / 4, 1.0])  # shares of the target's variance, equally likely
_ROUNDS = 3  # fixed-point iterations: the noise depends on the coefficients
_TINY = float(np.finfo(float).tiny) ** 0.5
_HIDDEN = 1.5  # standard deviations of the noise that a hidden variance counts as
_MOST_PENALTY = 1e60  # for features in [-1, 1]; makes all coefficients zero


def posterior_coefficients(
    gram: Floats,
    cross: Floats,
    shape: Floats,
    *,
    target: tuple[Floats, float],
    variance: float,
    std: float,
    records: float,
) -> tuple[Floats, Floats]:
    """Posterior mean of the coefficients b in ``cross = gram b + noise``, and the mean square that shrinkage takes.

    In coordinates in which the noise of `gram` is isotropic, the prior of the coefficients is Gaussian with one
    variance, for which they explain a share of the target's variance on average; shares are averaged with their
    likelihood. The noise of `gram`, of a given `shape` (`Fitted.noise_shape`) and standard deviation off the diagonal,
    adds ``s^2 |b - a|^2`` to the variance ``s^2 l`` of `cross`, for a and l in `target`. `records` is infinite where
    coefficients of these records are wanted, not of their population. Of shape (m,) and (m, m).
    """
    values, turn = _isotropic_directions(gram, shape)
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
    return np.asarray(turn @ found), np.asarray((turn * lost) @ turn.T)


@dataclass(frozen=True, eq=False)
class JointMoment:
    """Noisy mean and covariance of features, followed by targets, all scaled to about [-1, 1]; public."""

    mean: Floats
    covariance: Floats  # before shrinkage: it may have negative eigenvalues
    mean_std: Floats
    noise_shape: Floats  # as for `Fitted`
    noise_std: float
    middle: Floats  # a feature in its own units is ``middle + half * scaled``
    half: Floats
    records: int  # their public number
    sample_size: float  # `records` of `posterior_coefficients`
    learned: bool = True  # if not, records were too few: coefficients are zero, and their errors not known
    draws: Callable[[], Iterable[tuple[Floats, Floats]]] = tuple  # means and covariances with noise drawn again

    @property
    def location(self) -> Floats:
        """The mean in its own units, of shape (d,)."""
        return np.asarray(self.middle + self.half * self.mean)

    def penalty(self, features: int, alpha: float | Floats) -> Floats:
        """Ridge penalty on the first features in scaled units, a diagonal matrix; alpha may be of shape (m,)."""
        with np.errstate(over="ignore"):
            return np.diag(np.minimum(alpha / self.records / self.half[:features] ** 2, _MOST_PENALTY))

    def regress(self, features: int, *, alpha: float | Floats = 0.0) -> list[tuple[Floats, Floats]]:
        """`posterior_coefficients` of each target on the first features, in scaled units."""
        m, shape, targets = features, self.noise_shape, range(features, len(self.half))
        if not self.learned:
            return [(np.zeros(m), np.full((m, m), np.nan)) for _ in targets]
        seen = nearest_of_same_trace(self.covariance)
        gram, law = seen[:m, :m] + self.penalty(m, alpha), {"std": self.noise_std, "records": self.sample_size}
        found = []
        for k in targets:
            own: Any = {"target": (shape[:m, k], float(shape[k, k])), "variance": float(seen[k, k]), **law}
            found.append(posterior_coefficients(gram, self.covariance[:m, k], shape[:m, :m], **own))
        return found

    def choose(self, features: int, alphas: Sequence[float | Floats]) -> int:
        """Place of the penalty with which predictions from such a release err least; post-processing.

        Possible truths are drawn: the released moment, made positive semidefinite, with coefficients of the targets
        from their posterior. For each, the moment of as many Gaussian records is drawn, noise is added as in the
        release, and penalties are compared by the mean square error of their predictions for that truth.
        """
        m, rng = features, np.random.default_rng(0)  # public
        posterior = self.regress(m)
        if not self.learned:
            return 0
        truth = nearest_of_same_trace(self.covariance)
        gram, size, targets = truth[:m, :m], len(truth), np.arange(m, len(truth))
        variances = truth[targets, targets].copy()
        spreads = [psd_root(lost) for _, lost in posterior]
        errors = np.zeros(len(alphas))
        for _, covariance in islice(self.draws(), _CHOICE_DRAWS):
            slopes = np.array(
                [mean + root @ rng.standard_normal(m) for (mean, _), root in zip(posterior, spreads, strict=True)]
            )
            cross = slopes @ gram
            truth[m:, :m], truth[:m, m:] = cross, cross.T
            truth[targets, targets] = np.maximum(variances, np.einsum("ki,ki->k", cross, slopes))
            triangle = np.tril(rng.standard_normal((size, size)), -1)  # Bartlett's decomposition
            np.fill_diagonal(triangle, np.sqrt(rng.chisquare(np.maximum(self.records - np.arange(size), 1))))
            sample = psd_root(truth) @ triangle
            seen = dataclasses.replace(self, covariance=sample @ sample.T / self.records + covariance - self.covariance)
            for place, alpha in enumerate(alphas):
                apart = np.array([found for found, _ in seen.regress(m, alpha=alpha)]) - slopes
                squares = np.einsum("ki,ij,kj->k", apart, gram, apart)
                errors[place] += float((squares / np.maximum(variances, _TINY)).sum())
        return int(errors.argmin())

    def coefficients(self, features: int, *, alpha: float = 0.0) -> tuple[Floats, Floats]:
        """Coefficients of shape (targets, m) and intercepts of shape (targets,), in the data's units."""
        scaled = np.array([slopes for slopes, _ in self.regress(features, alpha=alpha)])
        coefficients = scaled * self.half[features:, None] / self.half[:features]
        return coefficients, self.location[features:] - coefficients @ self.location[:features]

    def coefficient_std(self, features: int, *, alpha: float = 0.0) -> tuple[Floats, Floats]:
        """Standard deviations of the errors of `coefficients`, from noise and shrinkage; NaN where none are known.

        Each draw is fitted anew, and the results vary as the coefficients do. What shrinkage takes from the
        coefficients is added, for coefficients from their prior.
        """
        m, found = features, []
        for mean, covariance in self.draws():
            fit = dataclasses.replace(self, mean=mean, covariance=covariance).coefficients(m, alpha=alpha)
            found.append(np.column_stack(fit))
        spread = robust_spread(np.array(found))
        centre = self.location[:m]
        for k, (_, shrinkage) in enumerate(self.regress(m, alpha=alpha)):
            lost = shrinkage * self.half[m + k] ** 2 / np.multiply.outer(self.half[:m], self.half[:m])
            own = np.append(np.diagonal(lost), centre @ lost @ centre)
            spread[k] = np.sqrt(spread[k] ** 2 + np.maximum(own, 0.0))
        return spread[:, :m], spread[:, m]


def joint_moment(moment: PrivateMoment) -> JointMoment:
    """The joint moment of an adaptive fit with ``aim='regression'``."""
    fitted, bounds, draws = moment.fitted, moment.bounds, partial(_draw_moments, moment.fitted)
    parts = fitted.mean, fitted.unshrunk, fitted.mean_std, fitted.noise_shape, fitted.noise_std
    units = bounds.midpoint, bounds.halfwidths
    return JointMoment(*parts, *units, moment.records, moment.records, fitted.learned, draws)


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
    m = moment.bounds.size - check_integer(targets, "targets", at_least=1, at_most=moment.bounds.size - 1)
    return joint_moment(moment).coefficients(m, alpha=alpha)


def _draw_moments(fitted: Fitted) -> Iterator[tuple[Floats, Floats]]:
    """Means and covariances of an adaptive fit with noise drawn again, about the private ones."""
    rng = np.random.default_rng(0)  # this noise is public
    root = psd_root(fitted.noise_shape)
    of_mean = float(np.sqrt(np.median(fitted.mean_std**2 / np.diagonal(fitted.noise_shape))))
    for _ in range(DRAWS):
        noise = rng.standard_normal(root.shape)
        noise = (noise + noise.T) * (fitted.noise_std / np.sqrt(2))
        mean = fitted.mean + of_mean * (root @ rng.standard_normal(len(root)))
        yield mean, fitted.unshrunk + root @ noise @ root.T


def hidden_std(joint: JointMoment, slopes: Floats, target: int = 0, *, alpha: float = 0.0) -> Floats:
    """Standard deviations of an intercept and slopes that noise leaves open, of shape (m + 1,), the intercept first.

    Draws of the noise do not show what lies in directions that noise hides: there, a slope may be anything that the
    variance of the target allows. Along each direction in which the noise is isotropic, with variance v and noise n in
    the covariance with the target, this is ``1/(v^2/n + 1/p)``, where the prior variance p of the slope would let it
    explain the target alone. A hidden variance, also that of the target, counts as `_HIDDEN` standard deviations of the
    noise. NaN where nothing was learned of the features.
    """
    m = slopes.size
    if not joint.learned:
        return np.full(m + 1, np.nan)
    own, half, shape, least = m + target, joint.half, joint.noise_shape, _HIDDEN * joint.noise_std
    seen = nearest_of_same_trace(joint.covariance)
    values, turn = _isotropic_directions(seen[:m, :m] + joint.penalty(m, alpha), shape[:m, :m])
    scaled = np.linalg.solve(turn, slopes * half[:m] / half[own])
    centre = shape[:m, own] @ turn
    apart = max(float(shape[own, own]) - float(centre @ centre), 0.0)
    noise = joint.noise_std**2 * (apart + float(((centre - scaled) ** 2).sum()))
    prior = max(float(seen[own, own]), least * float(shape[own, own]), _TINY) / np.maximum(values, max(least, _TINY))
    variances = 1 / (np.square(np.maximum(values, 0.0)) / max(noise, _TINY) + 1 / prior)
    spread = (turn * variances) @ turn.T * half[own] ** 2 / np.multiply.outer(half[:m], half[:m])
    location = joint.location[:m]
    return np.asarray(np.sqrt(np.append(location @ spread @ location, np.diagonal(spread))))


def _isotropic_directions(gram: Floats, shape: Floats) -> tuple[Floats, Floats]:
    """Variances along directions in which noise of a given shape is isotropic, and the directions as columns."""
    lengths, axes = np.linalg.eigh(shape)
    whiten = axes / np.sqrt(np.maximum(lengths, max(float(lengths[-1]) * 1e-15, _TINY)))
    values, vectors = np.linalg.eigh(whiten.T @ gram @ whiten)
    return values, whiten @ vectors
