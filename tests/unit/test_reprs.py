"""What a prompt or a debugger shows of an object fits on a few lines, however large its arrays are."""

import numpy as np
import pandas as pd
import pytest

import matrixdp as mdp
from matrixdp.adaptive import private_moment
from matrixdp.release.registered import MechanismRelease

PRIVACY = mdp.Privacy(1, 1e-6)
SIZE = 40
NAMES = [f"x{number}" for number in range(SIZE)]
BOUNDS = mdp.Bounds([0] * SIZE, [1] * SIZE, names=NAMES)
LEVELS = [f"w{number}" for number in range(30)]
COLUMNS = mdp.Columns([*(mdp.Number(name, 0, 1, missing=True) for name in NAMES), mdp.Category("ward", LEVELS)])


@pytest.fixture(scope="module")
def shown():
    """Objects with large arrays, by name."""
    rng = np.random.default_rng(0)
    data = rng.random((200, SIZE))
    moments = mdp.make_design(mdp.Moments(BOUNDS, 200), PRIVACY)
    release = moments.release(data, stream=mdp.Stream(seed=0), simulation=True)
    table = mdp.make_design(mdp.TableMoments(COLUMNS, 200), PRIVACY)
    frame = pd.DataFrame({**dict(zip(NAMES, data.T, strict=True)), "ward": rng.choice(LEVELS, 200)})
    tables = table.release(frame, stream=mdp.Stream(seed=0), simulation=True)
    from_mechanism = MechanismRelease(moments.query, release.matrix, "own", PRIVACY, 1.0, 1e-6, comparison_only=True)
    return {
        "bounds": BOUNDS,
        "columns": COLUMNS,
        "category": COLUMNS["ward"],
        "moments": moments.query,
        "table moments": table.query,
        "sensitivity": moments.query.sensitivity,
        "covariance": moments.rowcov,
        "structure": table.structure,
        "counts": mdp.ContingencyTable(LEVELS, LEVELS, 200),
        "design": moments,
        "design of a table": table,
        "release": release,
        "release of a table": tables,
        "mean": release.means(),
        "correlation": release.correlation(),
        "means": tables.means(),
        "a table": tables.means("ward"),
        "regression": tables.regression("x0", NAMES[1:25]),
        "moment": private_moment(data, BOUNDS, PRIVACY),
        "release of a mechanism": from_mechanism,
    }


def test_representations_are_short_and_show_no_arrays(shown):
    for name, value in shown.items():
        assert len(repr(value)) < 600, name
        assert "array" not in repr(value), name
        assert repr(value).count("\n") < 2, name


def test_a_design_and_a_release_say_what_they_are(shown):
    design = repr(shown["design"])
    assert design.startswith("<Design of Moments of 40 columns, (1, 1e-06)-DP, noise std ")
    assert "protects one record" in design
    assert repr(shown["design of a table"]).startswith("<Design of TableMoments of 41 columns, ")
    assert "A SIMULATION THAT PROTECTS NOTHING" in repr(shown["release"])
    assert str(shown["release"]).count("\n") < 10


def test_small_numbers_are_shown_where_they_are(shown):
    small = mdp.Bounds([0], [1], names=["a"])
    assert repr(small) == "Bounds(lower=[0], upper=[1], names=('a',))"
    assert repr(mdp.Number("a", 0, 1)) == "Number(name='a', lower=0.0, upper=1.0)"
    assert repr(mdp.YesNo("a", missing=True)) == "YesNo(name='a', missing=True)"
    data = np.random.default_rng(0).random((500, 1))
    release = mdp.make_design(mdp.Moments(small, 500), PRIVACY).release(data)
    assert repr(release.means()) == str(release.means())
    assert str(shown["mean"]).count("\n") == SIZE  # one to a line
