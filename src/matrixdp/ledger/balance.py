"""One data set's account: what it was given, what it has spent, and whether an event still fits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matrixdp.errors import BudgetExceededError, ParameterError
from matrixdp.ledger.accounting import Amount, Reserve, remaining_epsilon
from matrixdp.ledger.events import Event, Gaussian
from matrixdp.ledger.units import float_below, root_below
from matrixdp.ledger.values import Registration, Remaining
from matrixdp.privacy import Neighbours, gdp_epsilon


@dataclass(frozen=True)
class Account:
    """The state of one data set.

    Privacy
    -------
    As long as `spent` stays within `total`, everything that was charged is together (epsilon, delta)-DP for
    the registered neighbours.
    """

    registration: Registration
    total: Amount
    spent: Amount

    def require_neighbours(self, neighbours: str) -> None:
        """Refuse an event whose neighbours are not those of the data set."""
        registered = self.registration.neighbours
        if Neighbours.parse(neighbours) is not registered:
            raise ParameterError(
                f"neighbours must be {str(registered)!r}, as {self.registration.dataset!r} is registered, "
                f"got {str(neighbours)!r} instead. Design the release for {str(registered)!r} neighbours."
            )

    def pay(self, event: Event, ways: Sequence[Amount], path: Path) -> tuple[Amount, Account]:
        """The first of `ways` that pays for `event`, and the account after it.

        Raises
        ------
        BudgetExceededError
            If none does.
        """
        for amount in ways:
            if (self.spent + amount).within(self.total):
                return amount, Account(self.registration, self.total, self.spent + amount)
        raise BudgetExceededError(
            f"{self._shortage(event, ways)}\nAsk for less, or see what was spent: matrixdp ledger show {path}"
        )

    def remaining(self) -> Remaining:
        """What is left, rounded down."""
        left = self.total - self.spent
        mu = root_below(left.mu_squared)
        privacy = self.registration.privacy
        return Remaining(
            dataset=self.registration.dataset,
            mu=mu,
            epsilon=remaining_epsilon(mu, privacy),
            delta=privacy.delta,
            reserve=Reserve(epsilon=float_below(left.epsilon), delta=float_below(left.delta)),
        )

    def _shortage(self, event: Event, ways: Sequence[Amount]) -> str:
        left, delta = self.remaining(), self.registration.privacy.delta
        if isinstance(event, Gaussian):
            has, needs = _told_apart(left.epsilon, gdp_epsilon(mu=event.mu, delta=delta))
            if has != needs:
                at = f"{delta:g}".replace("e-0", "e-")
                return f"{left.dataset!r} has epsilon {has} left at delta {at}; this release needs {needs}."
        needed = " or ".join(_describe(amount) for amount in ways)
        return (
            f"{left.dataset!r} has mu {left.mu!r} left, and in reserve epsilon {left.reserve.epsilon!r} and "
            f"delta {left.reserve.delta!r}; this release needs {needed}."
        )


def _describe(amount: Amount) -> str:
    """An amount in words; shown, never counted with."""
    parts = []
    if amount.mu_squared:
        parts.append(f"mu {root_below(amount.mu_squared)!r}")
    if amount.epsilon:
        parts.append(f"epsilon {float_below(amount.epsilon)!r} in reserve")
    if amount.delta:
        parts.append(f"delta {float_below(amount.delta)!r} in reserve")
    return " and ".join(parts)


def _told_apart(less: float, more: float) -> tuple[str, str]:
    """Both with two decimals, or with as many as show that one is less; that one is rounded down."""
    for digits in range(2, 18):
        low, high = math.floor(less * 10**digits) / 10**digits, round(more, digits)
        if low < high and (low > 0 or less == 0):
            return f"{low:.{digits}f}", f"{high:.{digits}f}"
    return repr(less), repr(more)
