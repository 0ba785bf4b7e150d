"""Forecasts of the answers about a table: they simulate the very answers of a release, for data as described."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import matrixdp as mdp
from matrixdp.answers.described_table import SHAPES, TYPICAL, describe_moments
from matrixdp.answers.models import RegressionFit
from matrixdp.answers.moments import correlate_all, covary_all, summarise
from matrixdp.answers.table_forecast import TableForecast
from matrixdp.answers.view import view_moments
from matrixdp.domain.schema import TableDescription
from matrixdp.errors import ParameterError
from matrixdp.report.answers import make_answers

COLUMNS = mdp.Columns(
    [
        mdp.Number("age", 0, 100, missing=True),
        mdp.Number("bmi", 10, 50),
        mdp.Category("ward", ["north", "south", "west"]),
        mdp.YesNo("smoker"),
        mdp.Number("stay", 0, 60, missing=True),
        mdp.Number("cost", -1, 1),
        mdp.Category("site", ["a", "b"]),
    ]
)
GUESS = TableDescription(
    means={"age": 40, "bmi": 25, "stay": 10, "cost": 0.2},
    stds={"age": 15, "bmi": 5, "stay": 8, "cost": 0.3},
    correlation=0.4,
    shares={"ward": {"north": 0.6, "south": 0.3}, "smoker": {"yes": 0.25}, "site": {"a": 0.5}},
    missing={"age": 0.1, "stay": 0.3},
)
CASES = [((), "replace"), ((), "add-remove"), (("site",), "replace"), (("site",), "add-remove")]


def make(by=(), neighbours="replace", epsilon=1.0, records=3000):
    query = mdp.TableMoments(COLUMNS, records, by=by, neighbours=neighbours)
    return mdp.make_design(query, mdp.Privacy(epsilon, 1e-6))


def groups_of(design):
    return (None, "a") if design.query.by else (None,)


def draw_table(records, seed=0):
    """Records that `GUESS` describes, up to sampling."""
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal(records)
    frame = {}
    for number, name in enumerate(GUESS.means):
        part = (0.4**0.5) * (-1) ** number * shared + (0.6**0.5) * rng.standard_normal(records)
        frame[name] = GUESS.means[name] + GUESS.stds[name] * np.clip(part, -2.5, 2.5)
        frame[name][rng.random(records) < GUESS.missing.get(name, 0)] = np.nan
    frame["ward"] = rng.choice(["north", "south", "west"], records, p=[0.6, 0.3, 0.1])
    frame["smoker"] = 0.3 * shared + rng.standard_normal(records) > 0.704
    frame["site"] = rng.choice(["a", "b"], records)
    return pd.DataFrame(frame)


@pytest.mark.parametrize(("by", "neighbours"), CASES)
def test_described_moments_are_those_of_a_table_that_matches_the_guesses(by, neighbours):
    design = make(by, neighbours)
    moments = describe_moments(design.query, GUESS, TYPICAL)
    stacked = moments.reshape(design.query.groups, *design.query.shape[1:] * 2)
    assert np.linalg.eigvalsh(stacked).min() > -1e-12
    view = view_moments(moments, design)
    assert view.matrix == pytest.approx(stacked.sum(axis=0), abs=1e-12)  # levels and groups add up already
    release = mdp.Release(moments, mdp.make_design(design.query, mdp.Privacy(1e6, 0.5)))
    means = release.means()
    assert means.value[:, 0] == pytest.approx([40, 25, 10, 0.2])
    assert means.value[:, 1] == pytest.approx([15, 5, 8, 0.3], rel=1e-4)
    assert means.value[:, 2] == pytest.approx([0.9, 1, 0.7, 1])
    pairs = release.correlation().value[np.tril_indices(4, -1)]
    assert np.sqrt(np.mean(pairs**2)) == pytest.approx(0.4, rel=1e-3)
    assert release.means("ward").value[:, 0] == pytest.approx([0.6, 0.3, 0.1], rel=1e-4)


@pytest.mark.parametrize("shape", SHAPES.values())
def test_what_is_not_guessed_has_the_shape_that_is_assumed(shape):
    query = make().query
    moments = describe_moments(query, TableDescription(), shape)
    place = query.places["bmi"]
    mean = moments[0, place.value]
    assert 30 + mean == pytest.approx(10 + shape.position * 40)
    assert moments[place.value, place.value] - mean**2 == pytest.approx((shape.spread * 40) ** 2)
    assert moments[0, query.places["age"].observed] == pytest.approx(1 - shape.missing)


@pytest.mark.parametrize(("guess", "share"), [({}, TYPICAL.missing), ({"missing": {"ward": 0.002}}, 0.002)])
def test_missing_values_of_a_category_are_guessed_apart_from_its_levels(guess, share):
    columns = mdp.Columns([mdp.Number("age", 0, 100), mdp.Category("ward", ["north", "south"], missing=True)])
    design = mdp.make_design(mdp.TableMoments(columns, 3000), mdp.Privacy(1, 1e-6))
    for shares, expected in (({}, [0.5, 0.5]), ({"ward": {"north": 0.8, "south": 0.2}}, [0.8, 0.2])):
        described = TableDescription(shares=shares, **guess)
        levels = np.diag(describe_moments(design.query, described, TYPICAL))[design.query.places["ward"].value :][:3]
        assert levels == pytest.approx([(1 - share) * expected[0], (1 - share) * expected[1], share], rel=1e-3)
    found = TableForecast(design, described).means("ward")
    assert np.isfinite(found.std[:2]).all()
    assert np.isfinite(found.std[2, 1]) == (share > 0.01)
    with pytest.raises(mdp.ParameterError, match="Write expected_missing"):
        describe_moments(design.query, TableDescription(shares={"ward": {"missing": 0.1}}), TYPICAL)


@pytest.mark.parametrize(("by", "neighbours"), CASES)
def test_the_simulated_noise_has_the_law_of_the_released_noise(by, neighbours):
    design = make(by, neighbours)
    for group in groups_of(design):
        view = view_moments(describe_moments(design.query, GUESS, TYPICAL), design, group)
        law, every = view.law, np.arange(view.law.size)
        drawn = law.draw(4000, np.random.default_rng(0))
        assert drawn.std(axis=0) == pytest.approx(law.entry_std(every[:, None], every), rel=0.06, abs=1e-12)
        assert np.allclose(drawn, drawn.swapaxes(1, 2), rtol=0, atol=1e-12)
        assert np.allclose(drawn[:, view.levels("ward")].sum(axis=1), drawn[:, 0], rtol=0, atol=1e-12)  # they add up
        x = view.variables[0].tolist()
        terms = [(x[0], x[0], 1.0), (x[1], x[1], -0.3), (0, x[0], 0.5), (0, 0, 2.0)]
        together = sum(slope * drawn[:, i, j] for i, j, slope in terms)
        assert together.std() == pytest.approx(law.std(terms), rel=0.06)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize(("by", "neighbours"), CASES)
def test_answers_for_a_stack_are_those_of_single_releases(by, neighbours, epsilon):
    design = make(by, neighbours, epsilon)
    rng = np.random.default_rng(1)
    exact = describe_moments(design.query, TableDescription(), TYPICAL)
    noise = [design.structure.combine(design.noise, rng.standard_normal(design.structure.count)) for _ in range(3)]
    for group in groups_of(design):
        views = [view_moments(design.query.finish(exact + one), design, group) for one in noise]
        stack = replace(views[0], matrix=np.array([view.matrix for view in views]))
        for answer in (summarise, covary_all, correlate_all):
            found = answer(stack)
            for k, view in enumerate(views):
                wanted = answer(view)
                assert found.value[k] == pytest.approx(wanted.value, nan_ok=True)
                assert found.std[k] == pytest.approx(wanted.std, rel=1e-6, abs=1e-9, nan_ok=True)


def read(source, by, slopes):
    answers = {
        "means": source.means(),
        "levels": source.means("ward"),
        "cells": source.table("ward", "smoker"),
        "covariance": source.covariance(),
        "correlation": source.correlation(),
        **({"groups": source.means("site")} if by else {}),
    }
    return {**{name: (one.value, one.std) for name, one in answers.items()}, "slopes": slopes}


def solve(matrix, design, *, noisy=True):
    view = view_moments(matrix, design)
    return RegressionFit(view, "bmi", ["age", "smoker"]).solve(view if noisy else view.without_noise()).coefficients


@pytest.mark.parametrize("by", [(), ("site",)])
def test_the_errors_of_releases_are_those_of_the_forecast(by):
    design = make(by, epsilon=2.0)
    matrix = design.query.evaluate(draw_table(3000), clip=True, missing="error")
    exact = mdp.Release(matrix, mdp.make_design(design.query, mdp.Privacy(1e6, 0.5)))
    truth = read(exact, by, (solve(matrix, design, noisy=False), None))
    forecast = TableForecast(design, GUESS)
    predicted = read(forecast, by, (None, forecast.regression("bmi", ["age", "smoker"]).noise_std))
    rng, released = np.random.default_rng(2), []
    for _ in range(20):
        noise = design.structure.combine(design.noise, rng.standard_normal(design.structure.count))
        noisy = design.query.finish(matrix + noise)
        released.append(read(mdp.Release(noisy, design), by, (solve(noisy, design), None)))
    for kind, (value, _) in truth.items():
        error = np.where(predicted[kind][1] > 0, predicted[kind][1], np.nan)
        found = np.array([one[kind][0] for one in released])
        assert np.mean(np.isfinite(found) == np.isfinite(predicted[kind][1])) > 0.9, kind
        ratio = np.sqrt(np.nanmean(((found - value) / error) ** 2))
        assert 0.75 < ratio < 1.33, kind


def test_answers_that_noise_would_hide_are_predicted_as_hidden():
    narrow = TableForecast(make(), TableDescription(stds={"age": 0.5}, shares={"ward": {"west": 0.01}}))
    correlation = narrow.correlation()
    assert np.isnan(correlation.std[0]).all()
    assert correlation.reason(0, 1) == "hidden by noise"
    assert np.isfinite(correlation.std[1, 3])
    assert narrow.means("ward").reason(2, 1) == "too few"
    assert np.isfinite(narrow.means("ward").std[:, 0]).all()  # the share itself is known
    slopes = narrow.regression("bmi", ["age", "smoker"])
    assert np.isnan(slopes.noise_std[1])


def test_harder_data_have_larger_errors():
    design = make()
    errors = {}
    for name in SHAPES:
        forecast = TableForecast(design, data=name)
        parts = (forecast.means().std[:, 1], forecast.means("ward").std[:, 1:], forecast.correlation().std[1:, 0])
        errors[name] = [np.median(np.nan_to_num(part, nan=np.inf)) for part in parts]
    assert (np.array(errors["friendly"]) < errors["typical"]).all()
    assert (np.array(errors["typical"]) < errors["hostile"]).all()


def test_the_same_arguments_give_the_same_forecast_and_errors_fall_with_epsilon():
    errors = [TableForecast(make(epsilon=epsilon), GUESS).correlation().std[1, 3] for epsilon in (0.5, 1, 2, 4)]
    assert errors == sorted(errors, reverse=True)
    assert TableForecast(make(epsilon=4), GUESS).correlation().std[1, 3] == errors[-1]


@pytest.mark.parametrize(
    ("guess", "message"),
    [
        ({"means": {"age": 101}}, "means of 'age' must be a number from 0 to 100"),
        ({"stds": {"age": 51}}, "stds of 'age' must be a number from 0 to 50"),
        ({"stds": {"age": "wide"}}, "stds of 'age' must be a number"),
        ({"missing": {"stay": 2}}, "missing of 'stay' must be a number from 0 to 1"),
        ({"correlation": -0.1}, "correlation must be a number from 0 to 1"),
        ({"shares": {"ward": {"east": 0.5}}}, "shares of 'ward' must be of levels among north, south, west"),
        ({"shares": {"ward": {"north": 0.8, "south": 0.4}}}, "must sum to at most 1, got 1.2"),
        ({"shares": {"smoker": {"no": 0.5, "yes": 0.4}}}, "must sum to 1, got 0.9"),
    ],
)
def test_impossible_guesses_are_refused(guess, message):
    with pytest.raises(ParameterError, match=message):
        TableForecast(make(), TableDescription(**guess)).means()


def test_only_tables_have_such_a_forecast():
    design = mdp.make_design(mdp.Moments(mdp.Bounds([0], [1]), 100), mdp.Privacy(1, 1e-6))
    with pytest.raises(ParameterError, match="TableMoments"):
        TableForecast(design)
    with pytest.raises(ParameterError, match="data must be one of friendly, typical, hostile"):
        TableForecast(make(), data="easy")


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize(
    ("columns", "guess"),
    [
        (["ward", "smoker", "site"], {"shares": {"ward": {"north": 0.0}}}),
        (["bmi", "cost"], {"stds": {"bmi": 0.0}, "means": {"cost": 1.0}}),
        (["age", "stay", "ward"], {"missing": {"age": 1.0}, "correlation": 1.0}),
        (["age", "site"], {"shares": {"site": {"a": 1.0}}}),
        (["stay"], {"correlation": 0.0}),
    ],
)
def test_extreme_guesses_and_few_columns_have_a_forecast(columns, guess, neighbours):
    chosen = mdp.Columns([COLUMNS[name] for name in columns])
    for by in [(), ("site",)] if "site" in columns[1:] else [()]:
        query = mdp.TableMoments(chosen, 50, by=by, neighbours=neighbours)
        for data in SHAPES:
            forecast = TableForecast(mdp.make_design(query, mdp.Privacy(0.1, 1e-6)), TableDescription(**guess), data)
            answers = make_answers(forecast, "everything")
            assert answers
            for answer in answers:
                shown = np.isfinite(answer.estimate.value)
                assert (answer.estimate.std[shown] >= 0).all()
                assert np.isnan(answer.estimate.std[~shown]).all()
