"""A data set is registered for one unit: records, persons, edges or nodes. Releases that protect others are refused."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

import matrixdp.baselines  # noqa: F401  (registers its mechanisms)
from ledger_stores import both_stores
from ledger_tampering import edit, rehash
from ledger_worker import TOTAL
from matrixdp import Bounds, Privacy, SecondMoment, make_design
from matrixdp.errors import LedgerError, ParameterError
from matrixdp.estimators import PrivateCovariance, PrivateScaler
from matrixdp.ledger import Gaussian, Ledger
from matrixdp.ledger.metrics import render_metrics
from matrixdp.privacy import Unit
from matrixdp.release.registered import release_mechanism

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

    def test_what_protects_a_person_can_be_charged_where_their_values_are_protected(self, path, store):
        with Ledger.create(path) as ledger:
            ledger.register("clinic", TOTAL, neighbours="replace", unit="values:patient_id")
            spend(ledger, PERSON)
            with pytest.raises(LedgerError, match="this one protects"):
                spend(ledger, "person:household")
            assert [str(charge.unit) for charge in ledger.history()] == [PERSON]
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
            assert ledger.summary("people").counts.charges == 0

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
                assert ledger.summary(other).counts.charges == (other == "people")
                fit.set_params(dataset=dataset).fit(data)
            assert {str(charge.dataset): str(charge.unit) for charge in ledger.history()} == {
                "people": PERSON,
                "rows": "record",
            }
