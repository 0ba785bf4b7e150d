"""Who may call which route: one table, checked in one place (`authorise` in `security`).

A route that is not in the table is refused for everybody; a test compares the table with the routes of the app.
"""

from dataclasses import dataclass
from enum import Enum


class Role(Enum):
    """What a person may do."""

    CURATOR = "curator"
    ANALYST = "analyst"


class Access(Enum):
    """Who may call a route."""

    PUBLIC = "anybody"
    VIEWER = "anybody who is signed in"
    ANALYST = "analysts"
    CURATOR = "curators"


@dataclass(frozen=True)
class Viewer:
    """The person who sent a request, as their token names them."""

    name: str
    roles: frozenset[Role]
    groups: tuple[str, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """The names under which the person may pay from an allowance: their own, and those of their groups."""
        return frozenset((self.name, *self.groups))

    @property
    def is_curator(self) -> bool:
        """Whether the person has the role of a curator."""
        return Role.CURATOR in self.roles

    @property
    def is_analyst(self) -> bool:
        """Whether the person has the role of an analyst."""
        return Role.ANALYST in self.roles


# "METHOD path" as the route declares it. Pages are called with a cookie, addresses below /api with a bearer token.
_ON_BOTH = {  # as a page, and at the same address below /api
    "GET /datasets": Access.VIEWER,
    "GET /datasets/{dataset}": Access.VIEWER,
    "POST /datasets": Access.CURATOR,
    "POST /datasets/{dataset}/allowances": Access.CURATOR,
    "POST /datasets/{dataset}/allowances/{allowance}/return": Access.CURATOR,
    "GET /requests": Access.VIEWER,
    "POST /requests": Access.ANALYST,
    "GET /requests/{request_id}": Access.VIEWER,
    "POST /requests/{request_id}/approve": Access.CURATOR,
    "POST /requests/{request_id}/refuse": Access.CURATOR,
    "GET /tables": Access.CURATOR,
    "GET /tables/{table}/schema": Access.CURATOR,
    "GET /results": Access.VIEWER,
    "GET /results/{request_id}": Access.VIEWER,
    "GET /results/{request_id}/files/{name}": Access.VIEWER,
}
ROUTES: dict[str, Access] = {
    **_ON_BOTH,
    **{name.replace(" ", " /api", 1): access for name, access in _ON_BOTH.items()},
    "GET /healthz": Access.PUBLIC,
    "GET /readyz": Access.PUBLIC,
    "GET /enter": Access.PUBLIC,
    "POST /enter": Access.PUBLIC,
    "POST /leave": Access.VIEWER,
    "GET /": Access.VIEWER,
    # dataset_page.py
    "POST /datasets/{dataset}/remove": Access.CURATOR,
    "GET /people": Access.CURATOR,
    "POST /people": Access.CURATOR,
    "POST /people/{token_id}/revoke": Access.CURATOR,
    # design_page.py
    "GET /design": Access.VIEWER,
    "POST /design/{part}": Access.VIEWER,
    # request_page.py
    "GET /requests/{request_id}/progress": Access.VIEWER,
    # schema_page.py
    "POST /tables/{table}/schema": Access.CURATOR,
    "POST /tables/{table}/schema/check": Access.CURATOR,
    "GET /tables/{table}/schema.toml": Access.CURATOR,
    # result_page.py
    "GET /results/{request_id}/report": Access.VIEWER,
    "GET /results/{request_id}/explore": Access.VIEWER,
    "GET /datasets/{dataset}/streams/{name}": Access.VIEWER,
    "GET /datasets/{dataset}/streams/{name}/file": Access.VIEWER,
    "GET /results/{request_id}/synthetic": Access.VIEWER,
    # api.py
    "GET /api/docs": Access.VIEWER,
    "GET /api/openapi.json": Access.VIEWER,
    "GET /api/metrics": Access.VIEWER,
    "GET /api/me": Access.VIEWER,
    "DELETE /api/datasets/{dataset}": Access.CURATOR,
    "GET /api/datasets/{dataset}/history": Access.VIEWER,
    "GET /api/datasets/{dataset}/tables/{table}/schema": Access.VIEWER,
    "GET /api/tables/{table}": Access.CURATOR,
    "PUT /api/tables/{table}/schema": Access.CURATOR,
    "POST /api/forecast": Access.VIEWER,
}


_ROLES = {Access.VIEWER: {*Role}, Access.ANALYST: {Role.ANALYST}, Access.CURATOR: {Role.CURATOR}}


def permits(access: Access, viewer: Viewer | None) -> bool:
    """Whether `viewer`, None for somebody who is not signed in, may call a route with this access."""
    return access is Access.PUBLIC or (viewer is not None and not _ROLES[access].isdisjoint(viewer.roles))
