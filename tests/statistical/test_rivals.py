"""Audits of the rivals on worst-case neighbours, and their samplers against known moments.

Each audit measures epsilon at the stated delta as a lower confidence bound of level 1e-8 (`LEVEL`) and catches a
copy with half the noise except with probability 1e-6, which is checked from the copy's own probabilities. Streams are
seeded, so the outcome never varies.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from scipy.special import ive, ndtr
from scipy.stats import binom, chi2, gamma, kstest, norm

from matrixdp import Bounds, Identity, Privacy, SecondMoment, Stream
from matrixdp.audit import Count
from matrixdp.audit import measured_epsilon as epsilon_at
from matrixdp.baselines import analytic_gaussian, analyze_gauss, classical_gaussian, laplace, sulq
from matrixdp.baselines.johnson_lindenstrauss import draw_sketch, threshold
from matrixdp.baselines.pure import BEST_WEIGHT, concentration, draw_bingham, draw_gamma, draw_laplace, draw_radial
from matrixdp.gdp import gdp_epsilon

LEVEL = 1e-8
BOX = Bounds([-1, -1], [1, 1])
ROWS = 200_000  # rows of one release of the identity query are so many runs of the mechanism on one record
CALLS = 5_500

measured_epsilon = partial(epsilon_at, level=LEVEL)


def is_caught(p, q, runs, *, claim, delta=0.0, miss=1e-6):
    """True if measuring an event with ``P(E) = p``, ``Q(E) = q`` exceeds `claim`, except with probability `miss`."""
    fewest, most = Count(int(binom.ppf(miss / 2, runs, p)), runs), Count(int(binom.isf(miss / 2, runs, q)), runs)
    return measured_epsilon(fewest, most, delta=delta) > claim


def count(event) -> Count:
    return Count(int(np.count_nonzero(event)), event.size)


def rows(rival, record, privacy, seed):
    data = np.broadcast_to(np.asarray(record, float), (ROWS, 2))
    return rival(Identity(BOX, ROWS), privacy, data, stream=Stream(seed=seed), simulation=True)


def calls(rival, record, privacy, seed, **options):
    query, stream, data = SecondMoment(BOX, 1), Stream(seed=seed), np.asarray([record], float)
    return np.array(
        [rival(query, privacy, data, stream=stream, simulation=True, **options).matrix for _ in range(CALLS)]
    )


def doubled(privacy: Privacy) -> Privacy:
    """The guarantee of Gaussian noise half as large."""
    return Privacy(gdp_epsilon(mu=2 * privacy.mu, delta=privacy.delta), privacy.delta)


def best_threshold(mu: float, epsilon: float) -> float:
    """Where the loss of ``N(mu, 1)`` against ``N(0, 1)`` passes epsilon."""
    return epsilon / mu + mu / 2


@pytest.mark.parametrize("factor", [1, 2])
def test_laplace_on_a_data_set(factor):
    claim = 1.0
    privacy = Privacy(factor * claim, 0.5)
    first, second = (rows(laplace, corner, privacy, 10 + factor) for corner in ([1, 1], [-1, -1]))
    measured = measured_epsilon(*(count((result.matrix >= 1).all(axis=1)) for result in (first, second)))
    assert is_caught(1 / 4, math.exp(-2 * claim) / 4, ROWS, claim=claim)
    assert (measured > claim) == (factor == 2)


@pytest.mark.parametrize("factor", [1, 2])
def test_laplace_on_a_second_moment(factor):
    claim = 2.0
    privacy = Privacy(factor * claim, 0.5)
    first, second = (calls(laplace, record, privacy, 20 + factor) for record in ([1, 1], [0, 0]))
    measured = measured_epsilon(*(count((result >= 0.5).all(axis=(1, 2))) for result in (first, second)))
    # Noise passes half the change of an entry with these probabilities.
    beyond = np.exp(-claim * np.array([1, BEST_WEIGHT, 1]) / (2 + BEST_WEIGHT)) / 2
    assert is_caught((1 - beyond).prod(), beyond.prod(), CALLS, claim=claim)
    assert (measured > claim) == (factor == 2)


@pytest.mark.parametrize("rival", [classical_gaussian, analytic_gaussian])
@pytest.mark.parametrize("factor", [1, 2])
def test_gaussian_on_a_data_set(rival, factor):
    honest = Privacy(0.5, 0.05)
    weaker = Privacy(1.0, 0.05) if rival is classical_gaussian else doubled(honest)
    claim = rows(rival, [0, 0], honest, 1)
    privacy = honest if factor == 1 else weaker
    results = [rows(rival, corner, privacy, 30 + factor) for corner in ([1, 1], [-1, -1])]
    mu = results[0].mu
    cut = best_threshold(mu, claim.epsilon)
    std = results[0].parameters["std"]
    events = [((result.matrix.sum(axis=1) + 2) / (math.sqrt(2) * std) > cut) for result in results]
    measured = measured_epsilon(*map(count, events), delta=claim.delta)
    if factor == 2:
        assert is_caught(norm.sf(cut - mu), norm.sf(cut), ROWS, claim=claim.epsilon, delta=claim.delta)
    assert (measured > claim.epsilon) == (factor == 2)


@pytest.mark.parametrize("factor", [1, 2])
def test_analyze_gauss(factor):
    claim = Privacy(1.0, 0.05)
    privacy = claim if factor == 1 else doubled(claim)
    mu = privacy.mu
    # The records differ off the diagonal alone, from 1 to -1, which is mu standard deviations of the noise there.
    cut = best_threshold(mu, claim.epsilon) * 2 / mu - 1
    outputs = [calls(analyze_gauss, record, privacy, 40 + factor)[:, 0, 1] for record in ([1, 1], [1, -1])]
    measured = measured_epsilon(*(count(output > cut) for output in outputs), delta=claim.delta)
    if factor == 2:
        p, q = norm.sf((cut - 1) * mu / 2), norm.sf((cut + 1) * mu / 2)
        assert is_caught(p, q, CALLS, claim=claim.epsilon, delta=claim.delta)
    assert (measured > claim.epsilon) == (factor == 2)


@pytest.mark.parametrize("factor", [1, 2])
def test_sulq(factor):
    claim = Privacy(2.0, 0.2)
    privacy = claim if factor == 1 else doubled(claim)
    outputs = [calls(sulq, record, privacy, 50 + factor, components=1)[:, :, 0] for record in ([1, 1], [1, -1])]
    # The first direction lies along the diagonal if and only if the noisy entry off it is positive.
    measured = measured_epsilon(*(count(output.prod(axis=1) > 0) for output in outputs), delta=claim.delta)
    if factor == 2:
        p, q = ndtr(privacy.mu / 2), ndtr(-privacy.mu / 2)
        assert is_caught(p, q, CALLS, claim=claim.epsilon, delta=claim.delta)
    assert (measured > claim.epsilon) == (factor == 2)


@pytest.mark.parametrize("factor", [1, 2])
def test_exponential(factor):
    claim = 1.0
    noise = draw_radial(Stream(seed=60 + factor), 2, 2 * ROWS).reshape(2, ROWS, 2) / (factor * claim)
    # In units of the sensitivity: the first neighbour's answer is (1, 0), the second's (0, 0).
    ahead, aside = noise[:, :, 0] + [[1], [0]], np.abs(noise[:, :, 1])
    measured = measured_epsilon(*(count(event) for event in (ahead > 1.5) & (aside < 0.5)))
    x, y = np.meshgrid(np.arange(-12, 12, 0.02), np.arange(-12, 12, 0.02), indexing="ij")
    density = np.exp(-2 * claim * np.hypot(x, y))
    p, q = (density[(x > cut) & (np.abs(y) < 0.5)].sum() / density.sum() for cut in (0.5, 1.5))
    assert is_caught(p, q, ROWS, claim=claim)
    assert (measured > claim) == (factor == 2)


@pytest.mark.parametrize("factor", [1, 2])
def test_ppca(factor):
    claim, others, runs = 1.0, 4, 400_000
    query = SecondMoment(BOX, others + 1)
    rate = concentration(query, factor * claim)
    events = []
    for seed, record in enumerate([[1, 1], [1, -1]]):
        moment = query.evaluate(np.array([record] + [[1, -1]] * others, float), clip=False, missing="error")
        points = draw_bingham(Stream(seed=70 + 2 * factor + seed), rate * moment, runs)
        events.append(np.abs(points.sum(axis=1)) > math.sqrt(2) * math.cos(0.3))
    measured = measured_epsilon(*map(count, events))
    p, q = (_ppca_probability(record, others, 2 * claim) for record in (True, False))
    assert is_caught(p, q, runs, claim=claim)
    assert (measured > claim) == (factor == 2)


def _ppca_probability(across: bool, others: int, epsilon: float) -> float:
    """Of the event above: within 0.3 of the one diagonal, when `others` records lie along the other."""
    angle = np.linspace(0, math.pi / 2, 200_001)
    weight = epsilon / 2 * ((others + (not across)) * np.cos(angle) ** 2 + across * np.sin(angle) ** 2)
    density = np.exp(weight - weight.max())
    return float(density[angle > math.pi / 2 - 0.3].sum() / density.sum())


@pytest.mark.parametrize("factor", [1, 2])
def test_johnson_lindenstrauss(factor):
    claim, draws, runs = Privacy(1.0, 0.05), 4, 100_000
    w2 = (threshold(Identity(BOX, 1), claim, draws) / factor) ** 2
    leverage = 2 / w2
    events = []
    for seed, record in enumerate([[1.0, 1.0], [1.0, -1.0]]):
        stream = Stream(seed=80 + 2 * factor + seed)
        sketch = draw_sketch(stream, np.outer(record, record), w2, draws * runs).reshape(runs, draws, 2)
        along = [np.square(sketch @ np.array(axis)).sum(axis=1) / 2 / w2 for axis in ([1, 1], [1, -1])]
        loss = leverage / (2 * (1 + leverage)) * (along[0] - along[1])
        events.append(loss > claim.epsilon)
    measured = measured_epsilon(*map(count, events), delta=claim.delta)
    if factor == 2:
        v = gamma(draws / 2).ppf((np.arange(20_000) + 0.5) / 20_000)
        p = gamma(draws / 2).sf(claim.epsilon / leverage + v / (1 + leverage)).mean()
        q = gamma(draws / 2).sf((1 + leverage) * (claim.epsilon / leverage + v)).mean()
        assert is_caught(p, q, runs, claim=claim.epsilon, delta=claim.delta)
    assert (measured > claim.epsilon) == (factor == 2)


def test_gamma_radius_has_the_gamma_law():
    for shape in (1, 7, 300):
        draws = draw_gamma(Stream(seed=shape), shape, 20_000)
        assert kstest(draws, gamma(shape).cdf).pvalue > LEVEL
    assert kstest(draw_gamma(Stream(seed=5), 7, 20_000), gamma(7.5).cdf).pvalue < LEVEL


def test_radial_noise_has_no_preferred_direction():
    draws = draw_radial(Stream(seed=4), 3, 50_000)
    second = draws.T @ draws / len(draws)
    # E z z' = E radius^2 I/3 = 4 I, with fourth moments below 360.
    assert np.abs(second - 4 * np.eye(3)).max() < norm.isf(LEVEL) * math.sqrt(360 / len(draws))


@pytest.mark.parametrize("kappa", [0.0, 1.0, 30.0, 3000.0])
def test_bingham_on_the_circle_is_von_mises(kappa):
    size = 50_000
    points = draw_bingham(Stream(seed=90), np.diag([kappa, 0.0]), size)
    cosines = points[:, 0] ** 2 - points[:, 1] ** 2  # of twice the angle, which is von Mises with kappa/2
    mean = ive(1, kappa / 2) / ive(0, kappa / 2)
    variance = (1 + ive(2, kappa / 2) / ive(0, kappa / 2)) / 2 - mean**2
    bound = norm.isf(LEVEL) * math.sqrt(variance / size)
    assert abs(cosines.mean() - mean) < bound
    weaker = draw_bingham(Stream(seed=91), np.diag([2 * kappa + 1, 0.0]), size)
    assert abs((weaker[:, 0] ** 2 - weaker[:, 1] ** 2).mean() - mean) > bound


def test_bingham_in_three_dimensions_has_its_moments():
    rates, size = np.array([12.0, 3.0, 0.0]), 50_000
    rotation = np.linalg.qr(np.arange(9).reshape(3, 3) ** 2 + np.eye(3))[0]
    points = draw_bingham(Stream(seed=92), (rotation * rates) @ rotation.T, size) @ rotation
    height, angle = np.meshgrid(np.linspace(-1, 1, 1201), np.linspace(0, 2 * np.pi, 400, endpoint=False))
    grid = np.stack([np.sqrt(1 - height**2) * np.cos(angle), np.sqrt(1 - height**2) * np.sin(angle), height])
    density = np.exp(np.einsum("i,ijk->jk", rates, grid**2))
    moments = (grid**2 * density).sum(axis=(1, 2)) / density.sum()
    spread = np.sqrt((grid**4 * density).sum(axis=(1, 2)) / density.sum() - moments**2)
    assert (np.abs((points**2).mean(axis=0) - moments) < norm.isf(LEVEL) * spread / math.sqrt(size) + 1e-4).all()


@pytest.mark.parametrize("bits", [0, 2, 30])
def test_laplace_integers_have_their_law(bits):
    size, cells = 200_000, 12
    draws = draw_laplace(Stream(seed=bits), bits, size)
    # Twelve cells either side of zero, each a quarter of the scale or, at bits = 0, the whole scale wide.
    width = max(1, 1 << bits >> 2)
    index = np.clip(draws // width, -cells, cells - 1)
    step = width / 2**bits
    inner = (np.exp(-step * np.arange(cells - 1)) - np.exp(-step * np.arange(1, cells))) / 2
    half = np.append(inner, math.exp(-step * (cells - 1)) / 2)
    expected = size * np.concatenate([half[::-1], half])
    observed = np.bincount(index + cells, minlength=2 * cells)
    fine = expected > 5
    statistic = (np.square(observed - expected) / expected)[fine].sum()
    assert statistic < chi2.isf(LEVEL, fine.sum())
    weaker = np.bincount(np.clip(draws // 2 // width, -cells, cells - 1) + cells, minlength=2 * cells)
    assert (np.square(weaker - expected) / expected)[fine].sum() > chi2.isf(LEVEL, fine.sum())
