"""Releases and requests of earlier versions: they load, and are written again as they were, with their unit."""

import json
from pathlib import Path

import pytest

import matrixdp as mdp
from matrixdp.release.charging import describe_design

STORED = json.loads((Path(__file__).parent / "releases_0_1_0.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", STORED)
def test_a_release_of_0_1_0_loads_and_is_written_as_it_was(name):
    text = STORED[name]["release"]
    unit = "edge" if name in ("adjacency", "laplacian") else "record"
    content = json.loads(mdp.Release.from_json(text).to_json())
    assert content.pop("unit") == unit
    assert json.dumps(content) == text
    assert mdp.Release.from_json(text).unit.kind == unit


@pytest.mark.parametrize("name", STORED)
def test_a_request_of_0_1_0_is_recognised(name):
    design = mdp.Release.from_json(STORED[name]["release"]).design
    assert describe_design(design) == STORED[name]["description"]
