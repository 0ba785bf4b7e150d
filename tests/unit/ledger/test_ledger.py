"""Registering, charging, completing, and asking again."""

from __future__ import annotations

import json
import pickle
import types
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from ledger_stores import both_stores
from ledger_worker import TOTAL
from matrixdp.errors import BudgetExceededError, LedgerError, ParameterError, RequestPendingError
from matrixdp.gdp import gdp_mu, share_mu
from matrixdp.ledger import Approximate, Gaussian, Ledger, Plan, Pure, Receipt, Reserve
from matrixdp.ledger.entries import default_actor
from matrixdp.ledger.ledger import find_charges
from matrixdp.privacy import Privacy
from matrixdp.version import __version__

pytestmark = both_stores


def charge(ledger, event, *, description=None, dataset="clinic", neighbours="replace", **options):
    return ledger.charge(dataset, event, neighbours=neighbours, description=description or {}, **options)


def test_a_new_data_set_has_its_whole_total_left(ledger):
    left = ledger.remaining("clinic")
    assert (left.mu, left.epsilon, left.delta) == (TOTAL.mu, 1.0, 1e-6)


def test_the_whole_total_can_be_spent_at_once_and_no_more(ledger):
    charge(ledger, Gaussian(TOTAL.mu))
    left = ledger.remaining("clinic")
    assert (left.mu, left.epsilon) == (0.0, 0.0)
    with pytest.raises(BudgetExceededError):
        charge(ledger, Gaussian(1e-12))


def test_shares_of_the_total_add_up_to_it(ledger):
    for _ in range(10):
        charge(ledger, Gaussian(share_mu(TOTAL.mu, 0.1)))
    assert ledger.remaining("clinic").mu < 1e-6 * TOTAL.mu


def test_what_is_shown_as_remaining_can_be_spent(ledger):
    charge(ledger, Gaussian(0.1))
    left = ledger.remaining("clinic")
    assert gdp_mu(epsilon=left.epsilon, delta=left.delta) <= left.mu
    charge(ledger, Gaussian(left.mu))


@pytest.mark.parametrize(
    ("kind", "content", "fault"),
    [
        ("charge", {"cost": ["1", "0", "0"]}, "cost is less than its event's"),
        ("charge", {"cost": [str(2**192), "0", "0"]}, "cost is more than what was available"),
        ("charge", {"unit": "edge"}, "unit is not the one"),
        (
            "allowance",
            {"size": [str(2**192 // 100), "0", "0"], "epsilon": 0.1},
            "size is more than its guarantee allows",
        ),
        ("return", {"returned": ["1", "0", "0"]}, "does not return what is left"),
        ("settle", {"cost": ["-1", "0", "0"]}, "cost is more than what was available"),
    ],
)
def test_what_an_audit_would_refuse_is_not_written(ledger, kind, content, fault):
    given = {"event": {"kind": "gaussian", "mu": 0.1}, "neighbours": "replace", "unit": "record"}
    cost = {"cost": [str(2**191 // 50), "0", "0"]}
    with pytest.raises(LedgerError, match=fault), ledger._store.writing(ledger.author) as journal:
        journal.change(kind, {**given, **cost, **content}, journal.balance("clinic"))
    assert ledger.history() == []
    ledger.verify()


def test_a_refusal_says_what_is_left_what_is_needed_and_what_to_do(ledger, path):
    charge(ledger, Gaussian(gdp_mu(epsilon=0.9, delta=1e-6)))
    with pytest.raises(BudgetExceededError) as refusal:
        charge(ledger, Gaussian(gdp_mu(epsilon=0.5, delta=1e-6)))
    assert str(refusal.value) == (
        "'clinic' has epsilon 0.39 left at delta 1e-6; this release needs 0.50.\n"
        f"Ask for less, or see what was spent: matrixdp ledger show {path}"
    )


def test_a_refusal_by_a_hair_shows_enough_digits_to_tell(ledger):
    with pytest.raises(BudgetExceededError, match=r"has epsilon 1\.00000* left .* needs 1\.00000*1\."):
        charge(ledger, Gaussian(TOTAL.mu * (1 + 1e-7)))


def test_a_refused_charge_leaves_no_trace(ledger):
    before = ledger.head
    with pytest.raises(BudgetExceededError):
        charge(ledger, Gaussian(1.0), request="r")
    assert ledger.head == before
    assert ledger.stored("clinic", "r") is None


def test_pure_events_take_from_the_reserve_first_and_then_from_mu(ledger):
    ledger.register("clinic 2", TOTAL, neighbours="replace", reserve=Reserve(epsilon=0.25))
    total = ledger.remaining("clinic 2")
    charge(ledger, Pure(0.25), dataset="clinic 2")
    left = ledger.remaining("clinic 2")
    assert (left.mu, left.reserve) == (total.mu, Reserve())
    charge(ledger, Pure(0.05), dataset="clinic 2")
    assert ledger.remaining("clinic 2").mu < total.mu


def test_an_event_with_a_delta_needs_a_reserve(ledger):
    with pytest.raises(BudgetExceededError, match=r"in reserve epsilon 0\.0 and delta 0\.0; .* in reserve"):
        charge(ledger, Approximate(0.01, 1e-9))


def test_a_whole_approximate_total_can_be_spent_from_the_reserve(ledger):
    ledger.register("rivals", TOTAL, neighbours="replace", reserve=Reserve(epsilon=1, delta=1e-6))
    charge(ledger, Approximate(1.0, 1e-6), dataset="rivals")
    assert ledger.remaining("rivals").reserve == Reserve()


def test_a_plan_fits_where_its_events_one_by_one_do_not(ledger):
    for _ in range(3):
        charge(ledger, Pure(0.1))
    with pytest.raises(BudgetExceededError):
        charge(ledger, Pure(0.1))
    ledger.register("clinic 2", TOTAL, neighbours="replace")
    charge(ledger, Plan([Pure(0.1)] * 5), dataset="clinic 2")


def test_data_sets_are_apart(ledger):
    ledger.register("other", Privacy(2, 1e-5), neighbours="add-remove")
    charge(ledger, Gaussian(TOTAL.mu))
    assert ledger.remaining("other").epsilon == 2.0
    assert [found.dataset for found in ledger.datasets()] == ["clinic", "other"]


def test_registering_again_changes_nothing_or_is_refused(ledger):
    head = ledger.head
    ledger.register("clinic", TOTAL, neighbours="replace")
    assert ledger.head == head
    for privacy, neighbours, reserve in [
        (Privacy(2, 1e-6), "replace", None),
        (TOTAL, "add-remove", None),
        (TOTAL, "replace", Reserve(epsilon=0.1)),
    ]:
        with pytest.raises(LedgerError, match="cannot be changed"):
            ledger.register("clinic", privacy, neighbours=neighbours, reserve=reserve)


def test_neighbours_are_never_mixed(ledger):
    with pytest.raises(ParameterError, match="neighbours must be 'replace', as 'clinic' is registered"):
        charge(ledger, Gaussian(0.01), neighbours="add-remove")
    with pytest.raises(ParameterError, match="neighbours must be"):
        charge(ledger, Gaussian(0.01), neighbours="swap")


@pytest.mark.parametrize(
    "action",
    [
        lambda ledger: ledger.remaining("clinik"),
        lambda ledger: ledger.history("clinik"),
        lambda ledger: ledger.stored("clinik", "r"),
        lambda ledger: ledger.whatif("clinik", Gaussian(0.1)),
        lambda ledger: charge(ledger, Gaussian(0.1), dataset="clinik"),
    ],
)
def test_an_unknown_data_set_is_an_error(ledger, action):
    with pytest.raises(LedgerError, match=r"has no data set 'clinik'\. .*ledger.register") as refusal:
        action(ledger)
    assert str(refusal.value).startswith(str(ledger.path))


@pytest.mark.parametrize("name", ["", "two\nlines", "\ud800", 3, None])
def test_names_are_printable_text(ledger, name):
    with pytest.raises(ParameterError, match="dataset must be"):
        ledger.register(name, TOTAL, neighbours="replace")


def test_request_ids_are_printable_text(ledger):
    with pytest.raises(ParameterError, match="request must be"):
        charge(ledger, Gaussian(0.01), request="")


@pytest.mark.parametrize("description", [None, [1], {"x": float("nan")}, {"x": object()}, "mean"])
def test_descriptions_are_plain_json(ledger, description):
    with pytest.raises(ParameterError, match="description must be"):
        ledger.charge("clinic", Gaussian(0.01), neighbours="replace", description=description)


def test_a_receipt_names_its_entry(ledger):
    receipt = charge(ledger, Gaussian(0.01), request="r")
    assert receipt == Receipt("clinic", Gaussian(0.01), "r", ledger.head.entry, ledger.head.hash)


def test_a_completed_request_is_given_back_and_costs_nothing(ledger):
    payload = json.dumps({"values": [1.5, "é"]}, ensure_ascii=False)
    ledger.complete(charge(ledger, Gaussian(0.1), request="r"), payload)
    left = ledger.remaining("clinic")
    assert ledger.stored("clinic", "r") == payload
    assert ledger.stored("clinic", "r", event=Gaussian(0.1), description={}) == payload
    assert ledger.remaining("clinic") == left


def test_an_unknown_request_is_none(ledger):
    assert ledger.stored("clinic", "r") is None


def test_a_charged_request_without_a_release_is_neither_refunded_nor_drawn_again(ledger):
    charge(ledger, Gaussian(0.1), request="r")
    left = ledger.remaining("clinic")
    for again in (lambda: ledger.stored("clinic", "r"), lambda: charge(ledger, Gaussian(0.1), request="r")):
        with pytest.raises(LedgerError, match="its charge stays spent: use a new request id"):
            again()
    assert ledger.remaining("clinic") == left


def test_a_completed_request_is_not_charged_again(ledger):
    ledger.complete(charge(ledger, Gaussian(0.1), request="r"), "{}")
    with pytest.raises(LedgerError, match="noise is not drawn for it again"):
        charge(ledger, Gaussian(0.1), request="r")


@pytest.mark.parametrize(
    ("event", "description", "what"),
    [(Gaussian(0.2), {}, "event.mu was 0.1 and is 0.2 now"), (Gaussian(0.1), {"a": 1}, "a was not given and is 1 now")],
)
def test_one_request_id_is_for_one_release(ledger, event, description, what):
    ledger.complete(charge(ledger, Gaussian(0.1), request="r"), "{}")
    with pytest.raises(LedgerError, match=f"other options: {what}"):
        charge(ledger, event, description=description, request="r")
    with pytest.raises(LedgerError, match=f"other options: {what}"):
        ledger.stored("clinic", "r", event=event, description=description)


class TestOptions:
    """The public options of a request, which are kept and compared."""

    OPTIONS = types.MappingProxyType({"clip": True, "bounds": {"kind": "Bounds", "upper": {"array": [1.0, 2.0]}}})

    @pytest.mark.parametrize(
        ("changed", "words"),
        [
            ({"clip": False}, r"clip was true and is false now\. Repeat the request with its first options, or use"),
            ({"clip": 1}, "clip was true and is 1 now"),
            (
                {"bounds": {"kind": "Ball", "upper": {"array": [1.0, 3.0]}}},
                "bounds was 'Bounds' and is 'Ball' now; bounds",
            ),
            (
                {"bounds": {"kind": "Bounds", "upper": {"array": [1.0]}}},
                r"bounds\.upper was \[1\.0,2\.0\] and is \[1\.0\]",
            ),
            ({"by": ["sex"]}, r"by was not given and is \[\"sex\"\] now"),
            ({"a": 1, "b": 2, "c": 3, "d": 4, "clip": None}, "clip was true and is null now; .*; 2 more differ"),
        ],
    )
    def test_a_repeat_with_other_options_is_refused_by_name(self, ledger, changed, words):
        receipt, left = charge(ledger, Gaussian(0.1), request="r", options=self.OPTIONS), ledger.remaining("clinic")
        for again in (
            lambda **options: ledger.stored("clinic", "r", **options),
            lambda **options: charge(ledger, Gaussian(0.1), request="r", **options),
        ):
            with pytest.raises(
                LedgerError, match=f"request 'r' of 'clinic' was charged at entry 3 .*: {words}"
            ) as caught:
                again(options={**self.OPTIONS, **changed})
            assert not isinstance(caught.value, RequestPendingError)  # refused at once, and not waited for
        assert ledger.remaining("clinic") == left
        ledger.complete(receipt, "{}")
        assert ledger.stored("clinic", "r", options=self.OPTIONS) == "{}"
        assert ledger.history()[0].options == self.OPTIONS
        ledger.verify()

    def test_long_values_are_compared_by_their_hashes(self, ledger):
        numbers = list(range(10_000))
        charge(ledger, Gaussian(0.1), request="r", options={"query": {"points": numbers, "width": 1}})
        with ledger._store.reading() as journal:
            assert len(journal.row("entry", 3).body) < 2000
        with pytest.raises(LedgerError, match=r"with other options: query\.points has other values now\. Repeat"):
            ledger.stored("clinic", "r", options={"query": {"points": numbers[::-1], "width": 1}})
        with pytest.raises(LedgerError, match=r"with other options: query\.width was 1 and is 2 now\. Repeat"):
            ledger.stored("clinic", "r", options={"query": {"points": numbers, "width": 2}})

    def test_charges_of_earlier_versions_have_no_options(self, ledger):
        ledger.complete(charge(ledger, Gaussian(0.1), request="r"), "{}")
        assert ledger.stored("clinic", "r", event=Gaussian(0.1), options=self.OPTIONS) == "{}"
        with pytest.raises(LedgerError, match="event"):
            ledger.stored("clinic", "r", event=Gaussian(0.2), options=self.OPTIONS)

    def test_the_error_of_a_pending_request_has_its_receipt(self, ledger):
        receipt = charge(ledger, Gaussian(0.1), request="r")
        with pytest.raises(RequestPendingError) as caught:
            ledger.stored("clinic", "r")
        assert caught.value.receipt == pickle.loads(pickle.dumps(caught.value)).receipt == receipt

    def test_options_are_json_by_name(self, ledger):
        with pytest.raises(ParameterError, match="options must be a mapping"):
            charge(ledger, Gaussian(0.1), request="r", options=["clip"])
        with pytest.raises(ParameterError, match="JSON"):
            charge(ledger, Gaussian(0.1), request="r", options={"clip": float("nan")})
        assert ledger.history() == []


def test_one_request_id_may_serve_two_data_sets(ledger):
    ledger.register("other", TOTAL, neighbours="replace")
    ledger.complete(charge(ledger, Gaussian(0.1), request="r"), "{}")
    assert ledger.stored("other", "r") is None
    charge(ledger, Gaussian(0.1), request="r", dataset="other")


def test_completing_twice_changes_nothing_or_is_refused(ledger):
    receipt = charge(ledger, Gaussian(0.1))
    ledger.complete(receipt, "{}")
    head = ledger.head
    ledger.complete(receipt, "{}")
    assert ledger.head == head
    with pytest.raises(LedgerError, match="already has another release"):
        ledger.complete(receipt, "[]")


def test_a_receipt_of_another_ledger_is_refused(ledger, tmp_path):
    with Ledger.create(tmp_path / "other.db") as other:
        other.register("clinic", TOTAL, neighbours="replace")
        receipt = charge(other, Gaussian(0.1))
    charge(ledger, Gaussian(0.1))
    with pytest.raises(LedgerError, match="has no charge for this receipt"):
        ledger.complete(receipt, "{}")


@pytest.mark.parametrize("payload", [None, b"{}", "\ud800"])
def test_a_payload_is_text(ledger, payload):
    with pytest.raises(ParameterError, match="payload must be text"):
        ledger.complete(charge(ledger, Gaussian(0.1)), payload)


def test_history_tells_charges_in_order_and_incomplete_ones_apart(ledger):
    ledger.register("other", TOTAL, neighbours="replace")
    first = charge(ledger, Gaussian(0.1), description={"query": "mean"}, request="r")
    second = charge(ledger, Pure(0.01), dataset="other")
    ledger.complete(first, "{}")
    assert [(entry.entry, entry.released) for entry in ledger.history()] == [
        (first.entry, True),
        (second.entry, False),
    ]
    (only,) = ledger.history("clinic")
    assert (only.event, only.description, only.request) == (Gaussian(0.1), {"query": "mean"}, "r")
    assert [one.entry for one in ledger.history() if not one.released] == [second.entry]
    assert [one for one in ledger.history("clinic") if not one.released] == []


@dataclass
class Design:
    event: Gaussian
    neighbours: str = "replace"


def test_whatif_tells_what_would_be_left_and_charges_nothing(ledger):
    before = ledger.head
    after = ledger.whatif("clinic", Gaussian(0.1))
    assert ledger.whatif("clinic", Design(Gaussian(0.1))) == after
    assert ledger.head == before
    charge(ledger, Gaussian(0.1))
    assert ledger.remaining("clinic") == after


def test_whatif_refuses_what_charge_would(ledger):
    with pytest.raises(BudgetExceededError):
        ledger.whatif("clinic", Gaussian(1.0))
    with pytest.raises(ParameterError, match="neighbours must be"):
        ledger.whatif("clinic", Design(Gaussian(0.1), "add-remove"))


class Clock(datetime):
    """A clock that can be set."""

    shown = datetime(2031, 2, 7, tzinfo=UTC)

    @classmethod
    def now(cls, tz=None):
        return cls.shown


def test_times_do_not_decrease_when_the_clock_is_set_back(ledger, monkeypatch):
    monkeypatch.setattr("matrixdp.ledger.journal.datetime", Clock)
    charge(ledger, Gaussian(0.01))
    monkeypatch.setattr(Clock, "shown", datetime(2030, 1, 1, tzinfo=UTC))
    charge(ledger, Gaussian(0.01))
    monkeypatch.setattr(Clock, "shown", datetime(2031, 2, 8, tzinfo=UTC))
    charge(ledger, Gaussian(0.01))
    assert [entry.time[:10] for entry in ledger.history()] == ["2031-02-07", "2031-02-07", "2031-02-08"]
    with ledger._store.reading() as journal:
        clocks = [journal.row("entry", entry).content().get("clock") for entry in (3, 4, 5)]
    assert clocks == [None, "2030-01-01T00:00:00.000+00:00", None]
    ledger.verify()


def test_every_entry_says_who_why_and_with_which_version(store):
    with Ledger.create(store.new_path("signed"), actor="ann@clinic", purpose="annual report") as ledger:
        ledger.register("clinic", TOTAL, neighbours="replace")
        ledger.complete(charge(ledger, Gaussian(0.01)), "{}")
        with ledger._store.reading() as journal:
            contents = [row.content() for row in journal.rows("after", 0, 10)]
        (found,) = pickle.loads(pickle.dumps(ledger)).history()
    assert [content["kind"] for content in contents] == ["create", "register", "charge", "release"]
    for content in (*contents, vars(found)):
        author = content["actor"], content["purpose"], content["version"]
        assert author == ("ann@clinic", "annual report", __version__)


def test_the_default_author_is_the_user_and_the_host(ledger, monkeypatch):
    charge(ledger, Gaussian(0.01))
    assert ledger.history()[0].actor == default_actor()
    assert "@" in default_actor()

    def unknown():
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", unknown)
    assert default_actor().startswith("uid")


@pytest.mark.parametrize(("name", "value"), [("actor", ""), ("actor", "two\nlines"), ("purpose", ""), ("purpose", 3)])
def test_authors_are_printable_text(path, ledger, name, value):
    with pytest.raises(ParameterError, match=f"{name} must be a printable"):
        Ledger.open(path, **{name: value})


def test_an_unknown_option_creates_no_ledger(store):
    path = store.new_path("new")
    with pytest.raises(TypeError, match="tiemout"):
        Ledger.create(path, tiemout=1)
    with pytest.raises(LedgerError, match="no ledger"):
        Ledger.open(path).datasets()


def test_charges_are_found_by_request_and_by_description(ledger):
    asked = {"query": "Moments %_'é", "n": 3}
    for number in range(3):
        receipt = charge(ledger, Gaussian(0.01), description=asked, request=f"r{number}")
        if number:
            ledger.complete(receipt, "{}")
    charge(ledger, Gaussian(0.01), description={**asked, "query": "moments %_'é"})
    charge(ledger, Gaussian(0.01), description={**asked, "a": 1})
    assert [(one.request, one.released) for one in find_charges(ledger, "clinic", asked)] == [
        ("r2", True),
        ("r1", True),
        ("r0", False),
    ]
    assert find_charges(ledger, "clinic", "r1") == [ledger.history("clinic")[1]]
    assert find_charges(ledger, "clinic", "r9") == []
    with pytest.raises(LedgerError):
        find_charges(ledger, "rivals", asked)
