"""The design page in a real browser: the forecast follows the controls, and what was chosen stays."""

import pytest
from playwright.sync_api import expect

from browser.checks import HeldRequests, wait_until_settled
from browser.conftest import RunningSite
from studio_site import ANALYST


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with RunningSite(tmp_path_factory.mktemp("design")) as running:
        yield running


def read_error(page):
    """The predicted error of the design that the form shows."""
    wait_until_settled(page)
    return float(page.locator("#headline").inner_text().removeprefix("± "))


def test_the_forecast_follows_the_slider_and_the_keyboard(open_page, site):
    page = open_page(ANALYST)
    page.goto("/design?records=5000")
    before = read_error(page)
    page.locator("#epsilon-slider").focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#epsilon")).to_have_value("2.15")
    assert read_error(page) < before
    expect(page.get_by_text("epsilon 2.15", exact=True)).to_be_visible()
    expect(page.locator("#epsilon-slider")).to_be_focused()
    expect(page.locator("#curve svg")).to_be_visible()


def test_predicted_errors_follow_the_form(open_page, site):
    page = open_page(ANALYST)
    page.goto("/design?query=correlation&columns=age&columns=bmi&method=plain&records=5000")
    wait_until_settled(page)
    cell = page.locator("#table1 ~ .scroll tbody tr").first.locator("td").nth(1)
    before = cell.inner_text()
    page.locator("#epsilon").fill("3")
    expect(cell).not_to_have_text(before)
    expect(page.locator("#table1 ~ .scroll thead")).to_contain_text("bmi")


def test_an_error_gives_an_epsilon(open_page, site):
    page = open_page(ANALYST)
    page.goto("/design?query=correlation&columns=age&columns=bmi&method=plain&records=5000")
    page.get_by_label("I need ±").fill("0.05")
    page.get_by_role("button", name="Find epsilon").click()
    page.locator("#needed").get_by_role("button").click()
    assert read_error(page) <= 0.05
    page.get_by_text("More options").click()
    page.locator("#delta").fill("1e-8")
    expect(page.locator("#needed")).to_be_empty()  # it was for another design
    page.get_by_label("I need ±").press("Enter")
    expect(page.locator("#needed")).to_contain_text("gives ±")


def test_the_address_keeps_the_design_and_mistakes_are_beside_their_field(open_page, site):
    page = open_page(ANALYST)
    page.goto("/design")
    page.get_by_label("What do you want to know?").select_option("regression")
    page.get_by_label("Explain").select_option("bmi")
    page.locator("#epsilon").fill("much")
    expect(page.locator("#epsilon-error")).to_contain_text("must be a number")
    expect(page.locator("#epsilon")).to_have_attribute("aria-invalid", "true")
    page.locator("#epsilon").fill("0.7")
    expect(page.locator("#epsilon-error")).to_be_empty()
    page.reload()
    expect(page.get_by_label("What do you want to know?")).to_have_value("regression")
    expect(page.locator("#epsilon")).to_have_value("0.7")
    expect(page.get_by_role("heading", name="Regression of bmi")).to_be_visible()


def test_an_adaptive_fit_fills_in_its_error_when_it_is_simulated(open_page, site):
    page = open_page(ANALYST)
    page.goto("/design?query=correlation&columns=age&columns=bmi&method=adaptive")
    assert read_error(page) > 0
    expect(page.get_by_text("Hard data", exact=True)).to_be_visible()
    expect(page.get_by_text("Dashed: a plain release")).to_be_visible()


def test_what_is_chosen_while_a_forecast_is_on_its_way_stays(open_page, site):
    page = open_page(ANALYST)
    page.goto("/design?query=moments&columns=age&columns=bmi")
    wait_until_settled(page)
    held = HeldRequests(page, "**/design/forecast")
    page.locator("#epsilon").fill("3")
    held.wait_for(1)
    page.get_by_label("Up", exact=True).select_option("age")
    page.get_by_label("Across", exact=True).select_option("bmi")
    held.let_go()
    expect(page.get_by_text("epsilon 3", exact=True)).to_be_visible()
    expect(page.get_by_label("Across", exact=True)).to_have_value("1")
    held.let_go()
    wait_until_settled(page)
    expect(page.get_by_label("Across", exact=True)).to_have_value("1")
    expect(page.get_by_label("Up", exact=True)).to_have_value("0")


def test_a_late_simulation_does_not_replace_a_newer_forecast(open_page, site):
    page = open_page(ANALYST)
    held = HeldRequests(page, "**/design/details")
    page.goto("/design?query=correlation&columns=age&columns=bmi&method=adaptive&epsilon=1.2")
    held.wait_for(1)
    page.locator("#epsilon").fill("0.5")
    expect(page.get_by_text("epsilon 0.5", exact=True)).to_be_visible()
    held.let_go(aborted=True)
    held.wait_for(1)
    expect(page.locator("#headline")).not_to_contain_text("±")
    held.let_go()
    assert read_error(page) > 0


def test_a_server_that_does_not_answer_is_noticed(open_page, site):
    page = open_page(ANALYST)
    page.goto("/design")
    wait_until_settled(page)
    page.route("**/design/forecast", lambda route: route.fulfill(status=403, body="<p role=alert>Try again.</p>"))
    page.locator("#epsilon").fill("3")
    expect(page.get_by_role("alert")).to_have_text("Try again. This page may be out of date.")
    page.unroute("**/design/forecast")
    page.locator("#epsilon").fill("2")
    expect(page.get_by_role("alert")).to_be_hidden()
