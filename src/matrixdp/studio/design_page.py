"""The design page, with a live forecast that reads no data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from starlette.responses import Response

from matrixdp.answers.table_forecast import compare_questions
from matrixdp.display import format_number
from matrixdp.errors import LedgerError, ParameterError
from matrixdp.privacy import describe_large_delta
from matrixdp.queries import TableMoments
from matrixdp.release.options import GRAPHS, GROUPED, QUESTIONS
from matrixdp.release.plan import refuse_extremes
from matrixdp.report.forecast import KINDS, list_predictions
from matrixdp.report.guarantee import describe_odds, name_loss
from matrixdp.studio.charts import draw_curve, draw_ellipse, draw_table
from matrixdp.studio.datasets import Dataset, measure_allowance, measure_dataset
from matrixdp.studio.design_form import FIELDS, NUMBERS_ONLY, OFFERED, WEIGHTS, DesignForm, FormData
from matrixdp.studio.error_tables import LARGEST, MOST_CORRELATED, TYPICAL, ErrorTable
from matrixdp.studio.forecasts import (
    LEAST_STEP,
    MOST_STEP,
    STEPS,
    Forecast,
    Forecaster,
    Simulated,
    open_forecaster,
    preview_ledger,
    read_range,
)
from matrixdp.studio.refusals import NotFoundError, UnavailableError, word_error
from matrixdp.studio.rendering import render
from matrixdp.studio.security import CurrentStudio, SentForm
from matrixdp.studio.spec import ReleaseSpec
from matrixdp.studio.studio import Studio

router = APIRouter()
_MOST_ENTRIES = 400  # that a page offers to follow


@dataclass(frozen=True)
class Source:
    """A table that is released as a data set, and forecasts for its schema; None if it has no schema yet."""

    dataset: Dataset
    table: str
    forecaster: Forecaster | None


@dataclass(frozen=True)
class Filled:
    """A form without mistakes: where it asks, what it asks, and its fields as they were sent."""

    dataset: Dataset
    table: str
    forecaster: Forecaster
    form: DesignForm
    spec: ReleaseSpec


@router.get("/design")
def show_design(request: Request, studio: CurrentStudio) -> Response:
    """The form, filled from the address."""
    return show_form(request, studio, request.query_params)


@router.post("/design/forecast")
def show_forecast(request: Request, studio: CurrentStudio, sent: SentForm) -> Response:
    """What can be said at once."""

    def show(filled: Filled) -> Response:
        form, spec = filled.form, filled.spec
        context = describe_release(studio, filled.forecaster, spec, filled.dataset, filled.table, form)
        return render(request, "design_forecast.html", form=form, spec=spec, errors={}, fields=FIELDS, **context)

    return _answer(request, studio, sent, show, FIELDS)


@router.post("/design/details")
def show_details(request: Request, studio: CurrentStudio, sent: SentForm) -> Response:
    """What takes longer: the simulated range of an adaptive fit, coefficients, and single questions."""

    def show(filled: Filled) -> Response:
        context = describe_details(filled.forecaster, filled.spec, filled.form.entry)
        return render(request, "design_details.html", **context)

    return _answer(request, studio, sent, show)


@router.post("/design/curve")
def show_curve(request: Request, studio: CurrentStudio, sent: SentForm) -> Response:
    """Error against epsilon, with the simulated range of an adaptive fit."""

    def show(filled: Filled) -> Response:
        found = filled.forecaster.predict(filled.spec)
        entry, adaptive = found.tables[0].choose(filled.form.entry), found.plan.adaptive
        if adaptive:
            filled.forecaster.follow_fit(filled.spec, entry)
        context = _describe_curve(filled.forecaster, found, entry, filled.form.wanted)
        return render(request, "design_curve.html", **context, adaptive=adaptive)

    return _answer(request, studio, sent, show)


@router.post("/design/needed")
def find_needed(request: Request, studio: CurrentStudio, sent: SentForm) -> Response:
    """The epsilon that a wanted error needs."""

    def show(filled: Filled) -> Response:
        wanted = _read_wanted(filled.form.wanted)
        if wanted is None:
            return render(request, "design_needed.html", problem="The error must be a number above 0.", needed=None)
        spec, found = filled.spec, filled.forecaster.predict(filled.spec)
        needed = filled.forecaster.find_epsilon(spec, found.tables[0].choose(filled.form.entry), wanted)
        with studio.datasets.open_ledger() as ledger:
            left = ledger.remaining(filled.dataset.name, allowance=spec.allowance).epsilon
        epsilon, error = (None, "") if needed is None else (needed[0], _show_error(needed[1]))
        context: dict[str, Any] = {"needed": epsilon, "error": error, "left": left, "adaptive": found.plan.adaptive}
        return render(request, "design_needed.html", problem="", **context)

    return _answer(request, studio, sent, show)


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
    source = _find_source(studio, form, sources) if sources else None
    if source is None or source.forecaster is None:
        return render(request, "design_empty.html", source=source, sources=sources)
    schema, registration = source.forecaster.schema, source.dataset.summary.registration
    queries = [name for name in OFFERED if (name in GRAPHS) == (schema.columns is None)]
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
        queries=[(name, QUESTIONS[name]) for name in queries],
        number_queries=NUMBERS_ONLY,
        grouped_queries=GROUPED,
        weights=WEIGHTS,
        slider=(LEAST_STEP, MOST_STEP, STEPS),
        purpose=form.get("purpose", ""),
        errors=errors or {},
        absent=_list_absent(source),
        **kept,
    )


def read_filled(studio: Studio, sent: FormData) -> tuple[Filled | None, dict[str, str]]:
    """A form that was sent, or its mistakes by field."""
    source = _find_source(studio, sent, _list_sources(studio), exact=True)
    if source.forecaster is None:
        raise NotFoundError(f"{source.table} has no schema yet. A curator writes it first.")
    registration = source.dataset.summary.registration
    form = DesignForm.read(sent, source.forecaster.schema, registration)
    spec, errors = form.make_spec(source.forecaster, registration)
    return None if spec is None else Filled(source.dataset, source.table, source.forecaster, form, spec), errors


def _answer(
    request: Request, studio: Studio, sent: FormData, show: Callable[[Filled], Response], fields: Sequence[str] = ()
) -> Response:
    """What `show` makes of a form; mistakes in it are shown beside these fields."""
    filled, errors = read_filled(studio, sent)
    try:
        if filled is not None:
            return show(filled)
    except (LedgerError, ParameterError, UnavailableError) as error:
        errors = {"form": word_error(error)}
    return render(request, "design_problem.html", errors=errors, fields=fields)


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


def describe_release(
    studio: Studio,
    forecaster: Forecaster,
    spec: ReleaseSpec,
    dataset: Dataset,
    table: str,
    form: DesignForm | None = None,
) -> dict[str, Any]:
    """The context of the templates that show what a release costs and publishes: all that is known at once.

    Parameters
    ----------
    studio : Studio
    forecaster : Forecaster
    spec : ReleaseSpec
    dataset : Dataset
        What is charged, unless an allowance is.
    table : str
    form : DesignForm, optional
        The entry that is followed, the two features of the ellipse, and the error that is wanted.
    """
    forecast = forecaster.predict(spec)
    plan, first_table = forecast.plan, forecast.tables[0]
    entry = first_table.choose("" if form is None else form.entry)
    entries = list_entries(first_table)
    simulated = forecaster.recall(spec) if plan.adaptive else None
    pair = _read_pair(("", "") if form is None else (form.first, form.second), len(forecast.features))
    ellipse = forecast.draw_ellipse(*pair)
    with studio.datasets.open_ledger() as ledger:
        left = preview_ledger(ledger, dataset.name, plan, spec.allowance)
    payer = next((one for one in dataset.summary.allowances if one.name == spec.allowance), None)
    shares = measure_dataset(dataset.summary, plan.event) if payer is None else measure_allowance(payer, plan.event)
    schema = forecaster.schema.path.name
    return {
        "forecast": forecast,
        "plan": plan,
        "adaptive": plan.adaptive,
        "method_reason": "" if plan.choice is None else plan.choice.reason,
        "tables": [_show_table(one) for one in forecast.tables],
        "entry": entry,
        "entries": entries,
        "entry_name": dict(entries).get(entry, entry),
        "error": _show_error(forecaster.read(forecast, entry)),
        "range": None if simulated is None else _show_range(simulated, entry),
        "ellipse": None if ellipse is None else draw_ellipse(ellipse),
        "pair": pair,
        "loss": name_loss(spec.epsilon),
        "odds": describe_odds(spec.epsilon, spec.delta, plan.unit.words),
        "delta_warning": "" if plan.records is None else describe_large_delta(spec.privacy, plan.records),
        "left": left,
        "shares": shares,
        "payer": spec.allowance,
        "python": spec.write_python(schema, table, dataset.name, adaptive=plan.adaptive),
        "command": spec.write_command(schema),
        "release_command": spec.write_release_command(schema, table, dataset.name),
        **_describe_curve(forecaster, forecast, entry, "" if form is None else form.wanted),
    }


def _describe_curve(forecaster: Forecaster, forecast: Forecast, entry: str, wanted: str) -> dict[str, Any]:
    """The chart of error against epsilon, and whether the simulated part of it is missing."""
    spec, adaptive = forecast.spec, forecast.plan.adaptive
    band = forecaster.follow_fit(spec, entry, simulate=False) if adaptive else ()
    here: float | None = forecaster.read(forecast, entry)
    if adaptive:
        simulated = forecaster.recall(spec)
        here = None if simulated is None else simulated["typical"].read(entry)
    point = (spec.epsilon, here) if here is not None and math.isfinite(here) else None
    plain = forecaster.follow(spec, entry)
    return {
        "curve": draw_curve(plain, band, spec.epsilon, point, _read_wanted(wanted)),
        "curve_missing": adaptive and not band,
    }


def describe_details(forecaster: Forecaster, spec: ReleaseSpec, entry: str = "") -> dict[str, Any]:
    """What takes longer: the simulated range of an adaptive fit, coefficients, and single questions."""
    found: dict[str, Any] = {"range": None, "typical": None, "model": None, "questions": []}
    forecast = forecaster.predict(spec)
    query = forecast.design.query
    if forecast.plan.adaptive:
        simulated = forecaster.simulate(spec)
        entry = forecast.tables[0].choose(entry)
        return found | {"range": _show_range(simulated, entry), "typical": _show_table(simulated["typical"])}
    if not isinstance(query, TableMoments) or len(query.used.numbers) > MOST_CORRELATED:
        return found
    with refuse_extremes():
        if spec.question in ("regression", "components"):
            found["model"] = _predict_model(forecast)
        elif spec.question == "everything":
            questions = compare_questions(forecast.design)
            found["questions"] = [(one.title, _describe_ratio(one.ratio)) for one in questions]
    return found


def _predict_model(forecast: Forecast) -> dict[str, Any]:
    """Predicted errors of coefficients or components."""
    first = list_predictions(forecast.plan)[0]
    columns = 1 if forecast.spec.question == "regression" else None  # the second one is the sampling error
    std, names = first.estimate.std[:, :columns], first.estimate.columns[:columns]
    values = [[_show_error(float(value), sign="") for value in row] for row in std]
    return {"title": first.title, "rows": first.estimate.rows, "columns": names, "values": values}


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


def _show_table(table: ErrorTable) -> dict[str, Any]:
    """A table of errors as a chart and as numbers."""
    seen, hidden = np.isfinite(table.std[table.std != 0]), ""
    if not seen.all():
        hidden = "Empty: hidden by noise. " if seen.any() else "Noise hides all of these numbers. "
    values = [[_show_error(float(error), "") for error in row] for row in table.std]
    names = {"title": table.title, "rows": table.rows, "columns": table.columns}
    return {**names, "note": f"{hidden}{table.note}", "chart": draw_table(table), "values": values}


def _show_range(simulated: Simulated, entry: str) -> list[tuple[str, str, str]]:
    """The errors of an entry for friendly, typical and hostile data, each with what that means."""
    errors = read_range(simulated, entry)
    return [(kind, look, _show_error(error)) for (kind, look), error in zip(KINDS.items(), errors, strict=True)]


def _show_error(error: float, sign: str = "± ") -> str:
    return f"{sign}{format_number(error)}" if math.isfinite(error) else "hidden by noise"


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
