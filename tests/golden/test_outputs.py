"""Outputs of the four ways to use the library, with noise from fixed streams, beside those stored in `outputs.json`.

They hold what a release gives, number by number: the noisy matrix, every table of the report, what a design predicts,
what the ledger was charged. ``MATRIXDP_GOLDEN=write`` stores them anew; a commit that does so says why they differ.
"""

import csv
import hashlib
import itertools
import json
import os
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

import matrixdp as mdp
from matrixdp import estimators
from matrixdp.cli.main import run
from matrixdp.studio.worker import release_request
from studio_site import CURATOR, ORIGIN, SPEC, TABLE, Site

STORED = Path(__file__).with_name("outputs.json")
WRITE = os.environ.get("MATRIXDP_GOLDEN") == "write"
DIGITS = 9

SCHEMA = """\
records = 600

[columns.age]
lower = 18
upper = 90
[columns.bmi]
lower = 15
upper = 45
[columns.stay]
lower = 0
upper = 30
"""
MIXED = """\
records = 600

[columns.age]
lower = 18
upper = 90
missing = true
[columns.bmi]
lower = 15
upper = 45
[columns.stay]
lower = 0
upper = 30
[columns.ward]
type = "category"
levels = ["north", "south", "east"]
[columns.smoker]
type = "yes/no"
[columns.outcome]
type = "category"
levels = ["well", "ill"]
"""
GRAPH = '[graph]\nnodes = ["a", "b", "c", "d"]\nweight = 2.0\n'
BUDGET = ("--epsilon", "1", "--delta", "1e-6")
PRIVACY = mdp.Privacy(1, 1e-6)
BOUNDS = mdp.Bounds([18, 15, 0], [90, 45, 30], names=["age", "bmi", "stay"])


@pytest.fixture(autouse=True)
def _fixed_streams(request, monkeypatch):
    """Streams of the n-th key of a test, whatever the test file is called."""
    start, numbers = mdp.Stream.__init__, itertools.count()
    case = request.node.name

    def fixed(stream, seed=None):
        start(stream, seed)
        if seed is None:
            stream._start(hashlib.sha256(f"golden {case} {next(numbers)}".encode()).digest(), seeded=False)

    monkeypatch.setattr(mdp.Stream, "__init__", fixed)


def make_records(count=600):
    rng = np.random.default_rng(5)
    age = rng.uniform(20, 80, count)
    bmi = 25 + 0.1 * (age - 50) + rng.normal(0, 3, count)
    stay = np.clip(0.2 * (age - 20) + rng.gamma(2, 1, count), 0, 30)
    return np.column_stack([age, bmi, stay]).round(2)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Tables, schemas and a ledger in an empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    records, rng = make_records(), np.random.default_rng(6)
    ward, smoker = rng.choice(["north", "south", "east"], 600), rng.choice(["yes", "no"], 600)
    person, outcome = rng.integers(0, 250, 600), rng.choice(["well", "ill"], 600)
    rows = [["age", "bmi", "stay"], *records.tolist()]
    mixed = [["age", "bmi", "stay", "ward", "smoker", "outcome", "person"]]
    for i, (age, bmi, stay) in enumerate(records.tolist()):
        mixed.append(["" if i % 7 == 3 else age, bmi, stay, ward[i], smoker[i], outcome[i], f"p{person[i]}"])
    edges = [["source", "target", "weight"], ["a", "b", 1.5], ["b", "c", 0.5], ["c", "d", 2.0]]
    for name, table in (("clinic", rows), ("mixed", mixed), ("edges", edges), ("points", [rows[0], *rows[1:6]])):
        with open(f"{name}.csv", "w", newline="") as file:
            csv.writer(file).writerows(table)
    for name, text in (("clinic", SCHEMA), ("mixed", MIXED), ("edges", GRAPH)):
        Path(f"{name}.toml").write_text(text)
    with mdp.Ledger.create("ledger.db") as ledger:
        ledger.register("clinic", mdp.Privacy(30, 1e-4), neighbours="replace")
    return tmp_path


def rounded(value):
    """A value as JSON, with floating-point numbers to a few significant digits."""
    if isinstance(value, dict):
        return {str(name): rounded(one) for name, one in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return rounded(value.tolist()) if isinstance(value, np.ndarray) else [rounded(one) for one in value]
    if isinstance(value, float | np.floating):
        return None if not np.isfinite(value) else float(f"{value:.{DIGITS}g}")
    return value.item() if isinstance(value, np.generic) else value


def compare(name, found):
    """Raise unless an output is the stored one."""
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    found = json.loads(json.dumps(rounded(found)))
    if WRITE:
        STORED.write_text(json.dumps({**stored, name: found}, indent=1, sort_keys=True) + "\n")
        return
    assert list(differences(stored[name], found, name)) == []


def differences(wanted, found, place):
    """Places at which two outputs differ."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for name in sorted({*wanted, *found}):
            if name not in wanted or name not in found:
                yield f"{place}.{name} is only in the {'new' if name in found else 'stored'} output"
            else:
                yield from differences(wanted[name], found[name], f"{place}.{name}")
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for i, (one, other) in enumerate(zip(wanted, found, strict=True)):
            yield from differences(one, other, f"{place}[{i}]")
    elif isinstance(wanted, float | int) and isinstance(found, float | int):
        if not np.isclose(wanted, found, rtol=1e-6, atol=1e-9):
            yield f"{place}: {wanted} became {found}"
    elif wanted != found:
        yield f"{place}: {wanted!r} became {found!r}"


def read_tables(out):
    """Numbers of all CSV files of a release."""
    found = {}
    for path in sorted(Path(out).rglob("*.csv")):
        with path.open(newline="") as file:
            found[path.name] = [[_number(cell) for cell in row] for row in csv.reader(file)]
    return found


def hide_draws(tables):
    """The tables without what comes from draws, whose last digits depend on the machine; their marks stay."""
    found = {}
    for name, (head, *rows) in tables.items():
        if "note" in head:
            place, numbers = head.index("column"), [head.index(key) for key in ("value", "low", "high")]
            drawn = [row[-1] == "plausible range" or row[place] in ("95% low", "95% high") for row in rows]
            rows = [
                ["drawn" if hidden and i in numbers else cell for i, cell in enumerate(row)]
                for row, hidden in zip(rows, drawn, strict=True)
            ]
        found[name] = [head, *rows]
    return found


def _number(cell):
    try:
        return float(cell)
    except ValueError:
        return cell


COMMANDS = {
    "everything": ("mixed", "everything"),
    "everything by ward": ("mixed", "everything", "--by", "ward"),
    "everything of people": ("mixed", "everything", "--person", "person", "--records", "215"),
    "means": ("mixed", "means"),
    "means of numbers": ("clinic", "means"),
    "table": ("mixed", "table", "--cells", "ward,smoker"),
    "covariance": ("clinic", "covariance"),
    "covariance plain": ("clinic", "covariance", "--method", "plain"),
    "covariance of a table": ("mixed", "covariance", "--columns", "age,bmi,stay", "--by", "smoker"),
    "correlation": ("clinic", "correlation"),
    "correlation adaptive": ("clinic", "correlation", "--method", "adaptive"),
    "correlation plain": ("clinic", "correlation", "--method", "plain"),
    "components": ("clinic", "components"),
    "regression": ("clinic", "regression", "--target", "stay"),
    "regression adaptive": ("clinic", "regression", "--target", "stay", "--method", "adaptive"),
    "regression on a category": ("mixed", "regression", "--target", "stay", "--on", "bmi,ward"),
    "moments": ("clinic", "moments", "--importance", "age=4"),
    "moments by theorem 2": ("clinic", "moments", "--calibration", "theorem2"),
    "moments, add-remove": ("clinic", "moments", "--neighbours", "add-remove"),
    "second moment": ("clinic", "second-moment"),
    "gram": ("clinic", "gram", "--points", "points.csv"),
    "counts": ("mixed", "counts", "--cells", "ward,outcome"),
    "adjacency": ("edges", "adjacency"),
    "laplacian": ("edges", "laplacian"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_command_line(name, folder, capsys):
    table, query, *more = COMMANDS[name]
    words = ["--schema", f"{table}.toml", "--query", query, *BUDGET, *more]
    assert run(["design", *words, "--json"]) == 0
    design = json.loads(capsys.readouterr().out)
    graph = query in ("adjacency", "laplacian")
    account = ["--no-ledger"] if graph or table == "mixed" or "add-remove" in more else [
        "--ledger", "ledger.db", "--dataset", "clinic", "--request", "7", "--actor", "a", "--purpose", "b"
    ]  # fmt: skip
    assert run(["release", f"{table}.csv", *words, *account, "--out", "out", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    # Others have several answers, in the tables below.
    if query not in ("everything", "means", "table") and (query, design.get("method")) != ("regression", "plain"):
        named = (one["std"] for one in design["answers"] if one["title"].lower().startswith(query))
        std = next(named, design["answers"][0]["std"])
        design["std"] = std if len(std) > 1 and design.get("method") == "adaptive" else std["typical"]
    kept = ("std", "expected_std", "expected_shares", "relative_error", "gain", "mu", "method", "shape")
    compare(
        f"command line: {name}",
        {
            "design": {key: design[key] for key in kept if key in design},
            "printed": {key: printed[key] for key in kept if key in printed},
            "tables": read_tables("out") if printed.get("method") == "adaptive" else hide_draws(read_tables("out")),
            "files": sorted(path.name for path in Path("out").iterdir()),
            "charges": read_charges() if "--ledger" in account else None,
        },
    )
    if "--request" in account:
        assert run(["release", f"{table}.csv", *words, *account, "--out", "again", "--json"]) == 0
        assert read_tables("again") == read_tables("out")
        assert len(read_charges()) == 1


def read_charges():
    """What the ledger was charged, without times and chains."""
    with mdp.Ledger.open("ledger.db") as ledger:
        return [
            {"event": str(charge.event), "released": charge.released, "description": dict(charge.description)}
            for charge in ledger.history("clinic")
        ]


@pytest.mark.parametrize("method", ["plain", "adaptive"])
@pytest.mark.parametrize("aim", ["means", "covariance", "correlation", "components", "regression"])
def test_python(aim, method):
    target = {"target": "stay"} if aim == "regression" else {}
    released = mdp.release_table(
        make_records(),
        BOUNDS,
        PRIVACY,
        question=aim,
        method=method,
        stream=mdp.Stream(seed=3),
        simulation=True,
        **target,
    )
    fit = released.regression("stay")

    def hide(answer):
        return np.where(answer.plausible & (method == "plain"), np.nan, answer.value)

    answers = {
        name: {"value": hide(answer), "std": answer.std}
        for name, answer in (
            ("means", released.means()),
            ("covariance", released.covariance()),
            ("correlation", released.correlation()),
            ("components", released.components()),
        )
    }
    terms = hide(fit.terms)
    regression = {"coefficients": dict(zip(fit.names, terms[:, 0].tolist(), strict=True)), "std": fit.noise_std}
    regression |= {"sampling std": terms[:, 1], "fit": hide(fit.fit)}
    compare(f"python: {aim}, {method}", {**answers, "regression": regression, "mu": released.mu})


QUERIES = {
    "moments": lambda: mdp.Moments(BOUNDS, records=600),
    "second moment": lambda: mdp.SecondMoment(BOUNDS, records=600),
    "data set": lambda: mdp.Identity(BOUNDS, records=600),
    "gram": lambda: mdp.GramMatrix(BOUNDS, 600, make_records()[:5]),
    "moments, add-remove": lambda: mdp.Moments(BOUNDS, records=600, neighbours="add-remove"),
}


@pytest.mark.parametrize("name", QUERIES)
def test_designs(name):
    design = mdp.make_design(QUERIES[name](), PRIVACY)
    released = design.release(make_records(), stream=mdp.Stream(seed=4), simulation=True)
    matrix = released.matrix[:5]
    again = mdp.Release.from_json(released.to_json()) if name != "data set" else released
    assert (again.matrix == released.matrix).all()
    compare(f"design: {name}", {"matrix": matrix, "std": released.std[:5], "mu": design.distance})


ESTIMATORS = {
    "covariance": lambda: (estimators.PrivateCovariance, {}, None),
    "pca": lambda: (estimators.PrivatePCA, {"n_components": 2}, None),
    "scaler": lambda: (estimators.PrivateScaler, {}, None),
    "ridge": lambda: (estimators.PrivateRidge, {"target_bounds": (0, 30)}, make_records()[:, 2]),
    "linear regression": lambda: (
        estimators.PrivateLinearRegression, {"target_bounds": (0, 30)}, make_records()[:, 2]
    ),
    "kernel ridge": lambda: (estimators.PrivateKernelRidge, {"target_bounds": (0, 30)}, make_records()[:, 2]),
    "discriminant": lambda: (
        estimators.PrivateLinearDiscriminant, {"classes": [0, 1]}, (make_records()[:, 2] > 8).astype(int)
    ),
}  # fmt: skip
FITTED = ("covariance_", "location_", "components_", "explained_variance_", "mean_", "scale_", "coef_", "intercept_",
          "means_", "mu_", "mean_std_", "covariance_std_", "dual_coef_", "priors_")  # fmt: skip


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators(name):
    estimator, options, y = ESTIMATORS[name]()
    X = make_records()[:, :2]
    fit = estimator(bounds=([18, 15], [90, 45]), simulation=True, random_state=8, **options)
    fit.fit(X) if y is None else fit.fit(X, y)
    found = {key: np.asarray(getattr(fit, key)) for key in FITTED if hasattr(fit, key)}
    found["predicted"] = fit.predict(X[:4]) if hasattr(fit, "predict") else None
    compare(f"estimator: {name}", found)


ASKED = {
    "plain covariance": {},
    "adaptive correlation": {"query": "correlation", "method": "adaptive"},
    "everything": {"query": "everything", "columns": "", "method": "auto"},
}


@pytest.mark.parametrize("name", ASKED)
def test_studio(name, tmp_path):
    site = Site(tmp_path)
    asked = {"dataset": "clinic", "table": TABLE, "release": {**SPEC, **ASKED[name]}}
    api: TestClient = site.api()
    answer = api.post("/api/forecast", json=asked)
    assert answer.status_code == 200
    forecast = answer.json()
    request = api.post("/api/requests", json={**asked, "purpose": "a test", "form_id": "1"}).json()
    site.api(CURATOR).post(f"/api/requests/{request['id']}/approve", headers={"Origin": ORIGIN})
    release_request(site.settings, request["id"])
    assert api.get(f"/api/requests/{request['id']}").json()["status"] == "released"
    page = api.get(f"/results/{request['id']}")
    compare(
        f"studio: {name}",
        {
            "forecast": numbers_of(forecast),
            "tables": read_tables(site.settings.releases / request["id"]),
            "files": sorted(path.name for path in (site.settings.releases / request["id"]).iterdir()),
            "page": page.status_code,
        },
    )


def numbers_of(content):
    """The numbers of a JSON object at its top level and one below."""
    if not isinstance(content, dict):
        return content
    return {
        name: numbers_of(value)
        for name, value in content.items()
        if isinstance(value, float | int | dict | list) and name not in ("id", "time")
    }
