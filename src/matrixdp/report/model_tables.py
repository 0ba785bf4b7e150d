"""Components and regressions as tables of a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from matrixdp.answers.estimate import HIDDEN, Estimate
from matrixdp.answers.models import Regression
from matrixdp.errors import ParameterError
from matrixdp.report.answer_tables import AnswerTable


class Fitted(Protocol):
    """A release from which components and regressions follow."""

    def components(self, count: int | None = None) -> Estimate:
        """Principal components of the standardised numbers."""

    def regression(self, target: str, on: Sequence[str] | None = None, /) -> Regression:
        """Regression of one number on other columns."""


def make_model(
    release: Fitted, kind: str, target: str | None = None, on: Sequence[str] | None = None
) -> tuple[AnswerTable, ...]:
    """The tables of a model that follows from a release: 'components', or the 'regression' of `target`."""
    if kind == "components":
        title = "Principal components of the standardised numbers"
        return (AnswerTable("components", title, "column", release.components()),)
    if target is None:
        raise ParameterError("target must be given for a regression: the number that is explained.")
    return tabulate_regression(release.regression(target, on))


def tabulate_regression(found: Regression) -> tuple[AnswerTable, ...]:
    """A regression as tables: coefficients with error bars and sampling errors, and the share explained.

    The error of the share is unknown.
    """
    known = ~np.isnan(found.noise_std)
    value = np.column_stack([np.where(known, found.coefficients, np.nan), found.sampling_std])
    std = np.column_stack([found.noise_std, np.zeros_like(found.noise_std)])
    terms = Estimate(value, std, found.names, ("coefficient", "sampling std"), np.full(value.shape, HIDDEN, object))
    share = Estimate(np.array([[found.r_squared]]), np.full((1, 1), np.nan), (found.target,), ("share explained",))
    return (
        AnswerTable("regression", f"Regression of {found.target}", "term", terms),
        AnswerTable("regression", "How much it explains", "column", share),
    )
