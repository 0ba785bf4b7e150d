"""Which method a release should use, by a public rule."""

from __future__ import annotations

from typing import NamedTuple

from matrixdp.adaptive.settings import settings_for
from matrixdp.checks import check_integer, check_number

_FEW = 1  # features up to which there are no directions to learn


class MethodChoice(NamedTuple):
    """'adaptive' or 'plain', and why, as a sentence."""

    method: str
    reason: str


def choose_method(features: int, records: int, mu: float, aim: str, counted: str = "records") -> MethodChoice:
    """Method with the smaller expected error for so many features and records.

    Parameters
    ----------
    features, records : int
        Public numbers.
    mu : float
        Gaussian differential privacy of the whole release; where k rows of a person count, over k.
    aim : str
        As for `private_moment`.
    counted : str
        What `records` is the number of: 'records', 'people', or 'rows' of people.

    Privacy
    -------
    A function of public numbers alone.

    Examples
    --------
    >>> choose_method(10, 5000, 0.2, "covariance").method
    'adaptive'
    >>> choose_method(1, 5000, 0.2, "covariance").method
    'plain'
    """
    settings_for(aim)
    check_integer(features, "features", at_least=1)
    check_integer(records, "records", at_least=1)
    check_number(mu, "mu", above=0)
    if features <= _FEW:
        return MethodChoice(
            "plain", "With one feature there are no directions to learn, and a plain release has no bias."
        )
    return MethodChoice(
        "adaptive",
        f"With {features} features and {records} {counted}, noise along learned directions is expected to be smaller.",
    )
