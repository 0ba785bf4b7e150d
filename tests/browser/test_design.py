"""The design page in a real browser: the forecast follows the controls, and what was chosen stays."""

import pytest
from playwright.sync_api import expect

from browser.conftest import RunningSite
from studio_site import ANALYST


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with RunningSite(tmp_path_factory.mktemp("design")) as running:
        yield running


def read_error(page):
    expect(page.locator("#headline")).to_contain_text("±")
    return float(page.locator("#headline").inner_text().removeprefix("± "))


def test_the_forecast_follows_the_slider_and_the_keyboard(open_page, site):
    page = open_page(ANALYST)
    page.goto("/design?records=5000")
    before = read_error(page)
    page.locator("#epsilon-slider").focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#epsilon")).to_have_value("2.15")
    expect(page.locator("#headline")).not_to_contain_text(f"{before:g}")
    assert read_error(page) < before
    expect(page.locator("#epsilon-slider")).to_be_focused()
    expect(page.locator("#curve canvas")).to_be_visible()


def test_numbers_stay_open_and_follow(open_page, site):
    page = open_page(ANALYST)
    page.goto("/design?query=correlation&column=0&column=1&method=plain")
    page.get_by_text("The same as numbers").click()
    cell = page.locator("#numbers-chart1 tbody tr").first.locator("td").nth(1)
    before = cell.inner_text()
    page.locator("#epsilon").fill("3")
    expect(cell).not_to_have_text(before)
    expect(page.locator("#numbers-chart1 thead")).to_contain_text("bmi")


def test_an_error_gives_an_epsilon(open_page, site):
    page = open_page(ANALYST)
    page.goto("/design?query=correlation&column=0&column=1&method=plain&records=5000")
    page.get_by_label("I need ±").fill("0.05")
    page.get_by_role("button", name="Find epsilon").click()
    page.locator("#needed").get_by_role("button").click()
    expect(page.locator("#headline")).to_contain_text("0.0")
    assert read_error(page) <= 0.05


def test_the_address_keeps_the_design_and_mistakes_are_beside_their_field(open_page, site):
    page = open_page(ANALYST)
    page.goto("/design")
    page.get_by_label("What to release").select_option("regression")
    page.get_by_label("Explain").select_option("bmi")
    page.locator("#epsilon").fill("much")
    expect(page.locator("#epsilon-error")).to_contain_text("must be a number")
    expect(page.locator("#epsilon")).to_have_attribute("aria-invalid", "true")
    page.locator("#epsilon").fill("0.7")
    expect(page.locator("#epsilon-error")).to_be_empty()
    page.reload()
    expect(page.get_by_label("What to release")).to_have_value("regression")
    expect(page.locator("#epsilon")).to_have_value("0.7")
    expect(page.get_by_text("Regression of bmi")).to_be_visible()


def test_an_adaptive_fit_fills_in_its_error_when_it_is_simulated(open_page, site):
    page = open_page(ANALYST)
    page.goto("/design?query=correlation&column=0&column=1&method=adaptive")
    expect(page.get_by_text("Hostile data")).to_be_visible()
    assert read_error(page) > 0
    expect(page.get_by_text("band: from friendly to hostile data")).to_be_visible()
