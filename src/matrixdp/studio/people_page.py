"""People: who may sign in, with which roles and groups; inviting and revoking."""

from collections.abc import Mapping

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from matrixdp.domain.fields import read_number
from matrixdp.errors import MatrixDPError, ParameterError
from matrixdp.studio.refusals import place_error
from matrixdp.studio.rendering import CurrentVisit, Visit
from matrixdp.studio.roles import Role
from matrixdp.studio.security import SentForm, split_names
from matrixdp.studio.sign_in import create_token, find_groups, list_people, revoke_token

router = APIRouter()
_INVITATION = {"name": "", "groups": "", "days": "", "roles": ""}


@router.get("/people")
def show_people(visit: CurrentVisit) -> Response:
    """Everybody, with their tokens, and a form to invite somebody."""
    return _show(visit, _INVITATION)


@router.post("/people")
def invite(visit: CurrentVisit, sent: SentForm) -> Response:
    """Make a token for a person, and show it once."""
    form = {name: str(sent.get(name, "")).strip() for name in _INVITATION}
    roles = [Role(value) for value in sent.getlist("roles") if value in {role.value for role in Role}]
    form["roles"] = ",".join(role.value for role in roles)
    groups = split_names(form["groups"])
    try:
        days = read_number(form["days"]) if form["days"] else None
        if isinstance(days, str):
            raise ParameterError("days must be a number, or empty for no end.", parameter="days")
        state = visit.studio.state
        secret, _ = create_token(state, form["name"], roles, days, groups or find_groups(state, form["name"]))
    except MatrixDPError as error:
        return _show(visit, form, error)
    return _show(visit, _INVITATION, invited=form["name"], secret=secret)


@router.post("/people/{token_id}/revoke")
def revoke(visit: CurrentVisit, token_id: str) -> Response:
    """Revoke a token, and sign out the browsers that signed in with it."""
    revoke_token(visit.studio.state, token_id)
    return RedirectResponse("/people", 303)


def _show(
    visit: Visit, form: Mapping[str, str], error: MatrixDPError | None = None, *, invited: str = "", secret: str = ""
) -> Response:
    return visit.render(
        "people.html",
        mistake=error,
        people=list_people(visit.studio.state),
        roles=[role.value for role in Role],
        values=form,
        errors=place_error(error, _INVITATION),
        invited=invited,
        secret=secret,
        address=visit.studio.settings.addresses[0],
    )
