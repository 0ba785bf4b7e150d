"""The JSON API does what the pages do, and its Python client speaks it."""

import io
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar
from urllib.error import HTTPError

import pytest
import uvicorn

import matrixdp as mdp
from matrixdp.errors import ParameterError
from matrixdp.studio.client import StudioError
from matrixdp.studio.sign_in import create_token
from matrixdp.studio.worker import load_request
from studio_site import ANALYST, BOTH, CURATOR, ORIGIN, SCHEMA, SPEC, TABLE, Site

ASKED = {"dataset": "clinic", "table": TABLE, "release": SPEC, "purpose": "a test", "form_id": "1"}


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


@pytest.fixture
def served(tmp_path):
    """A studio that listens on a port, and clients of a curator and an analyst."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        site = Site(tmp_path, port=port)
        server = uvicorn.Server(uvicorn.Config(site.app, log_config=None, lifespan="on", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()

        def connect(viewer):
            return mdp.Studio(f"http://127.0.0.1:{port}", create_token(site.studio.state, viewer.name, viewer.roles)[0])

        yield connect
        server.should_exit = True
        thread.join()


def test_a_notebook_goes_the_whole_way(served):
    cara, ann = served(CURATOR), served(ANALYST)
    assert ann.me() == {"name": "ann", "roles": ["analyst"]}
    assert cara.tables() == [TABLE]
    assert [column["name"] for column in cara.columns(TABLE)] == ["age", "bmi", "ward"]
    cara.write_schema(TABLE, SCHEMA)
    assert ann.schema("clinic", TABLE) == SCHEMA
    assert cara.register("other", TABLE, epsilon=1.0, delta=1e-6, neighbours="replace")["tables"] == [TABLE]
    assert cara.allow("clinic", "ann", share="1/4")["name"] == "ann"
    assert cara.return_allowance("clinic", "ann")["returned"]
    found = ann.forecast("clinic", TABLE, **SPEC)
    assert found["epsilon_left_after"] < found["epsilon_left"] == 4.0
    asked = ann.ask("clinic", TABLE, purpose="annual report", form_id="2031", **SPEC)
    assert ann.ask("clinic", TABLE, purpose="annual report", form_id="2031", **SPEC) == asked
    assert [one["id"] for one in cara.requests("pending")] == [asked["id"]]
    assert cara.approve(asked["id"])["decided_by"] == "cara"
    assert ann.wait(asked["id"], timeout=60)["status"] == "released"
    release = ann.release(asked["id"])
    assert release.privacy.epsilon == 1.0
    assert "report.html" in ann.files(asked["id"])
    assert ann.file(asked["id"], "report.html").startswith(b"<!doctype html>")
    (charge,) = ann.history("clinic")
    assert (charge["actor"], charge["purpose"]) == ("ann", "annual report (approved by cara)")
    assert [one["id"] for one in ann.results()] == [asked["id"]]
    assert ann.datasets()[0]["charges"] == 1
    other = ann.ask("clinic", TABLE, purpose="again", **SPEC)
    assert cara.refuse(other["id"], "not needed")["message"] == "not needed"
    with pytest.raises(StudioError, match="not needed"):
        ann.wait(other["id"])
    with pytest.raises(StudioError, match="curators") as refusal:
        ann.approve(other["id"])
    assert refusal.value.status == 403
    with pytest.raises(StudioError, match="still pending"):
        ann.wait(ann.ask("clinic", TABLE, purpose="third", **SPEC)["id"], timeout=0)


def make_client(body, status=200):
    """A client of a server that gives one answer."""

    class Opener:
        def open(self, request, timeout):
            if status != 200:
                raise HTTPError(request.full_url, status, "", None, io.BytesIO(body))
            return io.BytesIO(body)

    client = mdp.Studio("https://studio.example.org", "token")
    client._opener = Opener()
    return client


def test_the_client_follows_no_redirects(site):
    class Redirecting(BaseHTTPRequestHandler):
        seen: ClassVar = []

        def do_GET(self):
            self.seen.append(self.path)
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *arguments):
            pass

    with HTTPServer(("127.0.0.1", 0), Redirecting) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        with pytest.raises(StudioError) as refusal:
            mdp.Studio(f"http://127.0.0.1:{server.server_port}", "token").me()
        thread.join()
    assert refusal.value.status == 302
    assert Redirecting.seen == ["/api/me"]


def test_the_client_sends_no_token_over_an_open_network_or_to_nowhere():
    with pytest.raises(ParameterError, match="https"):
        mdp.Studio("http://studio.example.org", "token")
    with pytest.raises(ParameterError, match="address"):
        mdp.Studio("file:///etc/passwd", "token")
    with pytest.raises(ParameterError, match="token"):
        mdp.Studio("https://studio.example.org", "")
    with pytest.raises(StudioError, match="cannot be reached"):
        mdp.Studio("http://127.0.0.1:9", "token").me()
    with pytest.raises(StudioError, match="not answer as a studio"):
        make_client(b"[]").me()
    with pytest.raises(StudioError, match="busy"):
        make_client(b"busy", 503).me()
    with pytest.raises(StudioError, match="302"):
        make_client(b"", 302).me()
    assert "secret" not in repr(mdp.Studio("https://studio.example.org", "secret"))


def test_the_api_knows_tokens_alone_and_pages_know_cookies_alone(site):
    api, page = site.api(BOTH), site.browser(BOTH)
    assert api.get("/api/me").json()["name"] == "desk"
    assert api.get("/datasets", follow_redirects=False).status_code == 303
    answer = page.get("/api/me")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic eA==", "Bearer wrong", "wrong"])
def test_a_token_must_be_right(site, header):
    assert site.browser(None).get("/api/me", headers={"Authorization": header}).status_code == 401


def test_mistakes_are_named(site):
    api = site.api(BOTH)
    cases = [
        ({**ASKED, "release": {**SPEC, "epsilon": -1}}, "epsilon"),
        ({**ASKED, "release": {**SPEC, "query": "all"}}, "query must be one of"),
        ({**ASKED, "release": {**SPEC, "directions": "/etc/passwd"}}, "is not an option"),
        ({**ASKED, "release": {**SPEC, "points": "/etc/passwd"}}, "not an option"),
        ({**ASKED, "release": {**SPEC, "records": 1.5}}, "records must be a whole number"),
        ({**ASKED, "release": {**SPEC, "records": True}}, "records"),
        ({**ASKED, "release": {"query": "means"}}, "epsilon must be given"),
        ({**ASKED, "release": {**SPEC, "columns": "weight"}}, "no column 'weight'"),
        ({**ASKED, "purpose": ""}, "purpose"),
        ({**ASKED, "purpose": "two\nlines"}, "purpose"),
        ({**ASKED, "more": 1}, "more"),
    ]
    for body, words in cases:
        answer = api.post("/api/requests", json=body)
        assert answer.status_code == 422, body
        assert words in answer.json()["error"]
        assert str(site.settings.state) not in answer.text
    assert api.post("/api/requests", content="{", headers={"Content-Type": "application/json"}).status_code == 422
    assert api.post("/api/requests", json={**ASKED, "table": "other.csv"}).status_code == 404
    assert api.post("/api/requests", json={**ASKED, "dataset": "other"}).status_code == 404
    assert api.post("/api/requests", json={**ASKED, "release": {**SPEC, "epsilon": 5.0}}).status_code == 409


def test_a_table_without_a_schema_has_no_forecast(site):
    api = site.api(BOTH)
    (site.settings.folder / "new.csv").write_text("age\n1\n", encoding="utf-8")
    assert api.get("/api/tables/new.csv/schema").json() == {"toml": None}
    assert (
        api.post("/api/datasets", json={"name": "new", "table": "new.csv", "epsilon": 1, "delta": 1e-6}).status_code
        == 201
    )
    assert api.get("/api/datasets/new").json()["tables"] == ["new.csv"]
    body = {"dataset": "new", "table": "new.csv", "release": SPEC}
    assert api.post("/api/forecast", json=body).status_code == 404


def test_one_form_is_one_request(site):
    ann, ben = site.api(ANALYST), site.api(BOTH)
    first = ann.post("/api/requests", json=ASKED).json()
    assert ann.post("/api/requests", json=ASKED).json() == first
    assert ben.post("/api/requests", json=ASKED).json()["id"] != first["id"]
    other = ann.post("/api/requests", json={**ASKED, "release": {**SPEC, "epsilon": 0.5}})
    assert other.status_code == 409
    assert len(ann.get("/api/requests").json()) == 1
    assert len(ben.get("/api/requests").json()) == 2


def test_decisions_may_be_repeated_but_not_changed(site):
    first, second = site.ask(form_id="1"), site.ask(form_id="2")
    api = site.api(CURATOR)
    for _ in range(2):
        assert api.post(f"/api/requests/{first.id}/approve").json()["status"] == "approved"
        assert api.post(f"/api/requests/{second.id}/refuse", json={"reason": "no"}).json()["status"] == "refused"
    assert api.post(f"/api/requests/{first.id}/refuse", json={"reason": "no"}).status_code == 409
    assert api.post(f"/api/requests/{second.id}/approve").status_code == 409
    assert api.post("/api/requests/unknown/approve").status_code == 404


def test_a_request_is_approved_for_the_schema_that_it_was_asked_with(site):
    asked = site.ask()
    site.studio.schemas.write(TABLE, SCHEMA.replace("upper = 100", "upper = 120"))
    answer = site.api(CURATOR).post(f"/api/requests/{asked.id}/approve")
    assert answer.status_code == 409
    assert load_request(site.studio.state, asked.id).status.value == "pending"


def test_requests_of_others_are_not_shown_to_analysts(site):
    asked = site.ask(BOTH)
    assert site.api(ANALYST).get(f"/api/requests/{asked.id}").status_code == 404
    assert site.api(ANALYST).get(f"/api/results/{asked.id}").status_code == 404


def test_the_description_has_every_address_of_the_api(site):
    found = site.api(ANALYST).get("/api/openapi.json").json()
    assert set(found["paths"]) >= {"/api/datasets", "/api/requests/{request_id}/approve"}
    assert all(path.startswith("/api/") for path in found["paths"])
    assert json.dumps(found).count('"bearer"') == 1
    assert site.browser(None).get("/api/openapi.json", headers={"Origin": ORIGIN}).status_code == 401
