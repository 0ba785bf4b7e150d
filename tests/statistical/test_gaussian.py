"""The sampler follows its law; for each test a broken sampler that it rejects. Level: `levels.LEVEL` each."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom, chi2, kstwobign

from levels import LEVEL
from matrixdp import Stream
from matrixdp.noise.gaussian import BLOCK, draw_gaussian
from numbered_draws import draw_indexed

SAMPLER = {
    "stream": lambda bits, size, seed: draw_gaussian(Stream(seed=seed), bits, shape=size),
    # The reference of the kernels on a GPU, which make the same draws.
    "numbered": lambda bits, size, seed: draw_indexed(seed.to_bytes(32, "little"), bits, 0, size),
}


@pytest.fixture(params=list(SAMPLER), scope="module")
def draw(request):
    return SAMPLER[request.param]


@pytest.fixture(scope="module")
def fine(draw):
    """Draws at the scale of releases."""
    return draw(40, 6_000_000, 21)


def chi_square_p(draws, bits):
    """p-value of counts against the exact probabilities of floor(G), rare values put together."""
    edge = int(4 * 2**bits) + 1
    values = np.clip(draws, -edge, edge)
    counts = np.bincount(values + edge, minlength=2 * edge + 1)
    k = np.arange(-edge, edge + 1) / 2**bits
    probability = np.diff(ndtr(np.concatenate([[-np.inf], k[1:], [np.inf]])))
    expected = probability * draws.size
    return chi2.sf(((counts - expected) ** 2 / expected).sum(), counts.size - 1)


def ks_p(z):
    z = np.sort(z)
    steps = np.arange(z.size + 1) / z.size
    cdf = ndtr(z)
    return kstwobign.sf(np.sqrt(z.size) * max((steps[1:] - cdf).max(), (cdf - steps[:-1]).max()))


def tail_p(z, beyond):
    """Two-sided p-value of the number of draws beyond a point, on either side."""
    count, probability = int((np.abs(z) > beyond).sum()), 2 * ndtr(-beyond)
    return min(1.0, 2 * min(binom.cdf(count, z.size, probability), binom.sf(count - 1, z.size, probability)))


@pytest.mark.parametrize("bits", [0, 1, 2, 3, 5, 7])
def test_cell_probabilities_at_small_scale(draw, bits):
    assert chi_square_p(draw(bits, 2_000_000, 11 + bits), bits) > LEVEL


def test_rounding_to_nearest_instead_of_the_floor_is_found(fine):
    broken = np.rint(fine[:2_000_000] * 2.0**-38).astype(np.int64)
    assert chi_square_p(broken, 2) < LEVEL


def test_a_variance_off_by_two_percent_is_found(fine):
    broken = np.floor(fine[:2_000_000] * 2.0**-37 * 1.01).astype(np.int64)
    assert chi_square_p(broken, 3) < LEVEL


def test_distribution_at_the_scale_of_releases(fine):
    assert ks_p((fine + 0.5) * 2.0**-40) > LEVEL


def test_a_shift_of_one_two_hundredth_is_found(fine):
    """With the power 0.9999: the distance of the laws is 3.7 standard deviations beyond what chance may give."""
    assert ks_p((fine + 0.5) * 2.0**-40 + 0.005) < LEVEL


def test_moments_agree(fine):
    z = (fine + 0.5) * 2.0**-40
    for power, mean, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96), (6, 15, 10170)):
        assert abs((z**power).mean() - mean) < 5.6 * np.sqrt(variance / z.size)  # 2e-8 two-sided


@pytest.fixture(scope="module")
def many():
    """Draws, so many that 19.5 are expected beyond 5: none would have a probability of 3e-9."""
    return SAMPLER["stream"](16, 34_000_000, 41).astype(np.float32) * np.float32(2.0**-16)


@pytest.mark.parametrize("beyond", [4.0, 5.0])
def test_tails(many, beyond):
    assert tail_p(many, beyond) > LEVEL


@pytest.mark.parametrize("beyond", [4.0, 5.0])
def test_a_truncated_tail_is_found(many, beyond):
    assert tail_p(many[np.abs(many) < beyond], beyond) < LEVEL


def test_low_bits_are_uniform_and_carry_no_sign(draw):
    draws = draw(52, 1_000_000, 51)
    for mask in (1, 2, 1 << 20, 1 << 40):
        for part in (draws[draws >= 0], draws[draws < 0]):
            ones = int(((part & mask) != 0).sum())
            p = 2 * min(binom.cdf(ones, part.size, 0.5), binom.sf(ones - 1, part.size, 0.5))
            assert p > LEVEL


def correlation_p(z):
    """p-value of the largest correlation between two blocks of a draw, of the pairs together."""
    blocks = z.reshape(-1, BLOCK)
    normed = (blocks - blocks.mean(axis=1, keepdims=True)) / blocks.std(axis=1, keepdims=True)
    pairs = (normed @ normed.T / BLOCK)[np.triu_indices(len(blocks), 1)]
    return min(1.0, pairs.size * 2 * ndtr(-np.abs(pairs).max() * np.sqrt(BLOCK)))


def test_blocks_of_a_large_draw_are_not_correlated(draw):
    assert correlation_p(draw(40, 8 * BLOCK, 61) * 2.0**-40) > LEVEL


def test_blocks_that_share_two_percent_of_their_noise_are_found(draw):
    z = (draw(40, 8 * BLOCK, 61) * 2.0**-40).reshape(-1, BLOCK)
    z[3] = np.sqrt(1 - 0.02) * z[3] + np.sqrt(0.02) * z[5]
    assert correlation_p(z.ravel()) < LEVEL
