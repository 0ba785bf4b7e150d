"""The release of one design: a noisy matrix, charged once, and its answers; directions that are learned by one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matrixdp.answers import moments as answers
from matrixdp.answers.draws import Draws, draw_moments
from matrixdp.answers.estimate import Estimate
from matrixdp.answers.histograms import QUARTILES, Histogram, find_histograms, find_quantiles
from matrixdp.answers.models import Discriminant, Regression, components, discriminant, regression
from matrixdp.answers.psd import nearest_psd
from matrixdp.answers.synthetic import SyntheticTable, make_tables
from matrixdp.answers.view import view_moments
from matrixdp.checks import check_flag
from matrixdp.design import isotropic, make_design
from matrixdp.design.design import Design, check_design
from matrixdp.device import is_on_device
from matrixdp.display import matrix_text, short_repr
from matrixdp.domain import Bounds, Person, check_missing, least_sample
from matrixdp.domain.person import find_unit
from matrixdp.errors import ParameterError
from matrixdp.gdp import compose_mu, gdp_epsilon
from matrixdp.ledger import Receipt
from matrixdp.mechanisms.mechanism import draw_noisy_answer, prepare
from matrixdp.noise import Stream
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.queries import Moments, SecondMoment, TableMoments
from matrixdp.queries.base import OfQuery
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.release.charging import Account, Paid, Price, design_price, make_once
from matrixdp.release.released import Answering, MatrixRelease, Released, require, to_host
from matrixdp.serialise import builtin_kind, from_json_content, to_json_content
from matrixdp.types import Floats
from matrixdp.version import __version__


class Guaranteed(OfQuery, Released):
    """Base class of the results of a design, which have its guarantee."""

    design: Design
    missing: str

    query = property(attrgetter("design.query"), doc="What was answered.")
    privacy = property(attrgetter("design.privacy"), doc="The guarantee.")
    mu = property(attrgetter("design.distance"), doc="What was spent, as Gaussian differential privacy.")

    def _content(self) -> dict[str, Any]:
        replaced = {} if self.missing == "error" else {"missing": self.missing}
        return {**super()._content(), "design": to_json_content(self.design), **replaced}


@builtin_kind
@dataclass(frozen=True)
class StreamPart:
    """The stream that a release is read from: its name, the periods, and the guarantee of all its steps together."""

    stream: str
    periods: str
    mu: float
    neighbours: Neighbours

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))


@dataclass(frozen=True, eq=False)
class Release(Guaranteed, MatrixRelease, Answering):
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
    fit : AdaptiveRelease or None
        A fit of the numbers, for a share of the same budget, which correlations and components of all records are read
        off.
    part : StreamPart, optional
        The stream that it is read from, whose guarantee and charge are those of all its steps together.
    """

    FORMAT = "matrixdp release 1"
    method = "plain"  # noise was added to an answer

    matrix: Floats
    design: Design
    version: str = __version__
    simulation: bool = False
    missing: str = "error"
    aim: str = ""
    reason: str = ""
    fit: AdaptiveRelease | None = None
    part: StreamPart | None = None

    @property
    def mu(self) -> float:  # type: ignore[override]
        """What was spent in all, as Gaussian differential privacy; by the whole stream, if it is read from one."""
        if self.part is not None:
            return self.part.mu
        distance = self.design.distance
        return distance if self.fit is None else float(compose_mu([distance, self.fit.mu]))

    @property
    def epsilon(self) -> float:
        """What was spent in all, as epsilon at the delta of the guarantee."""
        if self.fit is None and self.part is None:
            return self.design.epsilon
        spent = float(gdp_epsilon(mu=self.mu, delta=self.privacy.delta))
        return min(spent, float(self.privacy.epsilon))

    @property
    def neighbours(self) -> Neighbours:  # type: ignore[override]
        """The neighbours that the guarantee is for."""
        return self.query.neighbours if self.part is None else self.part.neighbours

    @property
    def records(self) -> int:
        """The public number of records, of people, or of rows that count; 0 for a graph."""
        return int(getattr(self.design.query, "records", 0))

    names = property(attrgetter("design.query.read_names"), doc="Names of the columns.")
    std = property(attrgetter("design.std"), doc="Standard deviation of the noise in each entry.")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The matrix."""
        return np.array(self.matrix, dtype=dtype, copy=True if copy is None else copy)

    def __repr__(self) -> str:
        return f"<Release of {self.query.summary}, {self._guarantee()}; print shows it>"

    def __str__(self) -> str:
        spent = f"spent mu {self.mu:.6g}, epsilon {self.epsilon:.4g} at delta {self.privacy.delta:.3g}"
        if self.part is not None:
            spent += f" by all of the stream {self.part.stream!r}, here {self.part.periods}"
        # A matrix about the middle of the bounds is hard to read.
        readable = isinstance(self.query, TableMoments) and self.query.used.numbers
        body = str(self.means()) if readable else matrix_text(self.matrix)
        return f"{self.query.subject}, {self._guarantee(spent)}\n{body}"

    def _show(self) -> tuple[str, list[tuple[str, str]], list[str]]:
        title, _, content = super()._show()
        if isinstance(self.query, Moments | TableMoments):
            content = self._show_answers(correlation=isinstance(self.query, Moments))
        return title, self._show_method(), content

    def to_host(self) -> Release:
        """The release with its matrix in the memory of the host; a data set released from a GPU is on the device."""
        return replace(self, matrix=to_host(self.matrix)) if is_on_device(self.matrix) else self

    def possible(self) -> Floats:
        """The matrix with each entry clipped to its possible range (post-processing)."""
        return np.clip(self.matrix, *self.design.query.possible)

    def nearest_psd(self) -> Floats:
        """The nearest positive semidefinite matrix, in which entries with little noise move little; uses no budget."""
        return nearest_psd(self.matrix, self.std)

    def second_moment(self, centre: ArrayLike) -> Estimate:
        """Second moment about a public point, from moments, with error bars."""
        return answers.second_moment(self.matrix, self.design, centre)

    def covariance(self, group: Any = None) -> Estimate:
        """Covariance of the numbers about their means, with error bars.

        For a table, over the records in which both numbers are there, and of one `group` or of all together.
        """
        return answers.covariance(self.matrix, self.design, group)

    def correlation(self, group: Any = None, *, shrunk: bool = False) -> Estimate:
        """Correlation, with error bars; as `covariance`.

        With `shrunk`, a possible matrix with less expected error where noise dominates, which leaves out no number.
        """
        if self.fit is not None and group is None:
            return self.fit.correlation(shrunk=shrunk)
        answer = answers.shrunk_correlation if shrunk else answers.correlation
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
        if not shrunk:
            return answers.means(self.matrix, self.design, by, group)
        if by is None:
            raise ParameterError("shrunk means need by: the means of all records are not shrunk.")
        return answers.shrunk_means(self.matrix, self.design, by, group)

    def histograms(self) -> dict[str, Histogram]:
        """The histogram of each number over all records, by name; for a table released with `shapes`."""
        return find_histograms(self.matrix, self.design)

    def quantiles(self, columns: str | Sequence[str] | None = None, q: Any = QUARTILES) -> Estimate:
        """Quantiles of numbers over the values that are there, with 95% intervals; for a table released with `shapes`.

        Parameters
        ----------
        columns : str or sequence of str, optional
            Names of numbers. By default all.
        q : float or sequence of float
            Shares of the values below, between 0 and 1: by default the quartiles, of which one is the median.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> query = mdp.TableMoments(mdp.Columns([mdp.Number("age", 0, 100, step=1)]), records=5000, shapes=0.5)
        >>> release = mdp.make_design(query, mdp.Privacy(1, 1e-6)).release({"age": np.arange(5000) % 100})
        >>> 40 < release.quantiles("age", q=0.5)["age", "median"] < 60
        True
        """
        return find_quantiles(self.matrix, self.design, [columns] if isinstance(columns, str) else columns, q)

    def table(self, first: str, second: str, group: Any = None, *, shrunk: bool = False) -> Estimate:
        """Shares of the records for each pair of levels of two categories, with totals and error bars.

        The number of records times a share is a count. A column by which the release is grouped is a category, too.
        With `shrunk`, cells are not negative, and moved towards the product of their totals by as much as noise
        suggests.
        """
        answer = answers.cross_table(self.matrix, self.design, first, second, group)
        return answers.shrink_table(answer) if shrunk else answer

    def regression(self, target: str, on: Sequence[str] | None = None, group: Any = None) -> Regression:
        """Regression of one number on other columns, by default on all, with standard errors."""
        return regression(self.matrix, self.design, target, on, group)

    def discriminant(self, target: str, on: Sequence[str] | None = None, group: Any = None) -> Discriminant:
        """Linear discriminant analysis of a category of a table by other columns, by default by all."""
        return discriminant(self.matrix, self.design, target, on, group)

    def components(self, count: int | None = None, group: Any = None) -> Estimate:
        """Principal components of the numbers, standardised, with error bars."""
        if self.fit is not None and group is None:
            return self.fit.components(count)
        return components(self.matrix, self.design, count, group)

    def draws(self, group: Any = None) -> Draws:
        """Possible moments given the released ones, of one `group` or of all records: for ranges of any answer.

        The same release has the same draws. They take a second for 12 columns, and ten for 60.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> columns = mdp.Columns([mdp.Number("age", 0, 100), mdp.YesNo("smoker")])
        >>> design = mdp.make_design(mdp.TableMoments(columns, records=500), mdp.Privacy(1, 1e-6))
        >>> release = design.release({"age": np.arange(500) % 100, "smoker": np.arange(500) % 3 == 0})
        >>> share = release.draws().of(lambda matrices: matrices[:, 0, 2])  # of smokers
        >>> bool(0 < share.low < share.median < share.high < 1)
        True
        """
        view = draw_moments(view_moments(self.matrix, self.design, group))
        if view is None:
            raise ParameterError("draws are for at most 100 columns and levels; release fewer.")
        return Draws(view.matrix, view.query.names)

    def synthetic(self, rows: int | None = None, *, tables: int | None = None, seed: int = 0) -> Any:
        """A synthetic table with the released shares, means, spreads and products of two columns, up to noise.

        Post-processing: it costs no privacy. Do not test hypotheses on one table, since its standard errors ignore the
        noise of the release; use answers with error bars, or several tables and `matrixdp.combine`.

        Parameters
        ----------
        rows : int, optional
            By default the public number of records, or of people.
        tables : int, optional
            Return a list of this many tables, each from the release with noise of the same law added once more.
        seed : int
            The same seed gives the same table.

        Returns
        -------
        pandas data frame with the columns of the schema, or a list of them

        Examples
        --------
        >>> import matrixdp as mdp
        >>> columns = mdp.Columns([mdp.Number("age", 0, 100), mdp.YesNo("smoker")])
        >>> design = mdp.make_design(mdp.TableMoments(columns, records=500), mdp.Privacy(1, 1e-6))
        >>> release = design.release({"age": np.arange(500) % 100, "smoker": np.arange(500) % 3 == 0})
        >>> release.synthetic(rows=200).shape
        (200, 2)
        """
        made = self.make_synthetic(rows, tables, seed)
        return [one.to_frame() for one in made] if tables else made[0].to_frame()

    def make_synthetic(self, rows: int | None, tables: int | None, seed: int) -> list[SyntheticTable]:
        """Synthetic tables with what a report shows of them; one of all records has the correlations of a `fit`."""
        fitted = None if self.fit is None else self.fit.correlation(shrunk=True)
        return make_tables(self.matrix, self.design, rows, tables, seed, fitted)

    def _sampling_std(self, kind: str) -> Floats:
        """For Gaussian records: ``v_i/n``, ``(v_i v_j + c_ij^2)/n`` and ``(1 - r_ij^2)^2/n`` are the variances."""
        query = self.query
        if not isinstance(query, Moments | TableMoments):
            raise ParameterError(
                "release must be a covariance, or the moments of a table (--query everything or means)."
            )
        records = least_sample(query.records, query.person)
        if kind == "correlation":
            return np.asarray((1 - self.correlation().value ** 2) / np.sqrt(records))
        covariance = self.covariance().value
        variances = np.maximum(np.diagonal(covariance), 0.0)
        if kind == "means":
            return np.asarray(np.sqrt(variances / records))
        return np.asarray(np.sqrt((np.multiply.outer(variances, variances) + covariance**2) / records))

    def _content(self) -> dict[str, Any]:
        chosen = {"aim": self.aim, "method": self.method, "reason": self.reason} if self.reason else {}
        if self.fit is not None:
            chosen["fit"] = json.loads(self.fit.to_json())
        if self.part is not None:
            chosen["part"] = to_json_content(self.part)
        return {**super()._content(), **chosen, "matrix": self.matrix.tolist()}

    @classmethod
    def _read(cls, content: Any) -> Release:
        matrix = np.array(content["matrix"], np.float64)
        require(np.isfinite(matrix).all(), "matrix must be finite, got NaN or infinity instead")
        chosen = {name: content.get(name, "") for name in ("aim", "reason")}
        worded = all(isinstance(text, str) and text.isprintable() for text in chosen.values())
        require(worded, "aim and reason must be words")
        part = from_json_content(content["part"]) if "part" in content else None
        require(isinstance(part, StreamPart | None), "part must be that of a stream")
        made = read_design(content, shape=matrix.shape)
        if content.get("fit") is None:
            return cls(matrix, **made, **chosen, part=part)
        fit, design = AdaptiveRelease.from_json(json.dumps(content["fit"])), made["design"]
        query: Any = design.query
        fits = isinstance(query, TableMoments) and fit.names == tuple(one.name for one in query.used.numbers)
        require(fits, "the fit of the numbers must match the table")
        same = (fit.neighbours, fit.unit, fit.records, fit.simulation, fit.privacy.delta)
        own = (query.neighbours, find_unit(query.person), query.records, made["simulation"], design.privacy.delta)
        require(same == own, "the fit of the numbers and the design must protect the same")
        spent = compose_mu([design.distance, fit.mu])
        require(spent <= design.privacy.mu, "mu of design and fit must be within the guarantee")
        return cls(matrix, **made, **chosen, fit=fit, part=part)


def read_design(content: Any, shape: tuple[int, ...] | None = None) -> dict[str, Any]:
    """The fields of a release of a design, after a check of the design, which takes memory of the answer's size.

    The `shape` of the released matrix is compared first.
    """
    design = from_json_content(content["design"])
    if not isinstance(design, Design) or shape not in (None, design.query.shape):
        raise KeyError("design")
    design.check_once()
    missing = content.get("missing", "error")
    check_missing(missing)
    return {"design": design, "missing": missing, **{name: content[name] for name in ("version", "simulation")}}


def release_design(
    design: Design,
    data: Any,
    account: Account | None,
    *,
    clip: bool = True,
    missing: str = "error",
    aims: Mapping[str, Any] = MappingProxyType({}),
    price: Mapping[str, Any] = MappingProxyType({}),
    beside: Callable[[], Callable[[], AdaptiveRelease]] | None = None,
    ready: Callable[[], object] | None = None,
    stream: Stream | None = None,
    simulation: bool = False,
) -> Paid:
    """`Design.release` for an account; a repeat of the request must have its `aims`, further public options, again.

    `beside` reads the data for an adaptive fit of the numbers and raises every error that they have, before the
    function that it returns fits.

    Privacy
    -------
    A fit `beside` the design is paid by the same charge: the event in `price` is the composition of all their releases.
    """
    check_design(design)
    check_flag(clip, "clip")
    check_missing(missing)
    request = None if account is None else account.request

    def find_price() -> Price:
        alone = design_price(design, data, clip=clip, missing=missing, request=request)
        return replace(alone, options={**alone.options, **aims}, **price)

    def make(prepared: tuple[Any, Callable[[], AdaptiveRelease] | None], _: Receipt | None) -> Release:
        noisy = draw_noisy_answer(design, prepared[0], stream, simulation=simulation)
        fit = None if prepared[1] is None else prepared[1]()
        return Release(noisy.matrix, design, simulation=noisy.simulation, missing=missing, fit=fit)

    with np.errstate(all="ignore"):  # a warning could reveal private data
        return make_once(
            account,
            find_price,
            read=Release.from_json,
            prepare=lambda: (prepare(design, data, clip=clip, missing=missing), None if beside is None else beside()),
            make=make,
            ready=ready,
        )


@dataclass(frozen=True, eq=False)
class PrincipalDirections:
    """Directions learned from private data, and their privacy cost.

    Attributes
    ----------
    directions : float64 array of shape (m, m)
        Orthonormal columns, the largest second moment first.
    moments : float64 array of shape (m,)
        Noisy second moment along each.
    release : Release
        The noisy second moment that they are eigenvectors of.
    """

    directions: Floats
    moments: Floats
    release: Release

    __repr__ = short_repr
    mu = property(attrgetter("release.mu"), doc="Gaussian differential privacy of the directions.")


def principal_directions(
    data: Any,
    bounds: Bounds,
    privacy: Privacy,
    *,
    records: int,
    share: float = 0.2,
    person: Person | str | None = None,
    **options: Any,
) -> PrincipalDirections:
    """Eigenvectors of a private second moment about the bounds' midpoint.

    Parameters
    ----------
    data : array, pandas, polars or Arrow table of shape (records, m)
    bounds : Bounds
    privacy : Privacy
        The whole budget.
    records : int
    share : float
        Share of ``privacy.mu^2`` to spend here; give ``share=1 - share`` to the design that uses the directions.
    person : str or Person, optional
    **options
        As for `Design.release`.

    Privacy
    -------
    Replace-one neighbours. `mu` is spent; the directions are public afterwards.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> data = rng.uniform(-1, 1, (1000, 1)) * [1.0, 1.0] + rng.uniform(-0.1, 0.1, (1000, 2))
    >>> learned = principal_directions(data, Bounds([-2, -2], [2, 2]), Privacy(1, 1e-5), records=1000)
    >>> learned.directions.shape
    (2, 2)
    """
    query = SecondMoment(bounds, records, person=Person.parse(person))
    design = make_design(query, privacy, allocation=isotropic(), share=share)
    release = design.release(data, **options)
    moments, directions = np.linalg.eigh(release.matrix)
    return PrincipalDirections(directions[:, ::-1].copy(), moments[::-1].copy(), release)
