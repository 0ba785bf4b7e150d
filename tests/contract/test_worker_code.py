"""The fingerprint that workers are compared by covers the code that tasks run, and no other."""

import ast
import inspect
import os
import pickle
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.estimators import PrivateCovariance, PrivateKernelRidge, PrivateScaler
from matrixdp.records import run_part
from matrixdp.records.parts import RUN_BY_WORKERS

ROOT = Path(mdp.__file__).parent
NAMES = ("a", "b", "c")
BOUNDS = mdp.Bounds([-1] * 3, [1] * 3, names=NAMES)
BALL = mdp.Bounds([-1] * 3, [1] * 3, names=NAMES, radius=1.0)
PRIVACY = mdp.Privacy(1, 1e-6)
RECORDS = 600
ARGUMENTS = (["number", "blocks"], ["_", "blocks"])  # the last ones of a task


class TracingEngine:
    """Runs parts as a worker would, after pickling, and notes the tasks and the packages whose functions they call."""

    def __init__(self):
        self.tasks, self.packages = set(), set()

    def run(self, task, parts, *, whole=False):
        self.tasks |= task_names(task)
        sent = pickle.dumps((task, list(parts)))
        results = []
        sys.setprofile(self.trace)
        try:
            task, parts = pickle.loads(sent)
            results = [run_part(task, number, part) for number, part in enumerate(parts)]
            pickle.dumps(results)
        finally:
            sys.setprofile(None)
        return iter(results)

    def trace(self, frame, event, argument):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT):
            self.packages.add(path.relative_to(ROOT).parts[0].removesuffix(".py"))


def is_task(value):
    return callable(value) and list(inspect.signature(value).parameters)[-2:] in ARGUMENTS


def task_names(task):
    """Name of a task, a class or a function, and of the tasks that it wraps."""
    function, held = (task.func, task.args) if isinstance(task, partial) else (task, vars(task).values())
    name = getattr(function, "__name__", type(task).__name__)
    return {name}.union(*(task_names(value) for value in held if is_task(value)))


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "set").mkdir()
    for number in range(2):
        columns = {name: rng.uniform(-1.2, 1.2, RECORDS // 2) for name in NAMES}
        pq.write_table(pa.table(columns), tmp_path / "set" / f"{number}.parquet", row_group_size=100)
    pq.write_table(pa.table({**columns, "id": np.arange(RECORDS // 2) // 2}), tmp_path / "visits.parquet")
    pq.write_table(pa.table({"from": ["x", "y"], "to": ["p", "q"]}), tmp_path / "pairs.parquet")
    pq.write_table(pa.table({"from": ["x", "y"] * 9, "to": ["yes", "no"] * 9}), tmp_path / "flags.parquet")
    return tmp_path / "set"


@pytest.fixture
def engine():
    return TracingEngine()


def run_every_task(folder, engine):
    records = mdp.open_records(folder, workers=engine)
    for query in (mdp.Moments(BOUNDS, RECORDS), mdp.SecondMoment(BALL, RECORDS), mdp.GramMatrix(BOUNDS, RECORDS)):
        query.evaluate(records, clip=True, missing="midpoint")
    pairs = mdp.open_records(folder.parent / "pairs.parquet", workers=engine)
    mdp.ContingencyTable(["x", "y"], ["p", "q"], 2).evaluate(pairs, clip=True, missing="error")
    columns = mdp.Columns([mdp.Category("from", ["x", "y"], missing=True), mdp.Category("to", ["p", "q"])])
    mdp.TableMoments(columns, 2, by=["to"]).evaluate(pairs, clip=True, missing="error")
    flags = mdp.open_records(folder.parent / "flags.parquet", workers=engine)
    columns = mdp.Columns([mdp.Number(NAMES[0], -1, 1), mdp.Number(NAMES[1], -1, 1, missing=True)])
    mdp.TableMoments(columns, RECORDS).evaluate(records, clip=True, missing="error")
    answers = mdp.Columns([mdp.YesNo("to")])
    mdp.TableMoments(answers, 2, person="from").evaluate(flags, clip=True, missing="error")
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    for number, (bounds, options) in enumerate([(BOUNDS, {}), (BALL, {}), (BOUNDS, {"directions": turn})]):
        design = mdp.make_design(mdp.Identity(bounds, RECORDS), PRIVACY, **options)
        mdp.release_dataset(design, records, folder.parent / f"noisy{number}")
    PrivateScaler(bounds=BOUNDS).fit(records)
    PrivateCovariance(bounds=BOUNDS).fit(records)
    PrivateCovariance(bounds=BOUNDS, person="id", epsilon=10.0).fit(
        mdp.open_records(folder.parent / "visits.parquet", workers=engine)
    )
    people = mdp.Moments(BOUNDS, RECORDS, neighbours="add-remove", person="id")
    stream = mdp.make_stream(people, PRIVACY, every="step", steps=1).open(
        folder.parent / "stream", stream=mdp.Stream(seed=1), simulation=True
    )
    stream.publish(folder.parent / "visits.parquet", step="first", workers=engine)
    regression = {"records": RECORDS, "question": "regression", "target": NAMES[0], "method": "adaptive"}
    mdp.release_table(records, BOUNDS, PRIVACY, **regression)
    PrivateCovariance(bounds=columns).fit(records)
    PrivateCovariance(bounds=mdp.Columns([mdp.Category("from", ["x", "y"]), mdp.YesNo("to")])).fit(flags)
    two = mdp.Bounds([-1] * 2, [1] * 2, names=NAMES[:2])
    PrivateKernelRidge(bounds=two, target_bounds=(-1, 1), n_components=4).fit(records, "c")


def test_the_fingerprint_covers_the_packages_that_tasks_run(folder, engine):
    run_every_task(folder, engine)
    written = set()
    for path in ROOT.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            arguments = [one.arg for one in node.args.args] if isinstance(node, ast.FunctionDef) else []
            if arguments[-2:] in ARGUMENTS or getattr(node, "name", "").endswith("Task"):
                written.add(node.name)
    assert engine.tasks == written
    assert {"adaptive", "domain", "mechanisms", "noise", "queries", "records"} <= engine.packages <= RUN_BY_WORKERS


def fingerprint_of(package):
    """Fingerprint of a copy of the package, in a process of its own."""
    code = "from matrixdp.records.parts import code_fingerprint; print(code_fingerprint())"
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_only_an_edit_of_code_that_tasks_run_changes_the_fingerprint(tmp_path):
    package = tmp_path / "matrixdp"
    shutil.copytree(ROOT, package, ignore=shutil.ignore_patterns("__pycache__"))
    before = fingerprint_of(package)
    for module, changes in (("report/page.py", False), ("domain/bounds.py", True)):
        path = package / module
        path.write_text(path.read_text(encoding="utf-8") + "\n# edited\n", encoding="utf-8")
        assert (fingerprint_of(package) != before) == changes, module
