"""Mechanisms of a module that is not part of matrixdp get rows in the tables of their tasks."""

import importlib
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from matrixdp import Bounds, Privacy
from matrixdp.errors import MechanismError, ParameterError
from matrixdp.paper import reproduce
from matrixdp.paper.trials import part_cells, part_rows
from matrixdp.release import registered
from matrixdp.release.registered import load_plugins, registered_mechanisms

BROKEN = """
from dataclasses import replace
from plugin_mechanisms import noisy
from matrixdp.ledger import Gaussian
from matrixdp.release.registered import register_mechanism

@register_mechanism("broken", cost=lambda privacy: Gaussian(privacy.mu / 2), tasks=("components",))
def broken(query, privacy, data, *, stream=None, simulation=False):
    return noisy("broken", query, privacy, data, stream, simulation)
"""


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch, stand_ins):
    registered_mechanisms()
    monkeypatch.setattr(registered, "_MECHANISMS", dict(registered._MECHANISMS))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "plugin_mechanisms", raising=False)
    part_rows.cache_clear()
    yield
    part_rows.cache_clear()


def rows_of(folder, part):
    rows = json.loads((folder / "tables" / f"{part}.json").read_text("utf-8"))["rows"]
    return {row["key"]: row for row in rows}


def test_a_plugin_appears_in_a_report_by_two_processes(tmp_path):
    out = reproduce(["exp2"], 2, out=tmp_path, progress=io.StringIO(), plugins=["plugin_mechanisms"])
    own = {key: row for key, row in rows_of(tmp_path, "exp2").items() if row["group"] == "registered"}
    assert set(own) == {"registered/second-moment/plain noise", "registered/components/first column"}
    assert all(row["mean"] >= 0 and row["spent"] == pytest.approx(1.0) for row in own.values())
    assert "Registered mechanisms" in out.read_text("utf-8")


def test_every_experiment_has_the_mechanisms_of_its_tasks():
    load_plugins(["plugin_mechanisms"])
    found = {part: [key for key in part_rows(part) if key.startswith("registered/")] for part in ("exp1", "exp3")}
    assert found == {
        "exp1": ["registered/records/plain noise"],
        "exp3": ["registered/records/plain noise", "registered/second-moment/plain noise"],
    }


def test_an_edited_plugin_is_run_again(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(tmp_path)
    paths = []
    for comment in ("first", "second"):
        (tmp_path / "edited_plugin.py").write_text(f"# {comment}\n{BROKEN}", "utf-8")
        sys.modules.pop("edited_plugin", None)
        importlib.invalidate_caches()
        load_plugins(["edited_plugin"])
        part_rows.cache_clear()
        paths += [cell.path for cell in part_cells("exp2", trials=2, seed=0) if "broken" in cell.row]
    sys.modules.pop("edited_plugin")
    assert len(set(paths)) == 2


def test_a_claim_weaker_than_its_cost_stops_the_run(monkeypatch, tmp_path):
    (tmp_path / "broken_plugin.py").write_text(BROKEN, "utf-8")
    monkeypatch.chdir(tmp_path)  # found in the current folder
    with pytest.raises(MechanismError, match=r"'broken' claims .* weaker than its cost"):
        reproduce(["exp2"], 2, out=tmp_path, processes=1, progress=io.StringIO(), plugins=["broken_plugin"])
    sys.modules.pop("broken_plugin")


def test_a_plugin_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ParameterError, match="plugin 'no_such_module' cannot be imported: ModuleNotFoundError"):
        reproduce(["exp2"], 2, out=tmp_path, plugins=["no_such_module"])


def test_a_plugin_appears_in_the_tables_of_accuracy(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[3])
    methods = importlib.import_module("benchmarks.accuracy_methods")
    data = importlib.import_module("benchmarks.accuracy_data").DataSet(
        "toy", np.random.default_rng(0).uniform(-1, 1, (50, 3)), Bounds([-1] * 3, [1] * 3)
    )
    before = {
        table: getattr(methods, f"{table}_methods")() for table in ("covariance", "centred", "component", "regression")
    }
    load_plugins(["plugin_mechanisms"])
    for table, names in {
        "covariance": {"plain noise": (3, 3)},
        "centred": {"plain noise": (3, 3)},
        "component": {"plain noise": (3, 3), "first column": (1, 3)},
        "regression": {"first column": (3,)},
    }.items():
        found = getattr(methods, f"{table}_methods")()
        assert set(found) - set(before[table]) == set(names)
        for name, shape in names.items():
            assert found[name](data, Privacy(1.0, 1e-6), 0).shape == shape
