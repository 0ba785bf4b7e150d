"""The pages of data sets, designs and requests, through the app: what they show, refuse and escape."""

import html
import json
import re
import threading
import time

import pytest
from starlette.datastructures import QueryParams

from matrixdp.domain.schema_file import parse_schema
from matrixdp.studio import forecasts
from matrixdp.studio.design_page import DesignForm, write_address
from matrixdp.studio.refusals import NotFoundError
from matrixdp.studio.rendering import STATIC, STYLES
from matrixdp.studio.requests import ReleaseSpec, Status
from matrixdp.studio.roles import Role, Viewer
from studio_site import ANALYST, BOTH, CURATOR, SCHEMA, TABLE, Site

HOSTILE = '<img src=x onerror="alert(1)">'
EVIL = "\"'><script>alert(1)</script>{{7*7}}"
FORM = {"dataset": "clinic", "table": TABLE, "query": "everything", "epsilon": "1", "delta": "1e-6", "records": "200"}
ALL = ["age", "bmi", "ward"]


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def ask(client, **changes):
    form = {**FORM, "columns": ALL, "purpose": "a test", "form_id": "one", **changes}
    return client.post("/requests", data=form, follow_redirects=False)


def read_charts(page):
    """The pictures of a page by the names of their figures."""
    return dict(re.findall(r'<figure class="chart" id="([^"]*)">.*?(<svg.*?</svg>)', page, re.DOTALL))


class TestDatasets:
    def test_the_list_shows_budgets_and_the_form_to_curators_alone(self, site):
        page = site.browser(CURATOR).get("/datasets").text
        assert "epsilon 4 of 4" in page
        assert 'action="/datasets"' in page
        assert 'action="/datasets"' not in site.browser(ANALYST).get("/datasets").text

    def test_a_data_set_is_registered_once_however_often_the_form_is_sent(self, site):
        client = site.browser(CURATOR)
        form = {"dataset": "new", "table": TABLE, "epsilon": "2", "delta": "1e-7", "unit": "record"}
        for _ in range(2):
            done = client.post("/datasets", data=form, follow_redirects=False)
            assert (done.status_code, done.headers["location"]) == (303, "/datasets/new")
        assert site.studio.datasets.get("new").summary.registration.privacy.epsilon == 2

    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"epsilon": "much"}, "epsilon"),
            ({"epsilon": "-1"}, "epsilon"),
            ({"delta": "2"}, "delta"),
            ({"dataset": "a/b"}, "dataset"),
            ({"dataset": " "}, "dataset"),
            ({"unit": "planet"}, "unit"),
            ({"unit": ""}, "unit"),  # can a person have several rows?
            ({"unit": "person", "person": "Age"}, "person"),  # no column of the table
            ({"unit": "person", "person": "age"}, "person"),  # the schema has none
            ({"dataset": "clinic", "epsilon": "9"}, "form"),
        ],
    )
    def test_mistakes_are_beside_their_field_and_what_was_typed_stays(self, site, changes, field):
        form = {"dataset": "new", "table": TABLE, "epsilon": "2", "delta": "1e-7", "unit": "record", **changes}
        done = site.browser(CURATOR).post("/datasets", data=form)
        assert done.status_code >= 400
        assert f'id="{field}-error"' in done.text
        assert f'value="{form["delta"]}"' in done.text

    def test_allowances_are_set_apart_shown_and_returned(self, site):
        client = site.browser(CURATOR)
        form = {"allowance": "team", "share": "1/4", "payers": "ann, cardiology"}
        done = client.post("/datasets/clinic/allowances", data=form)
        assert "ann, cardiology" in done.text
        assert "25.0% allotted" in done.text
        both = client.post("/datasets/clinic/allowances", data={**form, "allowance": "x", "epsilon": "1"})
        assert both.status_code == 422
        assert 'id="epsilon-error"' in both.text
        for _ in range(2):
            assert "returned" in client.post("/datasets/clinic/allowances/team/return").text

    def test_history_says_what_by_whom_and_what_for(self, site):
        client = site.browser()
        ask(client, purpose=EVIL)
        found = site.studio.requests.list_all(BOTH, Status.PENDING)[0]
        with site.browser() as running:
            running.post(f"/requests/{found.id}/approve")
            wait_until_over(site, found.id)
        page = client.get("/datasets/clinic").text
        assert EVIL in html.unescape(page)
        assert "<script>alert" not in page
        assert "table moments" not in page
        assert "Everything" in page
        assert f'href="/requests/{found.id}"' in page


def wait_until_over(site, request_id):
    for _ in range(200):
        found = site.studio.requests.get(CURATOR, request_id)
        if found.is_over:
            return found
        time.sleep(0.05)
    raise AssertionError(found.status)


class TestDesign:
    def test_the_page_offers_what_the_schema_has(self, site):
        page = site.browser(ANALYST).get("/design").text
        for text in ("Everything", "by ward", "Importance of bmi", "Ask for this release", 'name="form_id"'):
            assert text in page
        assert "Adjacency" not in page
        assert "Ask for this release" not in site.browser(CURATOR).get("/design").text

    def test_without_a_schema_it_says_what_to_do(self, site):
        (site.settings.folder / "other.csv").write_text("a\n1\n")
        site.studio.datasets.register(CURATOR, "other", "other.csv", epsilon=1, delta=1e-6)
        address = "/design?dataset=other"
        assert "/tables/other.csv/schema" in site.browser(CURATOR).get(address).text
        assert "Ask a curator to write it" in site.browser(ANALYST).get(address).text

    def test_the_forecast_has_charts_and_what_would_be_left(self, site):
        form = {**FORM, "query": "correlation", "method": "plain", "columns": ["age", "bmi"], "records": "5000"}
        page = site.browser(ANALYST).post("/design/forecast", data=form).text
        charts = read_charts(page)
        assert charts["curve"].count("<polyline") == 2  # the error, and a rule at epsilon
        assert 'aria-label="Predicted error against epsilon' in charts["curve"]
        assert re.search(r'<td class="count s\d+">[0-9.]+</td>', page)
        assert "of 4</small>" in page
        assert "mdp.Studio(" in page
        assert "matrixdp release" not in page
        assert "matrixdp release" in site.browser(BOTH).post("/design/forecast", data=form).text

    def test_everything_has_its_correlations_with_what_takes_longer(self, site):
        form = {**FORM, "columns": ALL, "records": "5000"}
        client = site.browser(ANALYST)
        assert "Correlation" not in client.post("/design/forecast", data=form).text
        details = client.post("/design/details", data=form).text
        assert "Correlation: predicted error" in details
        assert "Easy data" in details
        assert '<table class="numbers matrix"' in details

    def test_means_by_group_are_forecast_by_group(self, site):
        form = {**FORM, "query": "means", "columns": ["age", "bmi"], "by": "ward", "records": "5000"}
        page = site.browser(ANALYST).post("/design/forecast", data=form).text
        assert "Means by ward: predicted error" in page
        assert page.index("Means by ward: predicted error") < page.index(">Means: predicted error")

    def test_a_larger_epsilon_has_a_smaller_error_and_nothing_is_charged(self, site):
        client = site.browser(ANALYST)
        shown = []
        for epsilon in ("1", "2", "4"):
            form = {**FORM, "columns": ALL, "records": "5000", "epsilon": epsilon}
            page = client.post("/design/forecast", data=form).text
            shown.append(float(re.search(r"± ([0-9.e-]+)<", page)[1]))
        assert shown == sorted(shown, reverse=True)
        assert site.studio.datasets.history("clinic") == []

    def test_an_adaptive_fit_is_simulated_apart(self, site):
        client = site.browser(ANALYST)
        form = {**FORM, "query": "correlation", "columns": ALL, "method": "adaptive"}
        first = client.post("/design/forecast", data=form).text
        assert "Simulating the adaptive fit" in first
        details = client.post("/design/details", data=form).text
        assert "Hard data" in details
        again = client.post("/design/forecast", data=form).text
        assert "Simulating the adaptive fit, without data" not in again
        curve = read_charts(again)["curve"]
        assert curve.count("<polyline") == 2  # a plain release, and a rule at epsilon
        assert "typical data" in again
        needed = client.post("/design/needed", data={**form, "wanted": "0.2"}).text
        assert re.search(r"Epsilon [0-9.]+ gives ± 0\.\d+ for typical data", needed)

    def test_simulations_that_wait_do_not_hold_all_threads(self, site, monkeypatch):
        monkeypatch.setattr("matrixdp.studio.forecasts._PLACES", threading.BoundedSemaphore(1))
        form = {**FORM, "query": "correlation", "columns": ALL, "method": "adaptive", "epsilon": "1.1"}
        client = site.browser(ANALYST)
        with forecasts._PLACES:
            assert "too many simulations" in client.post("/design/details", data=form).text
        assert "Hard data" in client.post("/design/details", data=form).text

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({"query": "correlation", "method": "plain", "wanted": "0.1"}, "Use epsilon"),
            ({"query": "correlation", "method": "plain", "wanted": "1e-9"}, "No epsilon up to 10"),
            ({"query": "correlation", "method": "plain", "wanted": "soon"}, "must be a number above 0"),
        ],
    )
    def test_the_way_back_from_an_error_to_epsilon(self, site, changes, expected):
        form = {**FORM, "columns": ALL, "records": "5000", **changes}
        assert expected in site.browser(ANALYST).post("/design/needed", data=form).text

    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"epsilon": "many"}, "epsilon"),
            ({"epsilon": "0"}, "epsilon"),
            ({"delta": "1"}, "delta"),
            ({"records": "-3"}, "records"),
            ({"records": "1.5"}, "records"),
            ({"columns": []}, "columns"),
            ({"columns": ["age", "renamed"]}, "columns"),
            ({"query": "regression", "target": ""}, "target"),
            ({"query": "table", "cells": ["ward", "ward"]}, "cells"),
            ({"by": ["age"]}, "form"),
            ({"method": "magic", "query": "means"}, "method"),
            ({"importance": "age=-4"}, "columns"),
        ],
    )
    def test_mistakes_are_beside_their_field(self, site, changes, field):
        done = site.browser(ANALYST).post("/design/forecast", data={**FORM, "columns": ALL, **changes})
        assert done.status_code == 200
        errors = dict(re.findall(r'id="(\w+)-error" hx-swap-oob="innerHTML">([^<]*)<', done.text))
        assert [name for name, text in errors.items() if text] == [field]
        assert "--" not in errors[field]

    @pytest.mark.parametrize("query", ["means", "covariance", "components", "moments", "second-moment"])
    def test_every_query_of_numbers_can_be_designed(self, site, query):
        form = {**FORM, "query": query, "columns": ALL, "method": "auto", "first": "1", "second": "0"}
        page = site.browser(ANALYST).post("/design/forecast", data=form).text
        assert "No forecast" not in page
        assert ("ellipse" in page) == (query in ("moments", "second-moment"))

    def test_models_come_later(self, site):
        client = site.browser(ANALYST)
        form = {**FORM, "columns": ALL, "target": "bmi", "query": "regression", "method": "plain"}
        assert "Regression of bmi" in client.post("/design/details", data=form).text

    def test_the_unit_of_the_data_set_is_that_of_the_schema(self, site):
        site.studio.schemas.write(TABLE, SCHEMA.split("[columns.ward]")[0] + '[person]\ncolumn = "ward"\n')
        site.studio.datasets.register(CURATOR, "people", TABLE, epsilon=4, delta=1e-6, unit="person:ward")
        site.studio.schemas.write(TABLE, SCHEMA)
        page = site.browser(ANALYST).post("/design/forecast", data={**FORM, "dataset": "people", "columns": ALL}).text
        assert "(column ward), and this one protects one record" in page
        refused = ask(site.browser(ANALYST), dataset="people")
        assert refused.status_code == 409
        assert "(column ward), and this one protects one record" in refused.text

    def test_an_allowance_pays_and_one_that_is_gone_is_a_mistake(self, site):
        site.studio.datasets.allow(CURATOR, "clinic", "team", epsilon=0.5)
        client = site.browser(ANALYST)
        form = {**FORM, "columns": ALL, "allowance": "team", "records": "5000"}
        assert "Only 0.5 is left" in client.post("/design/needed", data={**form, "wanted": "0.03"}).text
        assert "team" in client.post("/design/forecast", data=form).text
        gone = client.post("/design/forecast", data={**form, "allowance": "nobody"})
        assert gone.status_code == 200
        assert "No forecast" in gone.text
        assert "nobody" in gone.text

    def test_hostile_names_are_escaped_everywhere(self, site):
        (site.settings.folder / TABLE).write_text(
            f'"{HOSTILE.replace(chr(34), chr(34) * 2)}","a,b",{{{{7*7}}}}\n1,2,3\n'
        )
        names = [HOSTILE, "a,b", "{{7*7}}"]
        text = "records = 500\n" + "".join(f"[columns.{json.dumps(n)}]\nlower = 0\nupper = 1\n" for n in names)
        site.studio.schemas.write(TABLE, text)
        site.studio.datasets.register(CURATOR, EVIL.replace("/", ""), TABLE, epsilon=1, delta=1e-6)
        client = site.browser()
        form = {**FORM, "columns": [HOSTILE, '"a,b"', "{{7*7}}"], "records": "50000"}
        pages = [client.get("/design").text, client.get("/datasets").text]
        pages += [client.post(f"/design/{part}", data=form).text for part in ("forecast", "details")]
        for page in pages:
            assert "<img" not in page
            assert "<script>alert" not in page
            assert ">49<" not in page
        assert "&lt;img" in pages[3]
        assert "No forecast" not in client.post("/design/forecast", data={**form, "columns": '"a,b"'}).text
        assert pages[0].count('name="importance"') == 2  # not for a name with a comma, which the option cannot have


class TestRequests:
    def test_a_form_sent_twice_is_one_request(self, site):
        client = site.browser(ANALYST)
        first, second = ask(client), ask(client)
        assert first.status_code == second.status_code == 303
        assert first.headers["location"] == second.headers["location"]
        assert len(site.studio.requests.list_all(ANALYST)) == 1

    def test_a_changed_form_with_an_old_id_is_another_request(self, site):
        client = site.browser(ANALYST)
        ask(client)
        for _ in range(2):
            assert ask(client, epsilon="2").status_code == 303
        assert sorted(one.spec.epsilon for one in site.studio.requests.list_all(ANALYST)) == [1, 2]

    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"purpose": " \n"}, "purpose"),
            ({"epsilon": "x"}, "epsilon"),
            ({"epsilon": ""}, "epsilon"),
            ({"epsilon": "9"}, "form"),
        ],
    )
    def test_mistakes_keep_the_form(self, site, changes, field):
        done = ask(site.browser(ANALYST), **changes)
        assert done.status_code in (409, 422)
        assert re.search(rf'id="{field}-error"[^>]*>[^<]', done.text)
        assert re.search(
            'role="alert" id="refusal">Nothing was asked: [^<]', done.text
        )  # the forecast does not clear it
        assert 'name="form_id" value="one"' in done.text
        assert site.studio.requests.list_all(ANALYST) == []

    def test_curators_cannot_ask(self, site):
        assert ask(site.browser(CURATOR)).status_code == 403

    def test_the_curator_sees_what_would_be_spent_and_published(self, site):
        location = ask(site.browser(ANALYST), purpose=EVIL, by=["ward"]).headers["location"]
        page = site.browser(CURATOR).get(location).text
        for text in (
            "Everything by ward",
            "Approve and release",
            "18 sums over all records",
            "small privacy",
        ):
            assert text in page
        assert "<script>alert" not in page
        assert "Approve and release" not in site.browser(ANALYST).get(location).text

    def test_the_list_shows_pending_ones_to_curators_and_own_ones_to_analysts(self, site):
        assert "You have not asked" in site.browser(ANALYST).get("/requests").text
        assert "No request waits" in site.browser(CURATOR).get("/requests").text
        ask(site.browser(ANALYST), purpose=HOSTILE)
        for viewer in (ANALYST, CURATOR):
            page = site.browser(viewer).get("/requests").text
            assert "&lt;img src=x" in page
            assert "<img" not in page

    def test_refusing_needs_a_reason_which_the_analyst_reads(self, site):
        location = ask(site.browser(ANALYST)).headers["location"]
        curator = site.browser(CURATOR)
        empty = curator.post(f"{location}/refuse", data={"reason": " "})
        assert empty.status_code == 422
        assert re.search(r'id="reason-error"[^>]*>reason must', empty.text)
        curator.post(f"{location}/refuse", data={"reason": "ask for\nless"})
        page = site.browser(ANALYST).get(location).text
        assert "ask for less" in page
        assert "Change it and ask again" in page
        assert curator.post(f"{location}/approve").status_code == 409

    def test_a_release_runs_and_its_page_follows_it(self, site):
        location = ask(site.browser(ANALYST)).headers["location"]
        request_id = location.rpartition("/")[2]
        with site.browser(CURATOR) as curator:
            for _ in range(2):
                page = curator.post(f"{location}/approve").text
            assert "Approve and release" not in page
            found = wait_until_over(site, request_id)
            progress = curator.get(f"{location}/progress")
        assert found.status is Status.RELEASED
        assert progress.headers["HX-Refresh"] == "true"
        assert f"/results/{request_id}" in curator.get(location).text
        assert len(site.studio.datasets.history("clinic")) == 1

    def test_a_running_one_is_asked_for_again(self, site):
        analyst = site.browser(ANALYST)
        location = ask(analyst).headers["location"]
        assert f'hx-get="{location}/progress?seen=pending"' in analyst.get(location).text
        assert "/progress" not in site.browser(CURATOR).get(location).text  # where a reason is typed
        assert analyst.get(f"{location}/progress?seen=pending").status_code == 204
        with site.studio.state.writing() as connection:
            connection.execute("UPDATE requests SET status = 'running', progress = 0.25")
        assert analyst.get(f"{location}/progress?seen=pending").headers["HX-Refresh"] == "true"
        assert analyst.get(f"{location}/progress?seen=approved").status_code == 204  # how far it is, is for curators
        curator = site.browser(CURATOR)
        progress = curator.get(f"{location}/progress?seen=approved")
        assert 'hx-trigger="every 1s"' in progress.text
        assert 'value="0.250"' in progress.text
        assert "HX-Refresh" not in progress.headers
        seen = re.search(r'hx-get="([^"]*)"', progress.text)[1]
        assert curator.get(seen).status_code == 204  # what has not changed is not replaced

    def test_a_budget_that_is_spent_disables_approval(self, site):
        location = ask(site.browser(ANALYST), epsilon="3").headers["location"]
        other = ask(site.browser(ANALYST), epsilon="3", form_id="two").headers["location"]
        with site.browser(CURATOR) as curator:
            curator.post(f"{location}/approve")
            wait_until_over(site, location.rpartition("/")[2])
            page = curator.get(other).text
            assert "The budget does not cover it." in page
            assert curator.post(f"{other}/approve").status_code == 409

    def test_others_do_not_see_a_request(self, site):
        location = ask(site.browser(ANALYST)).headers["location"]
        bob = Viewer("bob", frozenset({Role.ANALYST}))
        other = site.browser(bob)
        for address in (location, f"{location}/progress", f"{location}/forecast"):
            assert other.get(address).status_code == 404
        with pytest.raises(NotFoundError):
            site.studio.requests.get(bob, location.rpartition("/")[2])


@pytest.mark.parametrize(
    "changes",
    [
        {"query": "everything", "by": "ward", "importance": "age=4"},
        {"query": "regression", "target": "bmi", "on": "age,ward"},
        {"query": "table", "cells": "ward,smoker", "allowance": "team"},
        {"query": "correlation", "columns": "age,bmi", "method": "plain", "records": 90},
    ],
)
def test_the_address_of_a_request_fills_the_form_with_it(site, changes):
    schema = parse_schema(SCHEMA + '[columns.smoker]\ntype = "yes/no"\n')
    registration = site.studio.datasets.get("clinic").summary.registration
    spec = ReleaseSpec.from_mapping({"epsilon": 0.5, "delta": 1e-6, **changes})
    address = write_address(spec, schema, "clinic", TABLE)
    form = DesignForm.read(QueryParams(address.partition("?")[2]), schema, registration)
    found = form.make_spec(schema, registration)
    assert {**found.to_mapping(), "records": None} == {**spec.to_mapping(), "records": None}


def test_pages_have_no_inline_code_and_scripts_use_no_eval(site):
    client = site.browser()
    location = ask(client).headers["location"]
    for address in ("/datasets", "/datasets/clinic", "/design", "/requests", location):
        page = client.get(address).text
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|<script(?![^>]*src=)|javascript:", page)
    for name in ("studio.js", "update.js"):
        assert not re.search(r"\beval\(|new Function|innerHTML", (STATIC / name).read_text())


def test_charts_have_their_colours_in_both_schemes():
    names = set(re.findall(r"var\(--(\w+)\)", (STYLES / "picture.css").read_text()))
    style = (STATIC / "studio.css").read_text()
    assert len(names) > 5
    own = {name for name in names if f" --{name}: var(" not in style}  # the others follow colours of the page
    assert {name: style.count(f" --{name}: #") for name in own} == dict.fromkeys(own, 2)
