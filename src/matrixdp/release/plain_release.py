"""A covariance from a plain release of the moments of a table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matrixdp.adaptive.method import MethodChoice
from matrixdp.answers.estimate import Estimate
from matrixdp.answers.models import Regression
from matrixdp.privacy import Neighbours, Privacy, Unit
from matrixdp.release.covariance_release import CovarianceRelease
from matrixdp.release.result import Release

FORMAT = "matrixdp plain covariance 1"


@dataclass(frozen=True, eq=False, repr=False)
class PlainRelease(CovarianceRelease):
    """A `CovarianceRelease` that was computed from one release of `TableMoments`.

    Attributes
    ----------
    release : Release
        Of `TableMoments`; it also answers questions about categories.
    choice : MethodChoice
    aim : str
    """

    release: Release
    choice: MethodChoice
    aim: str

    @property
    def version(self) -> str:  # type: ignore[override]
        """Of the software that made it."""
        return self.release.version

    @property
    def privacy(self) -> Privacy:
        """The guarantee."""
        return self.release.privacy

    @property
    def neighbours(self) -> Neighbours:
        """The neighbours that the guarantee is for."""
        return self.release.neighbours

    @property
    def unit(self) -> Unit:
        """What the guarantee protects."""
        return self.release.unit

    @property
    def mu(self) -> float:
        """What was spent, as Gaussian differential privacy."""
        return self.release.mu

    @property
    def records(self) -> int:
        """The public number of records."""
        query: Any = self.release.design.query
        return int(query.records)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        query: Any = self.release.design.query
        return tuple(query.columns.names)

    @property
    def simulation(self) -> bool:
        """Whether the release protects nothing."""
        return self.release.simulation

    def means(self) -> Estimate:
        """Mean and standard deviation of each number, and the share of the records that have it."""
        return self.release.means()

    def covariance(self) -> Estimate:
        """Covariance about the mean, with error bars."""
        found = self.release.covariance()
        assert isinstance(found, Estimate)
        return found

    def correlation(self) -> Estimate:
        """Correlation, with error bars; NaN where noise hides it."""
        found = self.release.correlation()
        assert isinstance(found, Estimate)
        return found

    def components(self, count: int | None = None) -> Estimate:
        """Principal components of the standardised numbers as columns; variances in the last row."""
        return self.release.components(count)

    def regression(self, target: str, on: Sequence[str] | None = None) -> Regression:
        """Regression of one number on other columns, by default on all, with standard errors."""
        return self.release.regression(target, on)

    def to_json(self) -> str:
        """The release as JSON text; `from_json` gives it back bit by bit."""
        content = {"format": FORMAT, "aim": self.aim, "method": self.method, "reason": self.reason}
        return json.dumps({**content, "release": json.loads(self.release.to_json())}, allow_nan=False)
