"""Requests of a user's own functions, and what is tried before a charge."""

import threading
from dataclasses import dataclass

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.release import charging
from matrixdp.release.charging import describe_design

PRIVACY = mdp.Privacy(1, 1e-6)


@pytest.fixture
def ledger(tmp_path):
    ledger = mdp.Ledger.create(tmp_path / "clinic.db")
    ledger.register("clinic", mdp.Privacy(10, 1e-6), neighbours="replace")
    return ledger


def own_query(function, **options):
    return mdp.Query((1, 1), mdp.sensitivity.FrobeniusBall(1.0), bound=100.0, function=function, **options)


def release(query, ledger, **options):
    return mdp.make_design(query, PRIVACY).release(np.ones(3), ledger=ledger, dataset="clinic", **options)


def test_a_function_without_a_name_has_no_request_id(ledger):
    run = {"ledger": ledger, "dataset": "clinic", "request": "r"}
    for options in ({}, {"name": "total"}, {"version": "1"}):
        query = own_query(lambda data: [[data.sum()]], **options)
        with pytest.raises(mdp.ParameterError, match="name and version"):
            release(query, ledger, request="r")
        with pytest.raises(mdp.ParameterError, match="name and version"):
            mdp.release_mechanism("analytic Gaussian", query, PRIVACY, np.ones(3), **run)
    assert ledger.history("clinic") == []
    release(query, ledger)
    assert len(ledger.history("clinic")) == 1


def test_two_functions_do_not_share_a_stored_answer(ledger):
    first = own_query(lambda data: [[data.sum()]], name="total", version="1")
    other = own_query(lambda data: [[-data.sum()]], name="total", version="2")
    stored = release(first, ledger, request="r")
    assert release(first, ledger, request="r").matrix == stored.matrix
    with pytest.raises(mdp.MatrixDPError):
        release(other, ledger, request="r")
    assert len(ledger.history("clinic")) == 1


def test_a_given_answer_needs_no_name(ledger):
    design = mdp.make_design(own_query(None), PRIVACY)
    first, again = (design.release([[3.0]], ledger=ledger, dataset="clinic", request="r") for _ in range(2))
    assert np.array_equal(first.matrix, again.matrix)


def test_names_are_written_only_if_they_are_given():
    plain = mdp.make_design(own_query(None), PRIVACY).release([[3.0]])
    assert '"name"' not in plain.to_json()
    named = mdp.make_design(own_query(None, name="given", version="3"), PRIVACY).release([[3.0]])
    query = mdp.Release.from_json(named.to_json()).design.query
    assert (query.name, query.version) == ("given", "3")
    with pytest.raises(mdp.ParameterError, match="name and version must be strings"):
        own_query(None, name=3, version="1")


@mdp.serialise.register
@dataclass(frozen=True)
class Unfinished(mdp.queries.MatrixQuery):
    """A query whose last step fails."""

    problem: float
    neighbours = mdp.Neighbours.REPLACE
    side = "columns"
    shape = (1, 2)
    sensitivity = mdp.sensitivity.FrobeniusBall(1.0)
    magnitude = np.ones((1, 2))

    def evaluate(self, data, *, clip, missing):
        return np.zeros((1, 2))

    def finish(self, matrix):
        if self.problem == 0:
            raise RuntimeError("broken")
        return matrix[:, :1]


@pytest.mark.parametrize("problem", [0.0, 1.0])
def test_an_answer_that_cannot_be_finished_is_not_charged(problem, ledger):
    with pytest.raises(mdp.ParameterError, match=r"Unfinished\.finish must"):
        release(Unfinished(problem), ledger)
    assert ledger.history("clinic") == []


def test_a_query_that_json_cannot_hold_is_not_charged(ledger):
    with pytest.raises(mdp.ParameterError):
        release(Unfinished(float("nan")), ledger)
    assert ledger.history("clinic") == []


def charge_first(ledger, query, request, data=((3.0,),)):
    """A charge of the same request by another process, as far as the ledger can tell."""
    design = mdp.make_design(query, PRIVACY)
    other = mdp.Ledger.open(ledger.path)
    receipt = other.charge(
        "clinic", design.event, neighbours=design.neighbours, description=describe_design(design), request=request
    )
    return other, receipt, design.release(data)


def test_the_loser_of_a_request_waits_for_the_winner(ledger, monkeypatch):
    query = own_query(None)
    other, receipt, first = charge_first(ledger, query, "r")
    pauses = []

    def pause(seconds):  # the winner finishes while the loser waits
        pauses.append(seconds)
        if len(pauses) == 3:
            other.complete(receipt, first.to_json())

    monkeypatch.setattr("matrixdp.ledger.ledger.time.sleep", pause)
    design = mdp.make_design(query, PRIVACY)
    found = design.release([[3.0]], ledger=ledger, dataset="clinic", request="r")
    assert np.array_equal(found.matrix, first.matrix)
    assert len(pauses) == 3
    assert len(ledger.history()) == 1


def test_a_request_that_is_charged_while_the_data_are_read_is_waited_for(ledger, monkeypatch):
    charged = []

    def total(data):
        if data.sum() == 3.0 and not charged:
            charged.extend(charge_first(ledger, query, "r", np.zeros(1)))
        return [[3.0]]

    query = own_query(total, name="total", version="1")
    monkeypatch.setattr(
        "matrixdp.ledger.ledger.time.sleep", lambda _: charged[0].complete(charged[1], charged[2].to_json())
    )
    found = release(query, ledger, request="r")
    assert np.array_equal(found.matrix, charged[2].matrix)
    assert len(ledger.history()) == 1


def test_a_request_that_is_never_finished_is_an_error_of_its_own(ledger):
    query = own_query(None)
    charge_first(ledger, query, "r")
    hasty = mdp.Ledger.open(ledger.path, wait=0)
    with pytest.raises(mdp.RequestPendingError, match=r"was charged by .* at .*entry 3.*use a new request id"):
        mdp.make_design(query, PRIVACY).release([[3.0]], ledger=hasty, dataset="clinic", request="r")


def test_threads_that_release_one_request_get_one_release(ledger):
    design, found = mdp.make_design(own_query(None), PRIVACY), []

    def ask():
        with mdp.Ledger.open(ledger.path) as handle:
            found.append(design.release([[3.0]], ledger=handle, dataset="clinic", request="r").to_json())

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert len(set(found)) == 1
    assert len(ledger.history()) == 1


class TestDataSets:
    """A request id of a data set that is written as files."""

    DATA = np.random.default_rng(0).uniform(size=(50, 2))
    DESIGN = mdp.make_design(mdp.Identity(mdp.Bounds([0, 0], [1, 1]), records=50), PRIVACY)

    def release(self, ledger, out, design=DESIGN, **options):
        blocks = mdp.records.Blocks(lambda: [self.DATA])
        return mdp.release_dataset(design, blocks, out, ledger=ledger, dataset="clinic", **options)

    def test_a_repeated_request_returns_the_data_set_without_a_charge(self, ledger, tmp_path):
        first, again = (self.release(ledger, tmp_path / "out", request="r") for _ in range(2))
        assert (again.files, again.request) == (first.files, "r")
        assert mdp.DatasetRelease.open(tmp_path / "out").request == "r"
        assert [charge.released for charge in ledger.history("clinic")] == [True]

    def test_another_folder_is_not_the_release_of_the_request(self, ledger, tmp_path):
        self.release(ledger, tmp_path / "one", request="r")
        self.release(ledger, tmp_path / "two")  # the same design, with other noise
        for name in ("two", "three"):
            with pytest.raises(mdp.ParameterError, match=f"request 'r' was released before, and is not in .*{name}"):
                self.release(ledger, tmp_path / name, request="r", force=True)
        assert len(ledger.history("clinic")) == 2
        assert not (tmp_path / "three").exists()

    def test_a_data_set_that_lost_a_file_is_not_returned(self, ledger, tmp_path):
        (name,) = self.release(ledger, tmp_path / "out", request="r").files
        (tmp_path / "out" / name).unlink()
        with pytest.raises(mdp.ParameterError, match=r"complete data set, but .*parquet does not exist"):
            self.release(ledger, tmp_path / "out", request="r", force=True)
        assert len(ledger.history("clinic")) == 1

    def test_a_data_set_that_was_finished_meanwhile_is_returned(self, ledger, tmp_path, monkeypatch):
        """Another process finishes after this one has looked for a stored release."""
        first, stored = self.release(ledger, tmp_path / "out", request="r"), charging.Account.stored
        for name, words in (("out", None), ("other", "is not in .*other")):
            answers = iter([lambda *_, **__: None, stored])
            monkeypatch.setattr(charging.Account, "stored", lambda *args, found=answers, **kw: next(found)(*args, **kw))
            if words is None:
                assert self.release(ledger, tmp_path / name, request="r", force=True).files == first.files
            else:
                with pytest.raises(mdp.ParameterError, match=words):
                    self.release(ledger, tmp_path / name, request="r", force=True)
        assert not (tmp_path / "other").exists()
        assert len(ledger.history("clinic")) == 1

    def test_a_matrix_and_a_data_set_do_not_share_a_request(self, ledger, tmp_path):
        self.release(ledger, tmp_path / "out", request="r")
        with pytest.raises(mdp.MatrixDPError, match="r"):
            self.DESIGN.release(self.DATA, ledger=ledger, dataset="clinic", request="r")
        self.DESIGN.release(self.DATA, ledger=ledger, dataset="clinic", request="s")
        with pytest.raises(mdp.MatrixDPError, match="s"):
            self.release(ledger, tmp_path / "other", request="s")
        assert not (tmp_path / "other").exists()
        assert len(ledger.history("clinic")) == 2

    def test_an_interrupted_request_stays_pending(self, ledger, tmp_path, monkeypatch):
        def stop(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr("matrixdp.release.dataset.WriteTask", stop)
            with pytest.raises(KeyboardInterrupt):
                self.release(ledger, tmp_path / "out", request="r")
        ledger.wait = 0
        with pytest.raises(mdp.RequestPendingError):
            self.release(ledger, tmp_path / "out", request="r")
        assert len(ledger.history("clinic")) == 1
