"""The balance of a data set: its total, what is spent of it, and whether an event still fits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from matrixdp.errors import BudgetExceededError, ParameterError
from matrixdp.ledger.accounting import Amount, Reserve, remaining_epsilon
from matrixdp.ledger.events import Event, Gaussian
from matrixdp.ledger.units import float_below, root_below
from matrixdp.ledger.values import Registration, Remaining
from matrixdp.privacy import Neighbours, gdp_epsilon


@dataclass(frozen=True)
class Balance:
    """Total and spent amounts of one data set.

    Privacy
    -------
    As long as `spent` stays within `total`, all charged releases together are (epsilon, delta)-DP for the registered
    neighbours.
    """

    registration: Registration
    total: Amount
    spent: Amount

    def require_neighbours(self, neighbours: str) -> None:
        """Raise a `ParameterError` unless `neighbours` are the registered ones."""
        registered = self.registration.neighbours
        if Neighbours.parse(neighbours) is not registered:
            raise ParameterError(
                f"neighbours must be {str(registered)!r}, as {self.registration.dataset!r} is registered, "
                f"got {str(neighbours)!r} instead. Design the release for {str(registered)!r} neighbours."
            )

    def pay(self, event: Event, options: Sequence[Amount], location: str) -> tuple[Amount, Balance]:
        """The first of the payment `options` that fits into the total, and the balance after it.

        Raises
        ------
        BudgetExceededError
            If none fits.
        """
        for amount in options:
            if (self.spent + amount).within(self.total):
                return amount, replace(self, spent=self.spent + amount)
        shortage = self._describe_shortage(event, options)
        raise BudgetExceededError(f"{shortage}\nAsk for less, or see what was spent: matrixdp ledger show {location}")

    def remaining(self) -> Remaining:
        """The budget that is left, rounded down."""
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

    def _describe_shortage(self, event: Event, options: Sequence[Amount]) -> str:
        left, delta = self.remaining(), self.registration.privacy.delta
        if isinstance(event, Gaussian):
            has, needs = _format_apart(left.epsilon, gdp_epsilon(mu=event.mu, delta=delta))
            if has != needs:
                at = f"{delta:g}".replace("e-0", "e-")
                return f"{left.dataset!r} has epsilon {has} left at delta {at}; this release needs {needs}."
        needed = " or ".join(_describe_amount(amount) for amount in options)
        return (
            f"{left.dataset!r} has mu {left.mu!r} left, and in reserve epsilon {left.reserve.epsilon!r} and "
            f"delta {left.reserve.delta!r}; this release needs {needed}."
        )


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
