"""The rules by which a fit chooses what it measures, and what it makes of it: each strategy, step and setting."""

import dataclasses
import math

import numpy as np
import pytest

from matrixdp.adaptive import fit, postprocess
from matrixdp.adaptive.coordinates import Coordinates
from matrixdp.adaptive.fit import FinalBall, FinalPlan, Placed, Purpose
from matrixdp.adaptive.measure import NoisyMoment, SimulatedMeasurements, SimulatedRecords
from matrixdp.adaptive.regression import JointMoment, hidden_std
from matrixdp.adaptive.settings import SETTINGS, Settings
from matrixdp.privacy import Neighbours

COVARIANCE = SETTINGS["covariance"]
BOXED = Settings()  # starts from the box, as second moments do


class Logged(SimulatedMeasurements):
    """Measurements of simulated records that note what was asked for."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.log = []

    def counter(self, name, cuts, share):
        count = super().counter(name, cuts, share)

        def noted(cut):
            self.log.append((name, cut, share))
            return count(cut)

        return noted

    def scales(self, name, share):
        self.log.append((name, share))
        return super().scales(name, share)

    def excess(self, name, radius, limit, share):
        self.log.append((name, radius, limit, share))
        return super().excess(name, radius, limit, share)

    def ball(self, name, radius, ratio, share):
        self.log.append((name, radius, ratio, share))
        return super().ball(name, radius, ratio, share)

    def box(self, name, ratio, share):
        self.log.append((name, ratio, share))
        return super().box(name, ratio, share)


def measurements(size=3, records=2000, mu=1.0, neighbours=Neighbours.REPLACE, seed=0, spread=0.2):
    rng = np.random.default_rng(seed)
    data = np.clip(0.3 + spread * rng.standard_normal((records, size)), -1, 1)
    return Logged(SimulatedRecords(data), records, mu, neighbours, rng)


def rough_moment(mean=(0.5, 0.0), variances=(0.04, 0.01), std=1e-6):
    """A moment with hardly any noise."""
    mean = np.asarray(mean, float)
    second = np.eye(len(mean) + 1)
    second[0, 1:] = second[1:, 0] = mean
    second[1:, 1:] = np.diag(variances) + np.outer(mean, mean)
    return NoisyMoment(second, 0.5, std, std)


def placed(moment):
    """A moment in the coordinates of the box."""
    return Placed(moment, Coordinates.of(np.eye(moment.mean.size), np.zeros(moment.mean.size)))


# Strategies


@pytest.mark.parametrize(
    ("size", "records", "mu", "targets", "strategy"),
    [
        (3, 1000, 1.0, 0, "learned"),
        (1, 1000, 1.0, 0, "learned"),
        (1, 1, 0.1, 0, "ball"),
        (6, 10, 1.0, 0, "ball"),  # 0.6 features for a record and mu
        (4, 10, 1.0, 0, "learned"),
        (4, 10, 0.5, 0, "ball"),
        (6, 10, 1.0, 2, "target mean"),
        (4, 10, 1.0, 2, "learned"),
    ],
)
def test_public_numbers_choose_the_strategy(size, records, mu, targets, strategy):
    found = measurements(size, records, mu)
    assert fit.choose_strategy(found, Purpose(COVARIANCE, targets=targets)) == strategy
    assert found.log == []


def test_scarce_records_of_a_regression_give_the_means_of_the_targets_alone():
    found = measurements(6, 10)
    fitted = fit.fit_moment(found, Purpose(SETTINGS["regression"], targets=2))
    assert {step[0] for step in found.log} == {"target mean", "radius"}
    assert [step[2] for step in found.log if step[0] == "target mean"] == [1.0] * 3  # a constant that favours the mean
    assert sum(step[-1] for step in found.log) == pytest.approx(1.0)
    assert not fitted.learned
    assert not fitted.mean[:4].any()
    assert fitted.mean[4:].any()


@pytest.mark.parametrize(("records", "left"), [(30, 12), (3000, 0)])
def test_a_regression_whose_coefficients_would_cost_more_than_they_explain_goes_on_with_the_means(records, left):
    purpose, found = Purpose(SETTINGS["regression"], targets=1), []
    for seed in range(20):
        noisy = measurements(4, records, 0.3, seed=seed)
        assert fit.choose_strategy(noisy, purpose) == "learned"
        fitted = fit.fit_moment(noisy, purpose)
        names = [step[0] for step in noisy.log]
        assert ("final moment" in names) == fitted.learned
        assert names.count("target mean") == (0 if fitted.learned else 3)
        assert sum(step[-1] for step in noisy.log) == pytest.approx(1.0)
        found.append(fitted.learned)
    assert found.count(False) == left


def test_variances_of_targets_that_are_noise_are_as_expected():
    exact = fit.expect_variance(np.array([0.04]), np.array([1e-12]), 0.1)
    assert exact == pytest.approx([0.04], rel=1e-3)
    noise = fit.expect_variance(np.array([5.0]), np.array([1e6]), 0.1)
    assert noise == pytest.approx([0.2], rel=1e-3)  # the prior, and a standard deviation of what may be known


def test_one_feature_is_measured_in_its_box_but_for_a_covariance():
    for aim in ("means", "second moment"):
        found, settings = measurements(1), SETTINGS[aim]
        fit.fit_moment(found, Purpose(settings))
        ratio = 1 / 32 if settings.filled else settings.ratio
        assert found.log[-1] == ("box moment", ratio, pytest.approx(1 - settings.locate_share * (aim != "means")))
        assert [step[0] for step in found.log[:-1]] == ["location"] * (aim != "means")


def test_one_feature_has_one_rough_moment_and_less_error_than_its_box_where_that_is_wide():
    found, wide = measurements(1), measurements(1, spread=0.02)
    fit.fit_moment(found, Purpose(COVARIANCE))
    assert sum(step[0] == "rough moment" for step in found.log) == 1
    variance = fit.fit_moment(wide, Purpose(COVARIANCE)).covariance[0, 0]
    assert variance == pytest.approx(0.02**2, rel=0.2)  # noise of the box is as large as this


@pytest.mark.parametrize(("spread", "filled"), [(0.05, False), (5.0, True)])
def test_second_moments_of_records_that_fill_their_box_are_measured_in_it_with_all_that_is_left(spread, filled):
    found, settings = measurements(4, spread=spread), SETTINGS["second moment"]
    fit.fit_moment(found, Purpose(settings))
    assert found.log[0] == ("location", settings.locate_share)
    assert (found.log[1:] == [("box moment", 1 / 32, pytest.approx(1 - settings.locate_share))]) == filled


def test_scarce_records_are_measured_once_in_a_ball_with_all_that_is_left():
    found = measurements(60, 100)
    fit.fit_moment(found, Purpose(COVARIANCE))
    *counts, (name, _, ratio, share) = found.log
    assert {step[0] for step in counts} <= {"radius"}
    assert (name, ratio) == ("moment", COVARIANCE.ratio)
    assert share == pytest.approx(1 - sum(step[-1] for step in counts))


@pytest.mark.parametrize("aim", SETTINGS)
def test_a_learned_fit_spends_the_shares_of_its_settings_and_the_rest_on_the_final_moment(aim):
    found, settings = measurements(2, 20_000, spread=0.4), SETTINGS[aim]  # so few features have a moment of the box
    fit.fit_moment(found, Purpose(settings))
    shares = {}
    for step in found.log:
        shares[step[0]] = shares.get(step[0], 0.0) + (step[2] if step[0] == "box moment" else step[-1])
    assert shares.get("location", 0.0) == pytest.approx(settings.locate_share)
    assert shares["radius"] == pytest.approx(settings.rough_moments * settings.radius_share)
    assert shares["second radius"] == pytest.approx(settings.radius_share)
    assert shares["rough moment"] == pytest.approx(settings.rough_moments * settings.rough_share)
    assert shares.get("tail", 0.0) == pytest.approx(settings.tail_share)
    assert ("box moment" in shares) is bool(settings.clipping)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert sum(step[0] == "second radius" for step in found.log) == settings.bisections


NEUTRAL = {
    "clip_factor": 8.0, "radius_share": 0.1, "bisections": 3, "lost_counts": 1e-6, "public_radius": 0.9, "scarce": 1e-9,
    "rough_share": 0.4, "ratio": 0.5, "about_mean": True, "one_sided": 3.0, "scaled": True, "floor": 5.0, "pull": 2.0,
    "locate_share": 0.1, "prior": 2.0, "filled": 0.01, "rough_moments": 2,
    "tail_share": 0.0, "tail_noise": 0.01, "clipping": 0.0, "shrink": False, "level": 0.0,
}  # fmt: skip


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Settings)])
def test_each_setting_has_an_effect(name):
    needed = {"public_radius": ("lost_counts", 1e-6)}
    needed["prior"] = needed["rough_moments"] = needed["filled"] = "locate_share", 0.02
    own = dict([needed[name]]) if name in needed else {}
    size, records, mu = {"level": (4, 60, 0.5), "clipping": (2, 2000, 1.0)}.get(name, (4, 2000, 0.3))
    spread = 0.4 if name == "clipping" else 0.2

    def fitted(**changes):
        settings = dataclasses.replace(BOXED, **own, **changes)
        return fit.fit_moment(measurements(size, records, mu, seed=3, spread=spread), Purpose(settings)).second

    assert not np.allclose(fitted(), fitted(**{name: NEUTRAL[name]}))


# Location


def test_records_are_located_as_far_as_answers_are_more_than_noise():
    found, noisy, settings = measurements(3, 200_000), measurements(3, 20, 0.05), SETTINGS["correlation"]
    mean, spread = fit.locate(found, settings)
    assert mean == pytest.approx(np.full(3, 0.3), abs=0.02)
    assert spread == pytest.approx(np.full(3, 0.2), abs=0.03)
    mean, spread = fit.locate(noisy, settings)
    assert np.abs(mean).max() < settings.prior
    assert (spread >= settings.prior).all()


def test_the_first_coordinates_are_those_of_located_records():
    found = fit.measure_rough(measurements(2, 200_000), Purpose(SETTINGS["correlation"]))
    assert found[0].coordinates.centre == pytest.approx(np.full(2, 0.3), abs=0.02)
    assert np.diagonal(found[0].coordinates.matrix) == pytest.approx(np.full(2, 5.0), rel=0.15)  # one over the spread
    assert len(found) == 2
    (only,) = fit.measure_rough(measurements(2), Purpose(BOXED))
    assert only.coordinates.matrix == pytest.approx(np.eye(2))


def test_moments_in_earlier_coordinates_have_the_trace_of_the_last():
    clipped, last = (placed(rough_moment((0.0, 0.0), (v, v), std=1e-6)) for v in (0.01, 0.02))
    second, _ = postprocess.combine([clipped, last], SETTINGS["correlation"])
    assert np.diagonal(second) == pytest.approx([1.0, 0.02, 0.02])
    second, _ = postprocess.combine([clipped, last], BOXED)
    assert np.diagonal(second) == pytest.approx([1.0, 0.015, 0.015])


@pytest.mark.parametrize(("std", "kept"), [(0.002, 0.99), (0.01, 0.75), (0.02, 0.0), (0.03, 0.0)])
def test_what_clipping_took_from_a_trace_is_restored_as_far_as_it_is_more_than_noise(std, kept):
    clipped, last = (placed(rough_moment((0.0, 0.0), (v, v), std=1e-9)) for v in (0.01, 0.02))
    last = last._replace(moment=dataclasses.replace(last.moment, trace_std=std))
    second, _ = postprocess.combine([clipped, last], COVARIANCE)
    factor = 1 + kept  # of the moment and of its noise
    assert np.diagonal(second)[1:] == pytest.approx((0.02 * factor**2 + 0.01 * factor) / (factor**2 + 1), rel=1e-3)
    last = last._replace(moment=dataclasses.replace(last.moment, trace_std=1e-9))
    clipped = clipped._replace(moment=dataclasses.replace(clipped.moment, trace_std=std))
    second, _ = postprocess.combine([last, clipped], COVARIANCE)  # an average of 0.015, whose trace is 0.01 too large
    assert np.diagonal(second)[1:] == pytest.approx(0.015 - 0.005 * max(0.0, 1 - (std / 0.01) ** 2), rel=1e-3)


# Radii


def test_the_first_radius_is_public_where_counts_would_be_lost_in_noise():
    limit = math.sqrt(COVARIANCE.bisections / COVARIANCE.radius_share) / COVARIANCE.lost_counts  # records times mu
    lost, kept = (measurements(4, 100, times * limit / 100) for times in (0.99, 1.01))
    assert fit.find_first_radius(lost, COVARIANCE) == COVARIANCE.public_radius * 2
    assert lost.remaining == 1.0
    fit.find_first_radius(kept, COVARIANCE)
    assert kept.remaining == pytest.approx(1 - COVARIANCE.radius_share)


@pytest.fixture
def searched(monkeypatch):
    """What is searched for, instead of a search."""
    asked = {}

    def note(name, measure, bracket, above, steps, share):
        asked.update(name=name, bracket=bracket, above=above, steps=steps, share=share)
        return 1.0

    monkeypatch.setattr(fit, "bisect_radius", note)
    return asked


def test_the_first_radius_is_searched_for_where_clipping_balances_noise(searched):
    found = measurements(4, 10_000, 0.05)
    fit.find_first_radius(found, COVARIANCE)
    count_noise = math.sqrt(COVARIANCE.bisections / COVARIANCE.radius_share) / 0.05
    assert searched["above"] == pytest.approx(max(COVARIANCE.clip_factor * 4 / 0.05, 2 * count_noise))
    assert searched["bracket"] == pytest.approx((2 / 2**COVARIANCE.bisections, 2))


@pytest.mark.parametrize(
    ("balanced", "mu", "above"),
    [
        (400.0, 1.0, 600.0),  # clip_factor of the balanced number
        (1.0, 1.0, 2 * math.sqrt(5 / 0.03)),  # two standard deviations of a count
        (3000.0, 1.0, 1000.0),  # half of the records
    ],
)
def test_the_number_searched_for_is_balanced_countable_and_at_most_half(searched, balanced, mu, above):
    fit.find_radius("radius", measurements(4, 2000, mu), balanced, (0.1, 1.0), COVARIANCE)
    assert searched["above"] == pytest.approx(above)
    assert (searched["steps"], searched["share"]) == (COVARIANCE.bisections, COVARIANCE.radius_share)


class Exact(Logged):
    """Counts without noise of lengths whose logarithm is uniform from 0.01 to 1."""

    def counter(self, name, cuts, share):
        return lambda cut: self.public * math.log(1 / cut) / math.log(100)


@pytest.mark.parametrize("above", [100.0, 777.0, 1900.0])
def test_a_radius_between_two_counts_is_interpolated_on_a_log_scale(above):
    found = Exact(*(getattr(measurements(), name) for name in ("records", "public", "mu", "neighbours", "rng")))
    radius = fit.bisect_radius("radius", found, (0.01, 1.0), above, 3, 0.1)
    assert radius == pytest.approx(100 ** -(above / found.public))


# The plan of the final moment


def test_coordinates_are_divided_by_the_fourth_root_of_variances_raised_by_their_noise():
    settings = dataclasses.replace(COVARIANCE, pull=0.0, level=0.0)
    for floor in (0.0, 3.0):
        rough = rough_moment(std=1e-4)
        found, variances = fit.new_coordinates(
            [placed(rough)], dataclasses.replace(settings, floor=floor), np.eye(2), 1 << 19
        )
        raised = np.array([0.04, 0.01]) + floor * math.sqrt(2) * 1e-4
        assert variances == pytest.approx(raised, rel=1e-2)
        assert np.diagonal(found.matrix) == pytest.approx(raised**-0.25, rel=1e-2)
    assert found.centre == pytest.approx([0.5, 0.0], abs=1e-3)


def test_coordinates_of_correlations_are_those_of_scaled_features():
    found, variances = fit.new_coordinates([placed(rough_moment())], SETTINGS["correlation"], np.eye(2), 1 << 19)
    assert variances == pytest.approx(np.ones(2), rel=1e-2)
    assert np.diagonal(found.matrix) == pytest.approx([5.0, 10.0], rel=1e-2)  # one over the standard deviations


def test_the_centre_is_pulled_towards_the_midpoint_for_covariances_alone():
    for aim, pulled in (("covariance", 0.4 * math.sqrt(0.025)), ("components", 0.0)):
        found, _ = fit.new_coordinates([placed(rough_moment())], SETTINGS[aim], np.eye(2), 1 << 19)
        assert found.centre[0] == pytest.approx(0.5 - pulled, abs=1e-3)


def test_the_ratio_of_the_final_moment_has_the_least_expected_error():
    variances, centre = np.array([0.01, 0.02]), np.array([0.3, 0.0])
    coordinates = Coordinates.of(np.eye(2), centre)
    plan = fit._expect_errors(coordinates, variances, BOXED)
    own = float(np.sqrt(variances).sum()) ** 2 + float(variances.sum())
    grid = np.linspace(1 / 8, 1, 20_001)
    errors = (1 + grid) * np.sqrt(own + 2 * float(centre @ centre) / grid)
    assert plan.ratio == pytest.approx(grid[errors.argmin()], abs=1e-3)
    assert plan.noise == pytest.approx(errors.min(), rel=1e-4)
    assert plan.mean_square == pytest.approx(float(np.sqrt(variances).sum()))
    assert plan.freedom == pytest.approx(plan.mean_square**2 / 0.03)


def test_the_ratio_about_the_mean_is_the_setting():
    plan = fit._expect_errors(Coordinates.of(np.eye(2), np.array([0.9, 0.9])), np.ones(2), SETTINGS["components"])
    assert plan.ratio == SETTINGS["components"].ratio
    assert plan.noise == pytest.approx((1 + plan.ratio) * 2)
    assert plan.clipping == pytest.approx(math.sqrt(2))


def test_clipping_on_one_side_moves_the_mean_and_so_a_second_moment_about_a_far_midpoint():
    variances, coordinates = np.full(2, 0.02), Coordinates.of(np.eye(2), np.array([0.6, 0.0]))
    sizes = [
        fit._expect_errors(coordinates, variances, dataclasses.replace(BOXED, one_sided=part)).clipping
        for part in (0.0, 1.0)
    ]
    assert sizes[0] == pytest.approx(float(np.linalg.norm(variances)))
    assert math.sqrt(sizes[1] ** 2 - sizes[0] ** 2) == pytest.approx(math.sqrt(coordinates.centre[0] ** 2 * 0.04 / 2))


PLAN = FinalPlan(Coordinates.of(np.eye(4), np.zeros(4)), 1 / 8, 4.0, 4.0, 4.5, 2.0)


def test_the_final_radius_balances_the_noise_of_what_remains(searched):
    found = measurements(4, 50_000)
    fit.find_final_ball(found, PLAN, dataclasses.replace(COVARIANCE, clip_factor=10.0))
    final = math.sqrt(1 - COVARIANCE.radius_share - COVARIANCE.tail_share)
    assert searched["name"] == "second radius"
    assert searched["above"] == pytest.approx(10 * (4.5 * 4.0 / 2.0) / final)
    low, high = searched["bracket"]
    assert high / low == pytest.approx(2**COVARIANCE.bisections)
    assert low * high == pytest.approx(4.0)  # about the expected length


@pytest.mark.parametrize(
    ("noisy", "std", "kept"), [(0.5, 0.1, 0.5 * (1 - 0.04)), (0.05, 0.1, 0.0), (-0.3, 0.1, 0.0), (0.2, 0.0, 0.2)]
)
def test_the_excess_of_clipped_records_is_shrunk_by_its_noise(searched, monkeypatch, noisy, std, kept):
    found = measurements(4)
    monkeypatch.setattr(found, "excess", lambda *_: (noisy, std))
    assert fit.find_final_ball(found, PLAN, COVARIANCE).excess == pytest.approx(kept)
    assert fit.find_final_ball(found, PLAN, SETTINGS["components"]).excess == 0.0


def test_the_largest_excess_of_a_record_gives_the_tail_its_part_of_the_noise(searched):
    """The noise of the mean excess is *tail_noise* of the noise of the final moment, relative to what clipping does."""
    found = measurements(4)
    fit.find_final_ball(found, PLAN, dataclasses.replace(COVARIANCE, clip_factor=10.0))  # no more than balance noise
    ((_, radius, limit, share),) = found.log
    assert share == COVARIANCE.tail_share
    noise = limit / math.sqrt(share)  # of the excess, and that of the final moment, both times N mu
    final = PLAN.noise * radius**2 / math.sqrt(1 - share)
    assert noise * PLAN.clipping / PLAN.mean_square == pytest.approx(COVARIANCE.tail_noise * final)


def test_the_largest_excess_of_a_record_grows_with_the_number_that_counts_can_tell_from_zero(searched):
    """Where more records are clipped than balance the noise, the limit is that many times as large."""
    few = measurements(4, mu=1.0)
    ball = fit.find_final_ball(few, PLAN, dataclasses.replace(COVARIANCE, clip_factor=0.5))
    many = measurements(4, mu=1.0)
    other = fit.find_final_ball(many, PLAN, dataclasses.replace(COVARIANCE, clip_factor=100.0))
    assert ball.times > 0.5
    assert few.log[-1][2] / few.log[-1][1] ** 2 == pytest.approx(
        ball.times / 0.5 * many.log[-1][2] / many.log[-1][1] ** 2
    )
    assert other.times == pytest.approx(100.0)


def test_a_constant_for_targets_is_larger_where_coefficients_are_lost_in_noise():
    plan = PLAN._replace(coordinates=Coordinates.of(np.eye(4), np.zeros(4)))
    variances = np.ones(1)
    scarce, many = (fit.for_targets(plan, FinalBall(2.0, 0.0), variances, reach)[0].ratio for reach in (0.5, 1e6))
    assert scarce == 1.0  # the mean alone matters
    assert many == plan.ratio == 1 / 8


# The moment of the whole box


def share_of_box(size, reach, settings=COVARIANCE, radius=1e-4, times=0.0):
    rough = rough_moment(np.zeros(size), np.full(size, 0.01)).second
    plan = FinalPlan(Coordinates.of(np.eye(size), np.zeros(size)), 1 / 8, float(size), float(size), 2.0 * size, 1.0)
    return fit.box_share(rough, plan, FinalBall(radius, 0.0, times), settings, reach, 1 / 8)


def test_the_box_has_a_share_where_clipping_is_an_error_that_noise_does_not_explain():
    assert share_of_box(2, 1e6, radius=0.5) == 0.0
    shares = [share_of_box(2, 1e6, radius=0.5, times=times) for times in (3.0, 10.0, 100.0)]
    assert 0.0 <= shares[0] <= shares[1] <= shares[2] == 0.9
    assert shares[0] < 0.9
    assert share_of_box(30, 1e6, radius=0.5, times=1.5) == 0.0


def test_the_box_has_no_share_for_aims_that_need_directions_alone():
    assert share_of_box(2, 1e6, SETTINGS["components"]) == 0.0


def test_a_larger_share_for_the_box_is_spent_where_it_lowers_the_error():
    assert share_of_box(30, reach=30 / 0.01, radius=30.0) == 0.9  # noise of a ball that is far too large
    assert share_of_box(30, reach=30 / 0.01, radius=0.01) == 0.0


@pytest.mark.parametrize("public", [True, False])
def test_the_ratio_of_the_box_has_the_least_expected_error(public):
    second = rough_moment((0.5, -0.5), (0.04, 0.01)).second
    inner, own = second[1:, 1:], np.outer(second[0, 1:], second[0, 1:])
    moved = 0.0 if public else float((inner**2).sum() + ((inner - 2 * own) ** 2).sum())  # by a noisy number of records
    grid = np.geomspace(1 / 32, 0.9, 20)
    errors = (1 + grid) ** 2 * (12 + 6 * 0.5 / (2 * grid) + 2 * moved / (2 * grid) ** 2)
    assert fit.box_ratio(second, public_number=public) == pytest.approx(grid[errors.argmin()])


def test_the_moment_of_the_box_is_planned_with_moments_of_located_records_in_units_of_the_box():
    exact = rough_moment((0.2, -0.4), (0.04, 0.01)).second
    coordinates = Coordinates.of(np.diag([5.0, 10.0]), np.array([0.3, -0.3]))
    own, _ = NoisyMoment(exact, 0.5, 1e-9, 1e-9).transform(coordinates.matrix, coordinates.centre)
    found = [Placed(NoisyMoment(own, 0.5, 1e-9, 1e-9), coordinates)]
    assert fit.in_box(found, COVARIANCE) == pytest.approx(exact, abs=1e-6)


# What is made of the moments


@pytest.mark.parametrize(("trace", "share"), [(0.029, 0.0), (0.0, 0.0), (-1.0, 0.0), (0.06, 1 - 0.5**4), (0.3, 0.9999)])
def test_a_covariance_counts_as_far_as_its_trace_exceeds_its_noise(trace, share):
    second = np.diag([1.0, trace / 2, trace / 2])
    assert postprocess.evident_share(second, np.zeros((3, 3)), 0.01) == pytest.approx(share)


def test_the_noise_of_the_mean_is_in_the_noise_of_a_trace_about_it():
    second, variances = np.diag([1.0, 0.03, 0.03]), np.zeros((3, 3))
    second[0, 1:] = second[1:, 0] = 0.1
    variances[0, 1:] = 1e-4
    trace = 0.06 - 0.02 + 2e-4
    std = math.sqrt(0.01**2 + 4 * 2 * 1e-4 * 0.01 + 2 * 2 * 1e-8)
    found = postprocess.evident_share(second, variances, 0.01)
    assert found == pytest.approx(1 - (3 * std / trace) ** 4)


def test_a_covariance_about_a_noisy_mean_has_no_bias():
    rng, mean = np.random.default_rng(0), np.array([0.2, -0.1])
    exact, variances = rough_moment(mean, (0.04, 0.01)).second, np.zeros((3, 3))
    variances[0, 1:] = 0.01
    found = []
    for noise in 0.1 * rng.standard_normal((20_000, 2)):
        noisy = exact.copy()
        noisy[0, 1:] = noisy[1:, 0] = mean + noise
        found.append(postprocess.about_mean(noisy, variances)[1])
    assert np.mean(found, axis=0) == pytest.approx(np.diag([0.04, 0.01]), abs=1e-3)


def test_the_noise_of_a_covariance_has_that_of_both_means():
    second = np.array([[1.0, 0.5, -0.2], [0.5, 1.0, 0.0], [-0.2, 0.0, 1.0]])
    variances = np.array([[0.0, 0.01, 0.02], [0.01, 0.03, 0.04], [0.02, 0.04, 0.05]])
    std = postprocess._with_std(second, variances)[2]
    assert std[0, 1] ** 2 == pytest.approx(0.04 + 0.5**2 * 0.02 + 0.2**2 * 0.01)
    assert np.diagonal(std) ** 2 == pytest.approx([0.03 + 4 * 0.5**2 * 0.01, 0.05 + 4 * 0.2**2 * 0.02])


def test_no_variance_exceeds_that_of_a_full_box():
    found = postprocess.nearest_possible(np.array([[4.0, 1.0], [1.0, 0.5]]))
    assert np.diagonal(found) == pytest.approx([1.0, 0.5])
    assert found[0, 1] == pytest.approx(0.5)
    assert np.linalg.eigvalsh(postprocess.nearest_possible(np.diag([1.0, -0.5]))).min() >= 0


def pair(mine, variances, other, noise):
    return postprocess._Pair(*(np.full((3, 3), float(number)) for number in (mine, variances, other, noise)))


def test_two_results_are_averaged_by_their_precisions():
    value, variance = pair(1.0, 1.0, 2.0, 3.0).average(biased=False)
    assert value == pytest.approx(np.full((3, 3), 1.25))
    assert variance == pytest.approx(np.full((3, 3), 0.75))


def test_what_noise_cannot_explain_is_added_to_the_variance_of_the_biased_result():
    value, variance = pair(0.0, 0.5, 2.0, 0.5).average(biased=True)  # squared differences of 4, of which noise is 1
    assert value == pytest.approx(np.full((3, 3), 2 * 3.5 / 4))
    assert variance == pytest.approx(np.full((3, 3), 3.5 * 0.5 / 4))
    close = pair(0.0, 0.5, 0.1, 0.5)
    assert close.average(biased=True)[0] == pytest.approx(close.average(biased=False)[0])


@pytest.mark.parametrize(("times", "biased"), [(1.4, False), (1.6, True)])
def test_a_difference_is_bias_beyond_one_and_a_half_deviations_of_what_noise_explains(times, biased):
    spread = math.sqrt(2 * 2 * 9)  # nine entries of variance one, of which nearly all occur twice
    assert pair(math.sqrt(1 + times * spread / 9), 0.5, 0.0, 0.5).is_biased is biased


def test_one_must_be_surer_of_bias_the_more_exact_the_first_result_is():
    def excess(times, gain):
        own = 1 / (1 + gain)
        return pair(math.sqrt(1 + times * 6 / 9), own, 0.0, 1 - own).is_biased

    assert excess(1.6, 1.0)
    assert not excess(1.6, 100.0)
    assert excess(1.6 + math.log(100) / 2, 100.0)


def test_scarce_records_have_a_mean_and_covariance_that_shrink_with_their_trace():
    rough = rough_moment((0.3, 0.3), (0.05, 0.05), std=1e-9)
    for trace_std, kept in ((1e-9, 1.0), (0.28 / 6, 1 - 0.5**4), (0.28, 0.0)):
        moment = dataclasses.replace(rough, trace_std=trace_std)
        found = postprocess.finish_single(moment, 1.0, COVARIANCE)
        assert found.mean == pytest.approx(math.sqrt(kept) * np.full(2, 0.3), abs=1e-6)
        assert not found.learned


def test_moments_of_both_steps_are_combined_by_their_precisions():
    plan = PLAN._replace(coordinates=Coordinates.of(np.eye(2), np.zeros(2)))
    rough, final = rough_moment((0.2, 0.2), std=2e-6), rough_moment((0.3, 0.3), std=1e-6)
    settings = dataclasses.replace(COVARIANCE, shrink=False)
    found = postprocess.finish_learned([placed(rough)], final, None, plan, FinalBall(1.0, 0.0), settings)
    assert found.mean == pytest.approx(np.full(2, 0.28))
    assert found.mean_std == pytest.approx(np.full(2, math.sqrt(0.8) * 1e-6 / 0.5))


def test_what_clipping_took_is_added_back_in_proportion():
    plan = PLAN._replace(coordinates=Coordinates.of(np.eye(2), np.zeros(2)))
    rough = rough_moment((0.0, 0.0), (0.04, 0.01), std=1e-9)
    for excess, factor in ((0.0, 1.0), (0.02, 1.4), (9.0, 2.0)):
        found = postprocess.finish_learned([placed(rough)], rough, None, plan, FinalBall(1.0, excess), COVARIANCE)
        assert np.diagonal(found.covariance) == pytest.approx(factor * np.array([0.04, 0.01]), rel=1e-4)


# Slopes that noise leaves open


def test_a_slope_that_noise_hides_may_be_what_explains_the_target_alone():
    covariance = np.diag([0.2, 0.0, 0.3])  # of a feature, one that noise hides, and the target
    joint = JointMoment(np.zeros(3), covariance, np.zeros(3), np.eye(3), 1e-3, np.zeros(3), np.ones(3), 1000, math.inf)
    _, known, hidden = hidden_std(joint, np.zeros(2))
    assert known == pytest.approx(1e-3 / 0.2, rel=0.02)
    assert hidden == pytest.approx(math.sqrt(0.3 / 1.5e-3), rel=0.05)


def test_a_target_whose_variance_noise_hides_may_vary_as_much_as_that():
    covariance, noise = np.diag([0.2, 0.0]), np.diag([1.0, 4.0])
    joint = JointMoment(np.zeros(2), covariance, np.zeros(2), noise, 0.3, np.zeros(2), np.ones(2), 1000, math.inf)
    _, slope = hidden_std(joint, np.zeros(1))
    prior = 1.5 * 0.3 * 4.0 / (1.5 * 0.3)  # a slope with which the feature explains such a target alone
    assert slope == pytest.approx(1 / math.sqrt(0.2**2 / (0.3**2 * 4) + 1 / prior))
