"""A data set is registered for one unit: records, persons, edges or nodes. Releases that protect others are refused."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

import matrixdp.baselines  # noqa: F401  (registers its mechanisms)
from ledger_stores import PostgresSchemas, both_stores, schema_of
from ledger_tampering import edit, rehash
from ledger_worker import TOTAL
from matrixdp import Bounds, Privacy, SecondMoment, make_design
from matrixdp.errors import LedgerError, ParameterError
from matrixdp.estimators import PrivateCovariance, PrivateScaler
from matrixdp.ledger import Gaussian, Ledger
from matrixdp.ledger.metrics import render_metrics
from matrixdp.ledger.postgres.roles import roles_sql
from matrixdp.privacy import Unit
from matrixdp.release.run_mechanism import release_mechanism

PERSON = "person:patient_id"
UNITS = ["record", PERSON, "person:household", "edge", "node"]


def spend(ledger, unit, dataset="clinic", **options):
    return ledger.charge(dataset, Gaussian(0.1), neighbours="replace", unit=unit, description={}, **options)


class TestUnits:
    def test_texts_and_values(self):
        for text in UNITS:
            assert str(Unit.parse(text)) == text
            assert Unit.parse(Unit.parse(text)) == Unit.parse(text)
        assert Unit() == Unit("record")
        assert Unit.parse("person:a:b") == Unit("person", "a:b")
        assert Unit("person", "x").words == "one person with all their rows"

    @pytest.mark.parametrize(
        "text", ["", "row", "people", "record:x", "node:3", "person", "person:", "person:\n", 3, None]
    )
    def test_others_are_refused(self, text):
        with pytest.raises(ParameterError, match=r"unit|person"):
            Unit.parse(text)


@both_stores
class TestRegistration:
    @pytest.mark.parametrize("registered", UNITS)
    def test_only_the_registered_unit_is_charged(self, path, store, registered):
        with Ledger.create(path) as ledger:
            found = ledger.register("clinic", TOTAL, neighbours="replace", unit=registered)
            assert str(found.unit) == registered
            assert ledger.datasets() == [found]
            head = ledger.head
            for other in set(UNITS) - {registered}:
                with pytest.raises(
                    LedgerError, match=r"'clinic' is registered for releases that protect .*Nothing was"
                ):
                    spend(ledger, other)
            assert ledger.head == head
            assert ledger.history() == []
            spend(ledger, registered)
            assert str(ledger.history()[0].unit) == registered
            ledger.verify()

    def test_the_unit_cannot_be_changed(self, path, store):
        with Ledger.create(path) as ledger:
            ledger.register("clinic", TOTAL, neighbours="replace", unit=PERSON)
            ledger.register("clinic", TOTAL, neighbours="replace", unit=Unit("person", "patient_id"))
            for other in ("record", "person:household"):
                with pytest.raises(LedgerError, match=r"the unit 'person:patient_id'.*cannot be changed"):
                    ledger.register("clinic", TOTAL, neighbours="replace", unit=other)
            ledger.verify()

    def test_a_wrong_unit_is_refused_before_anything_is_written(self, ledger, store):
        head = ledger.head
        with pytest.raises(ParameterError, match="unit must be"):
            ledger.register("new", TOTAL, neighbours="replace", unit="household")
        with pytest.raises(ParameterError, match="unit must be"):
            spend(ledger, "household")
        assert ledger.head == head

    def test_the_unit_is_part_of_the_chain(self, path, store):
        with Ledger.create(path) as ledger:
            ledger.register("clinic", TOTAL, neighbours="replace", unit=PERSON)
            spend(ledger, PERSON)
            with store.without_triggers(path) as connection:
                edit(connection, 2, lambda content: content.update(unit="record"))
            with pytest.raises(LedgerError, match="entry 2 was altered"):
                ledger.datasets()

    def test_an_audit_finds_a_charge_for_another_unit(self, path, store):
        with Ledger.create(path) as ledger:
            ledger.register("clinic", TOTAL, neighbours="replace", unit=PERSON)
            spend(ledger, PERSON)
            with store.without_triggers(path) as connection:
                edit(connection, 3, lambda content: content.update(unit="record"))
                rehash(connection)
            with pytest.raises(LedgerError, match="entry 3 is wrong: its unit is not the one"):
                ledger.verify()

    def test_the_units_are_shown_in_summaries_and_metrics(self, path, store):
        with Ledger.create(path) as ledger:
            ledger.register("clinic", TOTAL, neighbours="replace", unit=PERSON)
            ledger.register("ties", TOTAL, neighbours="add-remove", unit="node")
            assert [str(summary.registration.unit) for summary in ledger.summaries()] == [PERSON, "node"]
            text = render_metrics(ledger.summaries(), 3, datetime.now(UTC))
        assert 'dataset_info{dataset="clinic",neighbours="replace",unit="person:patient_id"} 1\n' in text
        assert 'dataset_info{dataset="ties",neighbours="add-remove",unit="node"} 1\n' in text

    def test_copies_keep_the_unit(self, path, store, tmp_path):
        with Ledger.create(path) as ledger:
            ledger.register("clinic", TOTAL, neighbours="replace", unit=PERSON)
        Ledger.copy(path, tmp_path / "copy.db")
        with Ledger.open(tmp_path / "copy.db") as copy:
            with pytest.raises(LedgerError, match="one person with all their rows"):
                spend(copy, "record")
            spend(copy, PERSON)
            copy.verify()


class TestReleases:
    BOUNDS = Bounds([0, 0], [1, 1])
    DATA = np.zeros((5, 2))

    def test_designs_and_mechanisms_charge_their_unit(self, path):
        query, privacy = SecondMoment(self.BOUNDS, 5), Privacy(0.1, 1e-7)
        with Ledger.create(path) as ledger:
            for name, unit in (("rows", "record"), ("people", PERSON)):
                ledger.register(name, Privacy(1, 1e-6), neighbours="replace", unit=unit)
            design = make_design(query, privacy)
            assert (design.unit, design.release(self.DATA).unit) == (Unit(), Unit())
            design.release(self.DATA, ledger=ledger, dataset="rows")
            release_mechanism("Laplace", query, privacy, self.DATA, ledger=ledger, dataset="rows")
            assert [str(charge.unit) for charge in ledger.history()] == ["record", "record"]
            with pytest.raises(LedgerError, match="person"):
                ledger.whatif("people", design)
            with pytest.raises(LedgerError, match="person"):
                design.release(self.DATA, ledger=ledger, dataset="people")
            with pytest.raises(LedgerError, match="person"):
                release_mechanism("Laplace", query, privacy, self.DATA, ledger=ledger, dataset="people")
            assert ledger.counts("people").charges == 0

    @pytest.mark.parametrize("kind", [PrivateCovariance, PrivateScaler])
    def test_fits_charge_their_unit(self, path, kind):
        data = pd.DataFrame({"x": np.linspace(0, 1, 60), "y": np.linspace(1, 0, 60), "patient_id": np.arange(60) // 2})
        bounds = Bounds([0, 0], [1, 1], names=["x", "y"])
        with Ledger.create(path) as ledger:
            for name, unit in (("rows", "record"), ("people", PERSON)):
                ledger.register(name, Privacy(1, 1e-6), neighbours="replace", unit=unit)
            for dataset, other, person in (("people", "rows", "patient_id"), ("rows", "people", None)):
                fit = kind(epsilon=0.5, delta=1e-7, bounds=bounds, person=person, ledger=path)
                with pytest.raises(LedgerError, match="is registered for releases that protect"):
                    fit.set_params(dataset=other).fit(data)
                assert ledger.counts(other).charges == (other == "people")
                fit.set_params(dataset=dataset).fit(data)
            assert {str(charge.dataset): str(charge.unit) for charge in ledger.history()} == {
                "people": PERSON,
                "rows": "record",
            }


class TestOlderLedgers:
    """Registrations that name no unit are for records, and for edges, which were charged like records then."""

    def test_version_1(self, old_ledger):
        with Ledger.open(old_ledger) as ledger:
            assert {found.unit for found in ledger.datasets()} == {Unit()}
            with pytest.raises(LedgerError, match="one record"):
                spend(ledger, PERSON)
            spend(ledger, "record")
            spend(ledger, "edge")
            ledger.register("people", TOTAL, neighbours="replace", unit=PERSON)
            spend(ledger, PERSON, "people")
            with pytest.raises(LedgerError, match="one edge"):
                spend(ledger, "edge", "people")
            ledger.verify()

    @pytest.fixture
    def second(self, ledger, path):
        """A file of version 2: without units in its entries."""
        spend(ledger, "record")
        ledger.close()
        with contextlib.closing(sqlite3.connect(path)) as connection, connection:
            guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
            for name, _ in guards:
                connection.execute(f"DROP TRIGGER {name}")
            for entry in (2, 3):
                edit(connection, entry, lambda content: content.pop("unit"))
            rehash(connection)
            for _, sql in guards:
                connection.execute(sql)
            connection.execute("PRAGMA user_version = 2")
        with contextlib.suppress(OSError):
            os.removexattr(path, "user.matrixdp.head")
        return path

    def test_version_2_is_read_as_it_is_and_upgraded_when_it_is_written(self, second):
        before = second.read_bytes()
        with Ledger.open(second) as ledger:
            ledger.verify()
            assert [str(found.unit) for found in ledger.datasets()] == ["record"]
        assert second.read_bytes() == before
        with Ledger.open(second) as ledger:
            spend(ledger, "record")
            ledger.verify()
        with contextlib.closing(sqlite3.connect(second)) as connection:
            assert connection.execute("PRAGMA user_version").fetchone() == (3,)

    def test_a_copy_of_version_2_is_not_charged_after_its_upgrade(self, second, tmp_path):
        """An upgrade must not record the place of a copy: both files would spend the total."""
        copy = tmp_path / "copy.db"
        shutil.copyfile(second, copy)
        with Ledger.open(copy) as ledger:
            for _ in range(2):
                with pytest.raises(LedgerError, match="is a copy of the ledger"):
                    spend(ledger, "record")
            assert len(ledger.history()) == 1
        with Ledger.open(second) as ledger:
            spend(ledger, "record")


def test_postgres_of_version_1(postgres_server):
    """Only the owner can let older programs refuse the ledger, and until then it is for records."""
    store = PostgresSchemas(postgres_server)
    path = store.new_path("first")
    schema = schema_of(path)
    with Ledger.create(path) as ledger:
        ledger.register("clinic", TOTAL, neighbours="replace")
    with contextlib.closing(postgres_server.connect()) as admin:
        admin.execute(f"UPDATE {schema}.ledger SET version = 1")
        admin.execute(roles_sql(schema))
        admin.execute(f"CREATE ROLE {schema}_ann LOGIN")
        admin.execute(f"GRANT {schema}_curator TO {schema}_ann")
    with Ledger.open(path.replace("postgres@", f"{schema}_ann@")) as ledger:
        ledger.register("laboratory", TOTAL, neighbours="replace")
        spend(ledger, "record")
        with pytest.raises(LedgerError, match=r"only its owner can upgrade it\. Nothing was registered"):
            ledger.register("people", TOTAL, neighbours="replace", unit=PERSON)
        assert len(ledger.datasets()) == 2
    with store.raw(path) as connection:
        assert connection.execute("SELECT version FROM ledger").fetchone() == (1,)
    with Ledger.open(path) as ledger:
        ledger.register("people", TOTAL, neighbours="replace", unit=PERSON)
        ledger.verify()
    with store.raw(path) as connection:
        assert connection.execute("SELECT version FROM ledger").fetchone() == (2,)
        bodies = [
            json.loads(body) for (body,) in connection.execute("SELECT body FROM entries ORDER BY entry").fetchall()
        ]
    assert [body["unit"] for body in bodies if body["kind"] == "register"] == ["record", "record", PERSON]
