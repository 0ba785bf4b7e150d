"""Streams: charged once, durable and repeatable; rows by date, people in few steps; answers, and what is refused."""

import json
import shutil
import stat
import warnings
from dataclasses import replace
from datetime import date, datetime

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import multivariate_normal

import matrixdp as mdp
from ledger_stores import PostgresSchemas
from matrixdp.answers import series
from matrixdp.cli.main import cli
from matrixdp.domain.file_rules import DateRule, FileRules
from matrixdp.errors import DataError, LedgerError, ParameterError
from matrixdp.noise.gaussian import draw_gaussian
from matrixdp.records.periods import InPeriod
from matrixdp.release import stream as module
from matrixdp.release.stream_state import StreamState
from matrixdp.report.dossier import write_dossier

COLUMNS = mdp.Columns([mdp.Number("age", 0, 100), mdp.Category("ward", ["a", "b"])])
PRIVACY = mdp.Privacy(1, 1e-6)
LATER = datetime(2040, 1, 1)


def query(**options):
    return mdp.TableMoments(COLUMNS, records=50, neighbours="add-remove", **options)


def table(seed=0, rows=50, **more):
    rng = np.random.default_rng(seed)
    return {"age": rng.uniform(0, 100, rows), "ward": rng.choice(["a", "b"], rows), **more}


@pytest.fixture
def ledger(tmp_path):
    with mdp.Ledger.create(tmp_path / "clinic.db") as made:
        made.register("clinic", mdp.Privacy(3, 1e-6), neighbours="add-remove")
        made.register("people", mdp.Privacy(3, 1e-6), neighbours="add-remove", unit="person:id")
        yield made


@pytest.fixture
def plan():
    return mdp.make_stream(query(), PRIVACY, every="step", last=6)


def integers(stream):
    return [one.noisy for one in stream.published]


def test_a_stream_is_charged_once_and_steps_cost_nothing(ledger, plan, tmp_path):
    stream = plan.open(tmp_path / "ward", ledger=ledger, dataset="clinic")
    left = ledger.remaining("clinic").mu
    for t in range(3):
        stream.publish(table(t), step=f"s{t}")
    assert ledger.remaining("clinic").mu == left
    assert [charge.event.mu for charge in ledger.history("clinic")] == [plan.mu]
    assert plan.mu <= PRIVACY.mu < plan.mu * (1 + 1e-9)  # all but nothing of the budget is used, rounding included
    assert [step.name for step in ledger.steps("clinic", "stream ward")] == ["s0", "s1", "s2"]
    assert [step.digest for step in ledger.steps("clinic", "stream ward")] == [one.digest for one in stream.published]
    ledger.verify()
    ledger.verify(ledger.head, resume=True)
    assert all(one.released for one in ledger.history())
    assert stat.S_IMODE((tmp_path / "ward.state").stat().st_mode) == 0o600


def test_steps_are_recorded_in_postgresql(postgres_server, plan, tmp_path):
    with mdp.Ledger.create(PostgresSchemas(postgres_server).new_path("streams")) as ledger:
        ledger.register("clinic", mdp.Privacy(3, 1e-6), neighbours="add-remove")
        stream = plan.open(tmp_path / "ward", ledger=ledger, dataset="clinic")
        for t in range(2):
            stream.publish(table(t), step=f"s{t}")
        assert [step.digest for step in ledger.steps("clinic", "stream ward")] == [
            one.digest for one in stream.published
        ]
        assert all(one.released for one in ledger.history())
        ledger.verify()


def test_a_repeated_step_is_the_stored_one_and_its_data_are_not_read(ledger, plan, tmp_path):
    stream = plan.open(tmp_path / "ward", ledger=ledger, dataset="clinic")
    first = stream.publish(table(), step="s0")
    again = mdp.MatrixStream.open(tmp_path / "ward", ledger=ledger, dataset="clinic")
    assert (again.publish("nowhere.csv", step="s0").matrix == first.matrix).all()
    assert len(plan.open(tmp_path / "ward", ledger=ledger, dataset="clinic")) == 1
    assert len(ledger.history()) == 1


class Killed(BaseException):
    """As a process that is killed."""


@pytest.mark.parametrize("where", ["before the state", "after the state", "before the ledger", "after the ledger"])
def test_a_killed_step_is_finished_with_the_same_bits(ledger, plan, tmp_path, monkeypatch, where):
    plan.open(tmp_path / "ward", ledger=ledger, dataset="clinic").publish(table(0), step="s0")
    for name in ("ward.state", "ward.json", "clinic.db"):
        shutil.copy2(tmp_path / name, tmp_path / f"copy-{name}")
    stream = mdp.MatrixStream.open(tmp_path / "ward", ledger=ledger, dataset="clinic")

    def die(*_, **__):
        raise Killed

    target, name = {
        "before the state": (StreamState, "add"),
        "after the state": (module, "draw_step"),
        "before the ledger": (mdp.Ledger, "add_step"),
        "after the ledger": (module, "write_file"),
    }[where]
    with monkeypatch.context() as patch:
        patch.setattr(target, name, die)
        with pytest.raises(Killed):
            stream.publish(table(1), step="s1")
    stored = StreamState(tmp_path / "ward.state").steps()
    assert len(stored) == (1 if where == "before the state" else 2)
    finished = mdp.MatrixStream.open(tmp_path / "ward", ledger=ledger, dataset="clinic")
    assert len(finished) == len(stored)
    finished.publish(table(1), step="s1")
    key = StreamState(tmp_path / "ward.state")
    assert integers(finished)[1] == module.draw_step(plan, key, *key.steps()[1]).noisy
    assert [step.digest for step in ledger.steps("clinic", "stream ward")] == [one.digest for one in finished.published]
    assert len(ledger.history()) == 1
    ledger.verify()


@pytest.mark.parametrize("name", ["create", "write_file"])
def test_a_stream_killed_while_it_is_opened_is_charged_once(ledger, plan, tmp_path, monkeypatch, name):
    def die(*_, **__):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(StreamState if name == "create" else module, name, die)
        with pytest.raises(Killed):
            plan.open(tmp_path / "ward", ledger=ledger, dataset="clinic")
    stream = plan.open(tmp_path / "ward", ledger=ledger, dataset="clinic")
    stream.publish(table(), step="s0")
    assert len(ledger.history()) == 1


def test_a_state_that_is_rolled_back_is_refused_and_a_restart_continues(ledger, plan, tmp_path):
    stream = plan.open(tmp_path / "ward", ledger=ledger, dataset="clinic")
    stream.publish(table(0), step="s0")
    for name in ("ward.state", "ward.json"):
        shutil.copy2(tmp_path / name, tmp_path / f"old {name}")
    stream.publish(table(1), step="s1")
    shutil.copy2(tmp_path / "ward.json", tmp_path / "public copy")
    for name in ("ward.state", "ward.json"):
        shutil.copy2(tmp_path / f"old {name}", tmp_path / name)
    with pytest.raises(LedgerError, match="older than the ledger"):
        mdp.MatrixStream.open(tmp_path / "ward", ledger=ledger, dataset="clinic")
    with pytest.raises(LedgerError, match="Restore it from a copy"):
        mdp.MatrixStream.restart(tmp_path / "ward", ledger=ledger, dataset="clinic")
    shutil.copy2(tmp_path / "public copy", tmp_path / "ward.json")
    new = mdp.MatrixStream.restart(tmp_path / "ward", ledger=ledger, dataset="clinic")
    new.publish(table(2), step="s2")
    assert [one.start for one in new.published] == [0, 0, 2]
    weights = new.weigh(np.ones(3))
    apart = plan.answer_weights(np.ones(2)), plan.answer_weights(np.ones(1), 2)
    assert np.allclose(weights, np.concatenate(apart))  # variances of both parts add up
    assert len(ledger.history()) == 1
    ledger.verify()
    public = mdp.PublishedStream.open(tmp_path / "ward.json")
    public.verify(ledger, "clinic")
    assert np.allclose(public._inverse(), [public.weigh(row) for row in np.eye(3)])
    altered = replace(
        public, published=(*public.published[:2], replace(public.published[2], noisy=(0,) * plan.dimension))
    )
    with pytest.raises(LedgerError, match="does not have the 3 steps"):
        altered.verify(ledger, "clinic")


def test_copies_of_the_state_on_two_machines_publish_one_chain_of_steps(ledger, plan, tmp_path):
    plan.open(tmp_path / "ward", ledger=ledger, dataset="clinic").publish(table(0), step="s0")
    other = tmp_path / "other"
    other.mkdir()
    for name in ("ward.state", "ward.json"):
        shutil.copy2(tmp_path / name, other / name)
    one, two = (mdp.MatrixStream.open(folder / "ward", ledger=ledger, dataset="clinic") for folder in (tmp_path, other))
    one.publish(table(1), step="s1")
    with pytest.raises(LedgerError, match="older than the ledger"):
        two.publish(table(2), step="s1")
    assert len(json.loads((other / "ward.json").read_text())["steps"]) == 1
    assert len(ledger.steps("clinic", "stream ward")) == 2


def test_a_rolled_back_step_with_other_records_has_other_noise(tmp_path):
    plan = mdp.make_stream(query(), PRIVACY, every="step", last=6)
    states = []
    for name, rows in (("one", 50), ("two", 49)):
        state = StreamState.create(tmp_path / name, stream="x", key=b"k" * 32)
        data = {column: values[:rows] for column, values in table().items()}
        sums = module.round_step(plan, module.prepare(plan.design, data, clip=True, missing="error"), 0)
        state.add(0, "s0", sums, np.empty(0, np.uint64), None)
        states.append(state)
    first, second = (module.draw_step(plan, state, *state.steps()[0]).noisy for state in states)
    unit = 2.0**48
    apart = np.array([a - b for a, b in zip(first, second, strict=True)], float) / unit
    assert np.linalg.norm(apart) > np.sqrt(plan.dimension)  # fresh noise, not a record

    # Shows: with a secret of key and step alone, the difference is the record, without noise.
    exact = [module.add_steps(plan, state.read(0)[0]) for state in states]
    noise = [draw_gaussian(state.read(0)[1].stream(0), 48, shape=plan.dimension).tolist() for state in states]
    broken = [np.array([a + b for a, b in zip(*pair, strict=True)], object) for pair in zip(exact, noise, strict=True)]
    change = (broken[0] - broken[1]).astype(float) / unit
    assert 0 < np.linalg.norm(change) <= plan.mu


def test_equal_states_and_records_have_equal_bits(plan, tmp_path):
    made = [plan.open(tmp_path / name, stream=mdp.Stream(seed=3), simulation=True) for name in ("one", "two")]
    for stream in made:
        stream.publish(table(0), step="s0")
        stream.publish(table(1), step="s1")
    assert integers(made[0]) == integers(made[1])
    assert "SIMULATION" in repr(made[0].public)
    assert made[0].period().simulation


def test_when_takes_the_rows_of_the_period_from_a_growing_table(tmp_path):
    plan = mdp.make_stream(query(), mdp.Privacy(1e6, 0.5), when="admitted", delay="1 week")
    dates = np.array(["2031-01-06", "2031-01-12T23:00", "2031-01-13", "NaT", "2031-01-01"], "datetime64[s]")
    data = table(rows=5, admitted=dates)
    weeks = plan.open(tmp_path / "ward", stream=mdp.Stream(seed=1), simulation=True)
    with pytest.raises(ParameterError, match="2031-01-20"):
        weeks.publish(data, step="2031-w02", now=datetime(2031, 1, 14))
    weeks.publish(data, step="2031-w02", now=LATER)
    assert weeks.next_step == "2031-w03"
    with pytest.raises(ParameterError, match="'2031-w03'"):
        weeks.publish(data, step="2031-w04", now=LATER)
    weeks.publish({**data, "admitted": dates.astype(str)}, step="2031-w03", now=LATER)
    counts = weeks.series().value[:, 0]
    assert np.rint(counts).tolist() == [2, 1]
    assert round(weeks.total().records * weeks.total().matrix[0, 0]) == 3


@pytest.mark.parametrize("kind", ["csv", "pandas", "polars", "arrow"])
def test_rows_are_chosen_from_all_kinds_of_tables(tmp_path, kind):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [10.0, 20, 30], "ward": ["a", "b", "a"], "id": ["p", "q", "p"]})
    frame["day"] = ["2031-01-05", "2031-01-06", "2031-01-06"]
    plan = mdp.make_stream(query(person="id"), mdp.Privacy(1e6, 0.5), every="day", when="day", steps=1)
    stream = plan.open(tmp_path / "ward", stream=mdp.Stream(seed=1), simulation=True)
    data = frame
    if kind == "csv":
        data = tmp_path / "ward.csv"
        frame.to_csv(data, index=False)
    elif kind == "polars":
        data = pytest.importorskip("polars").from_pandas(frame)
    elif kind == "arrow":
        data = pytest.importorskip("pyarrow").Table.from_pandas(frame)
    for step in ("2031-01-05", "2031-01-06"):
        stream.publish(data, step=step, now=LATER)
    assert np.rint(stream.series().value[:, 0]).tolist() == [1, 1]  # p counts on the first day only
    assert np.allclose(stream.series("age").value[:, 0], [10, 20], atol=0.5)


def test_people_count_in_few_steps_that_are_apart(ledger, tmp_path):
    plan = mdp.make_stream(query(person="id"), mdp.Privacy(2.9, 1e-6), every="step", steps=2, apart=2)
    stream = plan.open(tmp_path / "ward", ledger=ledger, dataset="people")
    for t in range(5):
        stream.publish(table(t, rows=1, id=["somebody"]), step=f"s{t}")
    state = StreamState(tmp_path / "ward.state")
    counted = [bool(sums.any()) for sums in state.read(4)[0]]
    assert counted == [True, False, True, False, False]
    with pytest.raises(ParameterError, match="people cannot be restarted"):
        mdp.MatrixStream.restart(tmp_path / "ward", ledger=ledger, dataset="people")


def test_answers_are_releases_with_the_noise_of_their_weights(plan, tmp_path):
    stream = plan.open(tmp_path / "ward", stream=mdp.Stream(seed=1), simulation=True)
    for t in range(4):
        stream.publish(table(t), step=f"s{t}")
    total, last, part = stream.total(), stream.last(2), stream.between("s1", "s2")
    assert (total.records, last.records, stream.period("s1").records) == (200, 100, 50)
    periods = [stream.period(name).matrix for name in stream.steps]
    assert np.allclose(total.matrix, np.mean(periods, axis=0))
    assert np.allclose(part.matrix, np.mean(periods[1:3], axis=0))
    noise = np.linalg.norm(stream.weigh(np.ones(4)))
    assert np.allclose(total.std, plan.design.std * noise / 4)
    read = mdp.from_json(total.to_json())
    assert (read.matrix == total.matrix).all()
    assert (read.mu, read.part.periods) == (plan.mu, "s0 to s3")
    assert "by all of the stream 'ward'" in str(read)
    public = mdp.PublishedStream.open(tmp_path / "ward.json")
    assert (public.total().matrix == total.matrix).all()
    for text in (str(public), repr(public), str(plan), repr(plan), str(stream), repr(stream)):
        assert "TableMoments" in text


@pytest.mark.parametrize(
    "made",
    [
        mdp.Moments(mdp.Bounds([0], [1], names=["age"]), records=50, neighbours="add-remove"),
        mdp.SecondMoment(mdp.Bounds([0], [1]), records=50, neighbours="replace"),
        mdp.ContingencyTable(["a", "b"], ["k", "l"], records=50),
    ],
)
def test_other_queries_can_be_streamed(made, tmp_path):
    plan = mdp.make_stream(made, PRIVACY, every="step")
    stream = plan.open(tmp_path / "ward", stream=mdp.Stream(seed=1), simulation=True)
    counts = isinstance(made, mdp.ContingencyTable)
    for t in range(2):
        stream.publish([("a", "k")] * 30 if counts else np.full((30, 1), 0.25), step=f"s{t}")
    assert stream.total().neighbours is made.neighbours
    assert (np.abs(stream.total().matrix - stream.public._sum(0, 2).matrix) == 0).all()
    if counts:
        assert abs(stream.total().matrix[0, 0] - 60) < 6 * stream.total().std[0, 0]
    read = mdp.from_json(stream.total().to_json())
    assert (read.matrix == stream.total().matrix).all()


def test_differences_have_their_own_bars_and_smoothing_shortens_them(plan, tmp_path):
    stream = plan.open(tmp_path / "ward", stream=mdp.Stream(seed=1), simulation=True)
    for t in range(6):
        stream.publish(table(t, rows=60), step=f"s{t}")
    raw, smooth = stream.series(), stream.series(smooth=True)
    weights = stream.weigh(np.eye(6)[3]) - stream.weigh(np.eye(6)[2])
    expected = raw.std[3, 0] * np.linalg.norm(weights) / np.linalg.norm(stream.weigh(np.eye(6)[3]))
    assert np.allclose(raw.difference("s3", "s2").std, expected)
    assert (smooth.std < raw.std).all()
    assert "smoothed" in str(smooth)
    assert "smoothed" not in repr(raw)
    assert stream.series("age", by="ward").groups == ("a", "b")
    assert stream.series("age", by="ward").to_estimate().value.shape == (6, 2)


def test_plots_and_frames(plan, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    stream = plan.open(tmp_path / "ward", stream=mdp.Stream(seed=1), simulation=True)
    for t in range(3):
        stream.publish(table(t), step=f"s{t}")
    assert len(stream.series("age", by="ward").plot().lines) == 2
    assert stream.series("age").to_frame().shape == (3, 1)


def test_a_file_is_published_once_where_dates_do_not_choose(ledger, plan, tmp_path):
    file = tmp_path / "ward.csv"
    file.write_text("age,ward\n50,a\n60,b\n")
    stream = plan.open(tmp_path / "ward", ledger=ledger, dataset="clinic")
    stream.publish(file, step="s0")
    with pytest.raises(ParameterError, match="published in step 's0'"):
        stream.publish(file, step="s1")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"query": mdp.Identity(mdp.Bounds([0], [1]), records=9)}, "Moments, SecondMoment"),
        ({"aim": "total"}, "needs last"),
        ({"aim": "best"}, "aim must be one of"),
        ({"every": "fortnight"}, "every must be one of"),
        ({"steps": 2}, "without person"),
        ({"query": query(person="id")}, "steps must be given"),
        ({"last": 0}, "last"),
        ({"delay": "1 week"}, "without when"),
        ({"when": "day", "delay": "soon"}, "delay must be a time"),
        ({"when": "day", "every": "step"}, "when must be"),
        ({"missing": "skip"}, "missing must be"),
    ],
)
def test_plans_that_cannot_be_are_refused(options, words):
    given = {"query": query(), **options}
    with pytest.raises(ParameterError, match=words):
        mdp.make_stream(given.pop("query"), PRIVACY, **given)


def test_steps_that_cannot_be_are_refused_before_anything_is_stored(ledger, tmp_path):
    plan = mdp.make_stream(query(), PRIVACY, last=2)
    stream = plan.open(tmp_path / "ward", ledger=ledger, dataset="clinic")
    with pytest.raises(ParameterError, match="no steps so far"):
        stream.total()
    for step in ("2031-w54", "w01", 3, "2031-W02"):
        with pytest.raises(ParameterError, match="step"):
            stream.publish(table(), step=step)
    with pytest.raises(DataError):
        stream.publish({"age": [1.0]}, step="2031-w05")
    stream.publish(table(), step="2031-w05")
    with pytest.raises(ParameterError, match="'2031-w06'"):
        stream.publish(table(), step="2031-w04")
    stream.publish(table(1), step="2031-w07")  # without dates, a week may be left out
    with pytest.raises(ParameterError, match="has ended"):
        stream.publish(table(), step="2031-w08")
    for wrong in (
        lambda: stream.period("2031-w06"),
        lambda: stream.last(3),
        lambda: stream.between("2031-w07", "2031-w05"),
    ):
        with pytest.raises(ParameterError):
            wrong()
    assert len(ledger.steps("clinic", "stream ward")) == 2


def test_files_of_other_streams_and_open_files_are_refused(ledger, plan, tmp_path):
    plan.open(tmp_path / "ward", ledger=ledger, dataset="clinic")
    other = mdp.make_stream(query(), mdp.Privacy(0.5, 1e-6), every="step")
    with pytest.raises(LedgerError, match="stream ward"):
        other.open(tmp_path / "ward", ledger=ledger, dataset="clinic")
    other.open(tmp_path / "ward2", ledger=ledger, dataset="clinic")
    shutil.copy2(tmp_path / "ward2.state", tmp_path / "ward.state")
    with pytest.raises(ParameterError, match="another stream"):
        mdp.MatrixStream.open(tmp_path / "ward", ledger=ledger, dataset="clinic")
    (tmp_path / "ward2.state").chmod(0o644)
    with pytest.raises(ParameterError, match="chmod 600"):
        mdp.MatrixStream.open(tmp_path / "ward2", ledger=ledger, dataset="clinic")
    with pytest.raises(ParameterError, match="dataset must be given"):
        mdp.MatrixStream.open(tmp_path / "ward", ledger=ledger)
    with pytest.raises(ParameterError, match="public file"):
        mdp.PublishedStream.open(tmp_path / "nothing.json")


def test_an_altered_plan_is_refused(plan):
    for changes in ({"beta": 0.5}, {"neighbours": "replace"}, {"steps": 2}):
        with pytest.raises(ParameterError, match="altered"):
            replace(plan, **changes).check()
    public = replace(plan.query, neighbours="replace")  # whose number of records is public
    with pytest.raises(ParameterError, match="altered"):
        replace(plan, design=mdp.make_design(public, PRIVACY, share=0.3)).check()


def test_the_ledger_notices_altered_steps(ledger, plan, tmp_path):
    stream = plan.open(tmp_path / "ward", ledger=ledger, dataset="clinic")
    stream.publish(table(), step="s0")
    facts = {"number": 0, "step": "s0", "digest": "0" * 64}
    with pytest.raises(LedgerError, match="has 1 steps"):
        ledger.add_step("clinic", "stream ward", **facts)
    with pytest.raises(LedgerError, match="no charge"):
        ledger.steps("clinic", "stream other")
    with ledger._writing() as journal:
        content = {"stream": "stream ward", "step": "s9", "number": 9, "digest": "0" * 64}
        journal.append("step", content, dataset="clinic", charge=journal.row("request", "clinic", "stream ward").entry)
    with pytest.raises(LedgerError, match="not the next step"):
        ledger.verify()


def test_a_series_has_the_answers_of_its_periods(tmp_path):
    columns = mdp.Columns([mdp.Number("x", -1, 1, missing=True), mdp.Category("ward", ["a", "b"])])
    rng = np.random.default_rng(0)
    for options in ({}, {"by": ["ward"]}):
        made = mdp.TableMoments(columns, records=900, neighbours="add-remove", **options)
        stream = mdp.make_stream(made, PRIVACY, every="step", last=3).open(
            tmp_path / f"s{len(options)}", stream=mdp.Stream(seed=1), simulation=True
        )
        for t in range(3):
            x = np.where(rng.random(900) < 0.2, np.nan, rng.uniform(-1, 1, 900))
            stream.publish({"x": x, "ward": rng.choice(["a", "b"], 900)}, step=f"s{t}")
        grouped, alone = stream.series("x", by="ward"), stream.series("x")
        for t in range(3):
            wards, summary = stream.period(f"s{t}").means(by="ward").column("x"), stream.period(f"s{t}").means()
            for found, answer in ((grouped.value[t], wards.value), (grouped.std[t], wards.std)):
                assert np.allclose(found, answer.ravel())
            assert np.allclose((alone.value[t, 0], alone.std[t, 0]), (summary.value[0, 0], summary.std[0, 0]))
        assert np.allclose(grouped.covary(1, 1), grouped.std[1] ** 2, rtol=0.1)  # but for what shrinkage leaves open


def test_a_state_with_other_sums_than_were_published_is_refused(ledger, plan, tmp_path):
    """Two machines stored a step of the same name; the public file of one does not make the other state right."""
    plan.open(tmp_path / "ward", ledger=ledger, dataset="clinic")
    other = tmp_path / "other"
    other.mkdir()
    for name in ("ward.state", "ward.json"):
        shutil.copy2(tmp_path / name, other / name)
    one, two = (mdp.MatrixStream.open(folder / "ward", ledger=ledger, dataset="clinic") for folder in (tmp_path, other))
    with pytest.raises(LedgerError, match="continued elsewhere"):
        two.publish(table(2), step="s0", ready=lambda: one.publish(table(1), step="s0"))
    assert len(two) == 0
    shutil.copy2(tmp_path / "ward.json", other / "ward.json")
    with pytest.raises(LedgerError, match="not the state after the 1 steps"):
        mdp.MatrixStream.open(other / "ward", ledger=ledger, dataset="clinic")


def test_a_public_file_that_is_older_than_a_restarted_state_is_refused(plan, tmp_path):
    stream = plan.open(tmp_path / "ward", stream=mdp.Stream(seed=1), simulation=True)
    stream.publish(table(0), step="s0")
    shutil.copy2(tmp_path / "ward.json", tmp_path / "old.json")
    stream.publish(table(1), step="s1")
    mdp.MatrixStream.restart(tmp_path / "ward").publish(table(2), step="s2")
    shutil.copy2(tmp_path / "old.json", tmp_path / "ward.json")
    with pytest.raises(LedgerError, match="older copy"):
        mdp.MatrixStream.open(tmp_path / "ward")


@pytest.mark.parametrize("kind", ["open", "restart"])
def test_a_public_file_with_another_plan_than_was_charged_is_refused(ledger, plan, tmp_path, kind):
    plan.open(tmp_path / "ward", ledger=ledger, dataset="clinic")
    cheap = mdp.make_stream(query(), mdp.Privacy(9, 1e-6), every="step", last=6)
    (tmp_path / "ward.json").write_text(mdp.PublishedStream("ward", cheap).to_json())
    with pytest.raises(LedgerError, match="stream ward"):
        getattr(mdp.MatrixStream, kind)(tmp_path / "ward", ledger=ledger, dataset="clinic")
    with mdp.Ledger.create(tmp_path / "other.db") as other:
        other.register("clinic", mdp.Privacy(3, 1e-6), neighbours="add-remove")
        with pytest.raises(LedgerError, match="no charge"):
            getattr(mdp.MatrixStream, kind)(tmp_path / "ward", ledger=other, dataset="clinic")


def test_a_ledger_from_a_backup_gets_the_steps_that_it_lacks(ledger, plan, tmp_path):
    stream = plan.open(tmp_path / "ward", ledger=ledger, dataset="clinic")
    stream.publish(table(0), step="s0")
    ledger.backup(tmp_path / "backup.db")
    stream.publish(table(1), step="s1")
    (tmp_path / "clinic.db").unlink()
    with mdp.Ledger.restore(tmp_path / "backup.db", tmp_path / "restored.db") as restored:
        restored.settle("clinic", 0.0)
        again = mdp.MatrixStream.open(tmp_path / "ward", ledger=restored, dataset="clinic")
        again.publish(table(2), step="s2")
        again.verify(restored, "clinic")
        assert len(restored.steps("clinic", "stream ward")) == 3
        restored.verify()


def test_a_lost_public_file_is_written_again(ledger, plan, tmp_path):
    stream = plan.open(tmp_path / "ward", ledger=ledger, dataset="clinic")
    stream.publish(table(0), step="s0")
    text = (tmp_path / "ward.json").read_text()
    (tmp_path / "ward.json").unlink()
    plan.open(tmp_path / "ward", ledger=ledger, dataset="clinic")
    assert (tmp_path / "ward.json").read_text() == text
    (tmp_path / "ward.state").unlink()
    with pytest.raises(LedgerError, match="is missing, and the stream has steps"):
        plan.open(tmp_path / "ward", ledger=ledger, dataset="clinic")


def test_the_history_and_the_dossier_have_a_line_for_each_step(ledger, plan, tmp_path):
    stream = plan.open(tmp_path / "ward", ledger=ledger, dataset="clinic")
    for t in range(2):
        stream.publish(table(t), step=f"s{t}")
    shown = CliRunner().invoke(cli, ["ledger", "history", str(tmp_path / "clinic.db")])
    lines = [line.split() for line in shown.output.splitlines() if " step s" in line]
    assert [line[3:7] for line in lines] == [[one.name, "0", "hash", one.digest[:12]] for one in stream.published]
    listed = CliRunner().invoke(cli, ["ledger", "history", str(tmp_path / "clinic.db"), "--json"])
    assert [one["digest"] for one in json.loads(listed.output)[0]["steps"]] == [one.digest for one in stream.published]
    page = write_dossier(ledger, "clinic")
    assert all(one.digest in page for one in stream.published)
    assert "Stream ward, every step" in page


def test_each_state_has_a_key_of_its_own(ledger, plan, tmp_path):
    made = [plan.open(tmp_path / name, ledger=ledger, dataset="clinic") for name in ("one", "two")]
    for stream in made:
        stream.publish(table(0), step="s0")
    again = mdp.MatrixStream.restart(tmp_path / "one", ledger=ledger, dataset="clinic")
    again.publish(table(0), step="s1")
    apart = [np.subtract(a.noisy[-1], b.noisy[0]) for a, b in ((made[0], made[1]), (again, made[0]))]
    assert all(np.linalg.norm(one) > 1 for one in apart)  # noise of the same records is drawn anew


def test_a_date_at_the_end_of_a_period_is_in_the_next_one(tmp_path):
    file = tmp_path / "ward.csv"
    file.write_text("age,ward,day\n50,a,05.01.2031\n60,b,06.01.2031\n70,b,06.01.2031\n80,b,\n")
    rules = FileRules(dates=[DateRule("day", "days", date(2000, 1, 1), "%d.%m.%Y")])
    plan = mdp.make_stream(query(), mdp.Privacy(1e6, 0.5), every="day", when="day")
    stream = plan.open(tmp_path / "ward", stream=mdp.Stream(seed=1), simulation=True)
    for step in ("2031-01-05", "2031-01-06", "2031-01-07"):
        stream.publish(file, step=step, now=LATER, rules=rules)
    assert np.rint(stream.series().value[:, 0]).tolist() == [1, 2, 0]  # the last one is empty, and published


@pytest.mark.parametrize("kind", ["text", "datetime", "pandas", "arrow"])
def test_times_with_a_zone_are_read_in_utc_without_a_warning(kind):
    """A warning for each of them would tell how many there are."""
    texts = ["2031-01-05T00:30:00+02:00", "2031-01-05T02:00:00+02:00", "2031-01-06T01:59:59+02:00", "2031-01-06T02+02"]
    data = {"day": np.array(texts, object)}
    if kind == "datetime":
        data = {"day": np.array([datetime.fromisoformat(text) for text in texts], object)}
    elif kind in ("pandas", "arrow"):
        pandas = pytest.importorskip("pandas")
        data = pandas.DataFrame({"day": pandas.to_datetime(texts, format="ISO8601")})
    if kind == "arrow":
        data = pytest.importorskip("pyarrow").Table.from_pandas(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chosen = InPeriod("day", datetime(2031, 1, 5), datetime(2031, 1, 6))(data)
    assert chosen.tolist() == [False, True, True, False]


@pytest.mark.parametrize("value", [20310105, 1925337600, "0001-01-01T00:00+02:00", "2031-01-05T13:00+99:00"])
def test_what_is_no_date_is_an_error_and_not_left_out(value):
    with pytest.raises(DataError, match="must have dates"):
        InPeriod("day", datetime(2031, 1, 5), datetime(2031, 1, 6))({"day": np.array([value])})


def test_two_copies_of_a_state_cannot_publish_different_records_for_one_step(ledger, plan, tmp_path):
    """Both have stored their own sums when the first one is recorded; the other one shows nothing."""
    account = {"ledger": ledger, "dataset": "clinic"}
    plan.open(tmp_path / "ward", **account).publish(table(0), step="s0")
    (tmp_path / "copy").mkdir()
    for kind in ("state", "json"):
        shutil.copy2(tmp_path / f"ward.{kind}", tmp_path / "copy")
    first, second = (mdp.MatrixStream.open(path / "ward", **account) for path in (tmp_path, tmp_path / "copy"))
    with pytest.raises(LedgerError, match="Nothing was published"):
        second.publish(table(2), step="s1", ready=lambda: first.publish(table(1), step="s1"))
    assert [len(mdp.PublishedStream.open(path / "ward.json")) for path in (tmp_path, tmp_path / "copy")] == [2, 1]
    first.public.verify(ledger, "clinic")


def test_smoothing_averages_over_all_steps_of_the_random_walk():
    """Against another formula: the precision of the sums and of their differences, for each step of the walk."""
    rng = np.random.default_rng(2)
    weights = np.tril(rng.uniform(0, 1, (5, 5))) + np.eye(5)
    covariance, value = weights @ weights.T, np.array([0.0, 1.0, 3.0, 2.0, 4.0])
    apart, inverse, found = np.diff(np.eye(5), axis=0), np.linalg.inv(covariance), []
    for tau in series._STEPS:
        spread = np.linalg.inv(inverse + apart.T @ apart / tau**2)
        law = multivariate_normal(np.zeros(4), apart @ covariance @ apart.T + tau**2 * np.eye(4))
        found.append((law.pdf(apart @ value), spread @ inverse @ value, spread))
    shares = np.array([one[0] for one in found]) / sum(one[0] for one in found)
    mean = sum(share * one[1] for share, one in zip(shares, found, strict=True))
    total = sum(s * (v + np.outer(m - mean, m - mean)) for s, (_, m, v) in zip(shares, found, strict=True))
    smoothed = series._smooth(value[None], covariance)
    assert np.allclose(smoothed[0][0], mean)
    assert np.allclose(smoothed[1][0], total)
