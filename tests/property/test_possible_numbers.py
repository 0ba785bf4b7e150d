"""Every number that is shown is possible and within its interval, whatever the noise, wherever it is shown."""

import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.display import format_numbers, join_cells, write_csv, write_table
from matrixdp.release.result import Release
from matrixdp.report import answers
from matrixdp.report.advice import to_facts
from matrixdp.report.charts import draw_answer
from matrixdp.report.content import make_content
from matrixdp.report.release_page import render_release
from nightly import examples

LEVELS = ("a", "b", "c")
NUMBER = r"-?[\d,]*\.?\d+(?:e-?\d+)?"
SHOWN = re.compile(rf"^~?({NUMBER})(?: ± ({NUMBER})| \[({NUMBER}), ({NUMBER})\])?$")
NO_NUMBER = re.compile(r"(?<![\w=&#-])[-+]?(nan|inf|infinity|∞)(?![\w-])", re.IGNORECASE)
SLACK = 1e-9


@st.composite
def tables(draw):
    """A query of a table, records for it, and how large noise is beside the largest possible number."""
    records = draw(st.sampled_from([1, 3, 40, 3000]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    lower = draw(st.sampled_from([0.0, -1.0, 1000.0, -1e-3]))
    width = draw(st.sampled_from([1.0, 2e-3, 1e6]))
    kinds = [draw(st.sampled_from(["even", "constant", "edge", "few"])) for _ in range(3)]
    gaps = draw(st.booleans())
    person = draw(st.sampled_from([None, mdp.Person("id"), mdp.Person("id", rows=2)]))
    neighbours = draw(st.sampled_from([mdp.Neighbours.REPLACE, mdp.Neighbours.ADD_REMOVE]))
    assume(person is None or records > 1)

    def make_number(kind):
        if kind == "constant":
            return np.full(records, lower + width / 3)
        if kind == "edge":
            return np.full(records, lower + width)
        return lower + width * rng.beta(0.3 if kind == "few" else 1.0, 1.0, records)

    columns = [mdp.Number("x", lower, lower + width, missing=gaps), mdp.Number("y", lower, lower + width)]
    columns += [mdp.Category("ward", LEVELS), mdp.YesNo("smoker")]
    data = {"x": make_number(kinds[0]), "y": make_number(kinds[1]), "ward": rng.choice(LEVELS[:2], records)}
    data["smoker"] = rng.random(records) < (0.0 if kinds[2] == "edge" else 0.4)
    if gaps:
        data["x"][rng.random(records) < (1.0 if kinds[2] == "few" else 0.3)] = np.nan
    if person is not None:
        data["id"] = np.arange(records) // 2
    by = draw(st.sampled_from([(), ("ward",), ("ward", "smoker")]))
    count = records if person is None or person.rows else len(set(data["id"]))
    query = mdp.TableMoments(mdp.Columns(columns), count, by, neighbours=neighbours, person=person)
    return query, pd.DataFrame(data), 10.0 ** draw(st.floats(-4, 2)), draw(st.sampled_from([0.0, 1.0, 5.0]))


def release_with(query, data, noise, wild, seed=1):
    """A release whose noise is of a given size; `wild` times as large as what its law says."""
    designs = [mdp.make_design(query, mdp.Privacy(3 / (size * query.records), 1e-6)) for size in (noise, 1e-7)]
    noisy, exact = (one.release(data, stream=mdp.Stream(seed=seed), simulation=True) for one in designs)
    return Release(exact.matrix + wild * (noisy.matrix - exact.matrix), designs[0], simulation=True)


def require_possible(found, least, most):
    """Numbers, and the ends of their intervals, are within what is possible, and in order."""
    (low, high), value = found.interval(), found.value
    assert np.isfinite([value, low, high]).all()
    slack = SLACK * np.maximum(np.abs(low), np.abs(high))
    for smaller, larger in ((least, low), (low, value), (value, high), (high, most)):
        assert (smaller <= larger + slack).all()
    assert ((low < high) | (found.std == 0)).all()
    assert not (found.std < 0).any()


def require_same_everywhere(found):
    """No face shows anything but a number with its error bar or interval, and all show the same."""
    cells = [cell for line in join_cells(found) for cell in line]
    for cell in cells:
        number, _, low, high = SHOWN.match(cell).groups()
        if low is not None:
            low, number, high = (float(one.replace(",", "")) for one in (low, number, high))
            assert low <= number <= high
    html, facts = write_table(found), found.to_dict()
    for text in (str(found), html, found._repr_html_(), format_numbers(found), write_csv(found), json.dumps(facts)):
        assert not NO_NUMBER.search(text), text
    frame, ends = found.to_frame(long=True), found.interval()
    lists = np.array([facts[name] for name in ("value", "low", "high")], float).reshape(3, -1)
    assert np.allclose(frame[["value", "low", "high"]].to_numpy().T, lists, equal_nan=True)
    assert np.allclose(lists, [np.ravel(one) for one in (found.value, *ends)])
    lines = write_csv(found).splitlines()[1:]
    assert [float(line.split(",")[2]) for line in lines] == found.value.ravel().tolist()
    assert all(line.split(",")[4] and line.split(",")[5] for line in lines)


def list_estimates(release, query, group=None):
    """Answers with what is possible: estimate, least, most."""
    bounds, free = query.number_bounds, 1.0 if query.public_number else math.inf
    half, zero = bounds.halfwidths, np.zeros(2)
    square = np.multiply.outer(half, half)
    own = np.eye(2, dtype=bool)
    ends = np.column_stack([bounds.lower, zero, zero]), np.column_stack([bounds.upper, half, 1 + zero])
    yield release.means(group=group), *ends
    yield release.covariance(group), np.where(own, 0.0, -square), square
    yield release.correlation(group), np.where(own, 1.0, -1.0), np.ones((2, 2))
    yield release.correlation(group, shrunk=True), np.where(own, 1.0, -1.0), np.ones((2, 2))
    for by in ("ward", "smoker"):
        if by in query.by and group is not None:
            continue
        for shrunk in (False, True):
            most = np.append(free if by in query.by else 1.0, bounds.upper)
            yield release.means(by, group, shrunk=shrunk), np.append(0.0, bounds.lower), most
    if group is None:
        yield release.table("ward", "smoker"), 0.0, free


def require_readable(*texts):
    for text in texts:
        assert not NO_NUMBER.search(text), NO_NUMBER.search(text)


@examples(40)
@given(tables())
def test_answers_of_a_table_are_possible(case):
    query, data, noise, wild = case
    release = release_with(query, data, noise, wild)
    for group in {None, query.group_levels[0] if query.by else None}:
        for found, least, most in list_estimates(release, query, group):
            require_possible(found, least, most)
            require_same_everywhere(found)


@examples(15)
@given(tables())
def test_all_pages_of_a_table_are_readable(case):
    """The report, its sentences, the charts of the studio, answers as JSON and CSV: none has what is no number."""
    query, data, noise, wild = case
    release = release_with(query, data, noise, wild)
    asked = [("means", answers.answer_means(release)), ("correlation", answers.answer_matrix(release, "correlation"))]
    asked += [("covariance", answers.answer_matrix(release, "covariance"))]
    asked += [("means_by", answers.answer_means(release, by)) for by in ("ward", "smoker")]
    asked += [("table", answers.answer_table(release, "ward", "smoker"))]
    asked += [("", answers.answer_sampling(release, kind)) for kind in ("means", "correlation", "covariance")]
    for kind, answer in asked:
        facts = to_facts(release, answer)
        require_readable(json.dumps(facts, allow_nan=False), format_numbers(answer.estimate, answer.text))
        require_readable(write_csv(answer.estimate), *(str(chart) for chart in (kind and draw_answer(answer))))
        assert "–" not in " ".join(facts["notes"])
    require_readable(render_release(make_content(release, "everything")), str(release), release._repr_html_())


@examples(15)
@given(tables())
def test_errors_in_parts_have_the_intervals_of_their_numbers(case):
    query, data, noise, wild = case
    release = release_with(query, data, noise, wild)
    whole, parts = release.means(), release.error_parts("means")
    assert np.array_equal(parts.value[:, 0], whole.value[:, 0])
    assert np.array_equal([end[:, 0] for end in parts.interval()], [end[:, 0] for end in whole.interval()])
    assert np.array_equal(parts.value[:, 1], whole.std[:, 0], equal_nan=True)


@st.composite
def matrices(draw):
    """Moments of a few numbers."""
    count, records = draw(st.integers(1, 4)), draw(st.sampled_from([1, 30, 3000]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    names = [f"x{k}" for k in range(count)]
    bounds = mdp.Bounds(np.full(count, -1.0), np.linspace(0.0, 1000.0, count), names=names)
    share = rng.random((records, count)) * (rng.random(count) < draw(st.sampled_from([0.3, 1.0])))
    data = bounds.lower + share * (bounds.upper - bounds.lower)
    neighbours = draw(st.sampled_from([mdp.Neighbours.REPLACE, mdp.Neighbours.ADD_REMOVE]))
    query = draw(st.sampled_from([mdp.Moments, mdp.Moments.for_covariance]))(bounds, records, neighbours=neighbours)
    return query, data, 10.0 ** draw(st.floats(-4, 2)), draw(st.sampled_from([0.0, 1.0, 5.0]))


def list_square(release, bounds):
    half = bounds.halfwidths
    square, own = np.multiply.outer(half, half), np.eye(half.size, dtype=bool)
    columns = release.means().columns
    zero = np.zeros_like(half)
    least, most = [bounds.lower, zero, zero], [bounds.upper, half, 1 + zero]
    yield release.means(), np.column_stack(least[: len(columns)]), np.column_stack(most[: len(columns)])
    yield release.covariance(), np.where(own, 0.0, -square), square
    yield release.correlation(), np.where(own, 1.0, -1.0), np.ones(own.shape)


@examples(25)
@given(matrices())
def test_answers_of_moments_are_possible(case):
    query, data, noise, wild = case
    release = release_with(query, data, noise, wild)
    for found, least, most in list_square(release, query.bounds):
        require_possible(found, least, most)
        require_same_everywhere(found)
    second, half = release.second_moment(query.bounds.lower), 2 * query.bounds.halfwidths
    square = np.multiply.outer(half, half)
    require_possible(second, np.where(np.eye(half.size, dtype=bool), 0.0, -square), square)
    for kind in ("matrix", "covariance", "correlation"):
        require_readable(render_release(make_content(release, kind)))


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 20.0])
@pytest.mark.parametrize("records", [30, 400])
def test_answers_of_fits_are_possible(epsilon, records):
    """With a constant column, and one at the edge of its bounds."""
    rng = np.random.default_rng(records)
    bounds = mdp.Bounds([0, 0, -1, 5], [10, 1, 1, 6], names=["a", "b", "c", "d"])
    data = np.column_stack([rng.random((records, 2)) * [10, 1], np.zeros(records), np.full(records, 6.0)])
    options = {"question": "covariance", "method": "adaptive", "simulation": True, "stream": mdp.Stream(seed=records)}
    release = mdp.release_table(data, bounds, mdp.Privacy(epsilon, 1e-6), **options)
    for found, least, most in list_square(release, bounds):
        require_possible(found, least, most)
        require_same_everywhere(found)
    loadings = release.components()
    require_possible(
        loadings, np.vstack([-np.ones((4, 4)), np.zeros(4)]), np.vstack([np.ones((4, 4)), np.full(4, 4.0)])
    )
    require_regression(release.regression("a"), 5.0)
    for kind in ("means", "covariance", "correlation", "components"):
        require_readable(render_release(make_content(release, kind)))


def require_regression(found, half):
    require_possible(found.fit, 0.0, np.array([[1.0], [half]]))
    require_same_everywhere(found.fit)
    low, high = found.interval()
    hidden = np.isnan(found.coefficients)
    assert hidden.all() or not hidden.any()
    assert np.array_equal(hidden, np.isnan(low + high + found.sampling_std))
    if hidden.any():
        assert str(found).count("hidden by noise") == found.named.value.size
    else:
        require_possible(found.terms.column("coefficient"), -math.inf, math.inf)
        assert ((low <= found.coefficients) & (found.coefficients <= high) & (found.sampling_std >= 0)).all()
    require_readable(str(found), found._repr_html_(), write_csv(found.named), json.dumps(found.named.to_dict()))


@examples(4)
@given(tables())
def test_models_of_a_table_are_possible(case):
    query, data, noise, wild = case
    release = release_with(query, data, noise, wild)
    half = float(query.number_bounds.halfwidths[1])
    require_regression(release.regression("y"), half)
    for answer in (answers.answer_regression(release, "y"), answers.answer_components(release)):
        charts = draw_answer(answer)
        require_readable(json.dumps(to_facts(release, answer), allow_nan=False), *map(str, charts))
    ends = np.array([[-1.0, -1.0], [-1.0, -1.0], [0.0, 0.0]]), np.array([[1.0, 1.0], [1.0, 1.0], [2.0, 2.0]])
    require_possible(answer.estimate, *ends)
    require_same_everywhere(answer.estimate)
