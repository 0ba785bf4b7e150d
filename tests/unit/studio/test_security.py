"""Who is let in: hosts, origins, cookies and tokens, and forged forms."""

import pytest

from matrixdp.studio.security import POLICY
from studio_site import ANALYST, BOTH, CURATOR, ORIGIN, Site


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def test_an_address_signs_in_one_browser(site):
    secret = site.studio.links.create(BOTH)
    first, second = site.browser(None), site.browser(None)
    answer = first.get("/enter", params={"token": secret}, follow_redirects=False)
    assert answer.status_code == 303
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert first.get("/datasets").status_code == 200
    assert second.get("/enter", params={"token": secret}).status_code == 401


def test_every_answer_has_a_strict_policy(site):
    assert "unsafe" not in POLICY
    for path in ("/datasets", "/enter", "/nothing", "/static/nothing"):
        assert site.browser().get(path).headers["content-security-policy"] == POLICY


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:80", "127.0.0.1.evil.example:8765", ""])
def test_foreign_hosts_are_refused(site, host):
    answer = site.browser().get("/datasets", headers={"Host": host})
    assert answer.status_code == 421
    assert answer.headers["content-security-policy"] == POLICY


@pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1:80", "null", "https://127.0.0.1:8765"])
def test_foreign_origins_are_refused(site, origin):
    for method in ("GET", "POST"):
        assert site.browser().request(method, "/datasets", headers={"Origin": origin}).status_code == 403


def test_a_form_needs_its_token_and_an_origin(site):
    client = site.browser()
    token = client.headers.pop("X-CSRF-Token")
    assert client.post("/leave").status_code == 403
    assert client.post("/leave", data={"csrf_token": "wrong"}).status_code == 403
    assert client.post("/leave", headers={"X-CSRF-Token": "wrong", "Origin": ORIGIN}).status_code == 403
    del client.headers["Origin"]
    assert client.post("/leave", data={"csrf_token": token}).status_code == 403
    answer = client.post("/leave", data={"csrf_token": token}, headers={"Origin": ORIGIN}, follow_redirects=False)
    assert answer.status_code == 303
    assert client.get("/datasets").url.path == "/enter"


def test_one_person_may_be_both(site):
    assert site.ask(BOTH).asker == "desk"
    assert site.studio.requests.list_all(CURATOR)
    assert not site.studio.requests.list_all(ANALYST)
