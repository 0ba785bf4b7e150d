"""Kernels beside their reference, bit for bit. Run by ``make gpu`` on a machine with an NVIDIA GPU."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.design.grid import column_factors
from matrixdp.mechanisms.mechanism import prepare, round_answer
from matrixdp.noise import Stream, draw_gaussian
from matrixdp.noise.indexed_draws import Target, draw_on_device
from numbered_draws import draw_exactly, draw_indexed

cupy = pytest.importorskip("cupy")

KEY = bytes(range(32))


def fill(key, bits, out):
    draw_on_device(key, bits, out.size, Target("Integers", np.array([(out.data.ptr,)], [("out", np.uint64)])[0]))


@pytest.mark.parametrize("bits", [0, 20, 40, 52])
@pytest.mark.parametrize("size", [1, 7, 8, 9, 1000, 65_537, 3_000_001])
def test_draws_are_those_of_the_reference(bits, size):
    out = cupy.empty(size, np.int64)
    fill(KEY, bits, out)
    assert (out.get() == draw_indexed(KEY, bits, 0, size)).all()


def test_chunks_and_settled_draws_are_those_of_the_reference():
    size = (1 << 26) + 5
    out = cupy.empty(size, np.int64)
    fill(KEY, 40, out)
    for first in (0, (1 << 25) - 20_000, (1 << 26) - 20_000):
        count = min(40_000, size - first)
        assert (out[first : first + count].get() == draw_indexed(KEY, 40, first, count)).all()
    extreme = cupy.flatnonzero(cupy.abs(out) > 5.5 * 2**40).get().tolist()
    assert extreme  # the tail, which the host settles
    assert all(int(out[i]) == draw_exactly(KEY, 40, i) for i in extreme)


def test_a_stream_gives_new_draws_each_time():
    stream, first, second = Stream(), cupy.empty(1000, np.int64), cupy.empty(1000, np.int64)
    draw_gaussian(stream, 40, out=first)
    draw_gaussian(stream, 40, out=second)
    assert not (first == second).any()


def test_arrays_that_are_not_aligned():
    out = cupy.zeros(1001, np.int64)
    draw_gaussian(Stream(seed=3), 40, out=out[1:])
    key = Stream(seed=3).words(4).tobytes()
    assert (out.get()[1:] == draw_indexed(key, 40, 0, 1000)).all()
    assert int(out[0]) == 0
    data = cupy.asarray(records(1001, 3, np.float32))
    bounds = mdp.Bounds(np.zeros(3), np.ones(3))
    design = mdp.make_design(mdp.Identity(bounds, records=1000), mdp.Privacy(1, 1e-6))
    options = {"simulation": True}
    first = design.release(data[1:], stream=Stream(seed=4), **options)
    second = design.release(data[1:].copy(), stream=Stream(seed=4), **options)
    assert bool((first.matrix == second.matrix).all())
    assert design.release(data[:, :].T.copy().T[1:], stream=Stream(seed=4), **options).matrix.shape == (1000, 3)


def records(rows, features, dtype, seed=0):
    return np.random.default_rng(seed).normal(0.4, 0.5, (rows, features)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, bool])
@pytest.mark.parametrize("features", [1, 3, 20, 257])
@pytest.mark.parametrize("kind", ["moments", "second", "ball", "centre"])
def test_moments_are_those_of_the_host(dtype, features, kind):
    rows = 9000
    data = records(rows, features, np.float64, seed=features)
    data = (data * 3).astype(dtype) if dtype in (np.int32, bool) else data.astype(dtype)
    bounds = mdp.Bounds(np.full(features, -0.3), np.linspace(0.7, 2.0, features))
    if kind == "moments":
        query = mdp.Moments(bounds, rows)
    elif kind == "second":
        query = mdp.SecondMoment(bounds, rows, neighbours="add-remove")
    elif kind == "centre":
        query = mdp.SecondMoment(bounds, rows, centre=np.full(features, 0.1))
    else:
        query = mdp.Moments(mdp.Bounds(bounds.lower, bounds.upper, radius=0.8), rows)
    for array in (cupy.asarray(data), cupy.asfortranarray(cupy.asarray(data))):
        got = query.evaluate(array, clip=True, missing="error")
        assert (got == query.evaluate(data, clip=True, missing="error")).all()


def test_tensors_of_other_libraries_and_mappings_of_columns():
    torch = pytest.importorskip("torch")
    data = records(5000, 4, np.float32)
    bounds = mdp.Bounds(np.full(4, -1.0), np.full(4, 1.0), names=list("abcd"))
    query = mdp.Moments(bounds, 5000)
    expected = query.evaluate(data, clip=True, missing="error")
    tensor = torch.from_numpy(data).cuda()
    columns = {name: tensor[:, i] for i, name in enumerate("dcba"[::-1])}
    for given in (tensor, columns, dict(reversed(columns.items()))):
        assert (query.evaluate(given, clip=True, missing="error") == expected).all()
    jax = pytest.importorskip("jax")
    assert (query.evaluate(jax.numpy.asarray(data), clip=True, missing="error") == expected).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("features", [1, 20])
def test_a_noisy_data_set_is_that_of_the_host_with_the_same_draws(dtype, features):
    rows = 30_000
    data = records(rows, features, dtype)
    bounds = mdp.Bounds(np.full(features, -0.3), np.linspace(0.7, 2.0, features))
    design = mdp.make_design(mdp.Identity(bounds, records=rows), mdp.Privacy(1, 1e-6))
    released = design.release(cupy.asarray(data), stream=Stream(seed=4), simulation=True)
    draws = draw_indexed(Stream(seed=4).words(4).tobytes(), design.grid.bits, 0, rows * features)
    steps = round_answer(design, prepare(design, data, clip=True, missing="error")) + draws.reshape(rows, features)
    values = (steps + 0.5) / column_factors(design.noise, design.grid.bits)
    assert (released.to_host().matrix == values + bounds.midpoint).all()


@pytest.mark.parametrize("query", [mdp.Moments, mdp.Identity])
def test_errors_are_those_of_the_host_and_nothing_is_charged(query, tmp_path):
    bounds = mdp.Bounds([0.0, 0.0], [1.0, 1.0], names=["a", "b"])
    design = mdp.make_design(query(bounds, records=100), mdp.Privacy(1, 1e-6))
    ledger = mdp.Ledger.create(tmp_path / "x.db")
    ledger.register("x", mdp.Privacy(1, 1e-6), neighbours="replace")
    good = np.full((100, 2), 0.5)
    for change, options in ((np.nan, {}), (np.inf, {}), (3.0, {"clip": False})):
        bad = good.copy()
        bad[7, 1] = change
        messages = []
        for array in (bad, cupy.asarray(bad)):
            with pytest.raises(mdp.DataError) as error:
                design.release(array, ledger=ledger, dataset="x", **options)
            messages.append(str(error.value))
        assert messages[0] == messages[1]
    for wrong in (good[:99], np.full((100, 3), 0.5), np.full((100, 2), 1j)):
        with pytest.raises(mdp.MatrixDPError):
            design.release(cupy.asarray(wrong), ledger=ledger, dataset="x")
    assert not ledger.spent("x").mu if hasattr(ledger, "spent") else True
    design.release(cupy.asarray(good), ledger=ledger, dataset="x", missing="midpoint")


def table(rows, seed=0):
    rng = np.random.default_rng(seed)
    age, pay = rng.normal(40, 20, rows), rng.normal(3, 2, rows).astype(np.float32)
    pay[rng.random(rows) < 0.1] = np.nan
    ward = rng.integers(1, 4, rows)
    smoker = rng.integers(0, 2, rows)
    colour = np.array(["red", "green", "blue", "black"])[rng.integers(0, 4, rows)]
    return {"age": age, "pay": pay, "ward": ward, "smoker": smoker, "colour": colour}


COLUMNS = mdp.Columns(
    [
        mdp.Number("age", 0, 100),
        mdp.Number("pay", 0, 6, missing=True),
        mdp.Category("ward", [1, 2, 3]),
        mdp.YesNo("smoker"),
        mdp.Category("colour", ["red", "green"], other=True),
    ]
)


@pytest.mark.parametrize("by", [(), ("ward",), ("ward", "smoker"), ("colour",)])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_moments_of_tables_are_those_of_the_host(by, neighbours):
    data = table(40_000)
    query = mdp.TableMoments(COLUMNS, 40_000, by=by, neighbours=neighbours)
    expected = query.evaluate(data, clip=True, missing="error")
    device = {name: column if column.dtype.kind == "U" else cupy.asarray(column) for name, column in data.items()}
    assert (query.evaluate(device, clip=True, missing="error") == expected).all()
    device["smoker"] = device["smoker"].astype(np.float32)
    assert (query.evaluate(device, clip=True, missing="error") == expected).all()


def test_errors_of_tables_are_those_of_the_host():
    for name, value in (("age", np.nan), ("ward", 7), ("smoker", 2)):
        data = table(1000)
        data[name] = data[name].astype(float)
        data[name][5] = value
        messages = []
        for move in (np.asarray, cupy.asarray):
            given = {key: column if column.dtype.kind == "U" else move(column) for key, column in data.items()}
            with pytest.raises(mdp.DataError) as error:
                mdp.TableMoments(COLUMNS, 1000).evaluate(given, clip=True, missing="error")
            messages.append(str(error.value))
        assert messages[0] == messages[1]


def test_files_are_summed_on_the_device(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    data = table(30_000)
    parquet.write_table(pa.table(data), tmp_path / "a.parquet", row_group_size=7000)
    for query in (
        mdp.TableMoments(COLUMNS, 30_000, by=("ward",)),
        mdp.Moments(mdp.Bounds([0, 0], [100, 5], names=["age", "ward"]), 30_000),
    ):
        expected = query.evaluate(mdp.open_records(tmp_path), clip=True, missing="error")
        opened = mdp.open_records(tmp_path, device="cuda")
        assert (query.evaluate(opened, clip=True, missing="error") == expected).all()


@pytest.mark.parametrize("scarce", [False, True])
def test_estimators_fit_the_same(scarce):
    estimators = pytest.importorskip("matrixdp.estimators")
    torch = pytest.importorskip("torch")
    rows = 60 if scarce else 20_000
    data = records(rows, 5, np.float32)
    target = data @ np.arange(5.0, dtype=np.float32) + 0.1
    options = {"epsilon": 1.0, "bounds": (-1.0, 1.0), "simulation": True, "random_state": 3}
    host = estimators.PrivateCovariance(**options).fit(data)
    device = estimators.PrivateCovariance(**options).fit(torch.from_numpy(data).cuda())
    assert (host.covariance_ == device.covariance_).all()
    host = estimators.PrivateRidge(target_bounds=(-5.0, 15.0), **options).fit(data, target)
    for y in (target, cupy.asarray(target)):
        device = estimators.PrivateRidge(target_bounds=(-5.0, 15.0), **options).fit(cupy.asarray(data), y)
        assert (host.coef_ == device.coef_).all()
    assert (host.predict(data) == device.predict(cupy.asarray(data))).all()
    bad = data.copy()
    bad[3, 2] = np.nan
    for array in (bad, cupy.asarray(bad)):
        with pytest.raises(mdp.DataError, match="finite"):
            estimators.PrivateCovariance(**options).fit(array)


def test_moments_of_many_features():
    features, rows = 8300, 60  # rows of this width are not found by a product
    data = records(rows, features, np.float32)
    query = mdp.SecondMoment(mdp.Bounds(np.full(features, -1.0), np.full(features, 1.0)), rows)
    got = query.evaluate(cupy.asarray(data), clip=True, missing="error")
    assert (got == query.evaluate(data, clip=True, missing="error")).all()
