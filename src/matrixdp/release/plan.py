"""`plan`: the design or the fit that answers a request, and what it costs. Reads no private data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from matrixdp.adaptive import Description
from matrixdp.adaptive.moment import prepare_fit
from matrixdp.adaptive.settings import MethodChoice, choose_method, settings_for
from matrixdp.design import Design, make_design, optimal
from matrixdp.domain import Bounds, Columns, most_rows
from matrixdp.domain.schema import MAX_SIDE
from matrixdp.errors import MatrixDPError, ParameterError, show
from matrixdp.ledger import Gaussian
from matrixdp.noise import Stream
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.queries import ContingencyTable, GramMatrix, Identity, MatrixQuery, Moments, SecondMoment, TableMoments
from matrixdp.queries.base import OfQuery, parse_records
from matrixdp.queries.graphs import Adjacency, Laplacian
from matrixdp.records import StoredRecords, make_engine, read_array
from matrixdp.records.files import open_files
from matrixdp.records.opening import load_npy
from matrixdp.release.adaptive_release import AdaptiveRelease, find_recipe
from matrixdp.release.charging import describe_design, digest
from matrixdp.release.options import FITTED, GRAPHS, MATRICES, MODELS, PER_RECORD, STREAMED, SUMMARIES
from matrixdp.release.request import Request
from matrixdp.release.result import Release
from matrixdp.release.stream_plan import StreamPlan, make_stream
from matrixdp.types import Floats, lock_arrays

_MAX_IN_MEMORY = 1 << 22  # entries of a noisy data set; a larger one is written as files
_MOST_NUMBERS = 100  # with more, error bars of the moments of a table take too long
_MEAN_SHARES = {"means": 0.5, "table": 0.05}  # of the budget, for what is best for them
_SAMPLE = 16  # made-up records
_CORRELATION_SHARE = 0.2  # of everything, for a fit of its numbers; larger ones gain little
_FEWEST_NUMBERS = 4  # of everything that gain by a fit
_EXACT = 0.05  # error of correlations that is small enough without a fit


@lock_arrays
@dataclass(frozen=True, eq=False)
class Plan(OfQuery):
    """What answers a request. Made by `plan`, without the data.

    Attributes
    ----------
    request : Request
    records : int or None
        Public number of records; None for a graph.
    query : MatrixQuery
        What is released; for an adaptive fit, the moments that it fits, with the target of a regression last.
    design : Design or None
        Of a plain release; None for an adaptive fit.
    choice : MethodChoice or None
        The method, and why; None for a question that has only one.
    beside : Plan or None
        An adaptive fit of the numbers, for a share of the budget, which correlations are read off.
    """

    request: Request
    records: int | None
    query: MatrixQuery
    design: Design | None
    choice: MethodChoice | None
    beside: Plan | None = None

    @property
    def adaptive(self) -> bool:
        """Whether an adaptive fit answers."""
        return self.design is None

    @property
    def bounds(self) -> Bounds:
        """Bounds of the numbers of an adaptive fit."""
        assert isinstance(self.query, Moments)  # of an adaptive fit
        return self.query.bounds

    @property
    def recipe(self) -> str:
        """The settings of an adaptive fit."""
        return find_recipe(self.request.question)

    @property
    def targets(self) -> int:
        """Number of last columns that a regression explains."""
        return int(self.request.question == "regression" and self.request.target is not None)

    @property
    def public_progress(self) -> bool:
        """Whether it may be shown how many records were read: that of a person's rows is private, too."""
        return self.records is not None and self.query.public_number and self.query.count_word != "people"

    @property
    def event(self) -> Gaussian:
        """What the ledger is charged with."""
        if self.design is None or self.beside is not None:
            return Gaussian(self.request.privacy.mu)
        return self.design.event

    @property
    def in_files(self) -> bool:
        """Whether the release is a noisy data set that is too large for memory, and is written as files."""
        return isinstance(self.query, Identity) and self.entries > _MAX_IN_MEMORY

    @property
    def entries(self) -> int:
        """Number of entries of the release."""
        if self.design is None:
            return self.bounds.size**2
        return math.prod(self.query.shape)

    @cached_property
    def description(self) -> dict[str, Any]:
        """What was asked for, for the ledger, with a hash of all inputs."""
        if self.design is not None:
            fit = {} if self.beside is None else {"correlations": self.beside.description["inputs"]}
            return {**describe_design(self.design), **fit}
        request, query, person = self.request, self.query, self.query.person
        who = () if person is None else (person,)  # as before there were people in such a release
        inputs = (self.bounds, request.privacy, request.question, self.records, str(query.neighbours), self.targets)
        return {
            "query": "covariance",
            "method": "adaptive",
            "aim": request.question,
            "shape": [self.bounds.size, self.bounds.size],
            "epsilon": request.privacy.epsilon,
            "delta": request.privacy.delta,
            "inputs": digest((*inputs, *who)),
        }

    def sample(self) -> Release | AdaptiveRelease:
        """A made-up release of the same shape, to try whether it can be shown. Reads no data."""
        if self.design is not None:
            fit: Any = None if self.beside is None else self.beside.sample()
            return Release(self.query.finish(np.zeros(self.query.shape)), self.design, fit=fit)
        bounds, noise = self.bounds, {"stream": Stream(seed=0), "simulation": True}
        made_up = np.random.default_rng(0).uniform(bounds.lower, bounds.upper, (_SAMPLE, bounds.size))
        options: dict[str, Any] = {"aim": self.recipe, "records": _SAMPLE, "neighbours": self.neighbours, **noise}
        moment = prepare_fit(made_up, replace(bounds, names=None), self.request.privacy, **options).fit()
        moment = replace(moment, bounds=bounds, records=self.records or 0, person=self.query.person)
        return AdaptiveRelease(moment, self.request.question, "This is an example.")

    def at(self, epsilon: float) -> Plan:
        """The same plan at another epsilon, by the same method."""
        request = replace(self.request, epsilon=epsilon)
        if self.beside is not None:
            share = 1 - self.design.share if self.design is not None else 0.0
            return _add_fit(replace(self, request=request), share)
        design = None if self.design is None else make_request_design(request, self.query)
        return replace(self, request=request, design=design)


def plan(request: Request, count: Callable[[], int] | None = None) -> Plan:
    """Plan a release.

    Parameters
    ----------
    request : Request
    count : callable, optional
        Counts the records, or the people where each counts once; called only where their number is public and neither
        the request nor its schema has it.

    Raises
    ------
    ParameterError
        With the `parameter` that must be changed, if no release can be made.

    Privacy
    -------
    Reads no data, except for the number of records where it is public. The method depends on public numbers alone.
    """
    records = find_records(request, count)
    choice = _choose_method(request, records)
    if choice is not None and choice.method == "adaptive":
        assert records is not None  # only graphs have none
        bounds: Bounds = request.schema.bounds(request.choose_numbers())
        bounds = bounds if request.target is None else bounds.move_last(request.target)
        fitted = Moments(bounds, records, neighbours=request.relation, person=request.whose)
        return Plan(request, records, _require_small(request, fitted), None, choice)
    made = make_query(request, records)
    found = Plan(request, records, made, make_request_design(request, made), choice)
    return _add_fit(found, share) if (share := _choose_share(found)) else found


def _choose_share(planned: Plan) -> float:
    """Share of ``mu^2`` for an adaptive fit of the numbers of a table, which correlations are read off; 0 for none.

    None where numbers are few, where records are too few to learn directions, or where the correlations of the moments
    are expected to be exact enough. That expectation is for standard deviations as the schema guesses them.
    """
    request, design = planned.request, planned.design
    given = request.correlation_share
    if request.question != "everything" or given == 0:
        return 0.0
    assert isinstance(planned.query, TableMoments)  # of everything
    assert design is not None
    numbers, mu = planned.query.used.numbers, request.privacy.mu
    reason = "The table has fewer than two numbers."
    if len(numbers) > 1:
        reason = _find_need_of_plain(_ask_correlations(request, request.privacy))
    if not reason and request.privacy.take_share(given or _CORRELATION_SHARE) is None:
        reason = "The budget is too small for such a share."
    if given is not None:
        if reason:
            raise ParameterError(f"«correlation_share» must be 0 or left out here. {reason}")
        return given
    if reason or len(numbers) < _FEWEST_NUMBERS:
        return 0.0
    effective = mu * math.sqrt(_CORRELATION_SHARE) / most_rows(request.whose)
    if len(numbers) > settings_for("correlation").scarce * planned.query.records * effective:
        return 0.0
    usual, guesses = float(np.asarray(Description().spread)), request.schema.guesses
    spread = np.array([guesses.stds.get(one.name, usual * (one.upper - one.lower)) for one in numbers])
    places = np.array([planned.query.places[one.name].value for one in numbers])
    noise = design.std[np.ix_(places, places)] / np.multiply.outer(spread, spread)
    return _CORRELATION_SHARE if np.median(noise[np.tril_indices(len(numbers), -1)]) > _EXACT else 0.0


def _ask_correlations(request: Request, privacy: Privacy) -> Request:
    """The request of the correlations of all numbers of another one."""
    numbers = tuple(column.name for column in request.choose_columns().numbers)
    own: dict[str, Any] = {"importance": None, "correlation_share": None, "shapes": 0.0, "bins": 0, "id": None}
    asked: dict[str, Any] = {"question": "correlation", "method": "adaptive", "columns": numbers}
    return replace(request, epsilon=privacy.epsilon, **asked, **own)


def _add_fit(planned: Plan, share: float) -> Plan:
    """The plan with a share of its budget for an adaptive fit of its numbers, and the rest for its design.

    Privacy
    -------
    The design spends at most ``(1 - share) mu^2``, and the fit at most ``share mu^2``.
    """
    request = planned.request
    privacy = request.privacy.take_share(share)
    if privacy is None:
        raise ParameterError("«correlation_share» must be 0: the budget is too small for such a share.")
    asked = replace(_ask_correlations(request, privacy), records=planned.records)
    part = f"{100 * share:.3g}% of the budget (of mu^2)"
    why = f"{part} is for an adaptive fit of the numbers, which correlations are read off, but not covariances."
    return replace(
        planned,
        design=make_request_design(request, planned.query, share=1 - share),
        choice=MethodChoice("plain", why),
        beside=plan(asked),
    )


def plan_stream(request: Request, **options: Any) -> StreamPlan:
    """Plan a stream whose steps answer a request; its number of records is that of one step. Reads no data.

    Further options are those of `make_stream`.
    """
    if request.question not in STREAMED:
        raise ParameterError(
            f"«question» must be one of {', '.join(STREAMED)} for a stream: sums over records. Got "
            f"{request.question!r} instead; for counts, use table."
        )
    request.check_model()
    query = make_query(request, find_records(request))
    if request.importance is not None and not isinstance(query, TableMoments):
        raise ParameterError(f"«importance» must be left out for a stream of «question» {request.question}.")
    if request.correlation_share:
        raise ParameterError("«correlation_share» must be 0 or left out for a stream, whose steps have no fit.")
    with refuse_extremes():
        return make_stream(query, request.privacy, missing=request.missing, **options)


def find_records(request: Request, count: Callable[[], int] | None = None) -> int | None:
    """Public number of records, from the request, the schema or, where it is public, `count()`; None for a graph.

    Without data, or where the number is private, a public guess in the schema will do.
    """
    if request.question in GRAPHS:
        return None
    records = request.schema.records if request.records is None else request.records
    if records is not None:
        return records
    guess, person = request.schema.guesses.records, request.whose
    rows_count = person is not None and person.rows is not None and request.question not in PER_RECORD
    private = rows_count or request.relation is Neighbours.ADD_REMOVE
    if count is not None and not private:
        return count()
    if guess is not None:
        return guess
    counted = "rows that count" if rows_count else "people" if request.counts_people else "records"
    why = " with «rows»" if rows_count else " for add-remove neighbours" if private else ""
    wanted = f"the public number of {counted}, or a guess of it"
    if private:
        wanted = f"a public estimate of the number of {counted}, since the true number is private"
    raise ParameterError(f"«records» must be given{why}, or records or expected_records in the schema: {wanted}.")


def _choose_method(request: Request, records: int | None) -> MethodChoice | None:
    """The method and why; None for a question that has only one."""
    request.check_model()
    if request.question not in FITTED:
        return None
    number = parse_records(records)
    reason = _find_need_of_plain(request)
    if reason and request.method == "adaptive":
        raise ParameterError(f"«method» must be auto or plain here. {reason}")
    if reason:
        return MethodChoice("plain", reason)
    features = len(request.choose_numbers().numbers)
    if request.method != "auto":
        return MethodChoice(request.method, "It was requested.")
    if request.question == "means":
        why = "Means need no learned directions: a plain release has half of its budget for them."
        return MethodChoice("plain", why)
    person, mu = request.whose, request.privacy.mu / most_rows(request.whose)
    counted = "records" if person is None else "people" if person.rows is None else "rows"
    return choose_method(features, number, mu, find_recipe(request.question), counted)


def _find_need_of_plain(request: Request) -> str:
    """Why only a plain release can answer, in a sentence; empty if an adaptive fit can as well."""
    if request.by is not None:
        return "Groups (by) are released together, by a plain release of the moments of each."
    columns = request.choose_columns()
    if columns.categories and request.question not in MATRICES:
        return "The table has categories, which only a plain release of its moments can use."
    if any(column.missing for column in columns):
        return "The table may have missing values, which only a plain release of its moments can use."
    if request.missing != "error":
        return "Missing values are replaced by the middle of their bounds, which only a plain release does."
    if not request.clip:
        return "Records outside of their bounds are errors (clip=False), which only a plain release checks."
    shaped = {"importance": request.importance is not None, "directions": not request.standard}
    shaped["calibration"] = request.calibration != "exact"
    return next((f"{name} shapes the noise of a plain release." for name, given in shaped.items() if given), "")


def make_query(request: Request, records: int | None) -> MatrixQuery:
    """The query of a plain release; a graph has no public number of records."""
    question, schema = request.question, request.schema
    with refuse_extremes():
        protected: dict[str, Any] = {"neighbours": request.relation, "person": request.whose}
        if question in GRAPHS:
            if schema.graph is None:
                raise ParameterError(f"{schema.path}: a graph needs [graph] with its public nodes.")
            graph, kind = schema.graph, Adjacency if question == "adjacency" else Laplacian
            protected = {"neighbours": request.relation, "unit": graph.unit, "max_degree": graph.max_degree}
            return kind(len(graph.nodes), graph.weight, node_names=graph.nodes, **protected)
        assert records is not None  # only graphs have none
        if question in (*SUMMARIES, *MODELS) or (question in MATRICES and _suits_table(request)):
            return _make_table_query(request, records)
        if question == "counts":
            rows, columns = (schema.pair_levels(name) for name in request.parse_cells())
            return _require_small(request, ContingencyTable(rows, columns, records, **protected))
        bounds = request.require_complete(request.choose_numbers())
        if question == "gram":
            points = read_points(request.points, bounds.names or ())
            protected |= {"kernel": request.kernel, "bandwidth": request.bandwidth}
            return _require_small(request, GramMatrix(bounds, records, points, **protected))
        kinds: dict[str, Callable[..., MatrixQuery]] = {
            "moments": Moments,
            "second-moment": SecondMoment,
            "identity": Identity,
            **dict.fromkeys(MATRICES, Moments.for_covariance),
        }
        return _require_small(request, kinds[question](bounds, records, **protected))


def _suits_table(request: Request) -> bool:
    """Whether the moments of a table give a covariance: they have less noise, but neither directions nor a radius."""
    table = request.by is not None or any(column.missing for column in request.choose_columns())
    plain = request.standard and request.calibration == "exact" and request.schema.radius is None
    return table or (plain and 1 < len(request.choose_numbers().numbers) <= _MOST_NUMBERS)


def _require_small(request: Request, query: MatrixQuery) -> MatrixQuery:
    """The query, if its answer is small enough for memory, or has a row for each record and is written in parts."""
    side = max(query.shape)
    if request.question not in PER_RECORD and side > MAX_SIDE + 1:
        raise ParameterError(
            f"«question» {request.question} must have at most {MAX_SIDE:,} rows and columns, got {side:,} instead; the "
            f"matrix is held in memory. Choose some with «columns», or remove columns from {request.schema.path}."
        )
    return query


def _make_table_query(request: Request, records: int) -> TableMoments:
    """The moments of the columns that the question needs."""
    schema, question = request.schema, request.question
    if schema.radius is not None:
        raise ParameterError(
            f"{schema.path}: radius must be removed for «question» {question}; it is for moments of numbers that are "
            "not missing."
        )
    if records < 2:
        raise ParameterError(f"«records» must be at least 2 for «question» {question}, got {records} instead.")
    by = tuple(request.by or ())
    columns = _choose_table_columns(request, by)
    if question == "means" and not columns.numbers:
        raise ParameterError(
            f"{schema.path}: no column holds numbers, and «question» means needs one. For categories use «question» "
            "everything, or «question» table."
        )
    weights, share = request.weigh(columns.without(by).names), _MEAN_SHARES.get(question)
    options: dict[str, Any] = {"neighbours": request.relation, "person": request.whose}
    options |= {"shapes": request.shapes, "bins": request.bins}
    try:
        return TableMoments(columns, records, by, mean_share=share, importance=weights, **options)
    except ParameterError as error:
        named = error.parameter in ("by", "importance", "shapes", "bins")
        raise (error if named else error.within(schema.path)) from None


def _choose_table_columns(request: Request, by: tuple[str, ...]) -> Columns:
    """The columns of the query, those of the groups among them."""
    schema, cells = request.schema, request.parse_cells() if request.question == "table" else ()
    for name in by:
        schema.choose([name], "«by»")
    for name in (*by, *cells):
        schema.category(name)
    if cells:
        if request.columns is not None:
            raise ParameterError("«columns» must be left out for «question» table: «cells» names its columns.")
        if both := set(by) & set(cells):
            raise ParameterError(f"«by» must name other columns than «cells», got {show(min(both))} in both.")
        return schema.require_columns().pick((*by, *cells))
    if request.question in MATRICES:
        request.choose_numbers()
    if request.columns is None:
        return request.choose_columns()
    return schema.choose(list(dict.fromkeys([*request.columns, *by])), "«columns»")


def make_request_design(request: Request, query: MatrixQuery, *, share: float = 1.0) -> Design:
    """The design for a query; the moments of a table can be given a `share` of the budget."""
    if isinstance(query, TableMoments):
        for name, default in (("directions", "standard"), ("calibration", "exact")):
            if not isinstance(given := getattr(request, name), str) or given != default:
                raise ParameterError(
                    f"«{name}» must be {default!r} for «question» {request.question} of this schema: the noise of a "
                    "table follows from its columns. Use «importance» to weigh them."
                )
        with refuse_extremes():
            return make_design(query, request.privacy, share=share)
    options: dict[str, Any] = {"directions": None, "calibration": request.calibration}
    if not request.standard:
        options["directions"] = read_matrix(request.directions, "directions")
    with refuse_extremes():
        if request.importance is not None:  # weights of squared errors relative to the range
            named = options["directions"] is None and query.names
            names, weights = named or tuple(map(str, range(query.features))), np.ones(query.features)
            for name, weight in request.weigh(names):
                weights[names.index(name)] = weight
            options["allocation"] = optimal(weights / query.extent(options["directions"]) ** 2)
        return make_design(query, request.privacy, **options)


@contextmanager
def refuse_extremes() -> Iterator[None]:
    """Raise a `ParameterError` where arithmetic fails; for queries, designs and reports that are made without data."""
    try:
        with np.errstate(all="ignore"):
            yield
    except (MatrixDPError, UnicodeError):
        raise
    except (ArithmeticError, ValueError) as error:
        raise ParameterError(
            "no design can be made with these options; one of them is too large or too small. Check «epsilon», "
            "«delta», «records», «importance» and «bandwidth», and the bounds in the schema.",
            parameter="epsilon",
        ) from error


def read_points(points: Any, names: Sequence[str]) -> Floats | None:
    """Public points, of shape (points, features): an array, a table with the columns `names`, or a NPY file."""
    if points is None or not isinstance(points, str | Path):
        return None if points is None else np.asarray(points, np.float64)
    if Path(points).suffix.lower() == ".npy":
        return read_matrix(points, "points")
    try:
        found = read_array(StoredRecords(open_files(points), make_engine(None)).select(names), len(names), names)
        return np.asarray(found, np.float64)
    except MatrixDPError as error:
        raise ParameterError(f"«points»: {error}") from None


def read_matrix(source: Any, option: str) -> Floats:
    """A public matrix: an array, a NPY file, or a CSV file without a header; `option` named the file."""
    if not isinstance(source, str | Path):
        return np.asarray(source, np.float64)
    path = Path(source)
    try:
        if path.suffix.lower() == ".npy":
            return np.array(load_npy(path), np.float64)
        return np.loadtxt(path, delimiter=",", ndmin=2, dtype=np.float64)
    except OSError as error:
        raise ParameterError(f"«{option}»: {path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, TypeError, OverflowError):
        raise ParameterError(f"«{option}»: {path} must be a NPY file, or a CSV file of numbers only.") from None
