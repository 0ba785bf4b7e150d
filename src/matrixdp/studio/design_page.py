"""The design page: its form, from fields to a request with every mistake beside its field, and a live forecast."""

import math
import secrets
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self
from urllib.parse import urlencode

from fastapi import APIRouter, Response
from starlette.datastructures import ImmutableMultiDict

from matrixdp.domain import Schema
from matrixdp.domain.fields import read_number
from matrixdp.errors import LedgerError, MatrixDPError, ParameterError, join_names, show
from matrixdp.ledger import Registration
from matrixdp.privacy import Neighbours, describe_large_delta
from matrixdp.queries import TableMoments
from matrixdp.release.options import FITTED, GRAPHS, GROUPED, QUESTIONS, split_names
from matrixdp.release.plan import Plan, refuse_extremes
from matrixdp.report.forecast import DATA_KINDS, list_predictions
from matrixdp.report.guarantee import describe_odds
from matrixdp.studio import forecasts
from matrixdp.studio.datasets import Dataset, measure_budget
from matrixdp.studio.forecasts import ErrorTable, Forecaster, draw_curve, draw_ellipse, write_error
from matrixdp.studio.refusals import UnavailableError, place_error, word_error
from matrixdp.studio.rendering import CurrentVisit, Studio, Visit
from matrixdp.studio.requests import ReleaseSpec
from matrixdp.studio.roles import Viewer
from matrixdp.studio.security import SentForm

router = APIRouter()
FIELDS = ("query", "columns", "by", "cells", "target", "records", "epsilon", "delta", "method", "allowance", "form")
_PLACES = {"question": "query", "on": "columns", "importance": "columns"}  # of parameters that are no fields
NUMBERS_ONLY = ("correlation", "covariance", "components", "moments", "second-moment")
_TABLES = ("everything", "means", "correlation", "covariance", "regression", "components", "table")
OFFERED = (*_TABLES, "moments", "second-moment", *GRAPHS)  # the API takes all questions
WEIGHTS = {"4": "more", "16": "most", "0.25": "less"}  # besides the usual 1
FormData = ImmutableMultiDict[str, Any]  # of a form or of a query string


@dataclass(frozen=True)
class DesignForm:
    """The fields of the design page as texts, by the names of options in JSON; lists are separated by commas."""

    texts: Mapping[str, str]

    @classmethod
    def read(cls, form: FormData, schema: Schema, registration: Registration, allowance: str = "") -> Self:
        """The form as it was sent; what is missing has a useful default, but what was left empty is empty."""
        names, numbers = _list_names(schema)
        dates = {rule.name for rule in schema.rules.dates}
        usual = {
            "query": "everything" if names else "adjacency",
            "epsilon": f"{min(1.0, registration.privacy.epsilon):.3g}",
            "delta": f"{registration.privacy.delta:g}",
            "records": str(schema.records or ""),
            "method": "auto",
            "allowance": allowance,
            "columns": join_names(names),
            "target": join_names(sorted(numbers, key=dates.__contains__)[:1]),  # dates are seldom explained
        }
        given = {name: ",".join(text for text in form.getlist(name) if text and isinstance(text, str)) for name in form}
        if given.get("query") in OFFERED:
            usual |= {"records": "", "allowance": "", "columns": ""}
        else:
            given.pop("query", None)
        commas = [name for name in ("epsilon", "delta") if "," in given.get(name, "")]
        return cls(defaultdict(str, usual | given | {name: str(read_number(given[name])) for name in commas}))

    def names(self, field: str) -> tuple[str, ...]:
        """The names in a field that lists columns."""
        return split_names(self.texts[field]) if self.texts[field] else ()

    @property
    def weights(self) -> dict[str, str]:
        """How important columns are, where that is not 1."""
        parts = (one.rpartition("=") for one in self.texts["importance"].split(","))
        return {name: weight for name, _, weight in parts}

    def make_spec(self, schema: Schema, registration: Registration) -> ReleaseSpec:
        """The request, or a `ParameterError` for an option that cannot be read."""
        options = {name: self.texts[name] for name in ("query", "epsilon", "delta", "allowance")}
        if options["query"] not in GRAPHS:
            options["records"] = self.texts["records"]
            if registration.neighbours is not Neighbours.REPLACE:
                options["neighbours"] = str(registration.neighbours)
            if options["query"] in FITTED:
                options["method"] = self.texts["method"]
            options |= self._choose(options["query"], schema)
        return ReleaseSpec.from_mapping(options)

    def _choose(self, query: str, schema: Schema) -> dict[str, str]:
        """Columns, groups and weights, of those that the question takes."""
        names, numbers = _list_names(schema)
        by = self.names("by") if query in GROUPED else ()
        target = self.names("target") if query == "regression" else ()
        if query == "table":
            return {"by": join_names(by), "cells": self.texts["cells"]}
        usable = [name for name in (numbers if query in NUMBERS_ONLY else names) if name not in (*by, *target)]
        asked = self.names("columns")
        for name in asked:
            if name not in names:
                raise ParameterError(f"«columns»: the schema has no column {show(name)}.")
        chosen = [name for name in usable if name in asked]
        if not chosen:
            need = " of numbers" if query in NUMBERS_ONLY else ""
            raise ParameterError(f"«columns» must name at least one column{need}.")
        weights = [f"{name}={weight}" for name, weight in self.weights.items() if name in chosen]
        found = {"by": join_names(by), "importance": ",".join(weights)}
        if query == "regression":
            return found | {"target": target[0] if target else "", "on": join_names(chosen)}
        return found | ({"columns": join_names(chosen)} if {*chosen, *by} != set(names) else {})


def _list_names(schema: Schema) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of all columns of a schema, and of those of numbers."""
    columns = schema.columns
    return ((), ()) if columns is None else (columns.names, tuple(column.name for column in columns.numbers))


def write_address(spec: ReleaseSpec, schema: Schema, dataset: str, table: str) -> str:
    """The address of the design page with the form filled for a request."""
    given = {"columns": join_names(_list_names(schema)[0]), **spec.to_mapping()}
    given |= {"columns": given.pop("on", given["columns"]), "target": join_names([spec.target] if spec.target else [])}
    return f"/design?{urlencode({'dataset': dataset, 'table': table, **given})}"


class ReleasedTable(NamedTuple):
    """A table that is released as a data set, and the text of its schema; None if it has none yet."""

    dataset: Dataset
    table: str
    text: str | None

    @property
    def forecaster(self) -> Forecaster:
        """Forecasts for its schema."""
        assert self.text is not None  # checked by whoever found the source
        return forecasts.open_forecaster(self.text, f"{self.table}.toml")


class Filled(NamedTuple):
    """A form without mistakes: where it asks, its fields as they were sent, and what it asks."""

    source: ReleasedTable
    form: DesignForm
    spec: ReleaseSpec


@router.get("/design")
def show_design(visit: CurrentVisit) -> Response:
    """The form, filled from the address."""
    return show_form(visit, visit.request.query_params)


def show_forecast(visit: Visit, filled: Filled) -> Response:
    """What can be said at once."""
    texts, forecaster = filled.form.texts, filled.source.forecaster
    spec, forecast = filled.spec, forecaster.predict(filled.spec)
    entry, adaptive = forecast.tables[0].choose(texts["entry"]), forecast.plan.adaptive
    simulated = forecaster.recall(spec) if adaptive else None
    plain = None if adaptive else forecaster.read(forecast, entry)
    here = plain if simulated is None else simulated["typical"].read(entry)
    wanted, features = _read_wanted(texts["wanted"]), forecast.features
    first, second = (
        int(text) if text.isdecimal() and int(text) < len(features) else i
        for i, text in enumerate((texts["first"], texts["second"]))
    )
    pair = (first, second) if first != second else (first, (first + 1) % max(len(features), 2))
    return visit.render(
        "design_forecast.html",
        forecast=forecast,
        entry=entry,
        error=None if here is None else write_error(here),
        curve=draw_curve(forecaster.follow(spec, entry), spec.epsilon, here, wanted, adaptive=adaptive),
        pair=pair,
        ellipse=draw_ellipse(forecast.design, features, pair),
        fields=FIELDS,
        **describe_cost(visit.studio, visit.viewer, filled.source, spec, forecast.plan),
    )


def show_details(visit: Visit, filled: Filled) -> Response:
    """What takes longer: errors for easy, typical and hard data, what noise would hide, and loadings."""
    spec, forecast = filled.spec, filled.source.forecaster.predict(filled.spec)
    query, adaptive, model = forecast.design.query, forecast.plan.adaptive, None
    if adaptive:
        simulated = filled.source.forecaster.simulate(spec)
    elif not isinstance(query, TableMoments) or len(query.used.numbers) > forecasts.MOST_CORRELATED:
        return Response()
    else:
        with refuse_extremes():
            tables = {kind: forecasts.predict_tables(forecast.plan, kind, slowly=True) for kind in DATA_KINDS}
            simulated = {kind: next(found) for kind, found in tables.items()}
            if spec.question == "components":
                (first,) = list_predictions(forecast.plan)
                std, rows, columns = first.estimate.std, first.estimate.rows, first.estimate.columns
                model = ErrorTable(first.title, std, rows, columns, False)
    table = simulated["typical"]
    another = not adaptive and table.title != forecast.tables[0].title  # than the one that is shown already
    entry = table.choose("" if another else filled.form.texts["entry"])
    errors = [(kind, look, write_error(simulated[kind].read(entry))) for kind, look in DATA_KINDS.items()]
    single = [key for key in table.entries if "," in key and not (table.comparable and len(set(key.split(","))) == 1)]
    return visit.render(
        "design_details.html",
        adaptive=adaptive,
        table=table,
        shown=adaptive or another,
        range=errors if adaptive or len({error for *_, error in errors}) > 1 else None,  # else they depend on no data
        hidden=[table.entries[key][0] for key in single if table.read(key) == math.inf],
        followed=table.entries[entry][0],
        model=model,
    )


def find_needed(visit: Visit, filled: Filled) -> Response:
    """The epsilon that a wanted error needs."""
    texts, spec, forecaster = filled.form.texts, filled.spec, filled.source.forecaster
    wanted = _read_wanted(texts["wanted"])
    if wanted is None:
        return visit.render("design_needed.html", problem="The error must be a number above 0.")
    found = forecaster.predict(spec)
    needed = forecaster.find_epsilon(spec, found.tables[0].choose(texts["entry"]), wanted)
    error = "" if needed is None else write_error(needed[1])
    with visit.studio.datasets.open_ledger() as ledger:
        left = ledger.remaining(filled.source.dataset.name, allowance=spec.allowance).epsilon
    context: dict[str, Any] = {"needed": needed and needed[0], "left": left, "adaptive": found.plan.adaptive}
    return visit.render("design_needed.html", problem="", error=error, **context)


@router.post("/design/{part}")
def answer(visit: CurrentVisit, part: Literal["forecast", "details", "needed"], sent: SentForm) -> Response:
    """A part of what can be said about the form; of the forecast, mistakes are shown beside their fields."""
    show = {"forecast": show_forecast, "details": show_details, "needed": find_needed}[part]
    try:
        return show(visit, read_filled(visit.studio, sent))
    except (LedgerError, ParameterError, UnavailableError) as error:
        fields = FIELDS if part == "forecast" else ()
        return visit.render("design_problem.html", errors=place_error(error, fields, **_PLACES), fields=fields)


def show_form(visit: Visit, form: FormData, error: MatrixDPError | None = None, form_id: str = "") -> Response:
    """The design page with a form as it was sent, and the mistake in it; a `form_id` keeps it the same form.

    It is for the data set and table that the form names, or for the first that fits and has a schema.
    """
    studio, wanted = visit.studio, (form.get("dataset", ""), form.get("table", ""))
    datasets = studio.datasets.list_all()
    sources = [(one, table) for one in datasets for table in one.tables if studio.tables.find(table)]
    fitting = [one for one in sources if wanted[0] in ("", one[0].name) and wanted[1] in ("", one[1])]
    candidates = [ReleasedTable(*one, studio.schemas.read(one[1])) for one in fitting or sources]
    source = next((one for one in candidates if one.text is not None), candidates[0] if candidates else None)
    if source is None or source.text is None:
        return visit.render("design_empty.html", source=source, sources=sources)
    schema = source.forecaster.schema
    usable = [one for one in source.dataset.summary.allowances if not one.returned and one.is_for(visit.viewer.names)]
    own = next((one.name for one in usable if one.payers), "")
    return visit.render(
        "design.html",
        mistake=error,
        source=source,
        sources=sources,
        form=DesignForm.read(form, schema, source.dataset.summary.registration, own),
        allowances=usable,
        refusal="" if error is None else word_error(error),
        columns=tuple(schema.columns or ()),
        dates={rule.name: rule for rule in schema.rules.dates},
        numbers=_list_names(schema)[1],
        schema=schema,
        queries=[(name, QUESTIONS[name]) for name in OFFERED if (name in GRAPHS) == (schema.columns is None)],
        number_queries=NUMBERS_ONLY,
        grouped_queries=GROUPED,
        weights=WEIGHTS,
        slider=(forecasts.LEAST_STEP, forecasts.MOST_STEP, forecasts.STEPS),
        purpose=form.get("purpose", ""),
        errors=place_error(error, (*FIELDS, "purpose"), **_PLACES),
        form_id=form_id or secrets.token_hex(16),
    )


def read_filled(studio: Studio, sent: FormData) -> Filled:
    """A form that was sent, or an error with the first mistake in it."""
    dataset, table = str(sent.get("dataset", "")), str(sent.get("table", ""))
    studio.datasets.require_table(dataset, table)
    source = ReleasedTable(studio.datasets.get(dataset), table, studio.schemas.require(table))
    schema, registration = source.forecaster.schema, source.dataset.summary.registration
    form = DesignForm.read(sent, schema, registration)
    return Filled(source, form, form.make_spec(schema, registration))


def describe_cost(
    studio: Studio, asker: Viewer, source: ReleasedTable, spec: ReleaseSpec, plan: Plan
) -> dict[str, Any]:
    """The context of the templates that show what a release costs, and how to ask for it by other means."""
    dataset = source.dataset
    with studio.datasets.open_ledger(asker) as ledger:
        left = forecasts.preview_ledger(ledger, dataset.name, plan, spec.allowance)
    payer = next((one for one in dataset.summary.allowances if one.name == spec.allowance), None)
    return {
        "spec": spec,
        "plan": plan,
        "odds": describe_odds(spec.epsilon, spec.delta, plan.unit.words),
        "delta_warning": "" if plan.records is None else describe_large_delta(spec.privacy, plan.records),
        "left": left,
        "shares": measure_budget(payer or dataset.summary, plan.event),
        "python": spec.write_python(studio.settings.addresses[0], dataset.name, source.table),
        "command": spec.write_command(source.forecaster.schema.path.name, source.table, dataset.name),
    }


def _read_wanted(text: str) -> float | None:
    found = read_number(text)
    return float(found) if not isinstance(found, str) and found > 0 else None
