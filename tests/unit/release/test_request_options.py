"""A request id that is used again: the same options return the same release, others are refused by name."""

import inspect
import json
import signal

import numpy as np
import pyarrow as pa
import pytest

import matrixdp as mdp
from matrixdp.domain.file_rules import DateRule, FileRules
from matrixdp.ledger import Reserve
from release_worker import BOUNDS, DATA, release_folder, run_worker

PRIVACY = mdp.Privacy(1, 1e-6)
ACCOUNT = {"ledger", "dataset", "request", "allowance"}
NOISE = {"stream", "simulation"}  # a release with a request id has neither


@pytest.fixture
def ledger(tmp_path):
    ledger = mdp.Ledger.create(tmp_path / "clinic.db", wait=0)
    ledger.register("clinic", mdp.Privacy(10, 1e-6), neighbours="replace")
    return ledger


def release(data=DATA, query=None, privacy=PRIVACY, design=None, **options):
    query = query or mdp.Moments(BOUNDS, 50)
    return mdp.make_design(query, privacy, **design or {}).release(data, **options)


def other_bounds(**changed):
    return mdp.Bounds(**{"lower": [0, 0], "upper": [1, 1], "names": ["a", "b"], **changed})


DESIGNS = {
    "epsilon": ({"privacy": mdp.Privacy(2, 1e-6)}, "epsilon was 1.0 and is 2.0 now"),
    "delta": ({"privacy": mdp.Privacy(1, 1e-7)}, "delta was 1e-06 and is 1e-07 now"),
    "query": ({"query": mdp.SecondMoment(BOUNDS, 50)}, "query was 'Moments' and is 'SecondMoment' now"),
    "bounds": ({"query": mdp.Moments(other_bounds(upper=[1, 2]), 50)}, r"query.bounds.upper[1] was 1.0 and is 2.0 now"),
    "columns": ({"query": mdp.Moments(other_bounds(names=["a", "c"]), 50)}, "query.bounds.names[1] was 'b' and is 'c'"),
    "radius": ({"query": mdp.Moments(other_bounds(radius=0.5), 50)}, "query.bounds.radius was null and is 0.5 now"),
    "records": ({"query": mdp.Moments(BOUNDS, 49)}, "query.records was 50 and is 49 now"),
    "mean_share": ({"query": mdp.Moments(BOUNDS, 50, mean_share=0.4)}, "query.mean_share was 0.2 and is 0.4 now"),
    "neighbours": (
        {"query": mdp.Moments(BOUNDS, 50, neighbours="add-remove")},
        "query.neighbours was 'replace' and is 'add-remove' now",
    ),
    "allocation": (
        {"design": {"allocation": mdp.allocations.optimal([1, 2])}},
        "allocation.rule was 'uniform' and is 'optimal' now",
    ),
    "directions": ({"design": {"directions": np.eye(2)[:, ::-1]}}, "directions was null and is "),
    "calibration": ({"design": {"calibration": "theorem2"}}, "calibration was 'exact' and is 'theorem2' now"),
    "share": ({"design": {"share": 0.5}}, "share was 1.0 and is 0.5 now"),
    "structured": ({"design": {"structured": False}}, "structured was true and is false now"),
    "clip": ({"clip": False}, "clip was true and is false now"),
    "missing": ({"missing": "midpoint"}, "missing was 'error' and is 'midpoint' now"),
    "data": (
        {"data": mdp.records.Blocks(lambda: [DATA], {"month": "2031-03"})},
        "reading.month was not given and is '2031-03' now",
    ),
}


class TestDesigns:
    def test_every_argument_is_covered(self):
        arguments = {*inspect.signature(mdp.Design.release).parameters, *inspect.signature(mdp.make_design).parameters}
        assert arguments - {"self", "privacy"} - ACCOUNT - NOISE <= set(DESIGNS)
        fields = set(json.loads(release().to_json())["design"]["query"]) - {"kind"}
        assert fields <= set(DESIGNS)

    @pytest.mark.parametrize("option", DESIGNS)
    def test_another_option_is_refused_by_name_and_not_charged(self, ledger, option):
        account = {"ledger": ledger, "dataset": "clinic", "request": "r"}
        first, head = release(**account), ledger.head
        changed, words = DESIGNS[option]
        with pytest.raises(mdp.LedgerError) as caught:
            release(**changed, **account)
        assert words in str(caught.value)
        assert "or use another request id, which is charged" in str(caught.value)
        assert ledger.head == head
        assert release(**account).to_json() == first.to_json()

    def test_a_pending_request_with_other_options_is_refused_and_not_waited_for(self, ledger, monkeypatch):
        def stop(*_):
            raise KeyboardInterrupt

        account = {"ledger": ledger, "dataset": "clinic", "request": "r"}
        with monkeypatch.context() as patch:
            patch.setattr("matrixdp.mechanisms.mechanism.add_noise", stop)
            with pytest.raises(KeyboardInterrupt):
                release(**account)
        ledger.wait = 1e9
        with pytest.raises(mdp.LedgerError, match="clip was true and is false now"):
            release(clip=False, **account)

    def test_nothing_in_the_ledger_depends_on_the_records(self, ledger):
        for request, data in (("one", DATA), ("two", DATA[::-1] / 2)):
            release(data, ledger=ledger, dataset="clinic", request=request)
        with ledger._store.reading() as journal:
            one, two = (journal.row("request", "clinic", request).content()["options"] for request in ("one", "two"))
        assert one == two


COVARIANCES = {
    "schema": ({"schema": other_bounds(upper=[1, 2])}, "bounds.upper[1] was 1.0 and is 2.0 now"),
    "privacy": ({"privacy": mdp.Privacy(2, 1e-6)}, "epsilon was 1.0 and is 2.0 now"),
    "question": ({"question": "correlation"}, "aim was 'covariance' and is 'correlation' now"),
    "target": ({"question": "regression", "target": "a"}, "aim was 'covariance' and is 'regression' now"),
    "records": ({"records": 40}, "records was 50 and is 40 now"),
    "data": (
        {"data": mdp.records.Blocks(lambda: [DATA], {"month": "2031-03"})},
        "reading.month was not given and is '2031-03' now",
    ),
}
METHODS = {
    "adaptive": {**COVARIANCES, "method": ({"method": "plain"}, "method was 'adaptive' and is 'plain' now")},
    "plain": {
        **{
            name: (changed, words.replace("bounds.upper[1]", "query.columns[b].upper"))
            for name, (changed, words) in COVARIANCES.items()
        },
        "method": ({"method": "adaptive"}, "method was 'plain' and is 'adaptive' now"),
    },
}


class TestCovariances:
    def test_every_argument_is_covered(self):
        arguments = set(inspect.signature(mdp.release_table).parameters)
        elsewhere = {"epsilon", "delta", "workers", "options"}  # of the budget; who reads; the others below
        assert arguments - ACCOUNT - NOISE - elsewhere <= set(METHODS["plain"])

    @pytest.mark.parametrize(("method", "option"), [(method, name) for method in METHODS for name in METHODS[method]])
    def test_another_option_is_refused_by_name_and_not_charged(self, ledger, method, option):
        account = {"ledger": ledger, "dataset": "clinic", "request": "r"}
        asked = {"data": DATA, "schema": BOUNDS, "privacy": PRIVACY, "method": method, "records": 50, **account}
        asked["question"] = "covariance"
        first, head = mdp.release_table(**asked), ledger.head
        changed, words = METHODS[method][option]
        with pytest.raises(mdp.LedgerError) as caught:
            mdp.release_table(**{**asked, **changed})
        assert words in str(caught.value)
        assert ledger.head == head
        assert mdp.release_table(**asked).to_json() == first.to_json()

    @pytest.mark.parametrize(
        ("method", "words"),
        [
            ("adaptive", "person.rows was not given and is 2 now"),
            ("plain", "query.person.rows was not given and is 2 now"),
        ],
    )
    def test_another_limit_of_rows_is_refused(self, tmp_path, method, words):
        ledger = mdp.Ledger.create(tmp_path / "l.db")
        ledger.register("visits", mdp.Privacy(10, 1e-6), neighbours="replace", unit="person:id")
        visits = pa.table({"a": DATA[:, 0], "b": DATA[:, 1], "id": np.arange(50) // 2})
        account = {"ledger": ledger, "dataset": "visits", "request": "r", "records": 25, "method": method}
        account["question"] = "covariance"
        mdp.release_table(visits, BOUNDS, PRIVACY, person="id", **account)
        with pytest.raises(mdp.LedgerError) as caught:
            mdp.release_table(visits, BOUNDS, PRIVACY, person=mdp.Person("id", rows=2), **account)
        assert words in str(caught.value)
        assert len(ledger.history()) == 1


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"mechanism": "analytic Gaussian"}, "method was 'Laplace' and is 'analytic Gaussian' now"),
        ({"query": mdp.Identity(BOUNDS, 49)}, "query.records was 50 and is 49 now"),
        ({"privacy": mdp.Privacy(2, 1e-6)}, "epsilon was 1.0 and is 2.0 now"),
    ],
)
def test_another_mechanism_is_refused_by_name(tmp_path, changed, words):
    ledger = mdp.Ledger.create(tmp_path / "l.db")
    ledger.register("clinic", mdp.Privacy(100, 1e-6), neighbours="replace", reserve=Reserve(epsilon=90))
    asked = {"mechanism": "analytic Gaussian", "query": mdp.Identity(BOUNDS, 50), "privacy": PRIVACY, "data": DATA}
    if "mechanism" in changed:
        asked["mechanism"] = "Laplace"
    asked |= {"ledger": ledger, "dataset": "clinic", "request": "r"}
    mdp.release_mechanism(**asked)
    with pytest.raises(mdp.LedgerError) as caught:
        mdp.release_mechanism(**{**asked, **changed})
    assert words in str(caught.value)
    assert len(ledger.history()) == 1


def test_the_options_of_blocks_are_compared_also_where_they_are_opened(ledger):
    account = {"ledger": ledger, "dataset": "clinic", "request": "r"}
    march, april = (mdp.records.Blocks(lambda: [DATA], {"month": month}) for month in ("2031-03", "2031-04"))
    first = release(march, **account)
    assert release(mdp.open_records(march, workers=2), **account).to_json() == first.to_json()
    for data in (april, mdp.open_records(april, workers=2)):
        with pytest.raises(mdp.LedgerError, match=r"reading.month was '2031-03' and is '2031-04' now"):
            release(data, **account)
    fit = {"records": 50, "method": "adaptive", "question": "regression", "target": "a", **account, "request": "fit"}
    mdp.release_table(march, BOUNDS, PRIVACY, **fit)
    with pytest.raises(mdp.LedgerError, match=r"reading.month was '2031-03' and is '2031-04' now"):
        mdp.release_table(april, BOUNDS, PRIVACY, **fit)
    with pytest.raises(mdp.ParameterError, match="options must be finite, plain JSON"):
        release(mdp.records.Blocks(lambda: [DATA], {"month": {3}}), ledger=ledger, dataset="clinic", request="s")
    assert len(ledger.history()) == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rules": FileRules(delimiter=";")}, "reading.delimiter was not given and is ';' now"),
        ({"rules": FileRules(decimal=",")}, "reading.decimal was not given and is ',' now"),
        ({"rules": FileRules(missing_words=["-9"])}, r"reading.missing_words was not given and is \[.-9.\] now"),
        ({"rules": FileRules(dates=[DateRule("a", "hours")])}, r"reading.dates was not given and is \{.a.:.*hours"),
    ],
)
def test_files_that_are_read_in_another_way_are_refused(ledger, tmp_path, options, words):
    place = tmp_path / "records.csv"
    np.savetxt(place, DATA, delimiter=",", header="a,b", comments="")
    account = {"ledger": ledger, "dataset": "clinic", "request": "r"}
    first = release(str(place), **account)
    assert release(DATA, **account).to_json() == first.to_json()  # the defaults are those of any other data
    with pytest.raises(mdp.LedgerError, match=words):
        release(mdp.open_records(place, **options), **account)


def test_the_data_set_of_a_killed_process_is_recognised(ledger, tmp_path, monkeypatch):
    """Killed when the folder is complete, before the ledger knows it: the next call returns it, and draws nothing."""
    out, part = tmp_path / "out", tmp_path / "out" / "part-000000.parquet"
    assert run_worker("kill", ledger.path, out) == -signal.SIGKILL
    written = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(mdp.LedgerError, match="clip was true and is false now"):
        release_folder(ledger, out, clip=False)
    other = mdp.Ledger.create(tmp_path / "other.db")
    other.register("clinic", mdp.Privacy(10, 1e-6), neighbours="replace")
    release_folder(other, tmp_path / "other")  # the same request in another ledger, with other noise
    part.rename(tmp_path / "part")
    for name in ("elsewhere", "other", "out"):  # no folder, another release, a file is missing
        with pytest.raises(mdp.RequestPendingError):
            release_folder(ledger, tmp_path / name, force=True)
    (tmp_path / "part").rename(part)
    assert [charge.released for charge in ledger.history()] == [False]

    monkeypatch.setattr("matrixdp.release.dataset.BlockKey", None)  # noise would need one
    for _ in range(2):
        released = release_folder(ledger, out)
    assert (released.request, released.files) == ("r", (part.name,))
    assert {path.name: path.read_bytes() for path in out.iterdir()} == written
    assert [charge.released for charge in ledger.history()] == [True]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    ledger.verify()


def test_processes_that_use_one_request_id_with_different_options(ledger, tmp_path):
    """One of them is charged; those with its options get its release, and the others are refused."""
    requests = [f"night {number}" for number in range(5)]
    assert run_worker("race", ledger.path, tmp_path / "found", *requests) == 0
    for request, found in zip(requests, json.loads((tmp_path / "found").read_text()), strict=True):
        releases = [one.get("release") for one in found]
        won = tuple(place for place, one in enumerate(releases) if one is not None)
        assert won in ((0, 3), (1,), (2,))  # the first and the last have the same options
        assert {releases[place] for place in won} == {ledger.stored("clinic", request)}
        refused = [one["error"] for one in found if "error" in one]
        assert all(error.startswith("LedgerError") and "with other options" in error for error in refused)
    assert [charge.request for charge in ledger.history()] == requests
    assert all(charge.released for charge in ledger.history())
    ledger.verify()
