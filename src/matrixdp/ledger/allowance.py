"""Allowances: parts of a data set's total, each set apart under a name, which only charges that name it may spend.

An allowance has an amount in each of the three accounts. A charge to it is covered by its amount, which no other charge
can use; charges without an allowance use what is not allotted. ``docs/composition.md`` derives the guarantee of an
allowance on its own.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction

from matrixdp.checks import check_number
from matrixdp.errors import ParameterError, show
from matrixdp.gdp import gdp_epsilon
from matrixdp.ledger.accounting import NOTHING, Amount, Reserve, total_amount
from matrixdp.ledger.units import float_above, float_below, root_above, units_below
from matrixdp.privacy import Privacy

_SHARE = re.compile(r"[0-9]{1,18}/[1-9][0-9]{0,17}|[0-9]{0,18}\.?[0-9]{1,18}")


@dataclass(frozen=True)
class AllowanceBalance:
    """Size of an allowance, what is spent of it, and whether the rest was returned.

    Parameters
    ----------
    name : str
    size, spent : Amount
    epsilon : float
        The guarantee of all charges to it together, at the data set's delta.
    returned : bool
    stale : bool
        Whether the ledger was restored from a backup and an unknown part of the allowance was spent since.
    """

    name: str
    size: Amount
    spent: Amount
    epsilon: float
    returned: bool = False
    stale: bool = False

    @property
    def unspent(self) -> Amount:
        """What can be returned."""
        return NOTHING if self.returned else self.size - self.spent

    @property
    def left(self) -> Amount:
        """What can still be charged to it."""
        return NOTHING if self.stale else self.unspent

    def pay(self, cost: Amount) -> AllowanceBalance:
        """The allowance after a charge of `cost`."""
        return replace(self, spent=self.spent + cost)


@dataclass(frozen=True)
class AllowanceSize:
    """The size of a new allowance: an epsilon at the data set's delta, or a share of the data set's total.

    Parameters
    ----------
    epsilon : float, optional
        All charges to the allowance together are (epsilon, delta)-DP, at the data set's delta.
    share : float, Fraction or str, optional
        Greater than 0 and at most 1: this share of each account's total. A float counts as the decimal number that it
        prints as, so that ten shares of 0.1 are the whole; a text may be a decimal number or a fraction such as 1/3.
    reserve : Reserve, optional
        The part of `epsilon` and delta for events that are not Gaussian. Without one, the allowance is for Gaussian
        events and those that the Gaussian account can pay for. A share includes that share of the data set's reserve.

    Examples
    --------
    >>> privacy = Privacy(epsilon=1, delta=1e-6)
    >>> total = total_amount(privacy, Reserve())
    >>> amount, epsilon = AllowanceSize(share=0.25).amount(total, privacy)
    >>> 4 * amount.mu_squared <= total.mu_squared, round(epsilon, 4)
    (True, 0.4752)
    """

    epsilon: float | None = None
    share: float | Fraction | str | None = None
    reserve: Reserve | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.share is None):
            raise ParameterError("an allowance must have either epsilon or share.")
        if self.share is not None:
            if self.reserve is not None:
                raise ParameterError("reserve must be left out with share, which includes that share of the reserve.")
            object.__setattr__(self, "share", parse_share(self.share))

    def amount(self, total: Amount, privacy: Privacy) -> tuple[Amount, float]:
        """The amount in each account, rounded down, and the epsilon that it guarantees at the data set's delta.

        Parameters
        ----------
        total : Amount
            The data set's.
        privacy : Privacy
            The data set's.
        """
        if self.epsilon is not None:
            own = Privacy(self.epsilon, privacy.delta)
            return total_amount(own, self.reserve or Reserve()), own.epsilon
        assert isinstance(self.share, Fraction)
        amount = Amount(*(int(units * self.share) for units in (total.mu_squared, total.epsilon, total.delta)))
        if amount == NOTHING:
            raise ParameterError(
                f"share is too small: {float(self.share):g} of the total rounds to zero. Choose a larger share.",
                parameter="share",
            )
        return amount, guaranteed_epsilon(amount, privacy.delta)


def guaranteed_epsilon(amount: Amount, delta: float) -> float:
    """An epsilon for which charges that sum to at most `amount` are together (epsilon, `delta`)-DP, rounded up.

    Infinite if there is none.

    Examples
    --------
    >>> privacy = Privacy(epsilon=1, delta=1e-6)
    >>> round(guaranteed_epsilon(total_amount(privacy, Reserve(epsilon=0.25, delta=1e-7)), 1e-6), 9)
    1.0
    """
    rest = float_below(units_below(delta) - amount.delta)
    epsilon = float_above(amount.epsilon)
    if rest < 0 or (rest == 0 and amount.mu_squared):
        return math.inf
    gaussian = gdp_epsilon(mu=root_above(amount.mu_squared), delta=rest) if amount.mu_squared else 0.0
    return gaussian if epsilon == 0.0 else math.nextafter(gaussian + epsilon, math.inf)


def parse_share(share: float | Fraction | str) -> Fraction:
    """A share as an exact fraction, greater than 0 and at most 1.

    Examples
    --------
    >>> parse_share(0.1), parse_share("1/3")
    (Fraction(1, 10), Fraction(1, 3))
    """
    if isinstance(share, str):
        if not _SHARE.fullmatch(share):
            raise ParameterError(
                f"share must be a number or a fraction such as 1/3, got {show(share)} instead.", parameter="share"
            )
        share = Fraction(share)
    check_number(share, "share", above=0, at_most=1)
    return share if isinstance(share, Fraction) else Fraction(repr(float(share)))
