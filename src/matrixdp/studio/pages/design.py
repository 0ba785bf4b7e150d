"""The design page, with a live forecast that reads no data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from matrixdp.errors import LedgerError, ParameterError
from matrixdp.studio.datasets import Dataset
from matrixdp.studio.design_form import WEIGHTS, DesignForm, FormData
from matrixdp.studio.design_view import (
    describe_code,
    describe_curve,
    describe_details,
    describe_forecast,
    describe_left,
    show_error,
)
from matrixdp.studio.forecasts import LEAST_STEP, MOST_STEP, STEPS, Forecaster, open_forecaster
from matrixdp.studio.refusals import NotFoundError, UnavailableError
from matrixdp.studio.rendering import render
from matrixdp.studio.security import CurrentStudio, receive_form
from matrixdp.studio.simulations import open_simulator
from matrixdp.studio.spec import ReleaseSpec
from matrixdp.studio.studio import Studio
from matrixdp.studio.wording import GRAPH_QUERIES, GROUPED_QUERIES, NUMBER_QUERIES, QUERIES, write_plainly

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
