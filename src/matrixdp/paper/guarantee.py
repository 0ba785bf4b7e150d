"""The guarantee that a table states for a row, and the check that the row's mechanism has it."""

from __future__ import annotations

from dataclasses import dataclass

from matrixdp.errors import MatrixDPError

_ROUNDING = 1e-9


class GuaranteeMismatchError(MatrixDPError, RuntimeError):
    """A mechanism's guarantee is not the one that its row of a table states."""


@dataclass(frozen=True)
class Guarantee:
    """What a column states: (epsilon, delta)-DP, delta 0 for a pure guarantee."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class Spent:
    """The guarantee that a mechanism claims, and the epsilon that its noise gives.

    Attributes
    ----------
    claimed : Guarantee
        The budget that the mechanism was calibrated for.
    epsilon : float
        The smallest epsilon at the claimed delta; below the claimed one if the calibration adds more noise than needed.
    """

    claimed: Guarantee
    epsilon: float


def check_guarantee(row: str, column: Guarantee | None, spent: Spent | None) -> None:
    """Raise unless a mechanism was calibrated for the guarantee in its column and does not exceed it.

    Examples
    --------
    >>> one = Guarantee(1.0, 0.01)
    >>> check_guarantee("MVG", one, Spent(one, 0.3))
    >>> check_guarantee("MVG", one, Spent(Guarantee(1.0, 0.02), 0.3))
    Traceback (most recent call last):
    ...
    matrixdp.paper.guarantee.GuaranteeMismatchError: the row 'MVG' states (1, 0.01); its mechanism claims (1, 0.02).
    """
    if column is None or spent is None:
        if column is None and spent is None:
            return
        raise GuaranteeMismatchError(f"the row {row!r} states {_show(column)}; its mechanism claims {_show(spent)}.")
    claimed = spent.claimed
    if not (_alike(claimed.epsilon, column.epsilon) and _alike(claimed.delta, column.delta)):
        raise GuaranteeMismatchError(f"the row {row!r} states {_show(column)}; its mechanism claims {_show(spent)}.")
    if not spent.epsilon <= column.epsilon * (1 + _ROUNDING):
        raise GuaranteeMismatchError(
            f"the row {row!r} states {_show(column)}; its mechanism costs epsilon {spent.epsilon:g}."
        )


def _alike(a: float, b: float) -> bool:
    return abs(a - b) <= _ROUNDING * max(a, b)


def _show(what: Guarantee | Spent | None) -> str:
    if what is None:
        return "no privacy"
    value = what.claimed if isinstance(what, Spent) else what
    return f"({value.epsilon:g}, {value.delta:g})"
