"""What entries hold, as JSON: amounts, registrations and charges."""

from __future__ import annotations

import secrets
from typing import Any

from matrixdp.ledger.accounting import NOTHING, Amount, Reserve
from matrixdp.ledger.balance import Balance
from matrixdp.ledger.entry_table import Row
from matrixdp.ledger.events import event_from_json
from matrixdp.ledger.values import Charge, Registration
from matrixdp.privacy import Neighbours, Privacy, Unit


def charge_from_row(row: Row, *, released: bool) -> Charge:
    """The charge that an entry holds."""
    content = row.content()
    return Charge(
        entry=row.entry,
        time=content["time"],
        dataset=content["dataset"],
        event=event_from_json(content["event"]),
        description=content["description"],
        request=content.get("request"),
        released=released,
        allowance=content.get("allowance"),
        actor=content.get("actor"),
        purpose=content.get("purpose"),
        version=content.get("version"),
        unit=Unit.parse(content.get("unit", "record")),
        options=content.get("options"),
    )


def create_content() -> dict[str, Any]:
    """Content of a ledger's first entry: unique to the ledger, and every later hash depends on it."""
    return {"ledger": secrets.token_hex(16)}


def amount_to_json(amount: Amount) -> list[str]:
    """Units as decimal text, since they exceed the integers that many JSON parsers support."""
    return [str(amount.mu_squared), str(amount.epsilon), str(amount.delta)]


def amount_from_json(texts: list[str]) -> Amount:
    """The amount that `amount_to_json` wrote."""
    return Amount(*map(int, texts))


def sums_to_json(balance: Balance) -> dict[str, Any]:
    """What is spent and allotted, which every entry that changes a balance contains."""
    return {"spent": amount_to_json(balance.spent), "allotted": amount_to_json(balance.allotted)}


def sums_from_json(content: dict[str, Any]) -> tuple[Amount, Amount]:
    """What is spent and allotted after an entry; before there were allowances, nothing was allotted."""
    allotted = content.get("allotted")
    return amount_from_json(content["spent"]), NOTHING if allotted is None else amount_from_json(allotted)


def registration_to_json(registration: Registration) -> dict[str, Any]:
    """A registration as JSON content, without the name of the data set."""
    privacy, reserve = registration.privacy, registration.reserve
    return {
        "privacy": {"epsilon": privacy.epsilon, "delta": privacy.delta},
        "neighbours": str(registration.neighbours),
        "unit": str(registration.unit),
        "reserve": {"epsilon": reserve.epsilon, "delta": reserve.delta},
    }


def registration_from_json(content: dict[str, Any]) -> Registration:
    """The registration that `registration_to_json` wrote; before there were units, it had none."""
    return Registration(
        dataset=content["dataset"],
        privacy=Privacy(**content["privacy"]),
        neighbours=Neighbours.parse(content["neighbours"]),
        reserve=Reserve(**content["reserve"]),
        unit=Unit.parse(content.get("unit", "record")),
        declared="unit" in content,
    )
