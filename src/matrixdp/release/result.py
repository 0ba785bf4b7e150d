"""The result of a release: a noisy matrix with its design."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matrixdp.answers.estimate import Estimate
from matrixdp.answers.models import Discriminant, Regression, components, discriminant, regression
from matrixdp.answers.moments import correlation, covariance, cross_table, means, second_moment
from matrixdp.answers.psd import nearest_psd
from matrixdp.answers.shrunk import shrink_table, shrunk_correlation, shrunk_means
from matrixdp.design.design import Design
from matrixdp.device import is_on_device, load_cupy
from matrixdp.display import matrix_text
from matrixdp.domain.clipping import check_missing
from matrixdp.errors import ParameterError
from matrixdp.ledger.request import changed_request_error, find_differences
from matrixdp.privacy import Neighbours, Privacy, Unit
from matrixdp.queries import TableMoments
from matrixdp.release.charging import Account
from matrixdp.release.notebook import ShownRelease
from matrixdp.serialise import from_json_content, to_json_content
from matrixdp.types import Floats
from matrixdp.version import __version__

_FORMAT = "matrixdp release 1"


class Guaranteed:
    """Base class of the results of a design, which have its guarantee."""

    design: Design
    version: str
    simulation: bool
    missing: str

    @property
    def privacy(self) -> Privacy:
        """The guarantee."""
        return self.design.privacy

    @property
    def mu(self) -> float:
        """What was spent, as Gaussian differential privacy."""
        return self.design.distance

    @property
    def neighbours(self) -> Neighbours:
        """The neighbours that the guarantee is for."""
        return self.design.neighbours

    @property
    def unit(self) -> Unit:
        """What the guarantee protects: one record, one person, one edge or one node."""
        return self.design.unit

    def facts(self, form: str) -> dict[str, Any]:
        """Metadata stored with every release."""
        return {
            "format": form,
            "version": self.version,
            "simulation": self.simulation,
            "neighbours": str(self.neighbours),
            "unit": str(self.unit),
            "mu": self.mu,
            "design": to_json_content(self.design),
            **({} if self.missing == "error" else {"missing": self.missing}),
        }


@dataclass(frozen=True, eq=False)
class Release(ShownRelease, Guaranteed):
    """A noisy matrix and all that is needed to read it. Nothing in it is private.

    Attributes
    ----------
    matrix : float64 array of the query's shape
        On a GPU if it is a data set that was there.
    design : Design
    version : str
        Of the software that made it.
    simulation : bool
        Whether the noise can be repeated by whoever knows the seed: then nothing is protected.
    missing : 'error' or 'midpoint'
        Whether missing values, if there were any, were replaced by the middle of their bounds.
    aim : str
        The question that the release was made for, if there was a choice of method; otherwise empty.
    reason : str
        Why this method was used.
    """

    matrix: Floats
    design: Design
    version: str = __version__
    simulation: bool = False
    missing: str = "error"
    aim: str = ""
    reason: str = ""

    @property
    def method(self) -> str:
        """How the release was made: noise was added to an answer."""
        return "plain"

    @property
    def records(self) -> int:
        """The public number of records, of people, or of rows that count; 0 for a graph."""
        return int(getattr(self.design.query, "records", 0))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        query = self.design.query
        return query.columns.names if isinstance(query, TableMoments) else query.names or ()

    @property
    def std(self) -> Floats:
        """Standard deviation of the noise in each entry."""
        return self.design.std

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The matrix."""
        return np.array(self.matrix, dtype=dtype, copy=True if copy is None else copy)

    def __repr__(self) -> str:
        marks = f", {self.neighbours} neighbours, protects {self.design.query.protects}{self._marks()}"
        guarantee = f"({self.privacy.epsilon:g}, {self.privacy.delta:.3g})-DP{marks}"
        shown = "means" if self._has_means else "matrix"
        return f"<Release of {self.design.query.summary}, {guarantee}; print shows the {shown}>"

    @property
    def _has_means(self) -> bool:
        """Whether it is of a table with numbers, whose matrix is about the middle of their bounds and hard to read."""
        return isinstance(self.design.query, TableMoments) and bool(self.design.query.used.numbers)

    def _marks(self) -> str:
        mark = ", A SIMULATION THAT PROTECTS NOTHING" if self.simulation else ""
        replaced = ", MISSING VALUES REPLACED BY THE MIDDLE OF THEIR BOUNDS"
        return mark + (replaced if self.missing == "midpoint" else "")

    def __str__(self) -> str:
        design = self.design
        guarantee = f"({self.privacy.epsilon:g}, {self.privacy.delta:.3g})-DP, {self.neighbours} neighbours, "
        guarantee += f"protects {design.query.protects}"
        spent = f"mu {self.mu:.6g}, epsilon {design.epsilon:.4g} at delta {self.privacy.delta:.3g}"
        kind = f"{type(design.query).__name__} of shape {design.query.shape[0]} x {design.query.shape[1]}"
        body = str(self.means()) if self._has_means else matrix_text(self.matrix)
        return f"{kind}, {guarantee}, spent {spent}{self._marks()}\n{body}"

    def to_host(self) -> Release:
        """The release with its matrix in the memory of the host; a data set released from a GPU is on the device."""
        if not is_on_device(self.matrix):
            return self
        return replace(self, matrix=np.asarray(load_cupy().asnumpy(self.matrix)))

    def possible(self) -> Floats:
        """The matrix with each entry clipped to its possible range (post-processing)."""
        return np.clip(self.matrix, *self.design.query.possible)

    def nearest_psd(self) -> Floats:
        """The nearest positive semidefinite matrix, in which entries with little noise move little; uses no budget."""
        return nearest_psd(self.matrix, self.std)

    def second_moment(self, centre: ArrayLike) -> Estimate:
        """Second moment about a public point, from moments, with error bars."""
        return second_moment(self.matrix, self.design, centre)

    def covariance(self, group: Any = None) -> Estimate:
        """Covariance of the numbers about their means, with error bars.

        For a table, over the records in which both numbers are there, and of one `group` or of all together.
        """
        return covariance(self.matrix, self.design, group)

    def correlation(self, group: Any = None, *, shrunk: bool = False) -> Estimate:
        """Correlation, with error bars; as `covariance`.

        With `shrunk`, a possible matrix with less expected error where noise dominates, which leaves out no number.
        """
        answer = shrunk_correlation if shrunk else correlation
        return answer(self.matrix, self.design, group)

    def means(self, by: str | None = None, group: Any = None, *, shrunk: bool = False) -> Estimate:
        """Means of the numbers, with error bars.

        Parameters
        ----------
        by : str, optional
            A category, or a column by which the release is grouped: the means of each level, and its share of the
            records. By default mean, standard deviation and share observed of each number.
        group : str, sequence of str, or dict, optional
            Levels of the columns by which the release is grouped, or of some of them as ``{column: level}``. By default
            all groups together.
        shrunk : bool
            Move the mean of each level towards the mean of all records, by as much as noise suggests: biased, with less
            expected error where noise dominates, and for every level. Error bars include the bias.
        """
        if by is None:
            if shrunk:
                raise ParameterError("shrunk means need by: the means of all records are not shrunk.")
            return means(self.matrix, self.design, group=group)
        answer = shrunk_means if shrunk else means
        return answer(self.matrix, self.design, by, group)

    def table(self, first: str, second: str, group: Any = None, *, shrunk: bool = False) -> Estimate:
        """Shares of the records for each pair of levels of two categories, with totals and error bars.

        The number of records times a share is a count. A column by which the release is grouped is a category, too.
        With `shrunk`, cells are not negative, and moved towards the product of their totals by as much as noise
        suggests.
        """
        answer = cross_table(self.matrix, self.design, first, second, group)
        return shrink_table(answer) if shrunk else answer

    def regression(self, target: str, on: Sequence[str] | None = None, group: Any = None) -> Regression:
        """Regression of one number on other columns, by default on all, with standard errors."""
        return regression(self.matrix, self.design, target, on, group)

    def discriminant(
        self, target: str, on: Sequence[str] | None = None, group: Any = None, *, error_bars: bool = True
    ) -> Discriminant:
        """Linear discriminant analysis of a category of a table by other columns, by default by all.

        Error bars are simulated, which takes most of the time.
        """
        return discriminant(self.matrix, self.design, target, on, group, error_bars=error_bars)

    def components(self, count: int | None = None, group: Any = None) -> Estimate:
        """Principal components of the numbers, standardised, with error bars."""
        return components(self.matrix, self.design, count, group)

    def error_parts(self, kind: str = "means") -> Estimate:
        """Each number with the error that privacy causes, the error of the records as a sample, and both together.

        `kind` is 'means', 'covariance' or 'correlation'; for moments of a table.
        """
        from matrixdp.release.error_parts import error_parts

        return error_parts(self, kind)

    def to_json(self) -> str:
        """The release as JSON text; `from_json` gives it back bit by bit."""
        chosen = {"aim": self.aim, "method": self.method, "reason": self.reason} if self.reason else {}
        return json.dumps({**self.facts(_FORMAT), **chosen, "matrix": self.matrix.tolist()}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Release:
        """The release that `to_json` wrote."""
        with reading("text must be JSON from Release.to_json; for a file, pass its content."):
            content = json.loads(text)
        with reading("text must be a release as written by Release.to_json of this or an earlier version."):
            if content["format"] != _FORMAT:
                raise KeyError(content["format"])
            matrix = np.array(content["matrix"], np.float64)
            if not np.isfinite(matrix).all():
                raise ParameterError("matrix must be finite, got NaN or infinity instead; the text was altered.")
            return cls(matrix, *read_facts(content, shape=matrix.shape), **read_choice(content))


def require_same_release(released: Guaranteed, design: Design, missing: str, account: Account) -> None:
    """Raise a `LedgerError` if a stored release has other options; ledgers of earlier versions did not keep them."""
    old = {"missing": released.missing, "structured": released.design.structure is not None}
    new = {"missing": missing, "structured": design.structure is not None}
    if differences := find_differences(old, new):
        raise changed_request_error(account.dataset, account.request, "", differences)


def read_choice(content: Any) -> dict[str, Any]:
    """The question that a release was made for, and why its method was used."""
    found = {name: content.get(name, "") for name in ("aim", "reason")}
    if any(not isinstance(text, str) or not text.isprintable() for text in found.values()):
        raise ParameterError("aim and reason must be words; the text was altered.")
    return found


@contextmanager
def reading(message: str) -> Iterator[None]:
    """Raise a `ParameterError` with this message for whatever goes wrong in reading a text that may be altered."""
    try:
        with np.errstate(all="ignore"):
            yield
    except ParameterError:
        raise
    except Exception:
        raise ParameterError(message) from None


def read_facts(content: Any, shape: tuple[int, ...] | None = None) -> tuple[Design, str, bool, str]:
    """Design, version, mark of a simulation and `missing` that `Guaranteed.facts` wrote, after a check of the design.

    `shape` is that of the released matrix; it is compared first, since a check takes memory of the answer's size.
    """
    design, version, simulation = from_json_content(content["design"]), content["version"], content["simulation"]
    if not isinstance(design, Design) or not isinstance(version, str) or not isinstance(simulation, bool):
        raise KeyError("design")
    if shape is not None and shape != design.query.shape:
        raise KeyError("matrix")
    design.check_once()
    if (content["mu"], content["neighbours"]) != (design.distance, design.neighbours):
        raise ParameterError("mu and neighbours of the text do not match its design; it was altered.")
    if content.get("unit", str(design.unit)) != str(design.unit):  # earlier versions wrote none
        raise ParameterError("the unit of the text does not match its design; it was altered.")
    missing = content.get("missing", "error")
    check_missing(missing)
    return design, version, simulation, missing
