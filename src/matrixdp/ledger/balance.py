"""Balances of data sets and of their allowances: totals, what is spent of them, and whether an event still fits.

An allowance is a part of a data set's total, set apart under a name, which only charges that name it may spend. It has
an amount in each of the three accounts. A charge to it is covered by its amount, which no other charge can use; charges
without an allowance use what is not allotted. ``docs/composition.md`` derives the guarantee of an allowance on its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from matrixdp.checks import check_number
from matrixdp.errors import BudgetExceededError, LedgerError, ParameterError, RefusedError, show
from matrixdp.gdp import gdp_epsilon
from matrixdp.ledger.accounting import (
    NOTHING,
    Amount,
    float_above,
    float_below,
    payment_options,
    remaining_epsilon,
    root_above,
    root_below,
    total_amount,
    units_below,
)
from matrixdp.ledger.values import Allowance, Counts, Registration, Remaining, Reserve, Summary, event_from_json
from matrixdp.privacy import Neighbours, Privacy, Unit

_ALLOTTED = " The rest of its total is allotted: name an allowance to use one."
# Costs that involve special functions may differ in the last places between machines.
TOLERANCE = Fraction(1, 10**9)
_SHARE = re.compile(r"[0-9]{1,18}/[1-9][0-9]{0,17}|[0-9]{0,18}\.?[0-9]{1,18}")


@dataclass(frozen=True)
class AllowanceBalance:
    """Size of an allowance, what is spent of it, and whether the rest was returned."""

    name: str
    size: Amount
    spent: Amount
    epsilon: float  # of all charges to it together, at the data set's delta
    returned: bool = False
    stale: bool = False  # the ledger was restored from a backup, and an unknown part of it was spent since
    payers: tuple[str, ...] = ()  # the people and groups who may charge it; everybody, if there are none

    @property
    def unspent(self) -> Amount:
        """What can be returned."""
        return NOTHING if self.returned else self.size - self.spent

    @property
    def left(self) -> Amount:
        """What can still be charged to it."""
        return NOTHING if self.stale else self.unspent


def allowance_size(
    total: Amount,
    privacy: Privacy,
    *,
    epsilon: float | None = None,
    share: float | Fraction | str | None = None,
    reserve: Reserve | None = None,
) -> tuple[Amount, float]:
    """The size of an allowance, rounded down, and the epsilon that it guarantees at the data set's delta.

    `total` and `privacy` are the data set's; the rest is as for `Ledger.allow`.
    """
    if (epsilon is None) == (share is None):
        raise ParameterError("«epsilon» or «share» must be given for an allowance, and not both.")
    if epsilon is not None:
        own = Privacy(epsilon, privacy.delta)
        return total_amount(own, reserve or Reserve()), own.epsilon
    if reserve is not None:
        raise ParameterError("reserve must be left out with share, which includes that share of the reserve.")
    assert share is not None
    part = parse_share(share)
    amount = total.scale(part)
    if amount == NOTHING:
        raise ParameterError(
            f"share is too small: {float(part):g} of the total rounds to zero. Choose a larger share.",
            parameter="share",
        )
    return amount, guaranteed_epsilon(amount, privacy.delta)


def guaranteed_epsilon(amount: Amount, delta: float) -> float:
    """An epsilon for which charges that sum to at most `amount` are together (epsilon, `delta`)-DP, rounded up.

    Infinite if there is none.
    """
    rest = float_below(units_below(delta) - amount.delta)
    epsilon = float_above(amount.epsilon)
    if rest < 0 or (rest == 0 and amount.mu_squared):
        return math.inf
    gaussian = gdp_epsilon(mu=root_above(amount.mu_squared), delta=rest) if amount.mu_squared else 0.0
    return gaussian if epsilon == 0.0 else math.nextafter(gaussian + epsilon, math.inf)


def parse_share(share: float | Fraction | str) -> Fraction:
    """A share such as 0.1 or "1/3" as an exact fraction, greater than 0 and at most 1."""
    if isinstance(share, str):
        if not _SHARE.fullmatch(share):
            raise ParameterError(
                f"share must be a number or a fraction such as 1/3, got {show(share)} instead.", parameter="share"
            )
        share = Fraction(share)
    check_number(share, "share", above=0, at_most=1)
    return share if isinstance(share, Fraction) else Fraction(repr(float(share)))


@dataclass(frozen=True)
class Balance:
    """Total and spent amounts of one data set, and the allowance that pays, if one does.

    `spent` is the sum of all charges, with or without an allowance, `allotted` that of what is left of the allowances.

    Privacy
    -------
    As long as `spent` stays within `total`, all charged releases together are (epsilon, delta)-DP for the registered
    neighbours. All methods keep ``spent + allotted`` within `total`, so that every allowance can be spent completely.
    """

    registration: Registration
    total: Amount
    spent: Amount
    allotted: Amount = NOTHING
    allowance: AllowanceBalance | None = None

    def require(self, neighbours: str | None, unit: str | Unit | None) -> None:
        """Raise an error unless releases for these neighbours and this unit, where known, are the registered ones."""
        registered, protected = self.registration.neighbours, self.registration.unit
        if neighbours is not None and Neighbours.parse(neighbours) is not registered:
            raise ParameterError(
                f"neighbours must be {str(registered)!r}, as {self.registration.dataset!r} is registered, "
                f"got {str(neighbours)!r} instead. Design the release for {str(registered)!r} neighbours."
            )
        given = protected if unit is None else Unit.parse(unit)
        if given.covers(protected):
            return
        persons = f"Design the release for persons: person={protected.column!r}, or --person {protected.column}"
        remedy = {
            "record": "If each person has one row at most, design the release for records, without a person",
            "person": persons,
            "values": persons,
            "edge": "Design the release for edges: unit='edge'",
            "node": "Design the release for nodes: unit='node', with the largest degree",
        }
        option = f"{'--unit values ' if given.kind == 'values' else ''}--person {given.column}"
        how = "" if given.column is None else f" (ledger add {option}, or register(unit='{given}'))"
        raise RefusedError(
            f"{self.registration.dataset!r} is registered for releases that protect {protected.full_words}, and this "
            f"one protects {given.full_words}. Nothing was charged.\n{remedy[protected.kind]}; or register the data "
            f"under another name, with a total of its own{how}."
        )

    def available(self) -> Amount:
        """What a charge to the allowance can use or, without one, what is neither spent nor allotted."""
        unspent = self.total - self.spent
        # An entry that settles a restored ledger can spend what is allotted, so the total limits allowances, too.
        return (unspent - self.allotted if self.allowance is None else self.allowance.left).limit(unspent)

    def pay(self, options: Sequence[Amount], location: str) -> tuple[Amount, Balance]:
        """The first of the payment `options` that is available, and the balance after it.

        Raises a `BudgetExceededError` if none is, or if the allowance accepts no charges.
        """
        if self.allowance is not None and self.allowance.returned:
            raise BudgetExceededError(
                f"{self.name} was returned, so nothing can be charged to it. Name another one, or none."
            )
        if self.allowance is not None and self.allowance.stale:
            raise BudgetExceededError(
                f"{self.name} is from before the ledger was restored from a backup, and what was spent of "
                "it since is not known. Return it, and set another one apart (matrixdp ledger return and allow)."
            )
        for cost in options:
            if cost.within(self.available()):
                return cost, self.spend(cost)
        hint = "" if self.allowance is not None or self.allotted == NOTHING else _ALLOTTED
        shortage = self._describe_shortage("this release", options)
        raise BudgetExceededError(
            f"{shortage}.{hint}\nAsk for less, or see what was spent: matrixdp ledger show {location}"
        )

    def require_room(self, name: str, size: Amount, location: str) -> None:
        """Raise a `BudgetExceededError` unless a new allowance of this size is available."""
        if not size.within(self.available()):
            raise BudgetExceededError(
                f"{self._describe_shortage(f'the allowance {name!r}', [size])}.\nChoose a smaller one, or see what is "
                f"left: matrixdp ledger show {location}"
            )

    def apply(self, kind: str, content: Mapping[str, Any]) -> Balance:
        """The balance after an entry, or a `LedgerError` that says what is wrong with it.

        Every entry that changes a balance passes here: when it is written, and again when the ledger is verified.
        """
        part, registered = self.allowance, self.registration
        if kind == "return":
            if part is None or part.returned or Amount.from_json(content["returned"]) != part.unspent:
                raise LedgerError("it does not return what is left of its allowance.")
            rest, returned = self.allotted - part.unspent, replace(part, returned=True)
            return replace(self, allotted=rest, allowance=returned)
        field, available = ("size" if kind == "allowance" else "cost"), self.available()
        amount = Amount.from_json(content[field])
        if kind == "settle":
            available = self.total - self.spent  # allowances may have spent it
        if kind == "charge":
            self.require(content["neighbours"], None)
            if not Unit.parse(content["unit"]).covers(registered.unit):
                raise LedgerError("its unit is not the one that its data set is registered for.")
            options = payment_options(event_from_json(content["event"]))
            if not any(option.scale(1 - TOLERANCE).within(amount) for option in options):
                raise LedgerError("its cost is less than its event's.")
            if part is not None and part.payers and content.get("payer") not in part.payers:
                raise LedgerError("its allowance is for others.")
        if not NOTHING.within(amount) or not amount.within(available):
            raise LedgerError(f"its {field} is more than what was available.")
        if kind != "allowance":
            return self.spend(amount)
        epsilon = content["epsilon"]
        if not guaranteed_epsilon(amount, registered.privacy.delta) <= epsilon * float(1 + TOLERANCE):
            raise LedgerError("its size is more than its guarantee allows.")
        payers = tuple(content.get("payers", ()))
        made = AllowanceBalance(content["allowance"], amount, NOTHING, epsilon, payers=payers)
        return replace(self, allotted=self.allotted + amount, allowance=made)

    def list_sums(self, kind: str) -> dict[str, list[str]]:
        """The sums that an entry contains which led to this balance."""
        sums = {"spent": self.spent.to_json(), "allotted": self.allotted.to_json()}
        of_charge = {"allowance_spent": self.allowance.spent.to_json()} if self.allowance is not None else {}
        return {**sums, **(of_charge if kind == "charge" else {})}

    def spend(self, cost: Amount) -> Balance:
        """The balance after a charge of `cost`, which is available."""
        if self.allowance is None:
            return replace(self, spent=self.spent + cost)
        paid = replace(self.allowance, spent=self.allowance.spent + cost)
        return replace(self, spent=self.spent + cost, allotted=self.allotted - cost, allowance=paid)

    def remaining(self) -> Remaining:
        """What a charge can use, rounded down."""
        return self._round(self.available())

    def describe(self) -> Allowance:
        """The state of the allowance."""
        assert self.allowance is not None
        return Allowance(
            dataset=self.registration.dataset,
            name=self.allowance.name,
            mu=root_below(self.allowance.size.mu_squared),
            epsilon=self.allowance.epsilon,
            delta=self.registration.privacy.delta,
            left=self.remaining(),
            returned=self.allowance.returned,
            payers=self.allowance.payers,
        )

    def summarise(self, allowances: Sequence[AllowanceBalance], counts: Counts, restored_from: int | None) -> Summary:
        """The state of the data set with these allowances and charges."""
        return Summary(
            registration=self.registration,
            total_mu=root_below(self.total.mu_squared),
            spent_mu=root_above(self.spent.mu_squared),
            spent_epsilon=guaranteed_epsilon(self.spent, self.registration.privacy.delta),
            unspent=self._round(self.total - self.spent),
            left=self.remaining(),
            allowances=tuple(replace(self, allowance=allowance).describe() for allowance in allowances),
            counts=counts,
            restored_from=restored_from,
        )

    def _round(self, amount: Amount) -> Remaining:
        allowance = None if self.allowance is None else self.allowance.name
        mu, privacy = root_below(amount.mu_squared), self.registration.privacy
        reserve = Reserve(epsilon=float_below(amount.epsilon), delta=float_below(amount.delta))
        epsilon = remaining_epsilon(mu, privacy)
        return Remaining(self.registration.dataset, mu, epsilon, privacy.delta, reserve, allowance)

    def _describe_shortage(self, what: str, options: Sequence[Amount]) -> str:
        """What is left and what is needed for `what`: as epsilons, if it is Gaussian and they tell both apart."""
        left, delta = self.remaining(), self.registration.privacy.delta
        if options == [Amount(options[0].mu_squared)]:
            has, needs = _format_apart(left.epsilon, guaranteed_epsilon(options[0], delta))
            if has != needs:
                at = f"{delta:g}".replace("e-0", "e-")
                return f"{self.name} has epsilon {has} left at delta {at}; {what} needs {needs}"
        reserve = f"in reserve epsilon {left.reserve.epsilon!r} and delta {left.reserve.delta!r}"
        needed = " or ".join(map(_describe_amount, options))
        return f"{self.name} has mu {left.mu!r} left, and {reserve}; {what} needs {needed}"

    @property
    def name(self) -> str:
        """The data set, or the allowance that pays, in words."""
        dataset = repr(self.registration.dataset)
        return dataset if self.allowance is None else f"the allowance {self.allowance.name!r} of {dataset}"


def _describe_amount(amount: Amount) -> str:
    """An amount as text for messages."""
    parts = [
        (amount.mu_squared, f"mu {root_below(amount.mu_squared)!r}"),
        (amount.epsilon, f"epsilon {float_below(amount.epsilon)!r} in reserve"),
        (amount.delta, f"delta {float_below(amount.delta)!r} in reserve"),
    ]
    return " and ".join(text for units, text in parts if units)


def _format_apart(less: float, more: float) -> tuple[str, str]:
    """Both numbers with two decimals, or as many as are needed to tell them apart; `less` is rounded down."""
    for digits in range(2, 18):
        low, high = math.floor(less * 10**digits) / 10**digits, round(more, digits)
        if low < high and (low > 0 or less == 0):
            return f"{low:.{digits}f}", f"{high:.{digits}f}"
    return repr(less), repr(more)
