"""Each term of an error bar, on its own: moments are made up, so that what a term must be is known."""

import importlib
import math

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.adaptive import error_bars as public_error_bars
from matrixdp.adaptive import simulation
from matrixdp.adaptive.error_bars import NORMAL, noise_bars, sampling_bars
from matrixdp.adaptive.moment import PrivateMoment
from matrixdp.adaptive.postprocess import Fitted
from matrixdp.adaptive.simulation import FAMILIES, read_off, sampling_errors, simulate_records
from matrixdp.privacy import Neighbours

terms = importlib.import_module("matrixdp.adaptive.error_bars")  # the package has a function of that name

MANY = 10**12  # records, of which one contributes nothing
MEAN = np.array([0.1, -0.3, 0.5])
COVARIANCE = 0.04 * np.array([[1.0, 0.3, 0.1], [0.3, 0.8, -0.2], [0.1, -0.2, 0.4]])


def made(
    mean=MEAN, covariance=COVARIANCE, *, records=MANY, epsilon=1.0, mean_std=0.0, std=0.0, evident=1.0, half=1.0, **more
):
    """A private moment whose covariance was `covariance` before it was multiplied by `evident`."""
    mean, covariance = np.asarray(mean, float), np.asarray(covariance, float)
    d = mean.size
    privacy, person = mdp.Privacy(epsilon, 1e-6), more.pop("person", None)
    fitted = Fitted(
        mean=mean,
        covariance=evident * covariance,
        evident=evident,
        second=covariance + np.outer(mean, mean),
        mean_std=np.full(d, float(mean_std)),
        std=np.broadcast_to(np.asarray(std, float), (d, d)).copy(),
        unshrunk=covariance,
        noise_shape=more.pop("noise_shape", np.eye(d)),
        noise_std=more.pop("noise_std", 0.0),
        radius=1.0,
        learned=True,
    )
    half = np.broadcast_to(np.asarray(half, float), (d,))
    spent = {"neighbours": Neighbours.REPLACE, "mu": privacy.mu, "steps": (), "simulation": True}
    asked = {"bounds": mdp.Bounds(-half, half), "privacy": privacy, "records": records, "person": person}
    return PrivateMoment(fitted=fitted, **spent, **asked)


@pytest.fixture
def alone(monkeypatch):
    """Error bars without simulated errors, unless a test gives some, and without corners."""
    zero = np.zeros(3)
    monkeypatch.setattr(terms, "_short_of_corners", lambda moment: (zero[: len(moment.mean)], zero[: len(moment.mean)]))

    def give(errors=None):
        def simulated(moment):
            shapes = read_off(moment.fitted.mean, moment.fitted.covariance, np.ones(len(moment.mean)))
            found = []
            for row in range(3 * len(FAMILIES)):
                own = {name: np.full(value.shape, 0.0) for name, value in shapes.items()}
                found.append(own | ({} if errors is None else errors(row)))
            return {name: np.array([one[name] for one in found]) for name in shapes}

        monkeypatch.setattr(terms, "_simulate", simulated)

    give()
    return give


def test_the_noise_of_a_second_moment_is_that_of_the_covariance_and_of_both_means():
    mean = np.array([0.2, 0.6])
    moved = noise_bars(made(mean, np.eye(2) / 9, mean_std=0.01))["second_moment"]
    shifted = np.outer(mean + 0.01, mean + 0.01) - np.outer(mean, mean) - 0.01**2
    assert moved == pytest.approx(shifted)
    both = noise_bars(made(mean, np.eye(2) / 9, mean_std=0.01, std=0.03))["second_moment"]
    assert both == pytest.approx(np.hypot(shifted, 0.03))


def test_the_noise_of_a_correlation_is_that_of_its_covariance_and_of_both_variances():
    rng, std = np.random.default_rng(1), 1e-4 * np.array([[3.0, 1.0, 2.0], [1.0, 5.0, 1.5], [2.0, 1.5, 4.0]])
    drawn = COVARIANCE + std * rng.standard_normal((40_000, 3, 3))
    drawn[:, 0, 1], drawn[:, 0, 2], drawn[:, 1, 2] = drawn[:, 1, 0], drawn[:, 2, 0], drawn[:, 2, 1]
    spread = read_off(MEAN, drawn, np.ones(3))["correlation"].std(axis=0)
    below = np.tril_indices(3, -1)
    assert noise_bars(made(std=std))["correlation"][below] == pytest.approx(spread[below], rel=0.03)


def test_the_noise_of_a_correlation_without_variance_is_infinite():
    found = noise_bars(made(covariance=np.diag([0.0, 0.1, 0.1]), std=0.01))["correlation"]
    assert np.isinf(found[0]).all()
    assert np.isfinite(found[1:, 1:]).all()


def test_the_noise_of_an_eigenvalue_is_that_along_its_direction():
    rng, half = np.random.default_rng(2), np.array([1.0, 2.0, 3.0])
    root = np.array([[1.0, 0.0, 0.0], [0.4, 1.5, 0.0], [0.0, 0.3, 0.5]])
    normal = rng.standard_normal((40_000, 3, 3))
    noise = 1e-5 * (normal + normal.swapaxes(1, 2)) / math.sqrt(2)  # twice the variance on the diagonal
    spread = read_off(MEAN, COVARIANCE + root @ noise @ root.T, half)["eigenvalue"].std(axis=0)
    found = noise_bars(made(noise_shape=root @ root.T, noise_std=1e-5, half=half))["eigenvalue"]
    assert found == pytest.approx(spread, rel=0.03)


@pytest.mark.parametrize(("simulated", "noise"), [(0.03, 0.04), (0.04, 0.03), (0.0, 0.02), (0.02, 0.0)])
def test_a_bar_is_the_larger_of_simulated_errors_and_noise_with_half_of_the_smaller_in_squares(alone, simulated, noise):
    alone(lambda row: {"mean": np.full(3, simulated)})
    found = public_error_bars(made(mean_std=noise)).mean_std
    large, small = max(simulated, noise), min(simulated, noise)
    assert found == pytest.approx(math.sqrt(large**2 + (small / 2) ** 2), rel=1e-6)


def test_the_three_families_with_the_largest_errors_count_number_by_number(alone):
    sizes = np.array([1.0, 6.0, 2.0, 5.0, 4.0, 3.0]) / 100  # of families; those of the second feature in reverse

    def errors(row):
        family, time = divmod(row, 3)
        own = sizes[family] * math.sqrt(time)  # as it is, and raised twice: the mean of squares is that of the family
        return {"mean": np.array([own, sizes[::-1][family] * math.sqrt(time), 0.0])}

    alone(errors)
    expected = np.sqrt(np.mean(np.array([4.0, 5.0, 6.0]) ** 2)) / 100
    assert public_error_bars(made()).mean_std == pytest.approx([expected, expected, 0.0], abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 500.0])
def test_some_records_at_the_further_end_of_their_bounds_may_be_overlooked(alone, epsilon):
    """As many as the noise of a private count may hide, and at least one, in means and variances."""
    moment = made(records=10_000, epsilon=epsilon)
    hidden = max(1.5 / moment.privacy.mu, 1.0)
    reach = 1 + np.abs(MEAN)
    found = public_error_bars(moment)
    assert found.mean_std == pytest.approx(hidden * reach / 10_000)
    assert np.diagonal(found.second_moment_std) == pytest.approx(hidden * reach**2 / 10_000)
    assert np.diagonal(found.covariance_std) == pytest.approx(hidden * reach**2 / 10_000)
    assert found.eigenvalue_std == pytest.approx(np.full(3, hidden * max(reach**2) / 10_000))


def test_one_record_is_overlooked_in_a_pair_of_features(alone):
    found = public_error_bars(made(records=10_000, epsilon=0.1)).second_moment_std
    reach = 1 + np.abs(MEAN)
    assert found[0, 1] == pytest.approx(reach[0] * reach[1] / 10_000)


def test_all_rows_of_a_person_that_count_may_be_overlooked(alone):
    one = public_error_bars(made(records=10**6, epsilon=5.0))
    five = public_error_bars(made(records=10**6, epsilon=5.0, person=mdp.Person("id", rows=5)))
    assert five.mean_std == pytest.approx(5 * one.mean_std)
    assert five.second_moment_std == pytest.approx(5 * one.second_moment_std)
    assert five.correlation_std[0, 1] > 2 * one.correlation_std[0, 1]


def test_what_was_taken_from_a_covariance_is_in_its_bars(alone):
    found = public_error_bars(made(evident=0.25))
    assert np.diagonal(found.covariance_std) == pytest.approx(0.75 * np.diagonal(COVARIANCE))
    assert (found.covariance_std >= 0.75 * np.abs(COVARIANCE) * (1 - 1e-9)).all()
    assert found.eigenvalue_std == pytest.approx(0.75 * np.linalg.eigvalsh(COVARIANCE)[::-1])
    assert public_error_bars(made()).covariance_std == pytest.approx(0.0, abs=1e-6)


def test_one_record_may_turn_a_correlation_against_its_sign(alone):
    """An interval reaches to the correlation with one more record, at the ends of both bounds."""
    moment = made(records=2000)
    found = public_error_bars(moment).correlation_std
    reach = 1 + np.abs(MEAN)
    before = read_off(MEAN, COVARIANCE, np.ones(3))["correlation"]
    for i, j in ((0, 1), (1, 2), (0, 2)):
        corner = np.array([reach[i], -np.sign(before[i, j]) * reach[j]]) / math.sqrt(2000)
        pair = COVARIANCE[np.ix_([i, j], [i, j])] + np.outer(corner, corner)
        after = pair[0, 1] / math.sqrt(pair[0, 0] * pair[1, 1])
        assert NORMAL * found[i, j] == pytest.approx(abs(after - before[i, j]))


def test_no_interval_is_longer_than_what_is_possible(alone):
    alone(lambda row: dict.fromkeys(("mean", "eigenvalue"), np.full(3, 1e6)) | {"covariance": np.full((3, 3), 1e6)})
    half = np.array([1.0, 2.0, 3.0])
    found = public_error_bars(made(half=half))
    assert NORMAL * found.mean_std == pytest.approx(half * (1 + np.abs(MEAN)))
    assert NORMAL * found.covariance_std == pytest.approx(np.outer(half, half) * (1 + np.abs(COVARIANCE)))
    largest = np.linalg.eigvalsh(COVARIANCE * np.outer(half, half))[::-1]
    assert NORMAL * found.eigenvalue_std == pytest.approx(half @ half + largest)


def own_errors(row):
    return {"covariance": np.diag([0.02, 0.05, 0.0])}


def test_a_covariance_moves_with_the_sizes_of_its_features_at_the_released_correlation(alone):
    alone(own_errors)
    covariance = 0.04 * np.ones((3, 3))
    found = public_error_bars(made(covariance=covariance)).covariance_std
    moved = math.sqrt((0.04 + 0.02) * (0.04 + 0.05)) - 0.04
    assert found[0, 1] == pytest.approx(moved / 2, rel=1e-4)


def test_what_is_missing_of_two_variances_may_be_missing_together(alone):
    alone(own_errors)
    found = public_error_bars(made(covariance=np.diag([0.04, 0.04, 0.04]))).covariance_std
    assert found[0, 1] == pytest.approx(math.sqrt(0.02 * 0.05) / 2, rel=1e-4)
    assert found[0, 2] == pytest.approx(0.0, abs=1e-4)


@pytest.mark.parametrize(("evident", "part"), [(1.0, 0.0), (0.0, 1.0)])
def test_overlooked_records_are_missing_together_only_where_the_covariance_was_set_to_zero(alone, evident, part):
    moment = made(np.zeros(3), 1e-9 * np.eye(3), records=10_000, epsilon=0.1, evident=evident)
    own = public_error_bars(moment).covariance_std
    single = 1 / 10_000
    assert own[0, 1] == pytest.approx(max(part * own[0, 0] / 2, single), rel=1e-3)
    assert own[0, 0] > 10 * single


def test_samples_add_in_squares(alone):
    alone(lambda row: {"mean": np.full(3, 0.01)})
    moment = made(records=400)
    without, samples, both = public_error_bars(moment), sampling_bars(moment), public_error_bars(moment, sampling=True)
    for name in ("mean_std", "second_moment_std", "covariance_std", "eigenvalue_std", "correlation_std"):
        one, other = getattr(without, name), getattr(samples, name)
        assert getattr(both, name) == pytest.approx(np.hypot(one, other)), name
    assert samples.mean_std == pytest.approx(np.sqrt(np.diagonal(COVARIANCE) / 400), rel=0.1)


def test_errors_of_samples_are_root_mean_squares_over_the_families():
    moment = made(records=400)
    seed = simulation.public_seed(moment.fitted)
    found = [
        sampling_errors(
            simulate_records(family, MEAN, COVARIANCE, 400, np.random.default_rng(seed + index)), 400, np.ones(3)
        )["covariance"]
        for index, family in enumerate(FAMILIES)
    ]
    assert sampling_bars(moment).covariance_std == pytest.approx(np.sqrt(np.mean(np.square(found), axis=0)))


def test_samples_of_people_are_as_small_as_their_number_may_be():
    one, five = (sampling_bars(made(records=5000, person=who)) for who in (None, mdp.Person("id", rows=5)))
    assert five.mean_std == pytest.approx(math.sqrt(5) * one.mean_std, rel=1e-6)


@pytest.mark.parametrize(("found", "factor"), [(0.8, 1.25), (1.3, 1.0), (0.1, 2.0), (-0.5, 2.0)])
def test_a_mean_is_raised_by_what_the_fit_lost_of_it_within_limits(found, factor):
    wanted = np.array([0.2, -0.4])
    assert terms._raise_mean(wanted, wanted, found * wanted) == pytest.approx(factor * wanted)
    assert terms._raise_mean(np.array([0.9, 0.0]), wanted, found * wanted)[0] <= 1.0


@pytest.mark.parametrize(("found", "factor"), [(0.5, 2.0), (3.0, 1.0), (0.01, 4.0), (0.0, 4.0)])
def test_variances_are_raised_by_what_the_fit_lost_of_them_within_limits(found, factor):
    wanted = np.diagonal(COVARIANCE)
    raised = terms._raise_variances(COVARIANCE, wanted, found * wanted)
    assert raised == pytest.approx(factor * COVARIANCE)


def test_each_family_is_simulated_as_it_is_and_raised_twice(monkeypatch):
    asked = []

    def record(family, mean, covariance, options, seed, times):
        asked.append((family, mean, covariance, seed, times))
        return (mean, covariance), [made(mean / 1.5, covariance / 3).fitted] * times

    monkeypatch.setattr(terms.simulation, "simulate_fits", record)
    terms._simulate(made())
    assert [family for family, *_ in asked] == [family for family in FAMILIES for _ in range(3)]
    assert len({seed for *_, seed, _ in asked}) == len(asked)
    assert {times for *_, times in asked} == {2}
    for first in range(0, len(asked), 3):
        means, covariances = zip(
            *((mean, covariance) for _, mean, covariance, *_ in asked[first : first + 3]), strict=True
        )
        assert means[0] == pytest.approx(MEAN)
        assert means[1] == pytest.approx(1.5 * MEAN)
        assert means[2] == pytest.approx(1.5 * MEAN)  # the fit of these found what was wanted
        assert covariances[0] == pytest.approx(COVARIANCE)
        assert covariances[1] == pytest.approx(3 * COVARIANCE)
        assert covariances[2] == pytest.approx(3 * COVARIANCE)


def corner_fit(monkeypatch, second, mean=0.0):
    """Fits of the corners of the box that find this second moment and mean."""
    fit = made(np.full(3, mean), second - mean**2 * np.ones((3, 3))).fitted
    monkeypatch.setattr(terms.simulation, "fit_simulated", lambda *_: fit)


def test_variances_reach_those_of_corners_where_a_fit_of_them_would_find_no_more(monkeypatch):
    corner_fit(monkeypatch, 0.05 * np.eye(3))
    length, spread = terms._short_of_corners(made(np.zeros(3), 0.06 * np.eye(3)))
    assert NORMAL * spread == pytest.approx(1 - 0.06 * np.ones(3))
    assert NORMAL * length == pytest.approx((1 - math.sqrt(0.05)) * np.ones(3))
    length, spread = terms._short_of_corners(made(np.zeros(3), 0.04 * np.eye(3)))
    assert not length.any()
    assert not spread.any()


def test_corners_are_told_from_less_only_beyond_the_noise(monkeypatch):
    corner_fit(monkeypatch, 0.05 * np.eye(3))
    for std, reached in ((0.007, False), (0.01, True)):  # 0.03 is missing of the trace
        _, spread = terms._short_of_corners(made(np.zeros(3), 0.04 * np.eye(3), std=std))
        assert bool(spread.any()) is reached
        assert reached is (2 * math.sqrt(3) * std >= 0.03)


def test_a_long_mean_is_told_from_little_variance(monkeypatch):
    """A fit that finds the length of the corners but less variance has bars of means that reach them, not variances."""
    corner_fit(monkeypatch, 0.05 * np.eye(3))
    length, spread = terms._short_of_corners(made(np.full(3, 0.3), 0.01 * np.eye(3)))
    assert NORMAL * length == pytest.approx((1 - math.sqrt(0.05)) * 0.7 * np.ones(3))
    assert not spread.any()


def test_bars_of_corners_are_added_to_means_and_variances_and_half_to_pairs(alone, monkeypatch):
    monkeypatch.setattr(terms, "_short_of_corners", lambda moment: (np.full(3, 0.1), np.array([0.1, 0.2, 0.4])))
    found = public_error_bars(made(covariance=np.diag([0.04, 0.04, 0.04])))
    assert found.mean_std == pytest.approx(np.full(3, 0.1))
    assert np.diagonal(found.covariance_std) == pytest.approx([0.1, 0.2, 0.4])
    assert found.covariance_std[0, 1] == pytest.approx(math.sqrt(0.1 * 0.2) / 2)
