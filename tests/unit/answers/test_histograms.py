"""Histograms and quantiles of a table: exact counts, what they cost, less noise, intervals, and what is refused."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import matrixdp as mdp
from matrixdp.answers.histograms import _denoise, find_quantiles
from matrixdp.mechanisms.mechanism import prepare
from matrixdp.queries.table_moments import bin_edges
from matrixdp.records import with_ids

PRIVACY = mdp.Privacy(1.0, 1e-6)
PRECISE = mdp.Privacy(1e6, 1e-6)
COLUMNS = mdp.Columns(
    [
        mdp.Number("x", 0, 32, missing=True),
        mdp.Number("n", 0, 3, step=1),
        mdp.Number("m", -1, 99, step=0.5),
        mdp.YesNo("g"),
    ]
)


def count(query, data, **options):
    """The counts in all bins, by number."""
    answer = query.evaluate(data, clip=True, missing=options.pop("missing", "error"))
    bins = answer[query.groups * query.layout.size :]
    assert not bins[:, 1:].any()
    ends = np.cumsum([edges.size + 1 for edges in query.edges.values()])
    return dict(zip(query.edges, np.split(bins[:, 0] * query.records, ends[:-1]), strict=True))


def test_bins_have_edges_between_values():
    assert bin_edges(mdp.Number("x", 0, 64)).tolist() == list(range(0, 65, 2))
    assert bin_edges(mdp.Number("n", 1, 4, step=1)).tolist() == [1.5, 2.5, 3.5]
    assert bin_edges(mdp.Number("n", 0, 1, step=1)).tolist() == [0.5]
    assert bin_edges(mdp.Number("n", 0, 64, step=1)).size == 64
    edges = bin_edges(mdp.Number("n", 0, 65, step=1))
    assert edges.size == 33
    assert (edges[0], edges[-1]) == (0.5, 64.5)
    assert np.isin(np.diff(edges), [2.0]).all()


@pytest.mark.parametrize("by", [(), ("g",)])
def test_values_are_counted_in_their_bins(by):
    """Values at and beyond a bound are at the bound, missing ones nowhere; groups are counted together."""
    x = [0.0, -5.0, 0.5, 1.0, 1.5, 31.5, 32.0, 40.0, None, np.nan]
    n = [0, 1, 1, 2, 3, 3, 3, 7, -1, 1]
    m = [-1.0, -0.5, 99.0, 98.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    data = pd.DataFrame({"x": x, "n": n, "m": m, "g": [True, False] * 5})
    found = count(mdp.TableMoments(COLUMNS, 10, by, shapes=0.1), data)
    expected = np.zeros(34)
    expected[[0, 1, 2, 32, 33]] = [2, 2, 1, 1, 2]
    assert found["x"].tolist() == expected.tolist()
    assert found["n"].tolist() == [2, 3, 1, 4]
    assert (found["m"][0], found["m"][1], found["m"][-2], found["m"][-1]) == (1, 7, 1, 1)
    assert sum(found["m"]) == 10


def test_missing_values_that_are_replaced_are_counted_in_the_middle():
    query = mdp.TableMoments(mdp.Columns([mdp.Number("n", 0, 2, step=1)]), 3, shapes=0.1)
    assert count(query, {"n": [np.nan, 0, 2]}, missing="midpoint")["n"].tolist() == [1, 1, 1]


def test_people_count_once_and_parts_add_up():
    query = mdp.TableMoments(COLUMNS, 3, shapes=0.1, person="id")
    data = pd.DataFrame({"x": [0.0, 32.0, None, 5.0], "n": [0, 1, 2, 3], "m": 0.0, "g": True})
    found = count(query, with_ids(data, ["a", "a", "b", "c"]))
    assert found["x"][[0, 33]].tolist() == [0.5, 0.5]
    assert found["x"].sum() == 2
    assert found["n"].tolist() == [0.5, 0.5, 1, 1]
    thirds = count(query, with_ids(pd.concat([data] * 3), ["a"] * 3 + ["b"] * 7 + ["c"] * 2))
    assert 3 - 1e-9 < thirds["n"].sum() <= 3
    rows = mdp.TableMoments(COLUMNS, 4, shapes=0.1, person=mdp.Person("id", rows=2))
    assert count(rows, with_ids(data, ["a", "a", "b", "c"]))["n"].tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("by", [(), ("g",)])
def test_two_records_in_different_bins_attain_the_distance(neighbours, by):
    """The share of the squared distance that bins have is the one that was asked for."""
    columns = mdp.Columns([mdp.Number("x", -1, 1), mdp.Number("n", 0, 3, step=1), mdp.YesNo("g")])
    design = mdp.make_design(mdp.TableMoments(columns, 3, by, shapes=0.2, neighbours=neighbours), PRIVACY)
    bins = design.query.histogram_bins
    rows = [(0.3, 1, False), (1, 3, True), (-1, 0, False)]
    first = prepare(design, rows[:2], clip=True, missing="error") if neighbours == "add-remove" else None
    if neighbours == "add-remove":
        second = prepare(design, rows[:1], clip=True, missing="error")
    else:
        first, second = (prepare(design, [rows[0], rows[0], rows[i]], clip=True, missing="error") for i in (1, 2))
    apart = ((first - second) * 2.0**-design.grid.bits).astype(float)
    assert np.square(apart[-bins:]).sum() == pytest.approx(0.2 * design.distance**2, rel=1e-6)
    assert np.linalg.norm(apart) <= design.distance <= design.mu
    if by or neighbours == "add-remove":
        assert np.linalg.norm(apart) == pytest.approx(design.distance, rel=1e-6)
        assert design.exact


def test_a_tenth_of_the_budget_adds_a_twentieth_to_the_noise():
    plain, shaped = (mdp.make_design(mdp.TableMoments(COLUMNS, 500, shapes=share), PRIVACY) for share in (0.0, 0.1))
    ratio = shaped.std[: plain.query.layout.size] / np.where(plain.std > 0, plain.std, 1.0)
    assert ratio[plain.std > 0] == pytest.approx(1 / math.sqrt(0.9), rel=1e-6)
    assert shaped.std[-1, 0] == pytest.approx(math.sqrt(2 * 3 / 0.1) / 500 / shaped.mu, rel=1e-6)
    assert plain.query.shape[0] + 34 + 4 + 34 == shaped.query.shape[0]


def spiky(rng):
    return rng.choice([0.0, 3.0, 10.0, 20.0], 3000, p=[0.3, 0.2, 0.4, 0.1])


def smooth(rng):
    return 32 * rng.beta(2, 5, 3000)


def atoms(rng):
    return np.clip(rng.normal(30, 8, 3000), 0, 32)


@pytest.mark.parametrize("draw", [spiky, smooth, atoms])
def test_denoised_shares_are_nearer_to_the_truth(draw):
    rng, stream = np.random.default_rng(0), mdp.Stream(seed=1)
    query = mdp.TableMoments(mdp.Columns([mdp.Number("x", 0, 32), mdp.Number("y", 0, 1)]), 3000, shapes=0.1)
    design = mdp.make_design(query, PRIVACY)
    data = {"x": draw(rng), "y": rng.random(3000)}
    truth = count(query, data)["x"] / 3000
    errors = []
    for _ in range(20):
        found = design.release(data, stream=stream, simulation=True).histograms()["x"]
        assert found.shares.sum() == pytest.approx(1)
        assert found.shares.min() >= 0
        errors.append([np.abs(one - truth).sum() for one in (found.shares, found.noisy)])
    denoised, raw = np.mean(errors, axis=0)
    assert denoised < 0.8 * raw


def test_without_noise_nothing_is_moved():
    noisy = np.array([0.25, 0.0, 0.5, 0.25])
    assert _denoise(noisy, 1e-9, np.full(4, 0.25)) == pytest.approx(noisy, abs=1e-8)


def test_quantiles_of_a_known_law():
    """Quantiles are in the bins of the true ones, those of atoms and steps exact, and dates of none are missing."""
    rng = np.random.default_rng(2)
    x = np.where(rng.random(20_000) < 0.2, 0.0, 32 * rng.beta(2, 3, 20_000))
    data = pd.DataFrame({"x": x, "n": rng.integers(0, 4, 20_000), "m": rng.poisson(30, 20_000), "g": True})
    data.loc[:4999, "x"] = np.nan
    design = mdp.make_design(mdp.TableMoments(COLUMNS, 20_000, shapes=0.1), PRECISE)
    release = design.release(data, stream=mdp.Stream(seed=1), simulation=True)
    q = [0.1, 0.25, 0.5, 0.9]
    found, (low, high) = release.quantiles(q=q), release.quantiles(q=q).interval()
    exact = np.stack([np.nanquantile(data[name], q, method="inverted_cdf") for name in "xnm"])
    assert found.columns == ("10%", "25%", "median", "90%")
    assert (low <= exact).all()
    assert (exact <= high).all()
    assert (low[0, 0], high[0, 0]) == (0, 0)
    assert (high[0] - low[0] <= 1).all()
    assert found.value[0] == pytest.approx(exact[0], abs=0.1)
    assert (found.value[1] == exact[1]).all()
    assert (np.mod(found.value[2], 0.5) == 0).all()
    assert release.quantiles("n", q=0.5)["n", "median"] == exact[1, 2]
    histogram = release.histograms()["x"]
    assert histogram.shares[0] == pytest.approx((x[5000:] == 0).mean(), abs=1e-4)
    assert (histogram.number.name, histogram.edges.size, histogram.shares.size) == ("x", 33, 34)


def test_intervals_hold_the_value_whatever_the_noise():
    design = mdp.make_design(mdp.TableMoments(COLUMNS, 50, shapes=0.01), mdp.Privacy(0.01, 1e-6))
    data = pd.DataFrame({"x": [None] * 50, "n": 1, "m": 0.0, "g": True})
    for seed in range(5):
        release = design.release(data, stream=mdp.Stream(seed=seed), simulation=True)
        found = release.quantiles(q=[0.001, 0.5, 0.999])
        low, high = found.interval()
        assert (low <= found.value).all()
        assert (found.value <= high).all()
        assert all(one.shares.sum() == pytest.approx(1) for one in release.histograms().values())


def test_histograms_survive_json_and_streams(tmp_path):
    data = pd.DataFrame({"x": np.arange(40) % 30, "n": 1, "m": 2.0, "g": True})
    release = mdp.make_design(mdp.TableMoments(COLUMNS, 40, shapes=0.1), PRIVACY).release(data)
    again = mdp.Release.from_json(release.to_json())
    assert again.histograms()["x"].noisy.tolist() == release.histograms()["x"].noisy.tolist()
    query = mdp.TableMoments(COLUMNS, 40, shapes=0.5, neighbours="add-remove")
    stream = mdp.make_stream(query, PRECISE, every="step", last=2).open(
        tmp_path / "s", stream=mdp.Stream(seed=1), simulation=True
    )
    for name in ("first", "second"):
        stream.publish(data.assign(n=int(name == "first")), step=name)
    assert stream.total().histograms()["n"].noisy == pytest.approx([0.5, 0.5, 0, 0], abs=1e-2)
    assert stream.period("second").quantiles("n", 0.5)["n", "median"] == 0
    plain = mdp.make_design(mdp.TableMoments(COLUMNS, 40), PRIVACY).release(data)
    assert "shapes" not in plain.to_json()
    assert "bin_precision" not in plain.to_json()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mdp.TableMoments(mdp.Columns([mdp.YesNo("a")]), 5, shapes=0.1), "shapes must be 0: the table has no"),
        (lambda: mdp.TableMoments(COLUMNS, 5, shapes=1), "shapes must be .* at most 0.9"),
        (lambda: mdp.TableMoments(COLUMNS, 5, shapes=-0.1), "shapes must be"),
    ],
)
def test_shapes_that_cannot_be_are_refused(make, message):
    with pytest.raises(mdp.ParameterError, match=message):
        make()


def test_questions_that_have_no_answer_are_refused():
    query = mdp.TableMoments(COLUMNS, 5, shapes=0.1)
    design, matrix = mdp.make_design(query, PRIVACY), query.finish(np.zeros(query.shape))
    for columns, q, message in (
        (["g"], 0.5, "column 'g' must hold numbers"),
        (["y"], 0.5, "there is no column 'y'"),
        (None, 1.0, "q must be"),
        (None, [0.5, 2], "q must be"),
        (None, "half", "q must be"),
    ):
        with pytest.raises(mdp.ParameterError, match=message):
            find_quantiles(matrix, design, columns, q)
    plain = mdp.make_design(replace(query, shapes=0.0), PRIVACY)
    with pytest.raises(mdp.ParameterError, match=r"shapes=0\.1"):
        find_quantiles(matrix[:6], plain, None, 0.5)
