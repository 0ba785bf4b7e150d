"""The JSON API: what the pages do, with a bearer token, for notebooks and nightly jobs; and the JSON that it uses."""

import math
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Request
from fastapi.security import HTTPBearer
from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field, StrictFloat, StrictInt, StrictStr
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response

from matrixdp.ledger.metrics import describe_metric, measure_age, render_metrics, write_sample
from matrixdp.ledger.values import event_to_json
from matrixdp.studio.datasets import TableColumn
from matrixdp.studio.forecasts import open_forecaster, preview_ledger
from matrixdp.studio.rendering import CurrentVisit
from matrixdp.studio.requests import ReleaseSpec, Status, describe_options
from matrixdp.studio.roles import ROUTES
from matrixdp.studio.security import API

_RELEASE: Any = {"query": "means", "columns": "age,bmi", "by": "ward", "epsilon": 0.5, "delta": 1e-6}
Options = dict[str, StrictStr | StrictInt | StrictFloat | None]


class _Given(BaseModel):
    """JSON that a client sends; unknown names are refused, and so are NaN and infinities."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class NewDataset(_Given):
    """A data set to register."""

    name: str = Field(json_schema_extra={"example": "clinic"})
    table: str = Field(json_schema_extra={"example": "clinic.csv"})
    epsilon: float = Field(json_schema_extra={"example": 4})
    delta: float = Field(json_schema_extra={"example": 1e-6})
    neighbours: str = "replace"
    unit: str = Field("record", description="record, person:COLUMN, edge or node")


class NewAllowance(_Given):
    """An allowance to set apart: an epsilon, or a share such as 1/4."""

    name: str
    epsilon: float | None = Field(None, json_schema_extra={"example": 1.0})
    share: str | None = None
    payers: list[str] = Field([], description="people and groups who may charge it; everybody, if there are none")


class NewForecast(_Given):
    """A release to forecast."""

    dataset: str = Field(json_schema_extra={"example": "clinic"})
    table: str = Field(json_schema_extra={"example": "clinic.csv"})
    release: Options = Field(
        description="The options of matrixdp release, with underscores; lists are texts separated by commas.",
        json_schema_extra={
            "properties": describe_options(),
            "required": ["query", "epsilon", "delta"],
            "example": _RELEASE,
        },
    )


class NewRequest(NewForecast):
    """A release to ask for."""

    purpose: str = Field(json_schema_extra={"example": "annual report"})
    form_id: str = Field(
        description="Any text; the same text from the same person is the same request.",
        json_schema_extra={"example": "report-2031"},
    )


# JSON that a client gets. FastAPI makes it from the attributes of the objects that routes return.


def _at(path: str) -> Any:
    """A field that is an attribute of an attribute."""
    return Field(validation_alias=AliasPath(*path.split(".")))


Text = Annotated[str, BeforeValidator(str)]
Square = Annotated[float, BeforeValidator(lambda mu: mu**2)]
Error = Annotated[float | None, BeforeValidator(lambda std: std if math.isfinite(std) else None)]


class Person(BaseModel):
    """Whose token it is."""

    name: str
    roles: Annotated[list[str], BeforeValidator(lambda roles: sorted(role.value for role in roles))]


class AllowanceState(BaseModel):
    """An allowance, and what it has left."""

    name: str
    epsilon: float
    epsilon_left: float = _at("left.epsilon")
    returned: bool
    payers: list[str]


class DatasetState(BaseModel):
    """A data set: its total, what is spent and left, its allowances and tables."""

    name: str
    epsilon: float = _at("summary.registration.privacy.epsilon")
    delta: float = _at("summary.registration.privacy.delta")
    neighbours: Text = _at("summary.registration.neighbours")
    unit: Text = _at("summary.registration.unit")
    epsilon_spent: float = _at("summary.spent_epsilon")
    epsilon_left: float = _at("summary.left.epsilon")
    mu_squared: Square = _at("summary.total_mu")
    mu_squared_spent: Square = _at("summary.spent_mu")
    charges: int = _at("summary.counts.charges")
    unfinished: int = _at("summary.counts.unfinished")
    allowances: list[AllowanceState] = _at("summary.allowances")
    tables: list[str]


class ChargeState(BaseModel):
    """A charge to a data set."""

    entry: int
    time: str
    actor: str | None
    purpose: str | None
    allowance: str | None
    event: Annotated[dict[str, Any], BeforeValidator(event_to_json)]
    description: Annotated[dict[str, Any], BeforeValidator(dict)]
    request: str | None
    released: bool


class RequestState(BaseModel):
    """A request for a release, and where it is on its way."""

    id: str
    asker: str
    dataset: str
    table: str
    release: Annotated[dict[str, Any], BeforeValidator(ReleaseSpec.to_mapping)] = Field(validation_alias="spec")
    purpose: str
    status: Status
    asked: str
    decided: str | None
    decided_by: str | None
    finished: str | None
    progress: float | None
    message: str | None = Field(description="Why it was refused or failed; the reason of a failure is for curators.")


class SchemaText(BaseModel):
    """The schema of a table; null if there is none yet."""

    toml: str | None


class ForecastTable(BaseModel):
    """Predicted standard deviations of the noise in a table of answers; null where noise would hide an answer."""

    title: str
    rows: list[str]
    columns: list[str]
    std: Annotated[list[list[Error]], BeforeValidator(lambda std: std.tolist())]
    note: str


class ForecastState(BaseModel):
    """What a release would look like and cost."""

    method: str
    reason: str
    mu: float
    epsilon_left: float
    epsilon_left_after: float | None = Field(description="null if the ledger does not cover the release")
    tables: list[ForecastTable]


class Problem(BaseModel):
    """Why a request was refused."""

    error: str


# The scheme is for the description alone; `security.authorise` reads the token.
_TOKEN = Depends(HTTPBearer(scheme_name="token", auto_error=False))
router = APIRouter(prefix=API, dependencies=[_TOKEN], responses={"4XX": {"model": Problem}, "5XX": {"model": Problem}})


@router.get("/openapi.json", include_in_schema=False)
def describe_api(request: Request) -> Response:
    """The description of the API in OpenAPI."""
    return JSONResponse(request.app.openapi())


@router.get("/docs", include_in_schema=False)
def show_docs(request: Request, visit: CurrentVisit) -> Response:
    """The API as a page: addresses, bodies with examples, and answers, from its description in OpenAPI."""
    found = request.app.openapi()
    return visit.render("api.html", paths=found["paths"], models=found["components"]["schemas"], roles=ROUTES)


@router.get("/me", response_model=Person)
def show_person(visit: CurrentVisit) -> Any:
    """Whose token it is."""
    return visit.viewer


@router.get("/datasets", response_model=list[DatasetState])
def list_datasets(visit: CurrentVisit) -> Any:
    """All data sets of the ledger."""
    return visit.studio.datasets.list_all()


@router.post("/datasets", status_code=201, response_model=DatasetState)
def register_dataset(body: NewDataset, visit: CurrentVisit) -> Any:
    """Register a data set with its total, or add a table to one."""
    return visit.studio.datasets.register(visit.viewer, **body.model_dump())


@router.get("/datasets/{dataset}", response_model=DatasetState)
def show_dataset(dataset: str, visit: CurrentVisit) -> Any:
    """One data set."""
    return visit.studio.datasets.get(dataset)


@router.delete("/datasets/{dataset}", status_code=204)
def remove_dataset(dataset: str, visit: CurrentVisit) -> None:
    """Take a data set that nothing was charged to off the lists."""
    visit.studio.datasets.remove(visit.viewer, dataset)


@router.get("/metrics", response_class=PlainTextResponse)
def show_metrics(visit: CurrentVisit) -> PlainTextResponse:
    """Budgets, requests and answers in the text format of Prometheus."""
    with visit.studio.datasets.open_ledger() as ledger:
        summaries, entries = ledger.summaries(), ledger.head.entry
    rows = visit.studio.state.select("SELECT status, count(*) AS number FROM requests GROUP BY status")
    counted = {row["status"]: row["number"] for row in rows}
    lines = [*describe_metric("studio_requests", "gauge", "Requests for releases, by their state.")]
    lines += [write_sample("studio_requests", {"status": one.value}, counted.get(one.value, 0)) for one in Status]
    (first,) = visit.studio.state.select("SELECT min(decided) AS time FROM requests WHERE status = 'approved'")
    name, present = "studio_queue_age_seconds", datetime.now(UTC)
    lines += describe_metric(name, "gauge", "Time since the approval of the oldest request that waits.")
    lines += [write_sample(name, {}, measure_age(first["time"], present) or 0.0), *visit.studio.monitor.render()]
    found = render_metrics(summaries, entries, present) + "\n".join(lines) + "\n"
    return PlainTextResponse(found, media_type="text/plain; version=0.0.4")


@router.get("/datasets/{dataset}/history", response_model=list[ChargeState])
def list_charges(dataset: str, visit: CurrentVisit) -> Any:
    """What was charged to a data set, by whom and what for."""
    return visit.studio.datasets.history(dataset)


@router.post("/datasets/{dataset}/allowances", status_code=201, response_model=AllowanceState)
def set_allowance(dataset: str, body: NewAllowance, visit: CurrentVisit) -> Any:
    """Set an allowance apart."""
    return visit.studio.datasets.allow(visit.viewer, dataset, body.name, **body.model_dump(exclude={"name"}))


@router.post("/datasets/{dataset}/allowances/{allowance}/return", response_model=AllowanceState)
def return_allowance(dataset: str, allowance: str, visit: CurrentVisit) -> Any:
    """Return what is left of an allowance to its data set."""
    return visit.studio.datasets.return_allowance(visit.viewer, dataset, allowance)


@router.get("/datasets/{dataset}/tables/{table}/schema")
def show_public_schema(dataset: str, table: str, visit: CurrentVisit) -> SchemaText:
    """The schema of a data set's table: everything that is public about it."""
    visit.studio.datasets.require_table(dataset, table)
    return SchemaText(toml=visit.studio.schemas.read(table))


@router.get("/tables")
def list_tables(visit: CurrentVisit) -> list[str]:
    """The names of all tables in the folder."""
    return visit.studio.tables.list_all()


@router.get("/tables/{table}")
def list_columns(table: str, visit: CurrentVisit) -> list[TableColumn]:
    """The columns of a table."""
    return visit.studio.tables.columns(table)


@router.get("/tables/{table}/schema")
def show_schema(table: str, visit: CurrentVisit) -> SchemaText:
    """The schema of a table."""
    return SchemaText(toml=visit.studio.schemas.read(table))


@router.put("/tables/{table}/schema")
def write_schema(table: str, toml: Annotated[str, Body(embed=True)], visit: CurrentVisit) -> SchemaText:
    """Check a schema, and keep it."""
    visit.studio.schemas.write(table, toml)
    return SchemaText(toml=toml)


@router.post("/forecast", response_model=ForecastState)
def forecast(body: NewForecast, visit: CurrentVisit) -> Any:
    """Predicted errors and the cost of a release; of an adaptive fit, the errors of a plain release in its place."""
    spec = ReleaseSpec.from_mapping(body.release)
    visit.studio.datasets.require_table(body.dataset, body.table)
    found = open_forecaster(visit.studio.schemas.require(body.table), body.table).predict(spec, slowly=True)
    with visit.studio.datasets.open_ledger() as ledger:
        left = preview_ledger(ledger, body.dataset, found.plan, spec.allowance)
    choice = found.plan.choice
    method, reason = ("plain", "") if choice is None else (choice.method, choice.reason)
    facts = {"method": method, "reason": reason, "mu": spec.privacy.mu, "tables": found.tables}
    return facts | {"epsilon_left": left.before, "epsilon_left_after": left.after}


@router.get("/requests", response_model=list[RequestState])
def list_requests(visit: CurrentVisit, status: Status | None = None) -> Any:
    """Requests, the latest first: for a curator all of them, for an analyst her own."""
    return visit.studio.requests.list_all(visit.viewer, status)


@router.post("/requests", status_code=201, response_model=RequestState)
def ask(body: NewRequest, visit: CurrentVisit) -> Any:
    """Ask for a release."""
    spec = ReleaseSpec.from_mapping(body.release)
    return visit.studio.requests.submit(visit.viewer, body.dataset, body.table, spec, body.purpose, body.form_id)


@router.get("/requests/{request_id}", response_model=RequestState)
def show_request(request_id: str, visit: CurrentVisit) -> Any:
    """One request."""
    return visit.studio.requests.get(visit.viewer, request_id)


@router.post("/requests/{request_id}/approve", response_model=RequestState)
def approve(request_id: str, visit: CurrentVisit) -> Any:
    """Approve a request; it is released in the background."""
    return visit.studio.requests.approve(visit.viewer, request_id)


@router.post("/requests/{request_id}/refuse", response_model=RequestState)
def refuse(request_id: str, reason: Annotated[str, Body(embed=True)], visit: CurrentVisit) -> Any:
    """Refuse a request."""
    return visit.studio.requests.refuse(visit.viewer, request_id, reason)


@router.get("/results", response_model=list[RequestState])
def list_results(visit: CurrentVisit) -> Any:
    """All requests that are released, by anybody, the latest first."""
    return visit.studio.results.list_all()


@router.get("/results/{request_id}")
def list_files(request_id: str, visit: CurrentVisit) -> list[str]:
    """The names of a release's files."""
    return visit.studio.results.files(request_id)


@router.get("/results/{request_id}/files/{name}", response_class=FileResponse)
def read_file(request_id: str, name: str, visit: CurrentVisit) -> FileResponse:
    """One of a release's files, such as ``release.json``."""
    return FileResponse(visit.studio.results.path(request_id, name), filename=name)
