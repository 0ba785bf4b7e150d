"""The balance of a data set: its total, what is spent of it, and whether an event still fits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from matrixdp.errors import BudgetExceededError, LedgerError, ParameterError
from matrixdp.gdp import gdp_epsilon
from matrixdp.ledger.accounting import NOTHING, Amount, Reserve, remaining_epsilon
from matrixdp.ledger.allowance import AllowanceBalance, guaranteed_epsilon
from matrixdp.ledger.events import Event, Gaussian
from matrixdp.ledger.units import float_below, root_above, root_below
from matrixdp.ledger.values import Allowance, Counts, Registration, Remaining, Summary
from matrixdp.privacy import Neighbours, Unit


@dataclass(frozen=True)
class Balance:
    """Total and spent amounts of one data set.

    Parameters
    ----------
    registration : Registration
    total, spent : Amount
        `spent` is the sum of all charges, with or without an allowance.
    allotted : Amount
        The sum of what is left of the allowances.

    Privacy
    -------
    As long as `spent` stays within `total`, all charged releases together are (epsilon, delta)-DP for the registered
    neighbours. All methods keep ``spent + allotted`` within `total`, so that every allowance can be spent completely.
    """

    registration: Registration
    total: Amount
    spent: Amount
    allotted: Amount = NOTHING

    def require_neighbours(self, neighbours: str) -> None:
        """Raise a `ParameterError` unless `neighbours` are the registered ones."""
        registered = self.registration.neighbours
        if Neighbours.parse(neighbours) is not registered:
            raise ParameterError(
                f"neighbours must be {str(registered)!r}, as {self.registration.dataset!r} is registered, "
                f"got {str(neighbours)!r} instead. Design the release for {str(registered)!r} neighbours."
            )

    def require_unit(self, unit: str | Unit) -> None:
        """Raise a `LedgerError` unless the data set is registered for releases that protect `unit`."""
        given, registered = Unit.parse(unit), self.registration.unit
        if self.registration.accepts(given):
            return
        remedy = {
            "record": "If each person has one row at most, design the release for records, without a person",
            "person": f"Design the release for persons: person={registered.column!r}, or --person {registered.column}",
            "edge": "Design the release for edges: unit='edge'",
            "node": "Design the release for nodes: unit='node', with the largest degree",
        }
        how = "" if given.column is None else f" (ledger add --person {given.column}, or register(unit='{given}'))"
        raise LedgerError(
            f"{self.registration.dataset!r} is registered for releases that protect {_name_unit(registered)}, and this "
            f"one protects {_name_unit(given)}. Nothing was charged. {remedy[registered.kind]}; or register the data "
            f"under another name, with a total of its own{how}."
        )

    def available(self, allowance: AllowanceBalance | None = None) -> Amount:
        """What a charge to `allowance` can use or, without one, what is neither spent nor allotted."""
        unspent = self.total - self.spent
        # An entry that settles a restored ledger can spend what is allotted, so the total limits allowances, too.
        return unspent.limit(allowance.left) if allowance is not None else (unspent - self.allotted).limit(unspent)

    def pay(
        self, event: Event, options: Sequence[Amount], location: str, allowance: AllowanceBalance | None = None
    ) -> tuple[Amount, Balance]:
        """The first of the payment `options` that is available, and the balance after it.

        Raises
        ------
        BudgetExceededError
            If none is, or if the allowance accepts no charges.
        """
        if allowance is not None and allowance.returned:
            raise BudgetExceededError(
                f"{self._name(allowance)} was returned, so nothing can be charged to it. Name another one, or none."
            )
        if allowance is not None and allowance.stale:
            raise BudgetExceededError(
                f"{self._name(allowance)} is from before the ledger was restored from a backup, and what was spent of "
                "it since is not known. Return it, and set another one apart (matrixdp ledger return and allow)."
            )
        available = self.available(allowance)
        for cost in options:
            if cost.within(available):
                return cost, self.spend(cost, allowance)
        shortage = self._describe_shortage(event, options, allowance)
        raise BudgetExceededError(f"{shortage}\nAsk for less, or see what was spent: matrixdp ledger show {location}")

    def spend(self, cost: Amount, allowance: AllowanceBalance | None) -> Balance:
        """The balance after a charge of `cost`, which is available."""
        left = self.allotted if allowance is None else self.allotted - cost
        return replace(self, spent=self.spent + cost, allotted=left)

    def allot(self, allowance: AllowanceBalance, location: str) -> Balance:
        """The balance after a new allowance was set apart.

        Raises
        ------
        BudgetExceededError
            If its size is not available.
        """
        if not allowance.size.within(self.available()):
            raise BudgetExceededError(
                f"{self._describe_left(None)}; the allowance {allowance.name!r} needs "
                f"{_describe_amount(allowance.size)}.\nChoose a smaller one, or see what is left: "
                f"matrixdp ledger show {location}"
            )
        return replace(self, allotted=self.allotted + allowance.size)

    def take_back(self, allowance: AllowanceBalance) -> Balance:
        """The balance after what is left of an allowance was returned."""
        return replace(self, allotted=self.allotted - allowance.unspent)

    def remaining(self, allowance: AllowanceBalance | None = None) -> Remaining:
        """What a charge to `allowance` can use or, without one, what is neither spent nor allotted; rounded down."""
        name = None if allowance is None else allowance.name
        return replace(self._round(self.available(allowance)), allowance=name)

    def unspent(self) -> Remaining:
        """What is not spent, whether it is allotted or not, rounded down."""
        return self._round(self.total - self.spent)

    def describe(self, allowance: AllowanceBalance) -> Allowance:
        """The state of an allowance."""
        return Allowance(
            dataset=self.registration.dataset,
            name=allowance.name,
            mu=root_below(allowance.size.mu_squared),
            epsilon=allowance.epsilon,
            delta=self.registration.privacy.delta,
            left=self.remaining(allowance),
            returned=allowance.returned,
        )

    def summarise(self, allowances: Sequence[AllowanceBalance], counts: Counts, restored_from: int | None) -> Summary:
        """The state of the data set with these allowances and charges."""
        return Summary(
            registration=self.registration,
            total_mu=root_below(self.total.mu_squared),
            spent_mu=root_above(self.spent.mu_squared),
            spent_epsilon=guaranteed_epsilon(self.spent, self.registration.privacy.delta),
            unspent=self.unspent(),
            left=self.remaining(),
            allowances=tuple(map(self.describe, allowances)),
            counts=counts,
            restored_from=restored_from,
        )

    def _round(self, amount: Amount) -> Remaining:
        mu, privacy = root_below(amount.mu_squared), self.registration.privacy
        return Remaining(
            dataset=self.registration.dataset,
            mu=mu,
            epsilon=remaining_epsilon(mu, privacy),
            delta=privacy.delta,
            reserve=Reserve(epsilon=float_below(amount.epsilon), delta=float_below(amount.delta)),
        )

    def _describe_shortage(self, event: Event, options: Sequence[Amount], allowance: AllowanceBalance | None) -> str:
        left, delta = self.remaining(allowance), self.registration.privacy.delta
        if isinstance(event, Gaussian):
            has, needs = _format_apart(left.epsilon, gdp_epsilon(mu=event.mu, delta=delta))
            if has != needs:
                at = f"{delta:g}".replace("e-0", "e-")
                return (
                    f"{self._name(allowance)} has epsilon {has} left at delta {at}; this release needs {needs}."
                    f"{self._hint(allowance)}"
                )
        needed = " or ".join(_describe_amount(cost) for cost in options)
        return f"{self._describe_left(allowance)}; this release needs {needed}.{self._hint(allowance)}"

    def _describe_left(self, allowance: AllowanceBalance | None) -> str:
        left = self.remaining(allowance)
        return (
            f"{self._name(allowance)} has mu {left.mu!r} left, and in reserve epsilon {left.reserve.epsilon!r} and "
            f"delta {left.reserve.delta!r}"
        )

    def _name(self, allowance: AllowanceBalance | None) -> str:
        dataset = repr(self.registration.dataset)
        return dataset if allowance is None else f"the allowance {allowance.name!r} of {dataset}"

    def _hint(self, allowance: AllowanceBalance | None) -> str:
        if allowance is not None or self.allotted == NOTHING:
            return ""
        return " The rest of its total is allotted: name an allowance to use one."


def _name_unit(unit: Unit) -> str:
    return unit.words if unit.column is None else f"{unit.words} (column {unit.column!r})"


def _describe_amount(amount: Amount) -> str:
    """An amount as text for messages."""
    parts = []
    if amount.mu_squared:
        parts.append(f"mu {root_below(amount.mu_squared)!r}")
    if amount.epsilon:
        parts.append(f"epsilon {float_below(amount.epsilon)!r} in reserve")
    if amount.delta:
        parts.append(f"delta {float_below(amount.delta)!r} in reserve")
    return " and ".join(parts)


def _format_apart(less: float, more: float) -> tuple[str, str]:
    """Both numbers with two decimals, or as many as are needed to tell them apart; `less` is rounded down."""
    for digits in range(2, 18):
        low, high = math.floor(less * 10**digits) / 10**digits, round(more, digits)
        if low < high and (low > 0 or less == 0):
            return f"{low:.{digits}f}", f"{high:.{digits}f}"
    return repr(less), repr(more)
