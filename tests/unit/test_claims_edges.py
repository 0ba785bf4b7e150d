"""Claims at the edges: who reads what, what rounding costs, what is checked before and after a charge."""

import resource
import shutil
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.cli.main import run
from matrixdp.estimators import (
    PrivateCovariance,
    PrivateKernelRidge,
    PrivateLinearDiscriminant,
    PrivatePCA,
    PrivateRidge,
    PrivateScaler,
)
from matrixdp.mechanisms import dataset_rows
from matrixdp.mechanisms.dataset_rows import CheckTask, WriteTask
from matrixdp.noise import BlockKey
from matrixdp.studio import worker
from matrixdp.studio.refusals import NotFoundError
from matrixdp.studio.rendering import Studio
from matrixdp.studio.requests import ReleaseSpec
from matrixdp.studio.roles import Role, Viewer
from matrixdp.studio.worker import release_request
from studio_site import ANALYST, CURATOR, SCHEMA, SPEC, Site

release = mdp.Design.release

PRIVACY = mdp.Privacy(1, 1e-6)
COLUMNS = mdp.Columns([mdp.Number("age", 0, 0.7), mdp.Number("bmi", 10, 10.3), mdp.Category("ward", ["n", "s"])])
OTHER = Viewer("otto", frozenset({Role.ANALYST}))


def make_table(records=40, rows=1, **changes):
    """A table in which each of `records` people has `rows` rows."""
    rng = np.random.default_rng(0)
    size = records * rows
    columns = {
        "age": rng.uniform(0, 0.7, size),
        "bmi": rng.uniform(10, 10.3, size),
        "ward": rng.choice(["n", "s"], size),
        "id": np.repeat(np.arange(records), rows),
    }
    return pa.table({**columns, **changes})


# What others may read


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


@pytest.mark.parametrize("status", ["pending", "refused", "failed", "approved", "running"])
def test_an_analyst_reads_no_request_of_another_before_it_is_released(site, status):
    asked = site.ask(ANALYST)
    with site.studio.state.writing() as connection:
        connection.execute("UPDATE requests SET status = ?, reason = 'no', error = 'why'", (status,))
    assert site.studio.requests.get(ANALYST, asked.id).id == asked.id
    assert site.studio.requests.get(CURATOR, asked.id).status.value == status
    with pytest.raises(NotFoundError):
        site.studio.requests.get(OTHER, asked.id)
    assert site.studio.requests.list_all(OTHER) == []
    assert site.api(OTHER).get(f"/api/requests/{asked.id}").status_code == 404
    assert site.browser(OTHER).get(f"/requests/{asked.id}").status_code == 404


def test_a_pending_request_is_neither_charged_nor_released(site):
    asked = site.ask(ANALYST)
    release_request(site.settings, asked.id)
    assert site.studio.requests.get(ANALYST, asked.id).status.value == "pending"
    assert not (site.settings.releases / asked.id).exists()
    with mdp.Ledger.open(site.settings.ledger) as ledger:
        assert list(ledger.history("clinic")) == []


# Rounding


def test_the_moments_of_a_table_are_within_their_declared_rounding_error_and_not_exact():
    """Against exact rational sums of the values on the grid. A declared error of zero would be false."""
    query = mdp.TableMoments(COLUMNS, records=40)
    table = make_table()
    found = query.evaluate(table, clip=True, missing="error")
    exact = exact_moments(query, table)
    worst = Fraction(0)
    for i in range(found.shape[0]):
        for j in range(found.shape[1]):
            if exact[i][j]:
                worst = max(worst, abs(Fraction(float(found[i, j])) - exact[i][j]) / abs(exact[i][j]))
    assert 0 < worst <= Fraction(query.relative_error)


def exact_moments(query, table):
    """``(1/N) sum z z'`` in rational numbers, each value being its whole number of steps of its grid."""
    from matrixdp.queries.sums import sum_levels  # the steps between the middle of the bounds and their ends

    steps = sum_levels(query.records)
    bounds = query.used.bounds
    vectors = []
    raw = np.column_stack([table["age"].to_numpy(), table["bmi"].to_numpy()])
    quantised = np.rint((raw - bounds.midpoint) / bounds.halfwidths * steps)
    for i, ward in enumerate(table["ward"].to_pylist()):
        z = [Fraction(0)] * query.layout.size
        z[0] = Fraction(1)
        for name, column in (("age", 0), ("bmi", 1)):
            half = Fraction(float(bounds.halfwidths[column]))
            z[query.places[name].value] = half * int(quantised[i, column]) / steps
        z[query.places["ward"].value + ["n", "s"].index(ward)] = Fraction(1)
        vectors.append(z)
    size = query.layout.size
    count = len(vectors)
    return [[sum(z[i] * z[j] for z in vectors) / count for j in range(size)] for i in range(size)]


@pytest.mark.parametrize("rows", [1, 3, 7])
def test_people_have_a_weight_of_exactly_one_whatever_their_number_of_rows(rows):
    """The weights of three rows do not sum to one in binary: a public record has the rest."""
    query = mdp.TableMoments(COLUMNS, records=40, person=mdp.Person("id"))
    found = query.evaluate(make_table(rows=rows), clip=True, missing="error")
    ward = query.places["ward"].value
    assert found[0, 0] == 1.0
    assert found[0, ward] + found[0, ward + 1] == 1.0


# Data that change while they are read


class Changing:
    """Blocks of which the first reading differs from all others."""

    def __init__(self, first, others):
        self.readings, self._first, self._others = 0, first, others

    def __call__(self):
        self.readings += 1
        return (self._first if self.readings == 1 else self._others,)


@pytest.mark.parametrize("change", ["a row more", "a row less", "another person", "another person and a row more"])
def test_rows_of_people_that_change_between_readings_are_refused_before_the_charge(change, tmp_path):
    table = make_table(rows=2)
    strangers = table.set_column(3, "id", pa.array([10**6, *table["id"].to_pylist()[1:]]))
    others = {
        "a row more": pa.concat_tables([table, table.slice(0, 1)]),
        "a row less": table.slice(1),
        "another person": strangers,
        "another person and a row more": pa.concat_tables([strangers, table.slice(5, 1)]),
    }[change]
    design = mdp.make_design(mdp.TableMoments(COLUMNS, records=40, person=mdp.Person("id")), PRIVACY)
    with mdp.Ledger.create(tmp_path / "a.db") as ledger:
        ledger.register("clinic", mdp.Privacy(4, 1e-6), neighbours="replace", unit="person:id")
        with pytest.raises(mdp.DataError, match="changed while they were read"):
            release(design, mdp.records.Blocks(Changing(table, others)), ledger=ledger, dataset="clinic")
        assert list(ledger.history("clinic")) == []


# What noise hides


@pytest.mark.parametrize(("factor", "given"), [(3.0, False), (3.9, False), (4.1, True), (6.0, True)])
def test_a_mean_has_an_error_bar_only_for_a_level_of_four_standard_deviations_of_its_noise(factor, given):
    columns = mdp.Columns([mdp.Number("age", 0, 100), mdp.Category("ward", ["n", "s"])])
    design = mdp.make_design(mdp.TableMoments(columns, records=1000), PRIVACY)
    place, matrix = design.query.places["ward"].value, design.query.finish(np.zeros(design.query.shape))

    def means(share):
        for k, part in enumerate((share, 1 - share)):
            matrix[0, place + k] = matrix[place + k, 0] = matrix[place + k, place + k] = part
        return mdp.Release(matrix, design).means(by="ward")

    bar = means(0.5).std[0, 0]
    found = means(factor * bar)
    assert found["n", "share of records"] == pytest.approx(factor * bar)
    assert found.reliable[0].tolist() == [True, given]
    low, high = (float(end[0, 1]) for end in found.interval())
    assert 0 <= low < found["n", "age"] == 50 < high <= 100


# Before and after the charge


def test_what_cannot_be_written_is_noticed_before_the_charge(tmp_path, monkeypatch):
    """The files are written once for trial. No file may be larger than 100,000 bytes, and this matrix has 120,000."""
    monkeypatch.chdir(tmp_path)
    rows = "\n".join(f"{i % 7},{i % 5},{i % 3}" for i in range(5000))
    Path("data.csv").write_text(f"a,b,c\n{rows}\n")
    Path("schema.toml").write_text("".join(f"[columns.{name}]\nlower = 0\nupper = 7\n" for name in "abc"))
    with mdp.Ledger.create("ledger.db") as ledger:
        ledger.register("clinic", mdp.Privacy(4, 1e-6), neighbours="replace")
    words = ["release", "data.csv", "--schema", "schema.toml", "--query", "identity", "--epsilon", "1"]
    words += ["--delta", "1e-6", "--ledger", "ledger.db", "--dataset", "clinic", "--out", "out"]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        code = run(words)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert code != 0
    assert not Path("out").exists()
    with mdp.Ledger.open("ledger.db") as ledger:
        assert list(ledger.history("clinic")) == []
    assert run(words) == 0


@pytest.mark.parametrize(("payment", "resumed"), [("unknown", True), ("stored", True), ("none", False)])
def test_a_server_resumes_failed_requests_that_may_be_paid(site, payment, resumed):
    asked = site.ask(ANALYST)
    site.studio.requests.approve(CURATOR, asked.id)
    if payment == "stored":
        release_request(site.settings, asked.id)
        shutil.rmtree(site.settings.releases / asked.id)
    with site.studio.state.writing() as connection:
        connection.execute("UPDATE requests SET status = 'failed', payment = ?, error = 'e'", (payment,))
    studio = Studio(site.settings)
    studio.runner.start()
    try:
        deadline = time.monotonic() + (20 if resumed else 0.5)
        while time.monotonic() < deadline and not (site.settings.releases / asked.id / "release.json").exists():
            time.sleep(0.02)
    finally:
        studio.runner.stop()
    found = site.studio.requests.get(CURATOR, asked.id).status.value
    assert found == ("released" if resumed else "failed")
    with mdp.Ledger.open(site.settings.ledger) as ledger:
        assert len(ledger.history("clinic")) == int(resumed)


def test_progress_never_tells_how_many_rows_people_have(tmp_path, monkeypatch):
    """Their number is private even where the number of people is public."""
    monkeypatch.setattr(worker, "_PROGRESS_STEP", 0.0)
    seen = {}
    for person in (False, True):
        (tmp_path / str(person)).mkdir()
        site = Site(tmp_path / str(person))
        rows = "\n".join(f"{20 + i % 50},{25 + i % 9},{'north' if i % 2 else 'south'},{i % 100}" for i in range(200))
        (site.settings.folder / "visits.csv").write_text(f"age,bmi,ward,id\n{rows}\n")
        schema = SCHEMA.replace("records = 200", f"records = {100 if person else 200}")
        site.studio.schemas.write("visits.csv", schema + ('[person]\ncolumn = "id"\n' if person else ""))
        unit = {"unit": "person:id"} if person else {}
        site.studio.datasets.register(CURATOR, "visits", "visits.csv", epsilon=4.0, delta=1e-6, **unit)
        spec = ReleaseSpec.from_mapping(SPEC)
        asked = site.studio.requests.submit(ANALYST, "visits", "visits.csv", spec, "a test", "1")
        with site.studio.state.writing() as connection:
            connection.execute("CREATE TABLE seen (progress REAL)")
            connection.execute(
                "CREATE TRIGGER note AFTER UPDATE OF progress ON requests WHEN NEW.progress IS NOT NULL "
                "BEGIN INSERT INTO seen VALUES (NEW.progress); END"
            )
        site.studio.requests.approve(CURATOR, asked.id)
        release_request(site.settings, asked.id)
        assert site.studio.requests.get(CURATOR, asked.id).status.value == "released"
        with site.studio.state.reading() as connection:
            seen[person] = [row[0] for row in connection.execute("SELECT progress FROM seen")]
    assert seen[False][-1] == 1.0
    assert seen[True] == []


# Whether there are any records

BOX = mdp.Bounds([-5, -5], [5, 5], names=["a", "b"])
SOURCES = {
    "array": lambda table, _: table.to_pandas()[["a", "b"]].to_numpy(),
    "frame": lambda table, _: table.to_pandas(),
    "file": lambda table, folder: write_parquet(table, folder / "table.parquet"),
    "blocks": lambda table, _: mdp.records.Blocks(lambda: iter([table] if len(table) else [])),
}
FITTED = {"neighbours": "add-remove", "records": 50, "simulation": True, "random_state": 0}
ESTIMATORS = {
    "covariance": lambda X, _: PrivateCovariance(bounds=BOX, **FITTED).fit(X),
    "components": lambda X, _: PrivatePCA(bounds=BOX, **FITTED).fit(X),
    "scaler": lambda X, _: PrivateScaler(bounds=BOX, **FITTED).fit(X),
    "people": lambda X, _: PrivateScaler(bounds=BOX, person="id", **FITTED).fit(X),
    "regression": lambda X, y: PrivateRidge(bounds=BOX, target_bounds=(-5, 5), **FITTED).fit(X, y),
    "kernel": lambda X, y: PrivateKernelRidge(bounds=BOX, target_bounds=(-5, 5), **FITTED).fit(X, y),
    "discriminant": lambda X, y: PrivateLinearDiscriminant(bounds=BOX, classes=[-1, 0, 1], **FITTED).fit(X, np.sign(y)),
    "table": lambda X, _: PrivateCovariance(bounds=mdp.Columns([mdp.Category("id", ["0"])]), **FITTED).fit(X),
    "missing": lambda X, _: PrivateCovariance(bounds=mdp.Columns([mdp.Number("a", -5, 5, missing=True)]), **FITTED).fit(
        X
    ),
}


def write_parquet(table, path):
    pq.write_table(table, path)
    return path


def make_rows(rows):
    values = np.random.default_rng(1).uniform(-1, 1, (2, rows))
    return pa.table({"a": values[0], "b": values[1], "id": pa.array([str(k) for k in range(rows)], pa.string())})


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "asked",
    [
        {"question": "covariance", "neighbours": "add-remove"},
        {"question": "regression", "target": "b", "neighbours": "add-remove"},
        {"question": "correlation", "neighbours": "add-remove", "person": "id"},
        {"question": "components", "person": mdp.Person("id", rows=2)},
    ],
    ids=["records", "regression", "people", "rows"],
)
def test_a_fit_of_no_records_is_released_like_one_of_one_where_their_number_is_private(source, asked, tmp_path):
    if source == "array" and "person" in asked:
        pytest.skip("an array has no column of ids")
    unit = "person:id" if "person" in asked else "record"
    with mdp.Ledger.create(tmp_path / "clinic.db") as ledger:
        ledger.register("clinic", mdp.Privacy(9, 1e-5), neighbours=asked.get("neighbours", "replace"), unit=unit)
        for rows in (0, 1):
            data = SOURCES[source](make_rows(rows), tmp_path)
            options = {"method": "adaptive", "records": 50, "ledger": ledger, "dataset": "clinic"}
            released = mdp.release_table(data, BOX, PRIVACY, **asked, **options)
            assert np.isfinite(released.covariance().value).all()
        first, second = ledger.history("clinic")
        assert first.released
        assert second.released
        assert first.event == second.event


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_fits_no_records_where_their_number_is_private(name):
    for rows in (0, 1):
        X = make_rows(rows).to_pandas()
        X = X if name in ("people", "table", "missing") else X[["a", "b"]]
        fitted = ESTIMATORS[name](X, np.linspace(-1, 1, rows))
        assert fitted.mu_ > 0


def test_a_fit_of_no_records_is_an_error_where_their_number_is_public():
    with pytest.raises(mdp.DataError, match="at least one record"):
        mdp.release_table(np.empty((0, 2)), BOX, PRIVACY, question="covariance", method="adaptive", simulation=True)
    with pytest.raises(ValueError, match="minimum of 1"):
        PrivateCovariance(bounds=BOX, simulation=True).fit(np.empty((0, 2)))


# Noise that is used again


@pytest.mark.parametrize("change", ["first", "middle", "last", "fewer", "more"])
def test_no_file_of_a_data_set_has_the_noise_of_another_for_other_records(change, tmp_path, monkeypatch):
    monkeypatch.setattr(dataset_rows, "_CHUNK", 20)  # ten records
    records = np.random.default_rng(0).uniform(-1, 1, (35, 2))
    design = mdp.make_design(mdp.Identity(mdp.Bounds([-1, -1], [1, 1]), 35), PRIVACY)
    check = CheckTask(design.query, clip=True, missing="error")
    found = check(0, [records])
    assert found == check(0, [records[:3], records[3:]])
    task = WriteTask(check, design, BlockKey(mdp.Stream()), (found,), tmp_path, tmp_path)
    task(0, [records])
    altered = records[:30] if change == "fewer" else np.vstack([records, records[:1]]) if change == "more" else +records
    row = {"first": 0, "middle": 17, "last": 34}.get(change)
    if row is not None:
        altered[row] = 0.5
    with pytest.raises(mdp.DataError, match="altered"):
        task(0, [altered[:20], altered[20:]])
    (finished,), (draft,) = tmp_path.glob("part-*.parquet"), tmp_path.glob("part-*.parquet.*")
    left, right = pq.read_table(finished).to_pandas(), pq.read_table(draft).to_pandas()
    assert len(right) == {"first": 0, "middle": 10}.get(change, 30)  # whole chunks of the same records
    assert left[: len(right)].equals(right)
