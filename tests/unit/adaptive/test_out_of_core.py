"""Fits on records outside of memory: the same bits as in memory, one charge, no error after it."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.adaptive import private_moment
from matrixdp.estimators import (
    PrivateCovariance,
    PrivateKernelRidge,
    PrivateLinearRegression,
    PrivatePCA,
    PrivateRidge,
    PrivateScaler,
)

RECORDS, NAMES = 4000, ("a", "b", "c")
BOUNDS = mdp.Bounds([-6, -6, -6], [6, 6, 6], names=NAMES)
TARGET = mdp.Bounds([-20], [20])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(RECORDS, 3)) @ np.diag([2.0, 1.0, 0.3]) + 0.5
    return X, X @ [1.0, -2.0, 3.0] + rng.normal(size=RECORDS)


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    X, y = data
    place = tmp_path_factory.mktemp("set")
    table = pa.table({"y": y, **{name: X[:, j] for j, name in enumerate(NAMES)}, "z": -y})
    for i, start in enumerate(range(0, RECORDS, 900)):
        pq.write_table(table.slice(start, 900), place / f"{i}.parquet", row_group_size=111)
    return place


def options(**more):
    return {"epsilon": 1.0, "delta": 1e-6, "bounds": BOUNDS, "random_state": 7, "simulation": True, **more}


@pytest.mark.parametrize("neighbours", [{}, {"neighbours": "add-remove", "records": 3900}])
@pytest.mark.parametrize("directions", ["learned", "standard"])
def test_a_covariance_has_the_same_bits(data, folder, neighbours, directions):
    estimator = PrivateCovariance(**options(directions=directions, **neighbours))
    inside = estimator.fit(data[0])
    expected, mean = inside.covariance_.copy(), inside.location_.copy()
    for source in (folder, mdp.open_records(folder, workers=3), str(folder / "*.parquet")):
        outside = estimator.fit(source)
        assert np.array_equal(outside.covariance_, expected)
        assert np.array_equal(outside.location_, mean)
    assert outside.n_features_in_ == 3
    assert list(outside.feature_names_in_) == list(NAMES)
    blocks = mdp.records.Blocks(lambda: iter(np.array_split(data[0], 7)))
    assert np.array_equal(estimator.fit(blocks).covariance_, expected)


def test_components_have_the_same_bits(data, folder):
    estimator = PrivatePCA(2, **options())
    expected = estimator.fit(data[0]).components_.copy()
    assert np.array_equal(estimator.fit(folder).components_, expected)
    with pytest.raises(mdp.ParameterError, match="in memory"):
        estimator.transform(folder)


@pytest.mark.parametrize("kind", [PrivateRidge, PrivateLinearRegression])
def test_a_regression_finds_its_target_by_name(data, folder, kind):
    X, y = data
    estimator = kind(**options(target_bounds=TARGET))
    expected = estimator.fit(X, y).coef_.copy()
    assert np.array_equal(estimator.fit(folder, "y").coef_, expected)
    several = kind(**options(target_bounds=mdp.Bounds([-20, -20], [20, 20]), epsilon=5.0))
    both = several.fit(X, np.column_stack([y, -y])).coef_.copy()
    assert np.array_equal(several.fit(folder, ["y", "z"]).coef_, both)
    with pytest.raises(mdp.ParameterError, match="y must be the name"):
        estimator.fit(folder, y)
    with pytest.raises(mdp.DataError, match="no column 'w'"):
        estimator.fit(folder, "w")
    unnamed = kind(**options(target_bounds=TARGET, bounds=mdp.Bounds([-6] * 3, [6] * 3)))
    with pytest.raises(mdp.ParameterError, match="bounds must have names"):
        unnamed.fit(folder, "y")


def test_a_kernel_regression_is_the_same(data, folder):
    X, y = data
    estimator = PrivateKernelRidge(**options(target_bounds=TARGET, n_components=6, epsilon=5.0))
    expected = estimator.fit(X, y).coef_.copy()
    assert np.allclose(estimator.fit(folder, "y").coef_, expected, rtol=1e-9)


def test_scales_have_the_same_bits(data, folder):
    estimator = PrivateScaler(**options())
    expected = estimator.fit(data[0]).scale_.copy()
    assert np.array_equal(estimator.fit(folder).scale_, expected)


def test_a_fit_is_charged_once_and_an_error_costs_nothing(folder, tmp_path):
    with mdp.Ledger.create(tmp_path / "ledger.db") as ledger:
        ledger.register("clinic", mdp.Privacy(1, 1e-6), neighbours="replace")
    account = {"ledger": tmp_path / "ledger.db", "dataset": "clinic", "random_state": None, "simulation": False}
    spoilt = pq.read_table(folder / "3.parquet")
    (tmp_path / "set").mkdir()
    pq.write_table(spoilt.set_column(1, "a", pa.nulls(len(spoilt), pa.float64())), tmp_path / "set" / "3.parquet")
    with pytest.raises(mdp.DataError, match=r"3\.parquet.*'a' has an empty"):
        PrivateCovariance(**options(**account)).fit(tmp_path / "set")
    with pytest.raises(mdp.ParameterError, match="more than once"):
        PrivateCovariance(**options(**account)).fit(iter([np.zeros((5, 3))]))
    with pytest.raises(mdp.ParameterError, match="as the data have, or be left out"):
        PrivateCovariance(**options(records=5, **account)).fit(folder)
    with pytest.raises(mdp.ParameterError, match="bounds must be Bounds"):
        PrivateCovariance(**options(**{**account, "bounds": (-6, 6)})).fit(folder)
    PrivateCovariance(**options(**account)).fit(folder)
    with mdp.Ledger.open(tmp_path / "ledger.db") as ledger:
        (charge,) = ledger.history("clinic")
        assert charge.released


def test_few_records_for_their_features(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, 6))
    bounds, privacy = mdp.Bounds([-3] * 6, [3] * 6), mdp.Privacy(0.5, 1e-6)
    streams = [{"stream": mdp.Stream(seed=1), "simulation": True} for _ in range(2)]
    inside = private_moment(X, bounds, privacy, **streams[0])
    outside = private_moment(mdp.records.Blocks(lambda: iter(np.array_split(X, 5))), bounds, privacy, **streams[1])
    assert not inside.fitted.learned
    assert np.array_equal(inside.covariance, outside.covariance)
