"""The strength of a guarantee, in words and in plain numbers."""

from __future__ import annotations

import math

SMALL_LOSS, MODERATE_LOSS = 1.0, 3.0  # largest epsilons of each: an even chance becomes at most 73% and 95%


def name_loss(epsilon: float) -> str:
    """The size of a privacy loss: small up to epsilon 1, moderate up to 3, large beyond, where protection is weak.

    Examples
    --------
    >>> name_loss(1.0), name_loss(2.0), name_loss(20.0)
    ('small privacy loss', 'moderate privacy loss', 'large privacy loss, weak protection')
    """
    if epsilon <= SMALL_LOSS:
        return "small privacy loss"
    return "moderate privacy loss" if epsilon <= MODERATE_LOSS else "large privacy loss, weak protection"


def describe_odds(epsilon: float, delta: float, unit: str = "one record") -> str:
    """What a guarantee allows, as a factor on odds.

    Examples
    --------
    >>> describe_odds(1.0, 1e-6).partition(": ")[0]
    'It changes the odds of any conclusion about one record by at most a factor of 2.72, except with probability 1e-06'
    >>> describe_odds(1.0, 1e-6).partition(": ")[2]
    'an even chance becomes at most 73.2%.'
    """
    exception = f", except with probability {delta:.3g}" if delta else ""
    chance = 1 / (1 + math.exp(-epsilon))
    even = f"at most {math.ceil(chance * 1000) / 10:.1f}%" if chance < 0.999 else "nearly certain"
    return (
        f"It changes the odds of any conclusion about {unit} by at most a factor of {_round_up(epsilon)}{exception}: "
        f"an even chance becomes {even}."
    )


def _round_up(epsilon: float) -> str:
    """``e^epsilon`` with three digits, rounded up; above a million by its order of magnitude."""
    if epsilon > math.log(1e6):
        return f"10^{math.ceil(epsilon / math.log(10))}"
    factor = math.exp(epsilon)
    digits = 2 - math.floor(math.log10(factor))
    return f"{math.ceil(factor * 10.0**digits) / 10.0**digits:,.{max(digits, 0)}f}"
