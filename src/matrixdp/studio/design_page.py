"""The design page, with a live forecast that reads no data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from matrixdp.answers.table_forecast import compare_questions
from matrixdp.display import format_number
from matrixdp.errors import LedgerError, ParameterError
from matrixdp.ledger import Ledger
from matrixdp.privacy import Privacy, describe_large_delta
from matrixdp.queries import TableMoments
from matrixdp.release.plan import Plan, refuse_extremes
from matrixdp.report.forecast import KINDS, list_predictions
from matrixdp.report.guarantee import describe_odds, name_loss
from matrixdp.studio.charts import draw_curve, draw_ellipse, draw_table
from matrixdp.studio.code_to_copy import write_command, write_python, write_release_command
from matrixdp.studio.datasets import Dataset, measure_allowance, measure_dataset
from matrixdp.studio.design_form import WEIGHTS, DesignForm, FormData
from matrixdp.studio.error_tables import LARGEST, MOST_CORRELATED, TYPICAL, ErrorTable
from matrixdp.studio.forecasts import (
    LEAST_STEP,
    MOST_STEP,
    STEPS,
    Forecast,
    Forecaster,
    SimulatedRange,
    open_forecaster,
    open_simulator,
    preview_ledger,
)
from matrixdp.studio.refusals import NotFoundError, UnavailableError
from matrixdp.studio.rendering import render
from matrixdp.studio.security import CurrentStudio, receive_form
from matrixdp.studio.spec import ReleaseSpec
from matrixdp.studio.studio import Studio
from matrixdp.studio.wording import GRAPH_QUERIES, GROUPED_QUERIES, NUMBER_QUERIES, QUERIES, write_plainly

_MOST_ENTRIES = 400  # that a page offers to follow


def describe_forecast(
    forecaster: Forecaster, spec: ReleaseSpec, *, entry: str = "", pair: tuple[str, str] = ("", ""), wanted: str = ""
) -> dict[str, Any]:
    """The context of the templates that show a forecast: all that is known at once.

    Parameters
    ----------
    forecaster : Forecaster
    spec : ReleaseSpec
    entry : str
        The entry of the first table to follow; another one if the table does not have it.
    pair : tuple of str
        Numbers of the two features of the ellipse.
    wanted : str
        The error that is wanted, to be marked in the curve.
    """
    forecast = forecaster.predict(spec)
    table, simulator = forecast.tables[0], open_simulator(forecaster)
    entry = table.choose(entry)
    simulated = simulator.recall(spec) if forecast.adaptive else None
    first, second = _read_pair(pair, len(forecast.features))
    ellipse = forecast.draw_ellipse(first, second)
    return {
        "forecast": forecast,
        "plan": forecast.plan,
        "adaptive": forecast.adaptive,
        "method_reason": "" if forecast.plan.choice is None else write_plainly(forecast.plan.choice.reason),
        "tables": [show_table(one) for one in forecast.tables],
        "entry": entry,
        "entries": list_entries(table),
        "entry_name": dict(list_entries(table)).get(entry, entry),
        "error": show_error(forecaster.read(forecast, entry)),
        "range": None if simulated is None else show_range(simulated, entry),
        "ellipse": None if ellipse is None else draw_ellipse(ellipse),
        "pair": (first, second),
        **describe_curve(forecaster, forecast, entry, wanted),
        **describe_guarantee(spec, forecast.plan),
    }


def describe_curve(forecaster: Forecaster, forecast: Forecast, entry: str, wanted: str = "") -> dict[str, Any]:
    """The chart of error against epsilon, and whether the simulated part of it is missing."""
    spec, simulator = forecast.spec, open_simulator(forecaster)
    band = simulator.recall_curve(spec, entry) if forecast.adaptive else ()
    here: float | None = forecaster.read(forecast, entry)
    if forecast.adaptive:
        simulated = simulator.recall(spec)
        here = None if simulated is None else simulated.typical.read(entry)
    point = (spec.epsilon, here) if here is not None and math.isfinite(here) else None
    plain = forecaster.follow(spec, entry)
    return {
        "curve": draw_curve(plain, band, spec.epsilon, point, _read_wanted(wanted)),
        "curve_missing": forecast.adaptive and not band,
    }


def describe_guarantee(spec: ReleaseSpec, plan: Plan) -> dict[str, Any]:
    """The guarantee in words, and a warning if delta is too large."""
    privacy = Privacy(spec.epsilon, spec.delta)
    return {
        "loss": name_loss(spec.epsilon),
        "odds": describe_odds(spec.epsilon, spec.delta, plan.unit.words),
        "delta_warning": "" if plan.records is None else describe_large_delta(privacy, plan.records),
    }


def describe_left(ledger: Ledger, dataset: Dataset, plan: Plan, allowance: str | None) -> dict[str, Any]:
    """What would be left in the ledger, and the gauge that shows it."""
    found = next((one for one in dataset.summary.allowances if one.name == allowance), None)
    shares = measure_dataset(dataset.summary, plan.event) if found is None else measure_allowance(found, plan.event)
    return {"left": preview_ledger(ledger, dataset.name, plan, allowance), "shares": shares, "payer": allowance}


def describe_code(forecaster: Forecaster, forecast: Forecast, table: str, dataset: str) -> dict[str, Any]:
    """The same as Python and as command lines."""
    schema, spec = forecaster.schema, forecast.spec
    return {
        "python": write_python(spec, schema, forecast.plan, table=table, dataset=dataset),
        "command": write_command(spec, schema),
        "release_command": write_release_command(spec, schema, table, dataset, "ledger.db"),
    }


def show_table(table: ErrorTable) -> dict[str, Any]:
    """A table of errors as a chart and as numbers."""
    return {
        "title": table.title,
        "note": f"{_describe_hidden(table)}{table.note}",
        "rows": table.rows,
        "columns": table.columns,
        "values": [[_write_error(float(error)) for error in row] for row in table.std],
        "chart": draw_table(table),
    }


def _describe_hidden(table: ErrorTable) -> str:
    noisy = table.std[table.std != 0]
    if np.isfinite(noisy).all():
        return ""
    return "Empty: hidden by noise. " if np.isfinite(noisy).any() else "Noise hides all of these numbers. "


def show_range(simulated: SimulatedRange, entry: str) -> list[tuple[str, str, str]]:
    """The errors of an entry for friendly, typical and hostile data, each with what that means."""
    errors = simulated.read(entry)
    return [(kind, look, show_error(error)) for (kind, look), error in zip(KINDS.items(), errors, strict=True)]


def show_error(error: float) -> str:
    """An error as short text, with its sign."""
    return f"± {format_number(error)}" if math.isfinite(error) else _write_error(error)


def _write_error(error: float) -> str:
    return format_number(error) if math.isfinite(error) else "hidden by noise"


def list_entries(table: ErrorTable) -> list[tuple[str, str]]:
    """The entries that can be followed: their values in the form, and their names."""
    found = [(LARGEST, "the least precise entry"), (TYPICAL, "a typical entry (median)")] if table.comparable else []
    symmetric = table.rows == table.columns
    for i, row in enumerate(table.rows):
        for j, column in enumerate(table.columns):
            if table.std[i, j] == 0 or (symmetric and j < i):
                continue
            if len(found) >= _MOST_ENTRIES:
                return found
            both = f"{row} and {column}" if not symmetric or i != j else f"{row} (variance)"
            found.append((f"{i},{j}", row if len(table.columns) == 1 else both))
    return found


def describe_details(forecaster: Forecaster, spec: ReleaseSpec, entry: str = "") -> dict[str, Any]:
    """What takes longer: the simulated range of an adaptive fit, coefficients, and single questions."""
    found: dict[str, Any] = {"range": None, "typical": None, "model": None, "questions": []}
    forecast = forecaster.predict(spec)
    query = forecast.design.query
    if forecast.adaptive:
        simulated = open_simulator(forecaster).simulate(spec)
        entry = forecast.tables[0].choose(entry)
        return found | {"range": show_range(simulated, entry), "typical": show_table(simulated.typical)}
    if not isinstance(query, TableMoments) or len(query.used.numbers) > MOST_CORRELATED:
        return found
    with refuse_extremes():
        if spec.query in ("regression", "components"):
            found["model"] = _predict_model(forecast)
        elif spec.query == "everything":
            questions = compare_questions(forecast.design)
            found["questions"] = [(one.title, _describe_ratio(one.ratio)) for one in questions]
    return found


def _predict_model(forecast: Forecast) -> dict[str, Any]:
    """Predicted errors of coefficients or components."""
    first = list_predictions(forecast.plan)[0]
    columns = 1 if forecast.spec.query == "regression" else None  # the second one is the sampling error
    std, names = first.estimate.std[:, :columns], first.estimate.columns[:columns]
    values = [[_write_error(float(value)) for value in row] for row in std]
    return {"title": first.title, "rows": first.estimate.rows, "columns": names, "values": values}


def _describe_ratio(ratio: float) -> str:
    if not 0 < ratio < math.inf:
        return "noise hides the answer either way"
    return f"{ratio:.2g} times less noise" if ratio > 1.05 else "as much noise"


def _read_pair(pair: tuple[str, str], features: int) -> tuple[int, int]:
    first, second = (int(text) if text.isdecimal() and int(text) < features else i for i, text in enumerate(pair))
    return (first, second) if first != second else (first, (first + 1) % max(features, 2))


def _read_wanted(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if 0 < found < math.inf else None


router = APIRouter()
FIELDS = ("query", "columns", "by", "cells", "target", "records", "epsilon", "delta", "method", "allowance", "form")


@dataclass(frozen=True)
class Source:
    """A table that is released as a data set, and forecasts for its schema; None if it has no schema yet."""

    dataset: Dataset
    table: str
    forecaster: Forecaster | None


@dataclass(frozen=True)
class Filled:
    """A form without mistakes: where it asks, what it asks, and its fields as they were sent."""

    source: Source
    forecaster: Forecaster
    form: DesignForm
    spec: ReleaseSpec


@router.get("/design")
def show_design(request: Request, studio: CurrentStudio) -> Response:
    """The form, filled from the address."""
    return show_form(request, studio, request.query_params)


@router.post("/design/forecast")
async def forecast(request: Request, studio: CurrentStudio) -> Response:
    """What can be said at once."""

    def show(filled: Filled) -> Response:
        form, source = filled.form, filled.source
        pair = (form.first, form.second)
        context = describe_forecast(filled.forecaster, filled.spec, entry=form.entry, pair=pair, wanted=form.wanted)
        with studio.datasets.open_ledger() as ledger:
            context |= describe_left(ledger, source.dataset, context["plan"], filled.spec.allowance)
        context |= describe_code(filled.forecaster, context["forecast"], source.table, source.dataset.name)
        return render(request, "design_forecast.html", form=form, spec=filled.spec, **context, errors={}, fields=FIELDS)

    return await _answer(request, studio, show, FIELDS)


@router.post("/design/details")
async def show_details(request: Request, studio: CurrentStudio) -> Response:
    """What takes longer: the simulated range of an adaptive fit, coefficients, and single questions."""

    def show(filled: Filled) -> Response:
        context = describe_details(filled.forecaster, filled.spec, filled.form.entry)
        return render(request, "design_details.html", **context)

    return await _answer(request, studio, show)


@router.post("/design/curve")
async def show_curve(request: Request, studio: CurrentStudio) -> Response:
    """Error against epsilon, with the simulated range of an adaptive fit."""

    def show(filled: Filled) -> Response:
        found = filled.forecaster.predict(filled.spec)
        entry = found.tables[0].choose(filled.form.entry)
        if found.adaptive:
            open_simulator(filled.forecaster).follow(filled.spec, entry)
        context = describe_curve(filled.forecaster, found, entry, filled.form.wanted)
        return render(request, "design_curve.html", **context, adaptive=found.adaptive)

    return await _answer(request, studio, show)


@router.post("/design/needed")
async def find_needed(request: Request, studio: CurrentStudio) -> Response:
    """The epsilon that a wanted error needs."""

    def show(filled: Filled) -> Response:
        found = filled.forecaster.predict(filled.spec)
        entry = found.tables[0].choose(filled.form.entry)
        try:
            wanted = float(filled.form.wanted)
        except ValueError:
            wanted = 0.0
        if not 0 < wanted < float("inf"):
            return render(request, "design_needed.html", problem="The error must be a number above 0.", needed=None)
        tool = open_simulator(filled.forecaster) if found.adaptive else filled.forecaster
        needed = tool.find_epsilon(filled.spec, entry, wanted)
        with studio.datasets.open_ledger() as ledger:
            name, allowance = filled.source.dataset.name, filled.spec.allowance
            left = ledger.remaining(name, allowance=allowance).epsilon
        error = "" if needed is None else show_error(needed.error)
        return render(
            request, "design_needed.html", problem="", needed=needed, error=error, left=left, adaptive=found.adaptive
        )

    return await _answer(request, studio, show)


def show_form(
    request: Request,
    studio: Studio,
    form: FormData,
    errors: dict[str, str] | None = None,
    status: int = 200,
    form_id: str = "",
) -> Response:
    """The design page with a form as it was sent, and the mistakes in it; a `form_id` keeps it the same form."""
    sources = _list_sources(studio)
    if not sources:
        return render(request, "design_empty.html", source=None, sources=[])
    source = _find_source(studio, form, sources)
    if source.forecaster is None:
        return render(request, "design_empty.html", source=source, sources=sources)
    schema, registration = source.forecaster.schema, source.dataset.summary.registration
    queries = [name for name in QUERIES if (name in GRAPH_QUERIES) == (schema.columns is None)]
    kept = {"form_id": form_id} if form_id else {}
    return render(
        request,
        "design.html",
        status=status,
        source=source,
        sources=sources,
        form=DesignForm.read(form, schema, registration),
        columns=list(enumerate(schema.columns or ())),
        numbers=[column.name for column in (schema.columns.numbers if schema.columns else ())],
        records=schema.records,
        counted="People" if schema.person is not None and schema.person.rows is None else "Records",
        queries=[(name, *QUERIES[name]) for name in queries],
        number_queries=NUMBER_QUERIES,
        grouped_queries=GROUPED_QUERIES,
        weights=WEIGHTS,
        slider=(LEAST_STEP, MOST_STEP, STEPS),
        purpose=form.get("purpose", ""),
        errors=errors or {},
        absent=_list_absent(source),
        **kept,
    )


def read_filled(studio: Studio, form: FormData) -> tuple[Filled | None, dict[str, str]]:
    """A form that was sent, or its mistakes by field."""
    source = _find_source(studio, form, _list_sources(studio), exact=True)
    if source.forecaster is None:
        raise NotFoundError(f"{source.table} has no schema yet. A curator writes it first.")
    schema, registration = source.forecaster.schema, source.dataset.summary.registration
    read = DesignForm.read(form, schema, registration)
    spec, errors = read.make_spec(source.forecaster, registration)
    return None if spec is None else Filled(source, source.forecaster, read, spec), errors


async def _answer(
    request: Request, studio: Studio, show: Callable[[Filled], Response], fields: Sequence[str] = ()
) -> Response:
    """Read the form, and let a thread do the rest; mistakes in it are shown beside these fields."""
    form = await receive_form(request)

    def respond() -> Response:
        filled, errors = read_filled(studio, form)
        try:
            if filled is not None:
                return show(filled)
        except (LedgerError, ParameterError, UnavailableError) as error:
            errors = {"form": write_plainly(str(error))}
        return render(request, "design_problem.html", errors=errors, fields=fields)

    return await run_in_threadpool(respond)


def _list_sources(studio: Studio) -> list[tuple[Dataset, str]]:
    found = [(dataset, table) for dataset in studio.datasets.list_all() for table in dataset.tables]
    return [(dataset, table) for dataset, table in found if studio.tables.has(table)]


def _find_source(
    studio: Studio, form: FormData, sources: Sequence[tuple[Dataset, str]], *, exact: bool = False
) -> Source:
    """The data set and table that a form names; unless they must be exact, the first that fits, with a schema."""
    dataset, table = form.get("dataset", ""), form.get("table", "")
    found = [one for one in sources if dataset in ("", one[0].name) and table in ("", one[1])]
    if exact and not found:
        raise NotFoundError("there is no such table of such a data set.")
    texts = [(*one, studio.schemas.read(one[1])) for one in found or sources]
    chosen, name, text = next((one for one in texts if one[2] is not None), texts[0])
    return Source(chosen, name, None if text is None else open_forecaster(text, studio.schemas.path(name).name))


def _list_absent(source: Source) -> list[str]:
    """Fields that the form of a source does not have."""
    schema = source.forecaster and source.forecaster.schema
    absent = [] if any(not one.returned for one in source.dataset.summary.allowances) else ["allowance"]
    if not schema or schema.columns is None:
        return [*absent, "records", "target", "cells", "columns", "by", "method"]
    return absent if schema.columns.categories else [*absent, "by"]
