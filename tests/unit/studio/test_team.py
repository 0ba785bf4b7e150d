"""A team: whose allowance pays, who may sign in, single sign-on by a proxy, and what operators watch."""

import json
import logging
import re

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from matrixdp.errors import LedgerError, ParameterError
from matrixdp.ledger import Ledger
from matrixdp.studio.refusals import ConflictError
from matrixdp.studio.roles import Role, Viewer
from matrixdp.studio.sign_in import create_token, find_token, hash_secret, list_people, revoke_token
from matrixdp.studio.state import Proxy, insert
from matrixdp.studio.worker import release_request
from studio_site import ANALYST, BOTH, CURATOR, ORIGIN, SCHEMA, SPEC, TABLE, Site

BOB = Viewer("bob", frozenset({Role.ANALYST}))
PROXY = Proxy(networks=("127.0.0.1/32",), curators=("stewards",), analysts=("researchers",))


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def test_an_allowance_is_charged_by_its_people_alone(site):
    site.studio.datasets.allow(CURATOR, "clinic", "ann", share="1/2", payers=["ann"])
    with pytest.raises(LedgerError, match="is for ann, and not for 'bob'"):
        site.ask(BOB, allowance="ann")
    request = site.ask(ANALYST, allowance="ann")
    site.studio.requests.approve(CURATOR, request.id)
    release_request(site.settings, request.id)
    (charge,) = site.studio.datasets.history("clinic")
    assert (charge.actor, charge.allowance) == ("ann", "ann")
    page = site.browser(CURATOR).get("/datasets/clinic").text
    assert "Who pays from it" in page
    assert "yours" not in page


def test_a_refusal_of_the_ledger_says_why_without_paths_and_commands(site):
    site.studio.datasets.allow(CURATOR, "clinic", "ann", share="1/2", payers=["ann"])
    client, release = site.api(BOB), {**SPEC, "allowance": "ann"}
    body = {"dataset": "clinic", "table": TABLE, "purpose": "p", "form_id": "f"}
    answer = client.post("/api/requests", json={**body, "release": release})
    assert (answer.status_code, "is for ann, and not for 'bob'" in answer.json()["error"]) == (409, True)
    form = {"dataset": "clinic", "table": TABLE, "query": "means", "epsilon": "1", "delta": "1e-6", "columns": "age"}
    page = site.browser(BOB)
    for allowance, why in (("ann", "is for ann"), ("none", "has no allowance")):
        asked = page.post("/requests", data={**form, "allowance": allowance, "purpose": "p", "form_id": "f"})
        assert (asked.status_code, why in asked.text) == (409, True)
    backup = site.settings.ledger.with_suffix(".backup")
    with Ledger.open(site.settings.ledger) as ledger:
        ledger.backup(backup)
    site.settings.ledger.unlink()
    Ledger.restore(backup, site.settings.ledger).close()
    forecast = page.post("/design/forecast", data=form).text
    assert "was restored from a backup" in forecast
    for text in (asked.text, forecast):
        assert str(site.settings.ledger) not in text
        assert "matrixdp ledger" not in text


def test_a_group_pays_for_its_members_as_long_as_they_belong_to_it(site):
    site.studio.datasets.allow(CURATOR, "clinic", "heart", share="1/2", payers=["cardiology"])
    create_token(site.studio.state, "bob", [Role.ANALYST], groups=["cardiology"])
    member = Viewer("bob", frozenset({Role.ANALYST}), ("cardiology",))
    request = site.ask(member, allowance="heart")
    create_token(site.studio.state, "bob", [Role.ANALYST], groups=["surgery"])
    with pytest.raises(LedgerError, match="is for cardiology"):
        site.studio.requests.approve(CURATOR, request.id)
    create_token(site.studio.state, "bob", [Role.ANALYST], groups=["cardiology"])
    site.studio.requests.approve(CURATOR, request.id)
    release_request(site.settings, request.id)
    assert site.studio.requests.get(CURATOR, request.id).status.value == "released"


def test_ones_own_allowance_is_chosen_and_others_are_not_offered(site):
    for name in ("ann", "bob"):
        site.studio.datasets.allow(CURATOR, "clinic", name, share="1/4", payers=[name])
    page = site.browser(ANALYST).get("/design").text
    assert '<option value="ann" selected>ann (yours' in page
    assert 'value="bob"' not in page
    assert 'value="" selected' not in page


def test_a_person_column_must_be_one_of_the_table_and_of_its_schema(site):
    register = site.studio.datasets.register
    with pytest.raises(ParameterError, match=r"person must be a column of clinic\.csv, got 'Ward' instead"):
        register(CURATOR, "people", TABLE, epsilon=1, delta=1e-6, unit="person:Ward")
    site.studio.schemas.write(TABLE, SCHEMA.split("[columns.ward]")[0] + '[person]\ncolumn = "ward"\n')
    for unit in ("record", "person:age"):
        with pytest.raises(ParameterError, match="rows belong to people by the column 'ward'; here"):
            register(CURATOR, "people", TABLE, epsilon=1, delta=1e-6, unit=unit)
    page = site.browser(CURATOR).get("/datasets", params={"table": TABLE}).text
    assert re.search(r'value="person" selected>.*<option selected>ward</option>', page, re.DOTALL)
    register(CURATOR, "people", TABLE, epsilon=1, delta=1e-6, unit="person:ward")
    assert "(column ward)" in site.browser(CURATOR).get("/datasets/people").text


def test_only_an_unused_data_set_is_removed(site):
    page = site.browser(CURATOR)
    assert "Remove this data set" in page.get("/datasets/clinic").text
    request = site.ask()
    assert "1 requests are for it" in page.post("/datasets/clinic/remove").text
    site.studio.requests.approve(CURATOR, request.id)
    release_request(site.settings, request.id)
    with pytest.raises(ConflictError, match="releases were charged"):
        site.studio.datasets.remove(CURATOR, "clinic")
    assert "Remove this data set" not in page.get("/datasets/clinic").text
    site.studio.datasets.register(CURATOR, "typo", TABLE, epsilon=1, delta=1e-6)
    assert page.post("/datasets/typo/remove", follow_redirects=False).headers["location"] == "/datasets"
    assert page.get("/datasets/typo").status_code == 404
    assert [one.name for one in site.studio.datasets.list_all()] == ["clinic"]
    site.studio.datasets.register(CURATOR, "typo", TABLE, epsilon=1, delta=1e-6)  # the same again
    assert page.get("/datasets/typo").status_code == 200


def test_people_are_invited_seen_and_revoked_on_a_page(site):
    page = site.browser(CURATOR)
    made = page.post("/people", data={"name": "eve", "groups": "cardiology, night", "roles": "analyst", "days": "7,5"})
    (secret,) = re.findall(r'<code id="token">([^<]+)</code>', made.text)
    token = find_token(site.studio.state, secret)
    assert (token.name, token.roles) == ("eve", {Role.ANALYST})
    assert secret not in page.get("/people").text
    client = TestClient(site.app, base_url=ORIGIN, headers={"Authorization": f"Bearer {secret}"})
    assert client.get("/api/me").status_code == 200
    (eve,) = [one for one in list_people(site.studio.state) if one.name == "eve"]
    assert eve.groups == ("cardiology", "night")
    assert eve.seen is not None
    request = site.ask(Viewer("eve", frozenset({Role.ANALYST})))
    assert "revoked" not in page.get(f"/requests/{request.id}").text
    page.post(f"/people/{token.id}/revoke")
    assert client.get("/api/me").status_code == 401
    assert "eve cannot sign in any more" in page.get(f"/requests/{request.id}").text
    assert '<span class="tag warn">revoked</span>' in page.get("/requests").text
    for changes, field in (({"roles": ""}, "roles"), ({"name": ""}, "name"), ({"days": "soon"}, "days")):
        wrong = page.post("/people", data={"name": "x", "roles": "analyst", **changes})
        assert wrong.status_code == 422
        assert f'id="{field}-error"' in wrong.text


class TestProxy:
    @pytest.fixture
    def site(self, tmp_path):
        return Site(tmp_path, proxy=PROXY)

    def browse(self, site, client=("127.0.0.1", 5000), **headers):
        names = {"user": "X-Forwarded-User", "groups": "X-Forwarded-Groups"}
        given = {names[name]: value for name, value in headers.items()}

        async def app(scope, receive, send):  # older test clients have one address only
            await site.app(scope if scope["type"] != "http" else {**scope, "client": client}, receive, send)

        return TestClient(app, base_url=ORIGIN, headers={"Origin": ORIGIN, **given})

    def test_roles_follow_the_groups_that_the_proxy_says(self, site):
        steward = self.browse(site, user="cara", groups="stewards,researchers")
        assert "cara · curator and analyst" in steward.get("/datasets").text
        researcher = self.browse(site, user="ann", groups="researchers")
        assert "ann · analyst" in researcher.get("/datasets").text
        assert researcher.get("/people").status_code == 403
        researcher.headers["X-Forwarded-Groups"] = "researchers,stewards"  # at the next request
        assert researcher.get("/people").status_code == 200

    def test_others_are_not_believed(self, site):
        stranger = self.browse(site, ("10.0.0.9", 5000), user="cara", groups="stewards")
        assert stranger.get("/datasets", follow_redirects=False).headers["location"] == "/enter"
        for headers in ({"user": "eve", "groups": "other"}, {"groups": "stewards"}, {"user": " "}):
            client = self.browse(site, **headers)
            assert client.get("/datasets", follow_redirects=False).headers["location"] == "/enter"
        api = self.browse(site, user="cara", groups="stewards")
        assert api.get("/api/me").status_code == 401

    def test_a_browser_changes_hands_and_is_signed_out_with_the_proxy(self, site):
        client = self.browse(site, user="cara", groups="stewards")
        assert "cara · curator" in client.get("/datasets").text
        client.headers["X-Forwarded-User"] = "dan"
        assert "dan · curator" in client.get("/datasets").text
        del client.headers["X-Forwarded-User"]
        assert client.get("/datasets", follow_redirects=False).headers["location"] == "/enter"

    def test_a_cookie_of_the_proxy_is_nobodys_past_the_proxy(self, site):
        client = self.browse(site, user="cara", groups="stewards")
        client.get("/datasets")
        past = self.browse(site, ("10.0.0.9", 5000), user="cara", groups="stewards")
        past.cookies = client.cookies
        assert past.get("/people", follow_redirects=False).headers["location"] == "/enter"
        assert client.get("/people").status_code == 200
        stored = {"name": "cara", "roles": "curator", "csrf": "x", "expires": "9999", "token": None}
        with site.studio.state.writing() as connection:  # a session without a token, as older versions wrote it
            insert(connection, "sessions", hash=hash_secret("old"), **stored)
        past.cookies = {"matrixdp-studio-8765": "old"}
        assert past.get("/people", follow_redirects=False).headers["location"] == "/enter"

    def test_groups_that_change_are_known_at_once_to_whoever_pays(self, site):
        site.studio.datasets.allow(CURATOR, "clinic", "team", share="1/4", payers=["researchers"])
        client = self.browse(site, user="ann", groups="researchers")
        client.get("/datasets")
        request = site.ask(Viewer("ann", frozenset({Role.ANALYST}), ("researchers",)), allowance="team")
        client.headers["X-Forwarded-Groups"] = "stewards"
        client.get("/datasets")
        with pytest.raises(LedgerError, match="is for researchers"):
            site.studio.requests.approve(CURATOR, request.id)

    def test_nobody_pays_by_having_the_name_of_a_group(self, site):
        self.browse(site, user="ann", groups="researchers").get("/datasets")
        squatter = self.browse(site, user="researchers", groups="researchers")
        answer = squatter.get("/datasets")
        assert answer.status_code == 422
        assert "name must differ from names of groups" in answer.text
        for name, groups, field in (("researchers", [], "name"), ("dan", ["ann"], "groups")):
            with pytest.raises(ParameterError, match=f"^{field} must differ"):
                create_token(site.studio.state, name, [Role.ANALYST], groups=groups)

    def test_a_form_needs_the_token_of_the_session(self, site):
        client = self.browse(site, user="cara", groups="stewards")
        client.get("/datasets")
        assert client.post("/people", data={"name": "x", "roles": "analyst"}).status_code == 403
        client.headers["X-CSRF-Token"] = re.search('"X-CSRF-Token": "(.+?)"', client.get("/datasets").text)[1]
        assert client.post("/people", data={"name": "x", "roles": "analyst"}).status_code == 200
        client.headers["X-Forwarded-User"] = "dan"  # who has another
        assert client.post("/people", data={"name": "y", "roles": "analyst"}).status_code == 403

    def test_tokens_work_beside_it(self, site):
        secret, _ = create_token(site.studio.state, "bob", [Role.ANALYST])
        client = self.browse(site)
        client.post("/enter", data={"token": secret})
        assert "bob · analyst" in client.get("/datasets").text

    def test_groups_of_the_proxy_pay(self, site):
        site.studio.datasets.allow(CURATOR, "clinic", "team", share="1/4", payers=["researchers"])
        page = self.browse(site, user="ann", groups="researchers").get("/design").text
        assert '<option value="team" selected>' in page


def test_health_readiness_and_ids(site):
    stranger = site.browser(None)
    assert stranger.get("/healthz").json() == {"status": "ok"}
    assert stranger.get("/readyz", headers={"Host": "10.0.0.1"}).json() == {"status": "ready"}
    assert stranger.get("/datasets", headers={"Host": "10.0.0.1"}).status_code == 421
    assert (
        stranger.get("/healthz", headers={"X-Request-ID": "from-the-proxy"}).headers["x-request-id"] == "from-the-proxy"
    )
    numbers = {stranger.get("/healthz", headers={"X-Request-ID": "<bad>"}).headers["x-request-id"] for _ in range(2)}
    assert len(numbers) == 2
    site.settings.ledger.rename(site.settings.ledger.with_suffix(".gone"))
    away = stranger.get("/readyz")
    assert (away.status_code, away.json()) == (503, {"status": "unavailable"})
    assert stranger.get("/healthz").status_code == 200


def test_metrics_are_read_by_prometheus(site):
    site.ask()
    client = site.api(ANALYST)
    for _ in range(2):
        text = client.get("/api/metrics").text
    found = {family.name: family for family in text_string_to_metric_families(text)}
    (left,) = found["matrixdp_ledger_left_epsilon"].samples
    assert (left.labels, left.value) == ({"dataset": "clinic"}, 4.0)
    assert {one.labels["status"]: one.value for one in found["matrixdp_studio_requests"].samples}["pending"] == 1
    (answered,) = found["matrixdp_studio_http_requests"].samples
    assert (answered.labels["route"], answered.labels["status"], answered.value) == ("/api/metrics", "200", 1)
    buckets = [one.value for one in found["matrixdp_studio_http_request_seconds"].samples if "le" in one.labels]
    assert buckets == sorted(buckets)
    assert site.browser(None).get("/api/metrics").status_code == 401


def test_lines_of_the_log_have_no_names_but_the_person(site, caplog):
    with caplog.at_level(logging.INFO, "matrixdp.studio.requests"):
        client = site.browser(BOTH)
        client.get("/datasets/clinic", params={"secret": "hidden"})
        client.get("/hidden/path")
    facts = [json.loads(record.getMessage()) for record in caplog.records if record.name.endswith("requests")]
    assert {"time", "request", "method", "route", "status", "seconds", "person"} == set(facts[-1])
    assert (facts[-2]["route"], facts[-2]["person"]) == ("/datasets/{dataset}", "desk")
    assert "hidden" not in caplog.text
    assert "clinic" not in caplog.text


def test_an_unforeseen_error_is_logged_by_its_route_and_class(site, caplog, monkeypatch):
    def fail(*_):
        raise RuntimeError("patient 17")

    monkeypatch.setattr(site.studio.datasets, "get", fail)
    answer = site.browser(BOTH).get("/datasets/x%0AForged line")
    assert (answer.status_code, "patient" in answer.text) == (500, False)
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert re.fullmatch(r"internal error \(RuntimeError\) at /datasets/\{dataset\}, request [0-9a-f]{16}", line)


def test_made_up_methods_do_not_grow_the_metrics(site):
    stranger = site.browser(None)
    for number in range(20):
        stranger.request(f"M{number}", "/enter")
    text = site.api(ANALYST).get("/api/metrics").text
    assert text.count('route="/enter"') == 1
    assert 'method="other",route="/enter",status="405"} 20' in text


def test_the_documentation_of_the_api_has_every_call_with_an_example(site):
    page = site.browser(ANALYST).get("/api/docs").text
    described = site.api(ANALYST).get("/api/openapi.json").json()["paths"]
    for path, item in described.items():
        for method in item:
            assert f"<code>{method.upper()} {path}</code>" in page
    assert "annual report" in page
    assert "for curators" in page
    assert site.browser(None).get("/api/docs", follow_redirects=False).status_code == 303


def test_revoking_one_of_two_tokens_is_no_revocation_of_the_person(site):
    first, second = (create_token(site.studio.state, "eve", [Role.ANALYST])[1] for _ in range(2))
    request = site.ask(Viewer("eve", frozenset({Role.ANALYST})))
    page = site.browser(CURATOR)
    revoke_token(site.studio.state, first.id)
    assert "cannot sign in" not in page.get(f"/requests/{request.id}").text
    revoke_token(site.studio.state, second.id)
    assert "cannot sign in" in page.get(f"/requests/{request.id}").text
