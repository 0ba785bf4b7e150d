"""Mechanisms of a module that is not part of matrixdp get rows in the tables of accuracy."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from matrixdp import Bounds, Privacy
from matrixdp.release import registered
from matrixdp.release.registered import registered_mechanisms


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    registered_mechanisms()
    monkeypatch.setattr(registered, "_MECHANISMS", dict(registered._MECHANISMS))
    monkeypatch.delitem(sys.modules, "plugin_mechanisms", raising=False)


def test_a_plugin_appears_in_the_tables_of_accuracy(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    methods = importlib.import_module("benchmarks.accuracy_methods")
    data = importlib.import_module("benchmarks.accuracy_data").DataSet(
        "toy", np.random.default_rng(0).uniform(-1, 1, (50, 3)), Bounds([-1] * 3, [1] * 3)
    )
    before = {
        table: getattr(methods, f"{table}_methods")() for table in ("covariance", "centred", "component", "regression")
    }
    importlib.import_module("plugin_mechanisms")
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
