"""Every page, wide and narrow, light and dark: accessible, no wider than the window, readable in dark mode."""

import pytest

from browser.checks import check_page
from browser.conftest import RunningSite
from matrixdp.studio.roles import ROUTES
from matrixdp.studio.worker import release_request
from studio_site import BOTH, CURATOR, TABLE

# Not pages of their own: parts of pages, files, the report, which is a document by itself, and redirections.
PARTS = (
    "/progress",
    "/forecast",
    "/report",
    "/files/{name}",
    "/schema.toml",
    "/synthetic",
    "/streams/{name}",
    "/file",
)
PAGES = [
    path
    for method, path in (route.split(" ", 1) for route in ROUTES)
    if method == "GET"
    and path not in ("/", "/healthz", "/readyz")
    and (path == "/api/docs" or not path.startswith("/api/"))
    and not path.endswith(PARTS)
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with RunningSite(tmp_path_factory.mktemp("studio"), epsilon=20.0) as site:
        site.ask(form_id="waits", purpose="waits for a curator")
        request = site.ask(form_id="released")
        site.studio.requests.approve(CURATOR, request.id)
        release_request(site.settings, request.id)
        site.names = {"dataset": "clinic", "table": TABLE, "request_id": request.id}
        yield site


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (400, True)])
def test_every_page_is_accessible_and_fits(open_page, site, width, dark):
    page = open_page(BOTH, width=width, dark=dark)
    for path in PAGES:
        page.goto(path.format(**site.names))
        check_page(page)
        red, green, blue = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
        assert (red + green + blue < 150) == dark, path


def test_an_error_is_a_page_as_well(open_page, site):
    page = open_page(BOTH, width=400)
    assert page.goto("/requests/none").status == 404
    check_page(page)
