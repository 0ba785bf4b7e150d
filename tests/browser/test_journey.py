"""The whole way of a curator and an analyst in a real browser, and what people do to pages on the way."""

import csv
import json
import threading
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browser.checks import check_layout, check_page
from browser.conftest import RunningSite
from matrixdp.studio import worker
from studio_site import ANALYST, CURATOR, TABLE

HOSTILE = ("<script>window.hacked=1</script>", '"><img src=x onerror="window.hacked=1">', "{{7*7}}", "x" * 200, "عمر")
PURPOSE = "<script>window.hacked=1</script> \"'&{{7*7}} عمر المريض " + "long" * 60


class Gate:
    """Holds releases after the charge could be made and before it is, while it is closed."""

    def __init__(self):
        self._open, self._write = threading.Event(), worker.write_release
        self._open.set()

    def __enter__(self):
        self._open.clear()

    def __exit__(self, *_):
        self._open.set()

    def write_release(self, *arguments, **options):
        assert self._open.wait(120)
        return self._write(*arguments, **options)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        gate = Gate()
        patch.setattr(worker, "write_release", gate.write_release)
        with RunningSite(tmp_path_factory.mktemp("studio"), epsilon=20.0) as site:
            site.gate = gate
            lines = (site.settings.folder / TABLE).read_text()
            (site.settings.folder / "visits.csv").write_text(lines)
            rows = "\n".join(",".join(str(i % 7 + j) for j in range(len(HOSTILE))) for i in range(50))
            names = ",".join('"' + name.replace('"', '""') + '"' for name in HOSTILE)
            (site.settings.folder / "hostile.csv").write_text(f"{names}\n{rows}\n")
            yield site


def charges(site, dataset="clinic"):
    return len(site.studio.datasets.history(dataset))


def wait_for_release(page):
    """Wait until the page of a request, which asks by itself, links to the result."""
    link = page.get_by_role("link", name="Read the result")
    link.wait_for()
    return link


def test_from_a_table_to_a_downloaded_answer(open_page, site):
    curator, analyst = open_page(CURATOR), open_page(ANALYST)

    # The curator writes the schema of a table, and registers it with a budget.
    curator.goto("/tables/visits.csv/schema")
    for number, (lower, upper) in enumerate(((0, 100), (10, 60))):
        column = curator.locator(f"#column-{number}")
        column.get_by_label("Type").select_option("number")
        column.get_by_label("Lower bound").fill(str(lower))
        column.get_by_label("Upper bound").fill(str(upper))
    curator.locator("#column-2").get_by_label("Type").select_option("category")
    curator.locator("#column-2").get_by_label("Levels, one to a line").fill("north\nsouth")
    curator.get_by_label("Number of records").fill("200")
    curator.get_by_role("button", name="Save schema").click()
    expect(curator.get_by_text("Saved.")).to_be_visible()
    curator.goto("/datasets")
    curator.get_by_text("Register a data set").click()
    curator.get_by_label("Table", exact=True).select_option("visits.csv")
    curator.get_by_label("Name of the data set").fill("visits")
    curator.get_by_label("Total epsilon").fill("8")
    curator.get_by_label("Total delta").fill("1e-6")
    curator.get_by_label("Can a person have several rows?").select_option("record")
    curator.get_by_role("button", name="Register").click()
    expect(curator.get_by_role("heading", name="visits").first).to_be_visible()

    # The analyst designs a release by its forecast, and asks for it.
    analyst.goto("/design?dataset=visits&table=visits.csv")
    analyst.get_by_label("What do you want to know?").select_option("everything")
    analyst.locator("#epsilon").fill("4")
    expect(analyst.locator("#headline")).to_contain_text("±")
    analyst.get_by_label("Purpose").fill("Do the wards differ?")
    analyst.get_by_role("button", name="Ask for this release").click()
    expect(analyst.get_by_text("Do the wards differ?")).to_be_visible()
    assert charges(site, "visits") == 0

    # The curator sees what it would cost, and approves it.
    curator.goto("/requests")
    curator.get_by_role("table", name="wait").get_by_role("link").click()
    expect(curator.get_by_role("heading", name="What would be spent")).to_be_visible()
    expect(curator.get_by_text("Do the wards differ?")).to_be_visible()
    check_page(curator)
    curator.get_by_role("button", name="Approve and release").click()
    wait_for_release(curator)
    assert charges(site, "visits") == 1

    # The analyst reads and explores the result, and takes an answer with her.
    analyst.reload()
    wait_for_release(analyst).click()
    analyst.get_by_role("link", name="Means by group").click()
    expect(analyst.get_by_role("status")).to_have_text("Means by ward")
    with analyst.expect_download() as download:
        analyst.get_by_role("button", name="Download this answer as CSV").click()
    rows = list(csv.DictReader(Path(download.value.path()).read_text().splitlines()))
    assert {row["row"] for row in rows} == {"north", "south"}
    with analyst.expect_download() as download:
        analyst.get_by_role("link", name="release.json").click()
    assert json.loads(Path(download.value.path()).read_text())["format"] == "matrixdp release 1"
    assert charges(site, "visits") == 1


def test_a_double_click_asks_and_pays_once(open_page, site):
    analyst, curator = open_page(ANALYST), open_page(CURATOR)
    before, asked = charges(site), len(site.studio.requests.list_all(CURATOR))
    analyst.goto(f"/design?dataset=clinic&table={TABLE}")
    analyst.get_by_label("Purpose").fill("a double click")
    analyst.get_by_role("button", name="Ask for this release").dblclick()
    expect(analyst.get_by_text("a double click")).to_be_visible()
    requests = site.studio.requests.list_all(CURATOR)
    assert len(requests) == asked + 1
    curator.goto(f"/requests/{requests[0].id}")
    curator.get_by_role("button", name="Approve and release").dblclick()
    wait_for_release(curator)
    assert charges(site) == before + 1


def test_a_form_that_is_sent_again_after_going_back_is_one_request(open_page, site):
    analyst = open_page(ANALYST)
    asked = len(site.studio.requests.list_all(CURATOR))
    analyst.goto(f"/design?dataset=clinic&table={TABLE}")
    for _ in range(2):
        analyst.get_by_label("Purpose").fill("back and again")
        analyst.get_by_role("button", name="Ask for this release").click()
        expect(analyst.get_by_text("back and again")).to_be_visible()
        analyst.wait_for_url("**/requests/*")
        analyst.go_back()
    assert len(site.studio.requests.list_all(CURATOR)) == asked + 1
    analyst.goto(f"/design?dataset=clinic&table={TABLE}")  # a new visit is a new form
    analyst.get_by_label("Purpose").fill("back and again")
    analyst.get_by_role("button", name="Ask for this release").click()
    analyst.wait_for_url("**/requests/*")
    assert len(site.studio.requests.list_all(CURATOR)) == asked + 2


def test_two_tabs_and_the_back_button_pay_once(open_page, site):
    request = site.ask(form_id="tabs", purpose="two tabs")
    before = charges(site)
    first = open_page(CURATOR)
    second = first.context.new_page()
    for page in (first, second):
        page.goto(f"/requests/{request.id}")
    first.get_by_role("button", name="Approve and release").click()
    wait_for_release(first)
    second.get_by_role("button", name="Approve and release").click()  # an old page
    wait_for_release(second)
    first.go_back()
    button = first.get_by_role("button", name="Approve and release")
    if button.count():
        button.click()
    wait_for_release(first)
    assert charges(site) == before + 1


def test_a_reload_in_the_middle_of_a_release_loses_nothing(open_page, site):
    request = site.ask(form_id="reload", purpose="a reload")
    before = charges(site)
    curator = open_page(CURATOR)
    with site.gate:
        curator.goto(f"/requests/{request.id}")
        curator.get_by_role("button", name="Approve and release").click()
        expect(curator.locator("[aria-current='step']")).to_have_text("Being released")
        for _ in range(3):
            curator.reload()
        expect(curator.locator("[aria-current='step']")).to_have_text("Being released")
        check_page(curator)
        assert charges(site) == before
    wait_for_release(curator)
    assert charges(site) == before + 1


def tab_to(page, target, most=80):
    """Press the tabulator until an element has the focus."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if target.evaluate("(one) => one === document.activeElement"):
            return
    raise AssertionError("the tabulator does not reach it")


def test_the_keyboard_alone_is_enough(open_page, site):
    analyst, curator = open_page(ANALYST), open_page(CURATOR)
    analyst.goto(f"/design?dataset=clinic&table={TABLE}")
    tab_to(analyst, analyst.locator("#epsilon-slider"))
    before = analyst.locator("#epsilon").input_value()
    analyst.keyboard.press("ArrowLeft")
    assert float(analyst.locator("#epsilon").input_value()) < float(before)
    tab_to(analyst, analyst.get_by_label("Purpose"))
    analyst.keyboard.type("by keyboard")
    tab_to(analyst, analyst.get_by_role("button", name="Ask for this release"))
    analyst.keyboard.press("Enter")
    expect(analyst.get_by_text("by keyboard")).to_be_visible()
    curator.goto(analyst.url)
    tab_to(curator, curator.get_by_role("button", name="Approve and release"))
    curator.keyboard.press("Space")
    wait_for_release(curator)


def test_a_refusal_reaches_the_analyst(open_page, site):
    request = site.ask(form_id="refused", purpose="too much")
    curator, analyst = open_page(CURATOR), open_page(ANALYST)
    curator.goto(f"/requests/{request.id}")
    curator.get_by_label("Reason to refuse it").fill("<b>Ask for less</b>")
    curator.get_by_role("button", name="Refuse").click()
    expect(curator.get_by_text("<b>Ask for less</b>")).to_be_visible()
    analyst.goto(f"/requests/{request.id}")
    expect(analyst.get_by_text("<b>Ask for less</b>")).to_be_visible()


def test_hostile_names_and_purposes_are_texts_on_every_page(open_page, site):
    curator = open_page(CURATOR)
    curator.goto("/tables/hostile.csv/schema")
    for number in range(len(HOSTILE)):
        column = curator.locator(f"#column-{number}")
        column.get_by_label("Type").select_option("number")
        column.get_by_label("Lower bound").fill("0")
        column.get_by_label("Upper bound").fill("20")
    curator.get_by_label("Number of records").fill("50")
    curator.get_by_role("button", name="Save schema").click()
    expect(curator.get_by_text("Saved.")).to_be_visible()
    name = '<img src=x onerror="window.hacked=1">'
    site.studio.datasets.register(CURATOR, name, "hostile.csv", epsilon=9.0, delta=1e-6)
    analyst = open_page(ANALYST, width=400)
    analyst.goto("/design")
    analyst.get_by_label("Table", exact=True).select_option(label=f"hostile.csv (data set {name})")
    expect(analyst.locator("#column0")).to_be_visible()
    analyst.get_by_label("What do you want to know?").select_option("everything")
    expect(analyst.locator("#headline")).to_contain_text("±")
    analyst.get_by_label("Purpose").fill(PURPOSE)
    check_layout(analyst)
    analyst.get_by_role("button", name="Ask for this release").click()
    expect(analyst.get_by_text(PURPOSE)).to_be_visible()
    check_layout(analyst)
    curator.goto("/requests")
    check_layout(curator)
    curator.goto(analyst.url)
    check_layout(curator)
    curator.get_by_role("button", name="Approve and release").click()
    wait_for_release(curator).click()
    for kind in ("means", "correlation", "regression"):
        curator.locator(f"#kind-{kind}").click()
        expect(curator.locator(f"#kind-{kind}")).to_have_attribute("aria-current", "true")
        check_layout(curator)
    curator.get_by_role("link", name="Read the report").click()
    assert curator.evaluate("window.hacked") is None
    for address in ("/datasets", "/results"):
        analyst.goto(address)
        check_layout(analyst)
