"""What a release of a covariance answers, whichever method made it, and the rule that chooses the method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from matrixdp.adaptive.method import MethodChoice, choose_method
from matrixdp.adaptive.settings import SETTINGS
from matrixdp.answers.estimate import Estimate
from matrixdp.answers.models import Regression
from matrixdp.domain.person import Person
from matrixdp.errors import ParameterError, show
from matrixdp.privacy import Neighbours, Privacy, Unit
from matrixdp.release.notebook import ShownRelease

AIMS = ("means", "covariance", "correlation", "components", "regression")
METHODS = ("auto", "adaptive", "plain")
_RECIPES = {"means": "covariance", "correlation": "regression"}  # where an aim has no settings of its own


class CovarianceRelease(ShownRelease, ABC):
    """A private mean and covariance, and what follows from them. Nothing in it is private.

    `release_covariance` returns it; all answers are post-processing and cost nothing.

    Attributes
    ----------
    method : 'adaptive' or 'plain'
    reason : str
        Why this method was used.
    aim : str
        What the release was made for, one of `AIMS`.
    privacy : Privacy
    neighbours : Neighbours
    unit : Unit
        What the guarantee protects: one record or one person.
    mu : float
        What was spent, as Gaussian differential privacy.
    records : int
        The public number of records.
    names : tuple of str
        Of the columns.
    simulation : bool
        Whether the noise can be repeated by whoever knows the seed: then nothing is protected.
    version : str
        Of the software that made it.

    Privacy
    -------
    `privacy`, for `neighbours`.
    """

    choice: MethodChoice
    aim: str
    version: str

    @property
    def method(self) -> str:
        """How the release was made: 'adaptive' or 'plain'."""
        return self.choice.method

    @property
    def reason(self) -> str:
        """Why this method was used."""
        return self.choice.reason

    @property
    @abstractmethod
    def privacy(self) -> Privacy:
        """The guarantee."""

    @property
    @abstractmethod
    def neighbours(self) -> Neighbours:
        """The neighbours that the guarantee is for."""

    @property
    @abstractmethod
    def unit(self) -> Unit:
        """What the guarantee protects."""

    @property
    @abstractmethod
    def mu(self) -> float:
        """What was spent, as Gaussian differential privacy."""

    @property
    @abstractmethod
    def records(self) -> int:
        """The public number of records."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""

    @property
    @abstractmethod
    def simulation(self) -> bool:
        """Whether the release protects nothing."""

    @abstractmethod
    def means(self) -> Estimate:
        """Mean and standard deviation of each number, with error bars."""

    @abstractmethod
    def covariance(self) -> Estimate:
        """Covariance about the mean, with error bars."""

    @abstractmethod
    def correlation(self) -> Estimate:
        """Correlation, with error bars; NaN where noise hides it."""

    @abstractmethod
    def components(self, count: int | None = None) -> Estimate:
        """Principal components of the standardised numbers as columns, with error bars; variances in the last row."""

    @abstractmethod
    def regression(self, target: str, on: Sequence[str] | None = None) -> Regression:
        """Regression of one number on other columns, by default on all, with standard errors."""

    def error_parts(self, kind: str = "means") -> Estimate:
        """Each number with the error that privacy causes, the error of the records as a sample, and both together.

        `kind` is 'means', 'covariance' or 'correlation'.
        """
        from matrixdp.release.error_parts import error_parts

        return error_parts(self, kind)

    @abstractmethod
    def to_json(self) -> str:
        """The release as JSON text; `from_json` gives it back bit by bit."""

    @staticmethod
    def from_json(text: str) -> CovarianceRelease:
        """The release that `to_json` wrote, after a check that its parts fit together."""
        from matrixdp.release.reading import read_release

        found = read_release(text)
        if not isinstance(found, CovarianceRelease):
            raise ParameterError(
                f"text must be JSON from CovarianceRelease.to_json, got a {type(found).__name__} instead: read it with "
                f"{type(found).__name__}.from_json, or with read_release."
            )
        return found

    def __repr__(self) -> str:
        size = f"N = {self.records:,}, {len(self.names)} columns"
        return f"<{type(self).__name__} for {self.aim}: {size}, {self._guarantee()}; print shows the numbers>"

    def __str__(self) -> str:
        return f"{self.method} release, {self._guarantee()}\n{self.reason}\n{self.means()}\n{self.correlation()}"

    def _guarantee(self) -> str:
        mark = ", A SIMULATION THAT PROTECTS NOTHING" if self.simulation else ""
        return f"({self.privacy.epsilon:g}, {self.privacy.delta:.3g})-DP, {self.neighbours} neighbours{mark}"


def choose_for(
    aim: str, method: str, *, features: int, records: int, mu: float, person: Person | None = None
) -> MethodChoice:
    """The method for numbers without missing values: the one that was requested, or the better one by a public rule.

    Parameters
    ----------
    aim : one of AIMS
    method : 'auto', 'adaptive' or 'plain'
    features, records : int
        Public numbers.
    mu : float
        Gaussian differential privacy of the whole release.
    person : Person, optional
        Whose rows are protected together: `records` are then people, or rows that count.

    Examples
    --------
    >>> choose_for("correlation", "auto", features=4, records=442, mu=0.5).method
    'adaptive'
    >>> choose_for("correlation", "plain", features=4, records=442, mu=0.5)
    MethodChoice(method='plain', reason='It was requested.')
    """
    check_aim(aim)
    check_method(method)
    if method != "auto":
        return MethodChoice(method, "It was requested.")
    if aim == "means":
        return MethodChoice(
            "plain", "Means need no learned directions: a plain release has half of its budget for them."
        )
    if person is None:
        return choose_method(features, records, mu, find_recipe(aim))
    counted = "people" if person.rows is None else "rows"
    return choose_method(features, records, mu / person.most, find_recipe(aim), counted)


def find_recipe(aim: str) -> str:
    """The settings of an adaptive fit that serve an aim best."""
    return aim if aim in SETTINGS else _RECIPES[aim]


def check_aim(aim: str) -> None:
    """Raise a `ParameterError` unless `aim` is one of `AIMS`."""
    if aim not in AIMS:
        raise ParameterError(f"aim must be one of {', '.join(AIMS)}, got {show(aim)} instead.")


def check_method(method: str) -> None:
    """Raise a `ParameterError` unless `method` is one of `METHODS`."""
    if method not in METHODS:
        raise ParameterError(f"method must be one of {', '.join(METHODS)}, got {show(method)} instead.")
