"""Where tables are looked for, and that nothing unchecked is taken."""

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import matrixdp
from matrixdp.datasets import (
    CATALOGUE,
    LEVELS,
    DatasetError,
    cache_folder,
    load_table,
    scale_to_unit,
    simulate_table,
)
from matrixdp.errors import ParameterError

DATA = os.environ.get("MATRIXDP_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="MATRIXDP_DATA does not name a folder with the data sets")
ROWS = b"mcv,alkphos,sgpt,sgot,gammagt,drinks,selector\n85,92,45,27,31,0.0,1\n86,54,33,16,54,0.5,2\n"


@pytest.fixture
def small(monkeypatch):
    """The liver data as if they had two records."""
    source = replace(CATALOGUE["liver"], sha256=hashlib.sha256(ROWS).hexdigest())
    monkeypatch.setitem(CATALOGUE, "liver", source)
    return source


def test_the_named_folder_comes_first(small, monkeypatch, tmp_path):
    (tmp_path / "liver.csv").write_bytes(ROWS)
    monkeypatch.setenv("MATRIXDP_DATA", str(tmp_path))
    table = load_table("liver")
    assert table.origin == "file"
    assert table.values.shape == (2, 7)
    assert table.take("drinks", "mcv").tolist() == [[0.0, 85.0], [0.5, 86.0]]


def test_then_the_cache(small, monkeypatch):
    monkeypatch.delenv("MATRIXDP_DATA", raising=False)
    cache_folder().mkdir(parents=True)
    (cache_folder() / "liver.csv").write_bytes(ROWS)
    assert load_table("liver").origin == "cache"


def test_an_altered_table_is_refused_and_not_passed_over(small, monkeypatch, tmp_path):
    (tmp_path / "liver.csv").write_bytes(ROWS.replace(b"85", b"84"))
    monkeypatch.setenv("MATRIXDP_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match="SHA-256"):
        load_table("liver", simulate=True)


def test_without_data_the_error_says_what_to_do(monkeypatch):
    monkeypatch.delenv("MATRIXDP_DATA", raising=False)
    with pytest.raises(DatasetError, match="MATRIXDP_DATA"):
        load_table("ctg")


def test_without_data_a_stand_in_is_marked(monkeypatch):
    monkeypatch.delenv("MATRIXDP_DATA", raising=False)
    table = load_table("ctg", simulate=True)
    assert table.simulated
    assert table.values.shape == (2126, 22)


@pytest.mark.parametrize("name", list(CATALOGUE))
def test_a_stand_in_has_the_ranges_and_correlations_of_its_summary(name):
    summaries = Path(matrixdp.__file__).with_name("summaries.json").read_text("utf-8")
    table, summary = simulate_table(name), json.loads(summaries)[name]
    columns = table.take(*summary["columns"])
    assert columns.min(axis=0) == pytest.approx([q[0] for q in summary["quantiles"]], rel=1e-6)
    assert columns.max(axis=0) == pytest.approx([q[-1] for q in summary["quantiles"]], rel=1e-6)
    middle = np.array(summary["quantiles"])[:, LEVELS.index(0.5)]
    spread = np.array(summary["quantiles"])[:, -1] - np.array(summary["quantiles"])[:, 0]
    assert (np.abs(np.median(columns, axis=0) - middle) <= 0.1 * spread).all()
    assert simulate_table(name).values.tolist() == table.values.tolist()  # the same every time


def test_names_are_checked():
    with pytest.raises(ParameterError, match="liver, movement, ctg"):
        load_table("iris")
    with pytest.raises(ParameterError, match="got age instead"):
        simulate_table("liver").take("age")
    with pytest.raises(ParameterError, match="liver, movement, ctg"):
        simulate_table("iris")


@needs_data
@pytest.mark.parametrize(("name", "records"), [("liver", 345), ("movement", 13197), ("ctg", 2126)])
def test_the_published_tables(name, records):
    table = load_table(name)
    assert table.origin == "file"
    assert table.values.shape == (records, len(CATALOGUE[name].columns))
    assert CATALOGUE[name].canonical(table.values.tolist()) == (Path(DATA) / f"{name}.csv").read_bytes()


def test_scaling_reaches_both_ends():
    scaled = scale_to_unit(simulate_table("liver").values)
    assert scaled.min(axis=0).tolist() == [0.0] * 7
    assert scaled.max(axis=0).tolist() == [1.0] * 7
