"""What a team does in a real browser: invite, divide a budget, ask again with other values, and print."""

import pytest
from playwright.sync_api import expect

from browser.checks import check_page, wait_until_settled
from browser.conftest import RunningSite
from matrixdp.studio.roles import Role, Viewer
from matrixdp.studio.worker import release_request
from studio_site import ANALYST, CURATOR, TABLE

EVE = Viewer("eve", frozenset({Role.ANALYST}))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with RunningSite(tmp_path_factory.mktemp("studio"), epsilon=20.0) as site:
        (site.settings.folder / "visits.csv").write_text("Patient-ID,stay\na,1\na,2\nb,3\n")
        yield site


def test_a_curator_sets_up_people_and_their_budget(open_page, site):
    page = open_page(CURATOR)
    page.goto("/datasets")
    page.get_by_text("Register a data set").click()
    page.get_by_label("Name of the data set").fill("visits")
    page.get_by_label("Total epsilon").fill("4")
    page.get_by_label("Table", exact=True).select_option("visits.csv")
    expect(page.get_by_label("Name of the data set")).to_have_value("visits")  # the form is kept
    page.get_by_label("Can a person have several rows?").select_option("person")
    page.get_by_label("Column that says whose a row is").select_option("Patient-ID")
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_text("(column Patient-ID)")).to_be_visible()

    page.goto("/people")
    page.get_by_label("Name").fill("eve")
    page.get_by_label("Groups").fill("cardiology")
    page.get_by_role("button", name="Make a token").click()
    token = page.locator("#token").text_content()
    check_page(page)

    page.goto("/datasets/clinic")
    page.get_by_text("Set an allowance apart").click()
    page.get_by_label("Who pays from it").fill("cardiology")
    page.get_by_label("or as a share").fill("1/4")
    page.get_by_role("button", name="Set apart").click()
    expect(page.get_by_role("row", name="cardiology")).to_be_visible()

    analyst = page.context.browser.new_context(base_url=site.url).new_page()
    analyst.goto("/enter")
    analyst.get_by_label("Token").fill(token)
    analyst.get_by_role("button", name="Sign in").click()
    analyst.goto(f"/design?dataset=clinic&table={TABLE}")
    expect(analyst.get_by_label("Charged to")).to_have_value("cardiology")
    analyst.context.close()

    page.get_by_text("Return the rest of cardiology").click()  # asks first
    expect(page.get_by_text("That cannot be undone")).to_be_visible()
    check_page(page)
    page.get_by_role("button", name="Return the rest").click()
    expect(page.get_by_role("cell", name="returned")).to_be_visible()


def test_asking_again_with_other_values_after_going_back_is_another_request(open_page, site):
    page = open_page(ANALYST)
    page.goto(f"/design?dataset=clinic&table={TABLE}")
    for epsilon in ("0,5", "0.7"):
        page.locator("#epsilon").fill(epsilon)
        page.get_by_label("Purpose").fill("back and other")
        page.get_by_role("button", name="Ask for this release").click()
        page.wait_for_url("**/requests/*")
        page.go_back()
        page.wait_for_url("**/design*")
    found = [one for one in site.studio.requests.list_all(ANALYST) if one.purpose == "back and other"]
    assert sorted(one.spec.epsilon for one in found) == [0.5, 0.7]


def test_a_refused_request_says_why_and_the_forecast_does_not_clear_it(open_page, site):
    page = open_page(ANALYST)
    page.goto(f"/design?dataset=clinic&table={TABLE}")
    page.locator("#epsilon").fill("")
    page.get_by_label("Purpose").fill("no epsilon")
    page.get_by_role("button", name="Ask for this release").click()
    expect(page.locator("#refusal")).to_contain_text("epsilon must be given")
    wait_until_settled(page)
    expect(page.locator("#refusal")).to_be_visible()
    page.locator("#epsilon").fill("90")
    page.get_by_role("button", name="Ask for this release").click()
    expect(page.locator("#refusal")).to_contain_text("this release needs")
    expect(page.locator("#refusal")).not_to_contain_text("matrixdp")
    assert not [one for one in site.studio.requests.list_all(ANALYST) if one.purpose == "no epsilon"]


def test_badges_follow_what_is_filled_in(open_page, site):
    page = open_page(CURATOR)
    page.goto(f"/tables/{TABLE}/schema")
    column = page.locator("#column-0")
    column.get_by_label("Upper bound").fill("120")
    expect(page.locator("#badges-0")).to_contain_text("0 to 120")
    page.goto("/tables/visits.csv/schema")
    expect(page.locator("#records-label")).to_have_text("Number of records")
    page.locator("[name='person.column']").select_option("Patient-ID")
    expect(page.locator("#records-label")).to_have_text("Number of people")


def test_no_predictor_is_not_all_of_them(open_page, site):
    request = site.ask(form_id="explore", query="everything", columns=None, method=None, epsilon=8.0)
    site.studio.requests.approve(CURATOR, request.id)
    release_request(site.settings, request.id)
    page = open_page(ANALYST, width=400)
    page.goto(f"/results/{request.id}/explore?kind=regression")
    for box in page.locator("input[name='on']").all():
        box.uncheck()
    expect(page.get_by_role("alert").filter(has_text="at least one column")).to_be_visible()
    assert page.locator("input[name='on']:checked").count() == 0
    check_page(page)
    page.emulate_media(media="print")
    page.goto(f"/results/{request.id}/explore?kind=correlation")
    assert page.evaluate("[...document.querySelectorAll('.scroll')].every((one) => one.scrollWidth <= one.clientWidth)")
    expect(page.locator(".numbers .bar").first).to_be_visible()  # error bars are printed, too
