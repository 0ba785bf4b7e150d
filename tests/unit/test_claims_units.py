"""A total that promises one unit pays for no release that protects less."""

import json

import numpy as np
import pandas as pd
import pytest

import matrixdp as mdp
from matrixdp.cli.main import run
from matrixdp.privacy import Unit

PRIVACY = mdp.Privacy(1, 1e-6)
BOUNDS = mdp.Bounds([0, 0], [1, 1], names=["a", "b"])
VISITS = mdp.Person("id", rows=2)
RNG = np.random.default_rng(0)
DATA = pd.DataFrame({"a": RNG.uniform(size=40), "b": RNG.uniform(size=40), "id": np.repeat(np.arange(20), 2)})
ROWS = {
    "data set": mdp.Identity(BOUNDS, 40, person=VISITS),
    "kernel of records": mdp.GramMatrix(BOUNDS, 40, person=VISITS),
    "kernel at points": mdp.GramMatrix(BOUNDS, 40, points=[[0.5, 0.5], [0.1, 0.9]], person=VISITS),
}
PERSONS = {
    "once": mdp.Moments(BOUNDS, 20, person="id"),
    "rows": mdp.Moments(BOUNDS, 40, person=VISITS),
}


def small(query):
    return mdp.make_design(query, mdp.Privacy(0.2, 1e-7))


@pytest.fixture
def ledger(tmp_path):
    with mdp.Ledger.create(tmp_path / "visits.db") as found:
        yield found


@pytest.mark.parametrize("name", ROWS)
def test_an_answer_with_a_row_for_each_record_protects_values_and_not_persons(name):
    design = small(ROWS[name])
    assert str(design.unit) == "values:id"
    assert "the values in all rows of one person" in str(design)
    assert {str(small(query).unit) for query in PERSONS.values()} == {"person:id"}
    assert str(small(mdp.Identity(BOUNDS, 40)).unit) == "record"


@pytest.mark.parametrize("name", ROWS)
def test_a_total_for_persons_pays_for_no_values(name, ledger):
    ledger.register("visits", PRIVACY, neighbours="replace", unit="person:id")
    before = ledger.remaining("visits")
    with pytest.raises(mdp.LedgerError, match="--unit values --person id"):
        small(ROWS[name]).release(DATA, ledger=ledger, dataset="visits")
    assert ledger.remaining("visits") == before


@pytest.mark.parametrize("name", ROWS)
def test_no_data_are_read_for_a_total_of_another_unit(name, ledger):
    """The error of too many rows would tell how many rows somebody has, for nothing."""
    ledger.register("visits", PRIVACY, neighbours="replace", unit="person:id")
    one = DATA.assign(id=7)
    with pytest.raises(mdp.DataError, match="more than 2 rows"):
        small(ROWS[name]).release(one)
    with pytest.raises(mdp.LedgerError, match="Nothing was charged"):
        small(ROWS[name]).release(one, ledger=ledger, dataset="visits")


@pytest.mark.parametrize("query", [*ROWS.values(), *PERSONS.values()], ids=[*ROWS, *PERSONS])
def test_a_total_for_values_pays_for_values_and_for_persons(query, ledger):
    """Persons whose rows are replaced include those whose values are."""
    ledger.register("visits", PRIVACY, neighbours="replace", unit="values:id")
    small(query).release(DATA, ledger=ledger, dataset="visits")
    assert ledger.remaining("visits").mu < PRIVACY.mu
    ledger.verify()


def test_values_of_another_column_and_single_records_are_refused(ledger):
    ledger.register("visits", PRIVACY, neighbours="replace", unit="values:household")
    for query in (*ROWS.values(), *PERSONS.values(), mdp.Identity(BOUNDS, 40)):
        with pytest.raises(mdp.LedgerError, match="registered for releases that protect the values"):
            small(query).release(DATA, ledger=ledger, dataset="visits")
    assert ledger.remaining("visits").mu == pytest.approx(PRIVACY.mu)


def test_what_was_released_and_charged_for_persons_is_still_read(ledger):
    released = small(ROWS["data set"]).release(DATA, ledger=None)
    content = json.loads(released.to_json())
    assert content["unit"] == "values:id"
    earlier = mdp.from_json(json.dumps({**content, "unit": "person:id"}))
    assert str(earlier.unit) == "values:id"  # what it protects
    for unit in ("record", "person:household", "values:household"):
        with pytest.raises(mdp.ParameterError, match="unit of the text"):
            mdp.from_json(json.dumps({**content, "unit": unit}))
    ledger.register("visits", PRIVACY, neighbours="replace", unit="person:id")
    with pytest.raises(mdp.ParameterError, match="unit of the text"):
        mdp.from_json(json.dumps({**json.loads(small(PERSONS["once"]).release(DATA).to_json()), "unit": "values:id"}))


def test_a_person_covers_their_values_and_nothing_else_covers_another_unit():
    units = [
        Unit("record"),
        Unit("person", "id"),
        Unit("values", "id"),
        Unit("person", "x"),
        Unit("edge"),
        Unit("node"),
    ]
    pairs = {(str(a), str(b)) for a in units for b in units if a != b and a.covers(b)}
    assert pairs == {("person:id", "values:id")}
    assert all(Unit.parse(str(unit)) == unit and unit.covers(unit) for unit in units)
    with pytest.raises(mdp.ParameterError, match="needs the column"):
        Unit("values")


def test_the_command_line_registers_values(tmp_path, capsys):
    new = ["ledger", "new", str(tmp_path / "a.db"), "--dataset", "visits", "--epsilon", "1", "--delta", "1e-6"]
    assert run([*new, "--unit", "values", "--person", "id", "--json"]) == 0
    assert '"values:id"' in capsys.readouterr().out
    for wrong in (["--unit", "values"], ["--unit", "node", "--person", "id"]):
        assert run([*new[:2], str(tmp_path / "b.db"), *new[3:], *wrong]) != 0
