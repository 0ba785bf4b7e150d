"""A guarantee in words: how large the privacy loss is, and what it allows."""

import math

SMALL_LOSS, MODERATE_LOSS = 1.0, 3.0  # largest epsilons of each: an even chance becomes at most 73% and 95%


def name_loss(epsilon: float) -> str:
    """The size of a privacy loss: small up to epsilon 1, moderate up to 3, large beyond, where protection is weak."""
    if epsilon <= SMALL_LOSS:
        return "small privacy loss"
    return "moderate privacy loss" if epsilon <= MODERATE_LOSS else "large privacy loss, weak protection"


def describe_odds(epsilon: float, delta: float, unit: str = "one record") -> str:
    """What a guarantee allows, as a factor on odds."""
    factor = f"10^{math.ceil(epsilon / math.log(10))}"  # rounded up, as the chance is
    if epsilon <= math.log(1e6):
        digits = 2 - math.floor(math.log10(math.exp(epsilon)))
        factor = f"{math.ceil(math.exp(epsilon) * 10.0**digits) / 10.0**digits:,.{max(digits, 0)}f}"
    exception = f", except with probability {delta:.3g}" if delta else ""
    chance = 1 / (1 + math.exp(-epsilon))
    even = f"at most {math.ceil(chance * 1000) / 10:.1f}%" if chance < 0.999 else "nearly certain"
    return (
        f"It changes the odds of any conclusion about {unit} by at most a factor of {factor}{exception}: "
        f"an even chance becomes {even}."
    )
