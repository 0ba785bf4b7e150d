"""Findings name only what error bars support; colours fade where these do not."""

import re

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.answers.estimate import Estimate, settle
from matrixdp.display import Numbers, choose_decimals, find_firm, format_estimate
from matrixdp.report.answers import add_totals
from matrixdp.report.content import make_content
from matrixdp.report.findings import describe_counts, describe_entries, list_findings, say_means
from matrixdp.report.page import Page, Section, show_matrix, show_numbers
from matrixdp.report.pictures import Look, shade_entries
from matrixdp.report.release_page import render_release

NAMES = ("a", "b", "c")


def render(blocks):
    return Page(title="t", heading="t", sections=[Section("t", blocks)]).render()


def correlate(ab, ac, bc, bar=0.1):
    value = np.array([[1, ab, ac], [ab, 1, bc], [ac, bc, 1]])
    return Numbers(value, np.where(np.eye(3, dtype=bool), 0.0, bar), NAMES, NAMES)


def test_only_correlations_beyond_the_joint_limit_are_named():
    sentences = describe_entries(correlate(0.5, -0.3, 0.21), "correlation")
    assert sentences == [
        "2 of 3 correlations stand out from the noise: a and b (0.50 ± 0.10) and a and c (-0.30 ± 0.10)."
    ]
    assert not find_firm(np.array(2.1), np.ones(()), 3)  # 2.1 error bars are not enough for one of three


def test_a_number_has_brackets_where_its_table_has_them():
    value, std = np.array([[1.0, 0.95], [0.95, 1.0]]), np.array([[0.0, 0.1], [0.1, 0.0]])
    numbers = settle(value, std, ("a", "b"), ("a", "b"), (np.array(-1.0), np.array(1.0)))
    sentences = describe_entries(numbers, "correlation")
    assert sentences == ["The only correlation stands out from the noise: a and b (0.95 [0.75, 1])."]
    assert "0.95 [0.75, 1]" in re.sub("<[^>]+>", "", render(show_matrix(numbers, "t", Look("correlation"))))


def test_weak_and_hidden_correlations_are_counted():
    sentences = describe_entries(correlate(0.1, np.nan, 0.9), "correlation")
    assert sentences[0] == "1 of 3 correlations stands out from the noise: b and c (0.90 ± 0.10)."
    assert sentences[1] == (
        "1 of 3 correlations is within two error bars of zero and may be noise alone; 1 is hidden by noise."
    )
    nothing = describe_entries(correlate(0.1, 0.0, -0.1), "covariance")
    assert nothing[0] == "None of the 3 covariances stands out from the noise."
    assert describe_entries(correlate(0.9, 0.8, 0.7), "correlation")[0].startswith("All 3 correlations stand")


def test_noise_alone_is_named_in_few_releases():
    """Without any signal, at most 5% of releases name a number: 400 draws of 45 noisy entries."""
    rng, size, named = np.random.default_rng(0), 10, 0
    names = [f"x{i}" for i in range(size)]
    std = np.where(np.eye(size, dtype=bool), 0.0, 0.1)
    for _ in range(400):
        noise = np.triu(rng.normal(0, 0.1, (size, size)), 1)
        numbers = Numbers(noise + noise.T, std, names, names)
        named += not describe_entries(numbers, "correlation")[0].startswith("None")
    assert named <= 0.05 * 400 + 3 * np.sqrt(0.05 * 0.95 * 400)


def test_counts_name_their_variables_and_the_cells_that_may_be_empty():
    value, std = np.array([[900.0, 3.0], [97.0, -30.0]]), np.full((2, 2), 5.0)
    sentences = describe_counts(Numbers(value, std, ("x", "y"), ("u", "v")), "people", ("ward", "outcome"))
    assert sentences[0] == "The largest released count is that of ward x with outcome u: 900 ± 5 people."
    assert sentences[1].startswith("1 of 4 counts is within two error bars of zero")
    shading = shade_entries(value, std, counts=True)
    assert shading.weak.tolist() == [[False, True], [False, True]]  # no count is certainly negative


def test_means_are_precise_relative_to_their_ranges():
    numbers = [mdp.Number("a", 0, 50)]
    shown = say_means(Estimate(np.array([[5.0]]), np.array([[0.5]]), ("a",), ("mean",)), numbers)
    assert shown == ["The error bar of the mean is 1% of the range between its bounds."]
    hidden = Estimate(np.full((1, 1), np.nan), np.full((1, 1), np.nan), ("a",), ("mean",))
    assert say_means(hidden, numbers) == ["Noise hides all means."]


def test_what_is_uncertain_fades_and_what_has_no_noise_is_grey():
    value = np.array([[1.0, 0.8, 0.22], [0.8, 1.0, 0.05], [0.22, 0.05, np.nan]])
    std = np.where(np.eye(3, dtype=bool), 0.0, 0.1)
    shading = shade_entries(value, std)
    assert shading.hue[0].tolist() == ["fixed", "positive", "positive"]
    assert shading.hue[2, 2] == "hidden"
    assert shading.doubtful[0].tolist() == [False, False, True]
    assert shading.weak[1].tolist() == [False, False, True]
    assert shading.strength[0, 1] == 1.0 > shading.strength[0, 2] > shading.strength[1, 2] > 0
    clear = np.where(value == 0.22, 0.25, value)
    assert not shade_entries(clear, std).doubtful.any()  # among three different numbers, not six
    page = render(show_matrix(Estimate(value, std, NAMES, NAMES), "m", Look("correlation")))
    for words in ('class="fixed">1<', 'class="positive weak s', 'class="positive doubtful s', "too few", "noise alone"):
        assert words in page
    for words in ("orange: positive; full colour at 0.8", "grey: no noise", "hidden by noise"):
        assert words in page
    assert "blue:" not in page  # no legend for a colour that is not there


def test_decimals_are_the_same_throughout():
    value, std = np.array([[0.5, 123.25], [0.25, 7.0]]), np.array([[0.08, 20.0], [0.012, 3.0]])
    page = render([show_numbers(Estimate(value, std, ("a", "b"), ("x", "y")), "t")])
    for words in (">0.500 ", "± 0.080<", ">0.250 ", "± 0.012<", ">123 ", "± 20<", ">7 ", "± 3<"):
        assert words in page
    assert choose_decimals(np.ones(2), np.array([1e-5, 10.0])) is None  # too different
    assert choose_decimals(np.array([0.0484, 0.052]), None) == 4  # no error bars
    assert choose_decimals(np.array([0.0484, 0.052]), np.zeros(2)) == 4
    assert choose_decimals(np.array([3.0, 2000.0]), None) is None  # whole numbers
    assert format_estimate(26123.0, 9123.0) == ("26,100", "9,100")
    assert format_estimate(1e12, 1e11)[0] == "1e12"
    assert format_estimate(float("nan"), 1.0, 2) == ("–", "")


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_totals_have_the_error_bars_of_sums(neighbours):
    """The spread of the totals of 400 releases of the same table."""
    query = mdp.ContingencyTable(["a", "b"], ["x", "y", "z"], 600, neighbours=neighbours)
    design = mdp.make_design(query, mdp.Privacy(1, 1e-6), allocation=mdp.allocations.shares([0.6, 0.3, 0.1]))
    data = [("a", "x")] * 600
    tables = []
    for seed in range(400):
        found = add_totals(design.release(data, stream=mdp.Stream(seed), simulation=True))
        tables.append(found.measured)
        np.testing.assert_array_equal(found.value, np.clip(found.measured, 0, query.total))
    assert found.rows == ("a", "b", "all")
    assert found.columns == ("x", "y", "z", "all")
    spread = np.std(tables, axis=0)
    sure = found.std > 1e-6
    assert sure[-1, -1] == (neighbours == "add-remove")
    ratio = spread[sure] / found.std[sure]
    assert (np.abs(ratio - 1) < 5 / np.sqrt(2 * 400)).all()
    assert np.allclose(spread[~sure], 0, atol=1e-6)
    wrong = np.sqrt(np.square(found.std[:-1, :-1]).sum(axis=1))  # as if counts were independent
    assert (neighbours == "add-remove") == np.allclose(wrong, found.std[:-1, -1])


def test_totals_are_for_counts_only():
    bounds = mdp.Bounds([0], [1], names=["x"])
    release = mdp.make_design(mdp.Moments(bounds, 50), mdp.Privacy(1, 1e-6)).release(np.zeros((50, 1)))
    assert add_totals(release) is None


def test_a_noisy_data_set_is_read_by_its_averages():
    bounds = mdp.Bounds([0, 0], [10, 1], names=["x", "y"])
    data = np.tile([4.0, 0.5], (400, 1))
    design = mdp.make_design(mdp.Identity(bounds, 400), mdp.Privacy(1, 1e-6))
    content = make_content(design.release(data, stream=mdp.Stream(0), simulation=True))
    averages = next(answer.estimate for answer in content.answers if answer.name == "averages")
    assert (np.abs(averages.value[:, 0] - [4.0, 0.5]) < 5 * averages.std[:, 0]).all()
    assert averages.std[:, 0] == pytest.approx(np.asarray(design.std[0]) / 20)
    assert "A single row says little" in list_findings(content)[0]
    assert "Averages over all 400 rows" in render_release(content)


def test_differences_between_groups_need_more_than_both_error_bars():
    columns = mdp.Columns([mdp.Number("bmi", 10, 50), mdp.Category("ward", ("north", "south"))])
    ward = ["north", "south"] * 1500
    for gap, words in ((8.0, "The mean of bmi differs between groups"), (0.0, "No mean differs between groups")):
        data = {"bmi": [25 + gap * (name == "north") for name in ward], "ward": ward}
        design = mdp.make_design(mdp.TableMoments(columns, 3000, by=("ward",)), mdp.Privacy(1, 1e-6))
        release = design.release(data, stream=mdp.Stream(1), simulation=True)
        assert list_findings(make_content(release, "means"))[0].startswith(words)


def test_edges_that_stand_out_are_named():
    graph = np.zeros((5, 5))
    graph[1, 3] = graph[3, 1] = 1
    query = mdp.Adjacency(5, node_names=["ann", "bob", "cem", "dan", "eve"])
    release = mdp.make_design(query, mdp.Privacy(60, 1e-6)).release(graph, stream=mdp.Stream(0), simulation=True)
    sentence = list_findings(make_content(release))[0]
    assert sentence.startswith("1 of 10 entries stands out from the noise: bob and dan (")
