"""Designs and texts that were altered: refused with a `ParameterError`, designs before anything is charged."""

import contextlib
import copy
import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matrixdp as mdp
from nightly import examples

PRIVACY = mdp.Privacy(1, 1e-6)
BOUNDS = mdp.Bounds([0, 0], [1, 1], names=["a", "b"])
DATA = np.random.default_rng(0).random((20, 2))
DESIGN = mdp.make_design(mdp.Moments(BOUNDS, 20), PRIVACY)
RELEASE = DESIGN.release(DATA, stream=mdp.Stream(seed=1), simulation=True)


@pytest.fixture
def ledger(tmp_path):
    ledger = mdp.Ledger.create(tmp_path / "clinic.db")
    ledger.register("clinic", mdp.Privacy(10, 1e-6), neighbours="replace")
    return ledger


def with_less_noise(design):
    """The same price for a millionth of the noise."""
    side = design.colcov.scaled(1e-6)
    return replace(design, rowcov=side, colcov=side)


def repickled(design):
    """The same, by an altered pickle that says that it was checked."""
    state = {**with_less_noise(design).__getstate__(), "_checked": True, "noise": design.noise}
    other = object.__new__(mdp.Design)
    other.__setstate__(state)
    return pickle.loads(pickle.dumps(other))


def set_in_place(design):
    """The same, on an object that was checked already."""
    other = pickle.loads(pickle.dumps(design))
    other.check_once()
    for name in ("rowcov", "colcov"):
        object.__setattr__(other, name, getattr(with_less_noise(design), name))
    return other


@pytest.mark.parametrize("alter", [with_less_noise, repickled, set_in_place])
def test_a_design_with_less_noise_is_refused_before_the_charge(alter, ledger):
    with pytest.raises(mdp.ParameterError, match="altered"):
        alter(DESIGN).release(DATA, ledger=ledger, dataset="clinic")
    assert ledger.history("clinic") == []


@pytest.mark.parametrize("change", [{"query": None}, {"grid": None}, {"share": 7.0}, {"flat": True}, {"attained": 9.0}])
def test_a_design_whose_parts_do_not_fit_is_refused(change, ledger):
    with pytest.raises(mdp.ParameterError):
        replace(DESIGN, **change).release(DATA, ledger=ledger, dataset="clinic")
    assert ledger.history("clinic") == []


def test_a_data_set_of_an_altered_design_is_refused_before_the_charge(ledger, tmp_path):
    design = mdp.make_design(mdp.Identity(BOUNDS, 20), PRIVACY)
    altered = replace(design, colcov=design.colcov.scaled(1e-12))
    with pytest.raises(mdp.ParameterError, match="altered"):
        mdp.release_dataset(altered, iter([DATA]), tmp_path / "out", ledger=ledger, dataset="clinic")
    assert ledger.history("clinic") == []


def test_a_design_is_checked_once(monkeypatch):
    calls = []
    check = mdp.Design.check
    monkeypatch.setattr(mdp.Design, "check", lambda self: (calls.append(self), check(self)))
    DESIGN.release(DATA)
    assert calls == []  # make_design made it
    for other in (pickle.loads(pickle.dumps(DESIGN)), replace(DESIGN), copy.copy(DESIGN), copy.deepcopy(DESIGN)):
        calls.clear()
        other.release(DATA)
        other.release(DATA)
        assert len(calls) == 1


def altered(path, value):
    """The release's text with one value set."""
    content = json.loads(RELEASE.to_json())
    place = content
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return json.dumps(content)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["matrix", 0, 0], float("nan")),
        (["matrix", 1, 1], float("inf")),
        (["matrix", 1, 1], 10**400),
        (["design", "query", "records"], 200),
        (["design", "query", "records"], 19),
        (["design", "attained"], DESIGN.attained * 1.01),
        (["design", "attained"], -1.0),
        (["design", "privacy", "epsilon"], 0.5),
        (["design", "rowcov"], {"kind": "Covariance", "variances": {"repeat": 1.0, "times": 3}, "directions": None}),
        (["design", "rowcov", "variances"], {"repeat": 0, "times": 300_000_000}),
        (["design", "rowcov", "variances"], {"repeat": 1.0, "times": 300_000_000}),
        (["design", "query", "bounds", "lower"], {"repeat": 0, "times": 300_000_000}),
        (["design", "query", "bounds", "lower"], {"repeat": 0, "times": -1}),
        (["design", "grid", "distance"], 1e-9),
        (["design", "grid", "bits"], "48"),
        (["design", "query"], {"kind": "Laplacian", "nodes": 10**9}),
        (["simulation"], "no"),
        (["version"], 3),
        (["mu"], 0.1),
    ],
)
def test_a_forged_text_is_refused(path, value):
    with pytest.raises(mdp.ParameterError):
        mdp.Release.from_json(altered(path, value))


@pytest.mark.parametrize("text", ["", "[" * 100_000, "{}", "null", "1", '{"format": []}', b"\xff", None, 5, "1" * 5000])
def test_other_texts_are_refused(text):
    for kind in (mdp.Release, mdp.baselines.MechanismRelease):
        with pytest.raises(mdp.ParameterError):
            kind.from_json(text)


def fixed():
    return {"stream": mdp.Stream(seed=1), "simulation": True}


def release_texts():
    for query in (
        mdp.Identity(BOUNDS, 3),
        mdp.SecondMoment(BOUNDS, 3, centre=[0, 0]),
        mdp.GramMatrix(BOUNDS, 3, points=[[0.5, 0.5]]),
    ):
        yield (
            mdp.make_design(query, PRIVACY, allocation=mdp.allocations.optimal()).release(DATA[:3], **fixed()).to_json()
        )
    graph = mdp.make_design(mdp.Laplacian(3), PRIVACY, directions=np.eye(3)[[1, 0, 2]])
    yield graph.release(np.zeros((3, 3)), **fixed()).to_json()
    table = mdp.make_design(
        mdp.ContingencyTable([1, 2], ["x", "y"], 1), PRIVACY, allocation=mdp.allocations.binary([0], 0.9)
    )
    yield table.release([(1, "x")], **fixed()).to_json()
    own = mdp.Query((1, 2), mdp.sensitivity.Vertices([[[1.0, 0.0]], [[1.0, 1.0]]]), bound=5.0)
    yield mdp.make_design(own, PRIVACY, allocation=mdp.allocations.optimal()).release([[1.0, 2.0]], **fixed()).to_json()


TEXTS = list(release_texts())
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.just(10**400),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.sampled_from(["Covariance", "Bounds", "Moments", "Vertices", "Design", "replace", "no.such.Class"]),
    st.just([]),
    st.just([[1.0], [1.0, 2.0]]),
    st.just({"repeat": 1.0, "times": 300_000_000}),
    st.just({"array": "x"}),
    st.just({"kind": "Privacy", "epsilon": 1.0, "delta": 0.5}),
)


def places(content, path=()):
    """Every place in nested content, as a path."""
    if path:
        yield path
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for name, value in items:
        yield from places(value, (*path, name))


MECHANISM = mdp.baselines.MechanismRelease.from_release("own", RELEASE).to_json()


@examples(500)
@given(st.sampled_from([*TEXTS, MECHANISM]), st.data())
def test_altered_texts_raise_parameter_errors_only(text, data):
    content, kind = json.loads(text), mdp.baselines.MechanismRelease if text is MECHANISM else mdp.Release
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(list(places(content))))
        place = content
        for name in path[:-1]:
            place = place[name]
        if data.draw(st.integers(0, 4)) == 0:
            del place[path[-1]]
        else:
            place[path[-1]] = copy.deepcopy(data.draw(VALUES))
        if not content:
            break
    try:
        released = kind.from_json(json.dumps(content))
    except mdp.ParameterError:
        return
    assert np.isfinite(released.matrix).all()
    assert released.mu is None or released.mu <= released.privacy.mu


@examples(200)
@given(st.sampled_from(TEXTS), st.data())
def test_damaged_characters_raise_parameter_errors_only(text, data):
    i = data.draw(st.integers(0, len(text) - 1))
    piece = data.draw(st.text(alphabet='0123456789.eE-+"[]{},:NaInfty', max_size=4))
    with contextlib.suppress(mdp.ParameterError):
        mdp.Release.from_json(text[:i] + piece + text[i + data.draw(st.integers(0, 6)) :])


def test_an_altered_data_set_is_refused(tmp_path):
    design = mdp.make_design(mdp.Identity(BOUNDS, 20), PRIVACY)
    place = tmp_path / "out"
    mdp.release_dataset(design, mdp.records.Blocks(lambda: iter([DATA])), place)
    manifest = place / "_release.json"
    content = json.loads(manifest.read_text())
    mdp.DatasetRelease.open(place)
    for change in (
        {"std": [1.0, 1.0]},
        {"files": [3]},
        {"files": ["../out/part-000000.parquet"]},
        {"mu": 1e-3},
        {"neighbours": "add-remove"},
        {"design": {**content["design"], "attained": 5.0}},
        {"design": {**content["design"], "query": {**content["design"]["query"], "records": 10**15}}},
        {"design": json.loads(RELEASE.to_json())["design"]},
    ):
        manifest.write_text(json.dumps({**content, **change}))
        with pytest.raises(mdp.ParameterError):
            mdp.DatasetRelease.open(place)
    manifest.write_bytes(b"\xff\xfe")
    with pytest.raises(mdp.ParameterError):
        mdp.DatasetRelease.open(place)
