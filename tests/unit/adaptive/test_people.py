"""Fits of people with several rows: each person counts once, or each row does."""

import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.adaptive import private_moment, private_scales
from matrixdp.adaptive.coordinates import Coordinates
from matrixdp.adaptive.queries import ball_query
from matrixdp.adaptive.records import EXCESS_STEPS, grid_levels, grid_records, validate_records
from matrixdp.design import isotropic, make_design
from matrixdp.domain.bounds import Bounds
from matrixdp.estimators import (
    PrivateCovariance,
    PrivateKernelRidge,
    PrivateLinearDiscriminant,
    PrivatePCA,
    PrivateRidge,
    PrivateScaler,
)
from matrixdp.privacy import Neighbours
from matrixdp.queries.sums import UNIT
from property.test_rounding import apart

BOUNDS = mdp.Bounds([-6] * 3, [6] * 3, names=["a", "b", "c"])
PRIVACY = mdp.Privacy(1, 1e-6)
PERSON, ROWS = mdp.Person("id"), mdp.Person("id", rows=3)
TURN = np.linalg.qr(np.random.default_rng(8).standard_normal((3, 3)))[0] / [[3.0], [1.0], [0.2]], np.full(3, 0.3)


def make_people(people=3000, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.geometric(0.25, people)
    ids = np.repeat(np.arange(people), rows)
    values = rng.standard_normal((people, 3))[ids] + 0.5 * rng.standard_normal((len(ids), 3)) + [1, 2, 0]
    return pd.DataFrame(values, columns=["a", "b", "c"]).assign(id=[f"p{i}" for i in ids])


def seeded():
    return {"stream": mdp.Stream(seed=1), "simulation": True}


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_fit_estimates_the_mean_over_people(neighbours):
    data = make_people()
    people = data.id.nunique()
    options = {"person": "id", "neighbours": neighbours, "records": people}
    moment = private_moment(data, BOUNDS, PRIVACY, **options, **seeded())
    means = data.groupby("id").mean().mean().to_numpy()
    assert np.abs(moment.mean - means).max() < 0.2
    scales = private_scales(data, BOUNDS, PRIVACY, **options, **seeded())
    assert np.abs(scales.mean - means).max() < 0.2
    weights = 1 / data.groupby("id").a.transform("size").to_numpy() / people
    centred = data[["a", "b", "c"]].to_numpy() - means
    assert np.abs(moment.covariance - (centred * weights[:, None]).T @ centred).max() < 0.4
    assert np.abs(scales.variance - weights @ centred**2).max() < 0.8


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_one_row_each_is_the_plain_fit_to_the_last_bit(neighbours):
    data = make_people().drop_duplicates("id")
    options = {"neighbours": neighbours, "records": len(data)}
    for fit, name in ((private_moment, "covariance"), (private_scales, "variance")):
        once = fit(data, BOUNDS, PRIVACY, person="id", **options, **seeded())
        plain = fit(data, BOUNDS, PRIVACY, **options, **seeded())
        assert np.array_equal(getattr(once, name), getattr(plain, name))
        assert np.array_equal(once.mean, plain.mean)


@pytest.mark.parametrize("public", [300, 10**8])
@pytest.mark.parametrize("person", [PERSON, ROWS], ids=["once", "rows"])
def test_sums_of_one_row_each_are_those_of_records_to_the_last_bit(person, public):
    """On coarse grids, too, which belong to large public numbers."""
    data = make_people(300).drop_duplicates("id")
    people = validate_records(data, BOUNDS, person)[1](public)
    records = grid_records(BOUNDS, data[["a", "b", "c"]].to_numpy(), grid_levels(public))
    assert (people.levels, people.shape) == (records.levels, records.shape)
    turned = Coordinates.of(*TURN, people.levels)
    for one, other in ((people, records), (people.transform(turned), records.transform(turned))):
        assert one.counter([0.3])(0.3) == other.counter([0.3])(0.3)
        assert one.excess(0.2, 1.0) == other.excess(0.2, 1.0)
        for radius in (0.05, 0.4, 5.0):
            ball = Bounds([-8 * radius] * 3, [8 * radius] * 3, radius=radius)
            assert np.array_equal(one.moment(ball, public), other.moment(ball, public))


@pytest.mark.parametrize("person", [PERSON, ROWS], ids=["once", "rows"])
def test_sums_are_those_of_fractions(person):
    """Rows within the ball, in learned coordinates, with the weights of their people."""
    people = {i: extreme(np.random.default_rng(i), rows) for i, rows in enumerate((1, 2, 3, 7, 1000))}
    grid = on_grid(people, public=5, person=person)
    turned = Coordinates.of(*TURN, grid.levels)
    moment = grid.transform(turned).moment(Bounds([-80] * 3, [80] * 3, radius=10.0), 5)
    exact = np.full((4, 4), Fraction(0))
    for rows in people.values():
        weight = Fraction(min(UNIT, person.most * UNIT // len(rows)), UNIT)
        for values, times in zip(*np.unique(rows, axis=0, return_counts=True), strict=True):
            steps = BOUNDS.quantise(values[None], grid.levels)
            record = [Fraction(1), *(Fraction(one) for one in turned(steps)[0].tolist())]
            exact += weight * int(times) * np.multiply.outer(record, record)
    exact[0, 0] = Fraction(len(grid))
    assert np.abs(moment * 5 - exact.astype(float)).max() <= 8 * np.finfo(float).eps * np.abs(moment * 5).max()


def test_the_number_of_rows_has_no_limit():
    """Ten people with three hundred rows each, one of them with many thousands."""
    ids = np.append(np.repeat(np.arange(10), 300), np.full(40_000, 10))
    values = np.random.default_rng(0).uniform(-6, 6, (len(ids), 3))
    data = pd.DataFrame(values, columns=["a", "b", "c"]).assign(id=ids)
    moment = private_moment(data, BOUNDS, mdp.Privacy(1e4, 1e-6), person="id", **seeded())
    assert np.abs(moment.mean - data.groupby("id").mean().mean().to_numpy()).max() < 0.1


@pytest.mark.parametrize("step", ["counter", "excess", "moment"])
def test_more_rows_of_a_person_than_were_counted_are_an_error(step):
    """In records that grow while a fit reads them, each row of a person who had one would weigh one."""
    data, rows = make_people(20).sort_values("id"), [20]
    grown = mdp.records.Blocks(lambda: [data.iloc[: rows[0]].assign(id=data.id.to_numpy()[0])])
    records = validate_records(grown, BOUNDS, PERSON)[1](1)
    ball = Bounds([-8] * 3, [8] * 3, radius=1.0)
    arguments = {"counter": ([0.3],), "excess": (0.2, 1.0), "moment": (ball, 1)}[step]
    getattr(records, step)(*arguments)
    rows[0] += 1
    with pytest.raises(mdp.DataError, match="changed while they were read"):
        getattr(records, step)(*arguments)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_where_rows_count_a_fit_estimates_the_mean_over_rows(neighbours):
    data = make_people()
    most = int(data.groupby("id").size().max())
    options = {"person": mdp.Person("id", rows=most), "neighbours": neighbours, "records": len(data) + 100}
    moment = private_moment(data, BOUNDS, mdp.Privacy(20, 1e-6), **options, **seeded())
    values = data[["a", "b", "c"]].to_numpy()
    assert np.abs(moment.mean - values.mean(axis=0)).max() < 0.1
    assert np.abs(moment.covariance - np.cov(values.T, bias=True)).max() < 0.2
    assert moment.person == mdp.Person("id", rows=most)
    assert str(moment.unit) == "person:id"


def test_files_give_the_bits_of_a_frame(tmp_path):
    data = make_people(800)
    for i, piece in enumerate(np.array_split(np.arange(len(data)), 3)):
        pq.write_table(pa.Table.from_pandas(data.iloc[piece]), tmp_path / f"{i}.parquet", row_group_size=200)
    for fit in (private_moment, private_scales):
        assert np.array_equal(
            fit(tmp_path, BOUNDS, PRIVACY, person="id", **seeded()).mean,
            fit(data, BOUNDS, PRIVACY, person="id", **seeded()).mean,
        )
    options = {"person": ROWS, "records": 3000}
    in_memory = private_moment(data, BOUNDS, PRIVACY, **options, **seeded()).covariance
    on_dask = pytest.importorskip("dask.dataframe").from_pandas(data, npartitions=3)
    for source in (tmp_path, on_dask):
        assert np.array_equal(private_moment(source, BOUNDS, PRIVACY, **options, **seeded()).covariance, in_memory)


def extreme(rng, rows):
    """Rows of one person, all in corners or near the middle."""
    return rng.choice([-6.0, 6.0, 0.1], (rows, 3))


def on_grid(people, public=None, person=PERSON):
    frame = pd.DataFrame(np.concatenate(list(people.values())), columns=["a", "b", "c"])
    ids = np.repeat(list(people), [len(rows) for rows in people.values()])
    return validate_records(frame.assign(id=ids), BOUNDS, person)[1](public or len(people))


@pytest.mark.parametrize("seed", range(6))
def test_one_person_moves_no_count_excess_or_moment_further_than_one_record(seed):
    rng = np.random.default_rng(seed)
    others = {i: extreme(rng, int(rng.choice([1, 3]))) for i in range(3)}
    pair = [on_grid(others | {9: extreme(rng, rows)}) for rows in (1, int(rng.choice([1, 2, 100])))]
    turned = Coordinates.of(np.linalg.qr(rng.standard_normal((3, 3)))[0], np.zeros(3), pair[0].levels)
    for first, second in (pair, [one.transform(turned) for one in pair]):
        for cut in (0.5, 1.2):
            assert abs(first.counter([cut])(cut) - second.counter([cut])(cut)) <= 1
        assert abs(first.excess(0.5, 2.0) - second.excess(0.5, 2.0)) <= EXCESS_STEPS
        for neighbours in Neighbours:
            design = make_design(ball_query(3, 1.1, 4, neighbours, person=PERSON), PRIVACY, allocation=isotropic())
            if neighbours is Neighbours.REPLACE:
                assert apart(design, first, second) <= design.distance
            else:
                assert apart(design, first, on_grid_of(others, first)) <= design.distance


def on_grid_of(people, like):
    """The records of fewer people, on the same grid and in the same coordinates."""
    found = on_grid(people)
    assert found.levels == like.levels
    return found if like.grid.coordinates is None else found.transform(like.grid.coordinates)


@pytest.mark.parametrize("seed", range(4))
def test_one_person_moves_no_count_or_excess_further_than_the_rows_that_count(seed):
    rng = np.random.default_rng(seed)
    others = {i: extreme(rng, int(rng.choice([1, 3]))) for i in range(3)}
    pair = [on_grid(others | {9: extreme(rng, rows)}, 12, ROWS) for rows in (1, int(rng.choice([2, 5, 1000])))]
    for cut in (0.5, 1.2):
        assert abs(pair[0].counter([cut])(cut) - pair[1].counter([cut])(cut)) <= 3
    assert abs(pair[0].excess(0.5, 2.0) - pair[1].excess(0.5, 2.0)) <= 3 * EXCESS_STEPS


def test_one_more_person_leaves_the_weights_of_the_others(monkeypatch):
    """Weights have few digits here. If these depended on the private number of people, all weights could change."""
    monkeypatch.setattr("matrixdp.adaptive.records.EXCESS_STEPS", 1 << 44)
    people = {i: np.full((11, 3), 6.0) for i in range(8)}
    more = on_grid(people, public=8)
    del people[7]
    fewer = on_grid(people, public=8)
    assert abs(more.counter([1.0])(1.0) - fewer.counter([1.0])(1.0)) <= 1


def test_a_person_who_counts_with_every_row_is_found(monkeypatch):
    others = {i: np.full((1, 3), 0.1) for i in range(3)}
    monkeypatch.setattr(mdp.Person, "weights", lambda self, counts, unit: np.full(len(counts), unit))
    first, second = on_grid(others | {9: np.full((5, 3), 6.0)}), on_grid(others | {9: np.full((5, 3), 0.1)})
    assert abs(first.counter([1.0])(1.0) - second.counter([1.0])(1.0)) == 5


ESTIMATORS = [
    PrivateCovariance(bounds=BOUNDS),
    PrivatePCA(bounds=BOUNDS),
    PrivateScaler(bounds=BOUNDS),
    PrivateRidge(bounds=mdp.Bounds([-6] * 2, [6] * 2, names=["a", "b"]), target_bounds=(-6, 6)),
    PrivateKernelRidge(bounds=mdp.Bounds([-6] * 2, [6] * 2, names=["a", "b"]), target_bounds=(-6, 6), n_components=4),
    PrivateLinearDiscriminant(bounds=mdp.Bounds([-6] * 2, [6] * 2, names=["a", "b"]), classes=[False, True]),
    PrivateLinearDiscriminant(bounds=mdp.Columns([mdp.Number("a", -6, 6, missing=True)]), classes=[False, True]),
    PrivateRidge(bounds=mdp.Columns([mdp.Number("a", -6, 6), mdp.Number("b", -6, 6, True)]), target_bounds=(-6, 6)),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_estimators_take_a_column_of_ids_and_do_not_keep_it(estimator):
    data = make_people(600)
    targets = [data["c"]] if hasattr(estimator, "target_bounds") else []
    targets = [data["c"] > 0] if hasattr(estimator, "classes") else targets
    parameters = {**estimator.get_params(), "person": "id", "random_state": 0, "simulation": True}
    fitted = type(estimator)(**parameters).fit(data, *targets)
    ones = type(estimator)(**{**parameters, "person": None}).fit(data.drop(columns="id"), *targets)
    learned = [
        name for name, value in vars(fitted).items() if isinstance(value, np.ndarray) and value.dtype.kind == "f"
    ]
    assert any(not np.array_equal(getattr(fitted, name), getattr(ones, name)) for name in learned)
    assert b"p17" not in pickle.dumps(fitted)
    if hasattr(fitted, "predict"):
        assert np.array_equal(fitted.predict(data), fitted.predict(data[["a", "b"]]))


def test_errors_name_the_parameter():
    data = make_people(50)
    with pytest.raises(mdp.ParameterError, match="person must count once"):
        private_scales(data, BOUNDS, PRIVACY, person=mdp.Person("id", rows=2))
    with pytest.raises(mdp.ParameterError, match="rows of a person that count"):
        private_moment(data, BOUNDS, PRIVACY, person=mdp.Person("id", rows=2))
    with pytest.raises(mdp.DataError, match="at most 2 x 10 records"):
        private_moment(data, BOUNDS, PRIVACY, person=mdp.Person("id", rows=2), records=10)
    with pytest.raises(mdp.ParameterError, match="'a' is among the features"):
        private_scales(data, BOUNDS, PRIVACY, person="a")
    with pytest.raises(mdp.ParameterError, match="data frame with the column 'id'"):
        PrivateCovariance(bounds=BOUNDS, person="id").fit(data[["a", "b", "c"]])
    with pytest.raises(mdp.DataError, match="an id is missing"):
        private_moment(data.assign(id=[None, *data.id[1:]]), BOUNDS, PRIVACY, person="id")
