"""Guarantees are worded by their strength, and never stronger than they are."""

import math
import re

import pytest

from matrixdp.report.guarantee import describe_odds, name_loss


@pytest.mark.parametrize(
    ("epsilon", "name"),
    [(0.01, "small"), (1.0, "small"), (1.01, "moderate"), (3.0, "moderate"), (3.01, "large"), (1e9, "large")],
)
def test_the_loss_has_a_name(epsilon, name):
    assert name_loss(epsilon).startswith(name)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 0.5, 1, 2, 3, 5, 8, 12, 13.8])
def test_factor_and_chance_are_rounded_up(epsilon):
    words = describe_odds(epsilon, 1e-6)
    factor = float(re.search(r"factor of ([\d,.]+\d)", words)[1].replace(",", ""))
    assert math.exp(epsilon) <= factor <= 1.011 * math.exp(epsilon)
    chance = re.search(r"at most ([\d.]+)%", words)
    if chance:
        assert 0 <= float(chance[1]) / 100 - 1 / (1 + math.exp(-epsilon)) < 0.0011
    else:
        assert "nearly certain" in words


def test_a_huge_loss_and_a_pure_one_can_be_described():
    assert "10^44" in describe_odds(100.0, 1e-6)
    assert "10^434294482" in describe_odds(1e9 - 1, 1e-6)
    assert "except" not in describe_odds(1.0, 0.0)
    assert "one edge" in describe_odds(1.0, 0.0, "one edge")
