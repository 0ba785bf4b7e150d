"""One table says who may call which route, and it is complete."""

import re

import pytest
from fastapi.routing import APIRoute
from starlette.routing import Mount

from matrixdp.studio.app import PAGES, create_app, router
from matrixdp.studio.roles import ROUTES, Access, Role, Viewer, permits
from studio_site import ANALYST, CURATOR, TABLE, Site


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return Site(tmp_path_factory.mktemp("site"))


def list_routes(app):
    """Those of the routers, and any that were added to the app itself; files that anybody may read are no routes."""
    own = [route for route in app.routes if isinstance(route, APIRoute)]
    mounted = [route.path for route in app.routes if isinstance(route, Mount)]
    assert mounted == ["/static"]
    for route in [*own, *router.routes, *(route for module in PAGES for route in module.router.routes)]:
        yield from (f"{method} {route.path}" for method in route.methods)


def find_addresses(access):
    for name, found in ROUTES.items():
        if found is access:
            method, path = name.split(" ")
            path = path.replace("{dataset}", "clinic").replace("{table}", TABLE)
            yield method, re.sub(r"{[^}]*}", "x", path)


def test_every_route_is_in_the_table_and_the_table_has_no_other(site):
    assert set(list_routes(site.app)) == set(ROUTES)


def test_a_route_that_is_not_in_the_table_is_refused(site):
    app = create_app(site.settings)
    app.get("/forgotten")(lambda: "secret")
    forgotten = Site.__new__(Site)
    forgotten.app, forgotten.studio, forgotten.settings = app, app.state.studio, site.settings
    answer = forgotten.browser().get("/forgotten")
    assert answer.status_code == 403
    assert "secret" not in answer.text


def test_whatever_curators_may_do_is_refused_to_an_analyst_and_to_strangers(site):
    page, api = site.browser(ANALYST), site.api(ANALYST)
    stranger = site.browser(None)
    found = list(find_addresses(Access.CURATOR))
    assert len(found) > 10
    for method, path in found:
        client = api if path.startswith("/api/") else page
        assert client.request(method, path).status_code == 403, (method, path)
        answer = stranger.request(method, path, follow_redirects=False)
        assert (answer.status_code, answer.headers.get("location")) in ((401, None), (303, "/enter")), (method, path)


def test_a_curator_does_not_ask(site):
    page, api = site.browser(CURATOR), site.api(CURATOR)
    for method, path in find_addresses(Access.ANALYST):
        client = api if path.startswith("/api/") else page
        assert client.request(method, path, json={}).status_code == 403, (method, path)


def test_strangers_see_nothing(site):
    stranger = site.browser(None)
    for access in (Access.VIEWER, Access.ANALYST):
        for method, path in find_addresses(access):
            answer = stranger.request(method, path, json={}, follow_redirects=False)
            assert answer.status_code in (303, 401), (method, path)
            assert "clinic" not in answer.text


def test_somebody_without_roles_may_do_nothing():
    nobody = Viewer("nobody", frozenset())
    assert [access for access in Access if permits(access, nobody)] == [Access.PUBLIC]
    assert {access for access in Access if permits(access, Viewer("all", frozenset(Role)))} == set(Access)
