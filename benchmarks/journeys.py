"""``python -m benchmarks.journeys``: how often journeys through the library pass from one package to another.

A switch is a call into another package of matrixdp, or the return from it. Calls of the lowest layer (errors, checks,
types, version), which every package uses, do not count. Each journey runs once before it is counted, so that imports
and caches are warm; work in other processes is not seen. Files are those of which a function is called.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import matrixdp as mdp

LOWEST = {"checks", "errors", "types", "version"}
PRIVACY = mdp.Privacy(epsilon=1, delta=1e-6)


def package(frame: FrameType | None) -> str | None:
    """Package of the innermost function of matrixdp, lowest layer apart; a generator belongs to its module."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("matrixdp.") and name.split(".")[1] not in LOWEST:
            return str(name.split(".")[1])
        frame = frame.f_back
    return None


def count_switches(journey: Callable[[], object]) -> tuple[Counter[tuple[str, str]], set[str]]:
    """How often each package calls each other one during a journey, and the files that it passes through."""
    calls: Counter[tuple[str, str]] = Counter()
    files: set[str] = set()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith("matrixdp.") and name.split(".")[1] not in LOWEST:
            files.add(frame.f_code.co_filename)
            caller = package(frame.f_back)
            if caller is not None and caller != name.split(".")[1]:
                calls[caller, name.split(".")[1]] += 1

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        journey()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return calls, files


@contextmanager
def in_memory(_: Path) -> Iterator[Callable[[], object]]:
    """The release of moments of an array, by a design that was made before."""
    data = np.random.default_rng(0).normal([45, 170, 75], [15, 10, 12], (10_000, 3))
    bounds = mdp.Bounds([0, 100, 40], [100, 220, 160], names=["age", "height", "weight"])
    design = mdp.make_design(mdp.Moments(bounds, records=10_000), PRIVACY)
    yield lambda: design.release(data)


@contextmanager
def folder_on_dask(folder: Path) -> Iterator[Callable[[], object]]:
    """``matrixdp release`` of a folder of Parquet files on a Dask cluster of two processes, with a ledger."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from dask.distributed import LocalCluster

    from matrixdp.cli.main import run

    (folder / "data").mkdir()
    rng = np.random.default_rng(0)
    for i in range(4):
        table = pa.table({name: rng.uniform(0, 1, 2000) for name in "abc"})
        pq.write_table(table, folder / "data" / f"{i}.parquet")
    schema = "".join(f"[columns.{name}]\nlower = 0\nupper = 1\n" for name in "abc")
    (folder / "schema.toml").write_text(schema)
    budget = ["--epsilon", "1", "--delta", "1e-6"]
    account = [str(folder / "ledger.db"), "--dataset", "clinic"]
    run(["ledger", "new", *account, "--epsilon", "40", "--delta", "1e-6"])
    options = ["--schema", str(folder / "schema.toml"), "--query", "moments", *budget, "--ledger", *account]
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        place = ["--workers", cluster.scheduler_address, "--out", str(folder / "out"), "--force"]
        yield lambda: run(["release", str(folder / "data"), *options, *place])


@contextmanager
def regression_with_ledger(folder: Path) -> Iterator[Callable[[], object]]:
    """`PrivateRidge` on 5,000 records of five features, charged to a ledger."""
    ledger = folder / "ridge.db"
    with mdp.Ledger.create(ledger) as created:
        created.register("clinic", mdp.Privacy(epsilon=40, delta=1e-6), neighbours="replace")
    X = np.random.default_rng(0).normal(size=(5000, 5))
    y = X @ np.arange(5)
    options: dict[str, Any] = {
        "bounds": (-5, 5),
        "target_bounds": (-30, 30),
        "ledger": str(ledger),
        "dataset": "clinic",
    }
    yield lambda: mdp.estimators.PrivateRidge(**options).fit(X, y)


@contextmanager
def studio_request(folder: Path) -> Iterator[Callable[[], object]]:
    """A request in the studio: forecast, asked, approved, released, and read on its page and in its report."""
    import itertools

    from starlette.testclient import TestClient

    from matrixdp.studio.app import create_app
    from matrixdp.studio.roles import Role, Viewer
    from matrixdp.studio.state import Settings

    place = "http://127.0.0.1:8765"
    (folder / "tables").mkdir()
    table = np.random.default_rng(0).uniform(20, 80, (2000, 2))
    rows = "".join(f"{age:.1f},{weight:.1f},{'ab'[int(age > 50)]}\n" for age, weight in table)
    (folder / "tables" / "clinic.csv").write_text("age,weight,ward\n" + rows)
    mdp.Ledger.create(folder / "ledger.db").close()
    app = create_app(
        Settings(folder=folder / "tables", ledger=folder / "ledger.db", state=folder / "state", isolated=False)
    )
    studio, desk = app.state.studio, Viewer("desk", frozenset(Role))
    columns = "".join(f"[columns.{name}]\ntype = 'number'\nlower = 0\nupper = 100\n" for name in ("age", "weight"))
    ward = "[columns.ward]\ntype = 'category'\nlevels = ['a', 'b']\n"
    studio.schemas.write("clinic.csv", f"records = 2000\n{columns}{ward}")
    studio.datasets.register(desk, "clinic", "clinic.csv", epsilon=40.0, delta=1e-6)
    numbers = itertools.count()
    form: dict[str, Any] = {
        "dataset": "clinic",
        "table": "clinic.csv",
        "query": "everything",
        "epsilon": "1",
        "delta": "1e-6",
    }
    form |= {"columns": ["age", "weight", "ward"], "records": "2000", "purpose": "a journey"}

    def journey() -> None:
        client.post("/design/forecast", data=form).raise_for_status()
        asked = client.post("/requests", data={**form, "form_id": str(next(numbers))}, follow_redirects=False)
        address = asked.headers["location"]
        client.post(f"{address}/approve")
        studio.runner._release(address.rpartition("/")[2])
        result = address.replace("requests", "results")
        for page in (result, f"{result}/report"):
            client.get(page).raise_for_status()

    client = TestClient(app, base_url=place, headers={"Origin": place})
    client.get("/enter", params={"token": studio.links.create(desk)}, follow_redirects=False)
    with studio.state.reading() as connection:
        client.headers["X-CSRF-Token"] = connection.execute("SELECT csrf FROM sessions").fetchone()["csrf"]
    yield journey


@contextmanager
def table_by_command_line(folder: Path) -> Iterator[Callable[[], object]]:
    """``matrixdp release --query everything`` of a table of numbers and a category, with a ledger."""
    from matrixdp.cli.main import run

    rng = np.random.default_rng(0)
    rows = [
        f"{a:.1f},{b:.1f},{w}"
        for a, b, w in zip(*rng.uniform(0, 100, (2, 2000)), rng.choice(["a", "b"], 2000), strict=True)
    ]
    (folder / "clinic.csv").write_text("\n".join(["age,weight,ward", *rows]) + "\n")
    numbers = "".join(f"[columns.{name}]\nlower = 0\nupper = 100\n" for name in ("age", "weight"))
    (folder / "schema.toml").write_text(f"{numbers}[columns.ward]\nlevels = ['a', 'b']\n")
    account = [str(folder / "ledger.db"), "--dataset", "clinic"]
    run(["ledger", "new", *account, "--epsilon", "40", "--delta", "1e-6"])
    words = ["release", str(folder / "clinic.csv"), "--schema", str(folder / "schema.toml"), "--query", "everything"]
    words += ["--epsilon", "1", "--delta", "1e-6", "--ledger", *account, "--out", str(folder / "out"), "--force"]
    yield lambda: run(words)


@contextmanager
def fit_with_error_bars(_: Path) -> Iterator[Callable[[], object]]:
    """`release_table` by an adaptive fit of four columns, and the error bars of its correlations."""
    data = np.random.default_rng(0).normal(size=(3000, 4))
    bounds = mdp.Bounds([-5] * 4, [5] * 4, names=list("abcd"))
    options: dict[str, Any] = {"privacy": PRIVACY, "question": "correlation", "method": "adaptive"}
    yield lambda: mdp.release_table(data, bounds, **options).correlation()


JOURNEYS = {
    "moments in memory": in_memory,
    "a table by the command line, everything": table_by_command_line,
    "an adaptive fit with its error bars": fit_with_error_bars,
    "a folder of Parquet on Dask": folder_on_dask,
    "a regression with a ledger": regression_with_ledger,
    "a studio request, from page to report": studio_request,
}


def main() -> None:
    for title, prepare in JOURNEYS.items():
        with tempfile.TemporaryDirectory() as name, redirect_stdout(StringIO()), prepare(Path(name)) as journey:
            journey()
            calls, files = count_switches(journey)
        rest = sum(number for pair, number in calls.items() if "display" not in pair)
        print(f"{title}: {2 * sum(calls.values())} switches ({2 * rest} without display), {len(files)} files")
        for (caller, callee), number in calls.most_common(8):
            print(f"    {caller} -> {callee}: {2 * number}")


if __name__ == "__main__":
    main()
