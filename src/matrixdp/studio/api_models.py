"""The JSON that the API takes and gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr

from matrixdp.cli.actions.output import replace_nonfinite
from matrixdp.ledger import Allowance, Charge
from matrixdp.ledger.events import event_to_json
from matrixdp.studio.datasets import Dataset
from matrixdp.studio.requests import Request
from matrixdp.studio.roles import Viewer

if TYPE_CHECKING:
    from matrixdp.studio.error_tables import ErrorTable

Options = dict[str, StrictStr | StrictInt | StrictFloat | None]


class _Given(BaseModel):
    """JSON that a client sends; unknown names are refused, and so are NaN and infinities."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class NewDataset(_Given):
    """A data set to register."""

    name: str
    table: str
    epsilon: float
    delta: float
    neighbours: str = "replace"
    unit: str = Field("record", description="record, person:COLUMN, edge or node")


class NewAllowance(_Given):
    """An allowance to set apart: an epsilon, or a share such as 1/4."""

    name: str
    epsilon: float | None = None
    share: str | None = None


class NewSchema(_Given):
    """The text of a schema."""

    toml: str


class NewRequest(_Given):
    """A release to ask for."""

    dataset: str
    table: str
    release: Options = Field(
        description="The options of matrixdp release, with underscores: query, epsilon, delta, columns, by, ..."
    )
    purpose: str
    form_id: str = Field(description="Any text; the same text from the same person is the same request.")


class NewForecast(_Given):
    """A release to forecast."""

    dataset: str
    table: str
    release: Options


class Refusal(_Given):
    """Why a request is refused."""

    reason: str


class Person(BaseModel):
    """Whose token it is."""

    name: str
    roles: list[str]

    @classmethod
    def of(cls, viewer: Viewer) -> Person:
        """The person who sent a request."""
        return cls(name=viewer.name, roles=sorted(role.value for role in viewer.roles))


class AllowanceState(BaseModel):
    """An allowance, and what it has left."""

    name: str
    epsilon: float
    epsilon_left: float
    returned: bool

    @classmethod
    def of(cls, allowance: Allowance) -> AllowanceState:
        """An allowance of the ledger."""
        left = allowance.left.epsilon
        return cls(name=allowance.name, epsilon=allowance.epsilon, epsilon_left=left, returned=allowance.returned)


class DatasetState(BaseModel):
    """A data set: its total, what is spent and left, its allowances and tables."""

    name: str
    epsilon: float
    delta: float
    neighbours: str
    unit: str
    epsilon_spent: float
    epsilon_left: float
    mu_squared: float
    mu_squared_spent: float
    charges: int
    unfinished: int
    allowances: list[AllowanceState]
    tables: list[str]

    @classmethod
    def of(cls, dataset: Dataset) -> DatasetState:
        """A data set of the ledger."""
        summary = dataset.summary
        registration = summary.registration
        return cls(
            name=dataset.name,
            epsilon=registration.privacy.epsilon,
            delta=registration.privacy.delta,
            neighbours=str(registration.neighbours),
            unit=str(registration.unit),
            epsilon_spent=summary.spent_epsilon,
            epsilon_left=summary.left.epsilon,
            mu_squared=summary.total_mu**2,
            mu_squared_spent=summary.spent_mu**2,
            charges=summary.counts.charges,
            unfinished=summary.counts.unfinished,
            allowances=[AllowanceState.of(allowance) for allowance in summary.allowances],
            tables=list(dataset.tables),
        )


class ChargeState(BaseModel):
    """A charge to a data set."""

    entry: int
    time: str
    actor: str | None
    purpose: str | None
    allowance: str | None
    event: dict[str, Any]
    description: dict[str, Any]
    request: str | None
    released: bool

    @classmethod
    def of(cls, charge: Charge) -> ChargeState:
        """A charge of the ledger."""
        return cls(
            entry=charge.entry,
            time=charge.time,
            actor=charge.actor,
            purpose=charge.purpose,
            allowance=charge.allowance,
            event=event_to_json(charge.event),
            description=dict(charge.description),
            request=charge.request,
            released=charge.released,
        )


class RequestState(BaseModel):
    """A request for a release, and where it is on its way."""

    id: str
    asker: str
    dataset: str
    table: str
    release: dict[str, Any]
    purpose: str
    status: str
    asked: str
    decided: str | None
    decided_by: str | None
    finished: str | None
    progress: float | None
    message: str | None = Field(description="Why it was refused or failed; the reason of a failure is for curators.")

    @classmethod
    def of(cls, request: Request, viewer: Viewer) -> RequestState:
        """A request, as `viewer` may see it."""
        return cls(
            id=request.id,
            asker=request.asker,
            dataset=request.dataset,
            table=request.table,
            release=request.spec.to_mapping(),
            purpose=request.purpose,
            status=request.status.value,
            asked=request.asked,
            decided=request.decided,
            decided_by=request.decided_by,
            finished=request.finished,
            progress=request.progress,
            message=request.explain(viewer),
        )


class Column(BaseModel):
    """A column of a table; its type is unknown for CSV."""

    name: str
    type: str | None
    nullable: bool


class SchemaText(BaseModel):
    """The schema of a table; null if there is none yet."""

    toml: str | None


class ForecastTable(BaseModel):
    """Predicted standard deviations of the noise in a table of answers; null where noise would hide an answer."""

    title: str
    rows: list[str]
    columns: list[str]
    std: list[list[float | None]]
    note: str

    @classmethod
    def of(cls, table: ErrorTable) -> ForecastTable:
        """A table of a forecast."""
        std = replace_nonfinite(table.std.tolist())
        return cls(title=table.title, rows=list(table.rows), columns=list(table.columns), std=std, note=table.note)


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
