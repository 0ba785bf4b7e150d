"""Whatever fails, no request is charged twice, and what is paid is released."""

import errno
import itertools
import json
import math
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from matrixdp import BudgetExceededError, Ledger
from matrixdp.errors import LedgerError
from matrixdp.gdp import gdp_epsilon
from matrixdp.release.output_folder import OutputFolder
from matrixdp.report import release_folder
from matrixdp.studio import worker
from matrixdp.studio.refusals import ConflictError, UnavailableError
from matrixdp.studio.rendering import Studio
from matrixdp.studio.requests import ReleaseSpec, Status
from matrixdp.studio.roles import Role, Viewer
from matrixdp.studio.state import State, hold_lock
from matrixdp.studio.worker import load_request, release_request
from studio_site import ANALYST, CURATOR, TABLE, Site

VICTIM = Path(__file__).parents[2] / "studio_victim.py"
FULL = "MATRIXDP_STUDIO_FAULTS" in os.environ  # make studio-faults
KILLS = 50 if FULL else 5


class Victims:
    """Runs parts of a studio in processes that are killed at given moments."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, str(VICTIM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, site, part, request, moment=None):
        folder = str(site.settings.state.parent)
        trial = {"folder": folder, "part": part, "request": request.id, "moment": moment}
        print(json.dumps(trial), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


@pytest.fixture(scope="module")
def victims():
    found = Victims()
    with found.process:
        yield found
        found.process.stdin.close()


@pytest.fixture
def folder(tmp_path):
    """A folder in memory, if there is one: the tests below write to the disk thousands of times."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
    else:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as found:
            yield Path(found)


@pytest.fixture
def site(folder):
    return Site(folder)


def find_charges(site, request):
    with Ledger.open(site.settings.ledger) as ledger:
        ledger.verify()
        return [charge for charge in ledger.history("clinic") if charge.request == request.ledger_id]


def pick_moments(victims, site, part, request, kills):
    """Moments spread over the whole way, at random within equal parts; all of them if there are no more."""
    total = victims.run(site, part, request)["moments"]
    if total <= kills:
        return list(range(1, total + 1))
    edges = np.linspace(1, total, kills + 1).astype(int)
    rng = np.random.default_rng(0)
    return [int(rng.integers(first, last, endpoint=True)) for first, last in itertools.pairwise(edges)]


def test_a_server_that_is_killed_charges_once_and_loses_nothing(site, victims):
    moments = pick_moments(victims, site, "server", site.ask(form_id="first", epsilon=0.1), KILLS)
    for moment in moments:
        request = site.ask(form_id=str(moment), epsilon=0.1)
        assert victims.run(site, "server", request, moment)["status"] in (-9, 0)
        assert victims.run(site, "server", request)["status"] == 0
        assert load_request(site.studio.state, request.id).status is Status.RELEASED, moment
        assert [charge.released for charge in find_charges(site, request)] == [True], moment
        assert site.studio.results.load(request.id).privacy.epsilon == 0.1


def test_a_killed_process_of_a_release_is_charged_once_and_says_what_was_paid(site, victims):
    first = site.ask(form_id="first", epsilon=0.1)
    approve(site, first)
    for moment in pick_moments(victims, site, "worker", first, KILLS):
        request = site.ask(form_id=str(moment), epsilon=0.1)
        approve(site, request)
        assert victims.run(site, "worker", request, moment)["status"] in (-9, 0)
        assert victims.run(site, "server", request)["status"] == 0
        found, charges = load_request(site.studio.state, request.id), find_charges(site, request)
        assert len(charges) == 1, moment
        if charges[0].released:
            assert found.status is Status.RELEASED, moment
        else:  # killed after the charge was written, before the release was
            assert (found.status, found.payment) == (Status.FAILED, "lost"), moment


def approve(site, request):
    return site.studio.requests.approve(CURATOR, request.id)


def release(site, request):
    """Approve a request and release it in this thread."""
    approve(site, request)
    release_request(site.settings, request.id)
    return load_request(site.studio.state, request.id)


def test_a_release_runs_in_a_process_of_its_own(folder):
    site = Site(folder, isolated=True)
    request = site.ask()
    approve(site, request)
    run_until_over(site.studio, request)
    assert load_request(site.studio.state, request.id).status is Status.RELEASED


def test_a_process_that_cannot_run_is_noted(folder, monkeypatch, caplog):
    site = Site(folder, isolated=True)
    request = site.ask()
    for program, kind in ((shutil.which("false"), "InterruptedReleaseError"), ("missing", "FileNotFoundError")):
        approve(site, request)
        monkeypatch.setattr("matrixdp.studio.worker.sys.executable", program)
        run_until_over(site.studio, request)
        found = load_request(site.studio.state, request.id)
        assert (found.status, found.error_kind, found.payment) == (Status.FAILED, kind, "none")
    assert "code 1" in caplog.text
    assert "No such file" in caplog.text


def test_a_studio_that_stops_leaves_the_process_alone(folder, monkeypatch):
    site = Site(folder, isolated=True)
    request = site.ask()
    approve(site, request)
    whole, started = worker.subprocess.Popen, []
    monkeypatch.setattr(worker.subprocess, "Popen", lambda *a, **b: started.append(whole(*a, **b)) or started[0])
    with hold_lock(site.settings.state / "locks" / request.id):
        site.studio.runner.start()
        wait_for(lambda: started)
        site.studio.runner.stop()
        assert load_request(site.studio.state, request.id).status is Status.APPROVED
    wait_for(lambda: load_request(site.studio.state, request.id).status is Status.RELEASED)


def test_the_studios_own_file_may_be_unusable_for_a_while(site, monkeypatch, caplog):
    request = site.ask()
    approve(site, request)
    whole, failures = State.reading, [UnavailableError("locked")] * 3

    def read_later(self):
        if failures:
            raise failures.pop()
        return whole(self)

    monkeypatch.setattr(worker, "_LOOK", 0.01)
    monkeypatch.setattr(State, "reading", read_later)
    with pytest.raises(UnavailableError):
        load_request(site.studio.state, request.id)
    site.studio.runner._thread.start()
    wait_for(lambda: not failures)
    wait_for(lambda: load_request(site.studio.state, request.id).is_over)
    site.studio.runner.stop()
    assert load_request(site.studio.state, request.id).status is Status.RELEASED
    assert "locked" in caplog.text


def test_a_release_whose_outcome_cannot_be_written_is_tried_again(site, monkeypatch, caplog):
    request = site.ask()
    approve(site, request)
    failures = [UnavailableError("full")]

    def release_later(settings, request_id):
        if failures:
            raise failures.pop()
        release_request(settings, request_id)

    monkeypatch.setattr(worker, "_LOOK", 0.01)
    monkeypatch.setattr(worker, "release_request", release_later)
    run_until_over(site.studio, request)
    assert load_request(site.studio.state, request.id).status is Status.RELEASED
    assert "full" in caplog.text


def test_two_processes_of_one_request_release_it_once(site):
    request = site.ask()
    approve(site, request)
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(release_request, site.settings, request.id) for _ in range(4)]:
            done.result()
    assert load_request(site.studio.state, request.id).status is Status.RELEASED
    assert len(find_charges(site, request)) == 1


@pytest.mark.parametrize("place", ["matrix.csv", "finish"])
def test_a_full_disk_loses_nothing_that_is_paid(site, monkeypatch, place):
    def fail(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    rehearsed = []

    def fail_later(path, *arguments):  # a trial before the charge succeeds
        if rehearsed:
            fail()
        rehearsed.append(path)

    with monkeypatch.context() as patch:
        if place == "finish":
            patch.setattr(OutputFolder, "finish", fail)
        else:
            patch.setattr(release_folder, "_write_csv", fail_later)
            rehearsed.clear()
        request = site.ask(query="correlation")
        found = release(site, request)
    if place == "finish":
        assert found.status is Status.FAILED
        assert found.payment == "stored"
        assert "No space left" in found.error
        assert "at no cost" in found.error
    again = release(site, request)
    assert again.status is Status.RELEASED
    assert len(find_charges(site, request)) == 1


def test_a_full_disk_before_the_charge_costs_nothing(site, monkeypatch):
    def fail(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    request = site.ask()
    with monkeypatch.context() as patch:
        patch.setattr(release_folder.np, "save", fail)
        found = release(site, request)
    assert (found.status, found.payment) == (Status.FAILED, "none")
    assert not find_charges(site, request)
    assert release(site, request).status is Status.RELEASED


def test_a_restarted_studio_writes_what_was_paid(site, monkeypatch):
    request = site.ask()
    with monkeypatch.context() as patch:
        patch.setattr(OutputFolder, "finish", lambda self: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
        assert release(site, request).payment == "stored"
    running = site.ask(form_id="running")
    worker.update_request(site.studio.state, running.id, status="running", decided_by="cara")
    run_until_over(Studio(site.settings), request, running)
    assert load_request(site.studio.state, running.id).status is Status.RELEASED
    assert load_request(site.studio.state, request.id).status is Status.RELEASED
    shutil.rmtree(site.settings.releases / request.id)
    studio = Studio(site.settings)
    run_until_over(studio, request)
    assert "release.json" in studio.results.files(request.id)
    assert len(find_charges(site, request)) == 1


def run_until_over(studio, *requests):
    """Start the runner of a studio, and stop it when these requests are released or have failed."""
    studio.runner.start()
    wait_for(lambda: all(load_request(studio.state, request.id).is_over for request in requests), 60 + len(requests))
    studio.runner.stop()


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_request_that_cannot_be_read_does_not_stop_the_others(site, caplog):
    broken, request = site.ask(form_id="broken"), site.ask()
    approve(site, broken)
    approve(site, request)
    with site.studio.state.writing() as connection:
        connection.execute("UPDATE requests SET spec = '{\"secret\": 1}' WHERE id = ?", (broken.id,))
    run_until_over(site.studio, request)
    assert load_request(site.studio.state, request.id).status is Status.RELEASED
    assert "ParameterError" in caplog.text
    assert "secret" not in caplog.text


def test_another_ledger_does_not_release_again_what_was_released(site):
    """Other noise for the same request would be a second release, which the first ledger does not know."""
    request = site.ask()
    assert release(site, request).status is Status.RELEASED
    shutil.rmtree(site.settings.releases / request.id)
    site.settings.ledger.unlink()
    Ledger.create(site.settings.ledger).close()
    site.studio.datasets.register(CURATOR, "clinic", TABLE, epsilon=4.0, delta=1e-6)
    for _ in range(2):
        run_until_over(Studio(site.settings), request)
        found = load_request(site.studio.state, request.id)
        assert found.status is Status.FAILED
        assert "another ledger" in found.error
    assert release(site, request).status is Status.FAILED
    assert not find_charges(site, request)


def test_a_locked_ledger_costs_nothing(site, monkeypatch):
    request = site.ask()
    approve(site, request)
    monkeypatch.setattr(worker, "LEDGER_TIMEOUT", 0.05)
    with closing(sqlite3.connect(site.settings.ledger, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        release_request(site.settings, request.id)
        found = load_request(site.studio.state, request.id)
        assert found.status is Status.FAILED
        assert found.payment == "unknown"
    assert release(site, request).status is Status.RELEASED
    assert len(find_charges(site, request)) == 1


def test_progress_is_shown_where_the_number_of_records_is_public(site, monkeypatch):
    monkeypatch.setattr(worker, "_PROGRESS_STEP", 0.0)
    seen = []
    whole = worker.update_request

    def note(state, request_id, **values):
        seen.extend(value for name, value in values.items() if name == "progress" and value is not None)
        whole(state, request_id, **values)

    monkeypatch.setattr(worker, "update_request", note)
    release(site, site.ask())
    assert seen[-1] == 1.0
    assert load_request(site.studio.state, site.ask().id).progress is None


def test_a_ledger_that_is_gone_costs_nothing(site):
    request = site.ask()
    approve(site, request)
    away = site.settings.ledger.with_name("away")
    site.settings.ledger.rename(away)
    release_request(site.settings, request.id)
    assert load_request(site.studio.state, request.id).payment == "unknown"
    seen = {role: site.browser(role).get("/datasets") for role in (CURATOR, ANALYST)}
    assert seen[CURATOR].status_code == seen[ANALYST].status_code == 503
    assert site.settings.ledger.name in seen[CURATOR].text
    assert site.settings.ledger.name not in seen[ANALYST].text
    with pytest.raises(LedgerError, match="no ledger"):
        site.ask(form_id="other")
    away.rename(site.settings.ledger)
    assert release(site, request).status is Status.RELEASED


def test_a_spent_budget_refuses_before_anything_is_charged(site):
    first, second = site.ask(form_id="1", epsilon=3.0), site.ask(form_id="2", epsilon=3.0)
    approve(site, first)
    approve(site, second)
    for request in (first, second):
        release_request(site.settings, request.id)
    found = load_request(site.studio.state, second.id)
    assert (found.status, found.error_kind, found.payment) == (Status.FAILED, "BudgetExceededError", "none")
    with pytest.raises(BudgetExceededError):
        site.ask(form_id="3", epsilon=3.0)
    assert found.seen_by(ANALYST).message is None


def test_errors_of_the_data_are_for_curators_and_show_no_value(site):
    table = site.settings.folder / TABLE
    table.write_text(table.read_text().replace("\n", "\nsecret-4711,27,north\n", 1), encoding="utf-8")
    request = site.ask()
    found = release(site, request)
    assert (found.status, found.payment) == (Status.FAILED, "none")
    assert "4711" not in str(found)
    assert found.error in site.api(CURATOR).get(f"/api/requests/{request.id}").json()["message"]
    page = site.browser(ANALYST).get(f"/requests/{request.id}").text
    assert "secret" not in page
    assert TABLE not in str(site.api(ANALYST).get(f"/api/requests/{request.id}").json()["message"])


def test_an_analyst_cannot_tell_a_failure_that_cost_nothing_from_one_that_waits(site):
    """Whether a value is missing or a level is unknown would be told for nothing, one bit for each request."""
    waits, fails = site.ask(form_id="waits"), site.ask(form_id="fails", columns="age")
    table = site.settings.folder / TABLE
    table.write_text(table.read_text().replace("\n", "\n,27,north\n", 1), encoding="utf-8")
    site.studio.requests.approve(CURATOR, waits.id)
    assert release(site, fails).status is Status.FAILED
    book, api, page = site.studio.requests, site.api(ANALYST), site.browser(ANALYST)
    changing = ("id", "asked", "decided", "release")

    def see(request):
        """All that an analyst can read about a request."""
        facts = api.get(f"/api/requests/{request.id}").json()
        assert facts in api.get("/api/requests").json()
        shown = [
            status.value
            for status in Status
            if request.id in [one["id"] for one in api.get("/api/requests", params={"status": status.value}).json()]
        ]
        state = page.get(f"/requests/{request.id}/progress").text.replace(request.id, "ID")
        return {**facts, **dict.fromkeys(changing)}, shown, state

    assert see(fails) == see(waits)
    assert see(fails)[0]["status"] == "approved"
    again = site.ask(form_id="fails", columns="age")  # the same form, sent again
    assert (again.id, again.status, again.message) == (fails.id, Status.APPROVED, None)
    with site.studio.state.writing() as connection:
        connection.execute("UPDATE requests SET status = 'running', progress = 0.4 WHERE id = ?", (waits.id,))
    assert see(fails) == see(waits)  # how far it was read is not told either
    assert book.get(CURATOR, waits.id).progress == 0.4
    assert book.get(CURATOR, fails.id).status is Status.FAILED


@pytest.mark.parametrize("payment", ["lost", "stored"])
def test_a_failure_that_cost_something_is_told(site, payment):
    request = site.ask()
    with site.studio.state.writing() as connection:
        connection.execute("UPDATE requests SET status = 'failed', error = 'secret', payment = ?", (payment,))
    told = site.api(ANALYST).get(f"/api/requests/{request.id}").json()
    assert told["status"] == "failed"
    assert "secret" not in told["message"]
    assert "charged" in told["message"]


def test_a_curator_ends_a_request_that_failed_unpaid(site):
    request = site.ask()
    table = site.settings.folder / TABLE
    table.write_text(table.read_text().replace("\n", "\n,27,north\n", 1), encoding="utf-8")
    release(site, request)
    page = site.browser(CURATOR)
    assert "Reason to refuse it" in page.get(f"/requests/{request.id}").text
    page.post(f"/requests/{request.id}/refuse", data={"reason": "ask for other columns"})
    told = site.api(ANALYST).get(f"/api/requests/{request.id}").json()
    assert (told["status"], told["message"]) == ("refused", "ask for other columns")
    with site.studio.state.writing() as connection:
        connection.execute("UPDATE requests SET status = 'failed', payment = 'stored'")
    with pytest.raises(ConflictError):
        site.studio.requests.refuse(CURATOR, request.id, "too late")


def test_an_unforeseen_error_shows_its_class_alone(site, monkeypatch, caplog):
    def fail(*arguments, **options):
        raise KeyError("secret-4711")

    monkeypatch.setattr("matrixdp.studio.worker.write_release", fail)
    assert "internal error (KeyError)" in release(site, site.ask()).error
    monkeypatch.setattr(type(site.studio.datasets), "list_all", fail)
    answer = site.browser().get("/datasets")
    assert answer.status_code == 500
    assert "content-security-policy" in answer.headers
    assert "4711" not in answer.text + caplog.text
    assert "KeyError" in caplog.text


def test_many_analysts_spend_a_budget_exactly(folder):
    people, each, affordable = (50, 20, 200) if FULL else (6, 4, 8)
    site = Site(folder)
    with Ledger.open(site.settings.ledger) as ledger:
        total = ledger.summary("clinic").registration.privacy
    epsilon = gdp_epsilon(mu=total.mu / math.sqrt(affordable), delta=total.delta) * (1 - 1e-9)
    spec = {"query": "means", "method": "plain", "columns": "age", "epsilon": epsilon, "delta": total.delta}
    wanted = ReleaseSpec.from_mapping(spec)

    def ask_all(number):
        viewer = Viewer(f"analyst {number}", frozenset({Role.ANALYST}))
        return [site.studio.requests.submit(viewer, "clinic", TABLE, wanted, "load", f"{i}") for i in range(each)]

    with ThreadPoolExecutor(8) as pool:
        requests = [request for found in pool.map(ask_all, range(people)) for request in found]
    assert len({request.id for request in requests}) == people * each
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda request: approve(site, request), requests))
        list(pool.map(lambda request: release_request(site.settings, request.id), requests))
    found = [load_request(site.studio.state, request.id) for request in requests]
    assert sum(request.status is Status.RELEASED for request in found) == affordable
    assert {request.error_kind for request in found if request.status is Status.FAILED} == {"BudgetExceededError"}
    with Ledger.open(site.settings.ledger) as ledger:
        ledger.verify()
        assert len(ledger.history("clinic")) == affordable
