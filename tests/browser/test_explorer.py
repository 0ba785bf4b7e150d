"""The explorer of results in a real browser."""

import csv
import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browser.checks import HeldRequests, check_page
from browser.conftest import RunningSite
from matrixdp.studio.worker import release_request
from studio_site import ANALYST, CURATOR

PURPOSE = "<script>window.hacked=1</script> \"'& עמוד אחד"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with RunningSite(tmp_path_factory.mktemp("studio"), epsilon=60.0) as site:
        site.clear = release(site, "a", epsilon=30.0, by="ward")
        site.noisy = release(site, "b", epsilon=0.05)
        yield site


def release(site, form_id, **changes):
    """The address of a finished release of everything."""
    options = {"query": "everything", "columns": None, "method": None, **changes}
    request = site.ask(form_id=form_id, purpose=PURPOSE, **options)
    site.studio.requests.approve(CURATOR, request.id)
    release_request(site.settings, request.id)
    return f"/results/{request.id}"


def charges(site):
    return len(site.studio.datasets.history("clinic"))


def test_questions_are_asked_by_changing_a_form_and_cost_nothing(open_page, site):
    before = charges(site)
    page = open_page(ANALYST)
    page.goto(site.clear)
    expect(page.get_by_role("status")).to_have_text("Means by ward")
    page.get_by_role("link", name="Means", exact=True).click()
    expect(page.get_by_role("status")).to_have_text("Means")
    page.get_by_role("link", name="Means by group").click()
    expect(page.get_by_role("status")).to_have_text("Means by ward")
    expect(page.get_by_role("row", name="north")).to_be_visible()
    page.get_by_role("link", name="Regression").click()
    page.get_by_label("Explain", exact=True).select_option("bmi")
    expect(page.get_by_role("status")).to_have_text("Regression of bmi")
    page.get_by_label("Only ward").select_option("south")
    expect(page.get_by_role("status")).to_have_text("Regression of bmi, ward south")
    expect(page.locator("#explorer figure svg")).to_have_count(1)
    page.go_back()
    expect(page.get_by_role("status")).to_have_text("Regression of bmi")
    page.go_back()  # also before the page is ready
    expect(page.get_by_role("status")).to_have_text("Regression of age")
    page.wait_for_load_state()
    page.reload()
    expect(page.get_by_role("status")).to_have_text("Regression of age")
    expect(page.get_by_text("costs no privacy").first).to_be_visible()
    assert charges(site) == before


def test_of_two_quick_questions_the_later_is_answered(open_page, site):
    page = open_page(ANALYST)
    page.goto(site.clear)
    held = HeldRequests(page, "**/explore?kind=*")
    for name, number in (("Means by group", 1), ("Correlations", 2)):
        page.get_by_role("link", name=name).click()
        held.wait_for(number)
    held.let_go(aborted=True)  # the page does not wait for the first answer any more
    held.let_go()
    expect(page.get_by_role("status")).to_have_text("Correlation")
    expect(page.locator("#kind-correlation")).to_have_attribute("aria-current", "true")
    assert page.url.endswith("kind=correlation")


def test_an_address_can_be_passed_on(open_page, site):
    page = open_page(ANALYST)
    page.goto(f"{site.clear}/explore?kind=correlation&group.0=north")
    expect(page.get_by_role("status")).to_have_text("Correlation, ward north")


def test_answers_and_files_can_be_downloaded(open_page, site):
    page = open_page(ANALYST)
    page.goto(f"{site.clear}/explore?kind=means_by&by=ward")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download this answer as CSV").click()
    rows = list(csv.DictReader(download.value.path().read_text().splitlines()))
    assert {row["row"] for row in rows} == {"north", "south"}
    with page.expect_download() as download:
        page.get_by_role("link", name="release.json").click()
    assert json.loads(Path(download.value.path()).read_text())["format"] == "matrixdp release 1"


def test_hidden_answers_have_intervals(open_page, site):
    page = open_page(ANALYST)
    page.goto(f"{site.noisy}/explore?kind=correlation")
    expect(page.locator("td.weak .bar").first).to_have_text("[-1, 1]")
    expect(page.get_by_text("[low, high]: the 95% interval")).to_be_visible()
    check_page(page)


def test_the_report_opens_and_runs_no_script(open_page, site):
    page = open_page(ANALYST)
    page.goto(site.clear)
    page.get_by_role("link", name="Read the report").click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert page.evaluate("window.hacked") is None


def test_every_kind_of_answer_is_accessible_and_fits(open_page, site):
    page = open_page(ANALYST, width=400)
    page.goto("/results")
    expect(page.get_by_text(PURPOSE).first).to_be_visible()
    check_page(page)
    for kind in ("means_by", "correlation", "regression"):
        page.goto(f"{site.clear}/explore?kind={kind}")
        check_page(page)


def test_the_explorer_works_with_the_keyboard_alone(open_page, site):
    page = open_page(ANALYST)
    page.goto(site.clear)
    page.get_by_role("link", name="Regression").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("Regression of age")
    target = page.get_by_label("Explain", exact=True)
    target.focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("status")).to_have_text("Regression of bmi")
    expect(target).to_be_focused()  # what is replaced keeps the focus


def test_the_checks_of_pages_can_fail(open_page, site):
    page = open_page(ANALYST, width=400)
    for change, problem in (
        ("document.body.append(document.createElement('textarea'))", "label"),
        ("document.querySelector('main').style.minWidth = '500px'", "sideways"),
        ("window.hacked = 1", "script"),
    ):
        page.goto("/results")
        page.evaluate(change)
        with pytest.raises(AssertionError, match=problem):
            check_page(page)
