"""Tokens are shown once, stored as hashes, revoked at once, and cannot be guessed."""

from datetime import UTC, datetime, timedelta

import pytest

from matrixdp.errors import ParameterError
from matrixdp.studio import sign_in as tokens_module
from matrixdp.studio import state as state_module
from matrixdp.studio.refusals import NotFoundError, UnavailableError
from matrixdp.studio.roles import Role
from matrixdp.studio.security import BODY_LIMIT
from matrixdp.studio.sign_in import MOST_WRONG, WrongTokens, create_token, find_token, list_tokens, revoke_token
from matrixdp.studio.state import State
from studio_site import ANALYST, BOTH, CURATOR, ORIGIN, TABLE, Site


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def sign_in(site, secret):
    client = site.browser(None)
    answer = client.post("/enter", data={"token": secret}, follow_redirects=False)
    return client, answer.status_code


def test_the_file_has_hashes_alone(site):
    secret, token = create_token(site.studio.state, "ann", [Role.ANALYST])
    client, status = sign_in(site, secret)
    assert status == 303
    content = site.settings.database.read_bytes()
    assert secret.encode() not in content
    assert client.cookies["matrixdp-studio-8765"].encode() not in content
    assert site.settings.database.stat().st_mode & 0o077 == 0
    assert list_tokens(site.studio.state) == [token]


def test_a_persons_token_is_not_accepted_in_an_address(site):
    secret, _ = create_token(site.studio.state, "ann", [Role.ANALYST])
    assert site.browser(None).get("/enter", params={"token": secret}).status_code == 401
    assert site.browser(None).post("/enter", data={"token": site.studio.links.create(BOTH)}).status_code == 401


def test_a_revoked_token_ends_at_once_with_its_sessions(site):
    secret, token = create_token(site.studio.state, "ann", [Role.ANALYST])
    client, _ = sign_in(site, secret)
    assert client.get("/datasets").url.path == "/datasets"
    sign_in(site, secret)
    for sessions in (2, 0):
        revoked, ended = revoke_token(site.studio.state, token.id)
        assert revoked.revoked is not None
        assert ended == sessions
    assert client.get("/datasets").url.path == "/enter"
    assert sign_in(site, secret)[1] == 401
    assert client.get("/api/me", headers={"Authorization": f"Bearer {secret}"}).status_code == 401
    with pytest.raises(NotFoundError):
        revoke_token(site.studio.state, "unknown")


def test_the_session_of_a_printed_address_can_be_revoked(site):
    desk, other = site.browser(BOTH), site.browser(BOTH)
    links = list_tokens(site.studio.state)
    assert [(token.is_link, token.name, token.is_valid) for token in links] == [(True, BOTH.name, True)] * 2
    revoked, ended = revoke_token(site.studio.state, links[0].id)
    assert (revoked.is_link, ended) == (True, 1)
    assert desk.get("/datasets").url.path == "/enter"
    assert other.get("/datasets").url.path == "/datasets"
    other.post("/leave")
    assert [token.id for token in list_tokens(site.studio.state)] == [links[0].id]
    create_token(site.studio.state, BOTH.name, [Role.ANALYST])  # a printed address does not fix the roles of a name


def test_an_expired_token_and_its_session_end(site, monkeypatch):
    secret, token = create_token(site.studio.state, "ann", [Role.ANALYST], days=0.25)
    client, _ = sign_in(site, secret)
    later = (datetime.now(UTC) + timedelta(hours=7)).isoformat()
    for module in (state_module, tokens_module):
        monkeypatch.setattr(module, "now", lambda: later)
    monkeypatch.setattr("matrixdp.studio.sign_in.now", lambda: later)
    assert not token.is_valid
    assert find_token(site.studio.state, secret) is None
    assert client.get("/datasets").url.path == "/enter"


def test_a_stolen_cookie_sends_no_forms_without_the_token_of_the_page(site):
    victim = site.browser(CURATOR)
    thief = site.browser(None)
    thief.cookies.update(victim.cookies)
    assert thief.post("/leave").status_code == 403
    victim.post("/leave")
    assert thief.get("/datasets").url.path == "/enter"


def test_wrong_tokens_are_limited_and_right_ones_still_work(site):
    secret, _ = create_token(site.studio.state, "ann", [Role.ANALYST])
    client = site.browser(None)
    found = [client.get("/api/me", headers={"Authorization": f"Bearer wrong{i}"}).status_code for i in range(50)]
    assert found == [401] * MOST_WRONG + [429] * (50 - MOST_WRONG)
    assert client.post("/enter", data={"token": "wrong"}).status_code == 429
    assert client.get("/enter", params={"token": "wrong"}).status_code == 429
    assert client.get("/api/me", headers={"Authorization": f"Bearer {secret}"}).status_code == 200


def test_the_limit_is_for_a_minute_and_an_address():
    seconds = [0.0]
    limit = WrongTokens(clock=lambda: seconds[0])
    assert [limit.add("a") for _ in range(MOST_WRONG + 2)] == [False] * MOST_WRONG + [True, True]
    assert not limit.add("b")
    seconds[0] = 61.0
    assert not limit.add("a")


@pytest.mark.parametrize(
    ("name", "roles", "days"),
    [("", [Role.ANALYST], None), ("a\n", [Role.ANALYST], None), ("a" * 101, [Role.ANALYST], None), ("ann", [], None),
     ("ann", [Role.ANALYST], -1.0), ("ann", [Role.ANALYST], float("nan"))],
)  # fmt: skip
def test_mistakes_are_refused(site, name, roles, days):
    with pytest.raises(ParameterError):
        create_token(site.studio.state, name, roles, days)


def test_one_name_has_one_set_of_roles(site):
    create_token(site.studio.state, "ann", [Role.ANALYST])
    create_token(site.studio.state, "ann", [Role.ANALYST])
    with pytest.raises(ParameterError, match="other roles"):
        create_token(site.studio.state, "ann", [Role.CURATOR])


def test_a_link_from_another_site_signs_in_by_way_of_a_page(site):
    secret = site.studio.links.create(BOTH)
    client = site.browser(None)
    waiting = client.get("/enter", params={"token": secret}, headers={"Sec-Purpose": "prefetch"})
    assert "set-cookie" not in waiting.headers
    answer = client.get("/enter", params={"token": secret}, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 200
    assert 'http-equiv="refresh"' in answer.text
    assert client.get("/datasets").url.path == "/datasets"


def test_cookies_by_https_are_secure(tmp_path):
    site = Site(tmp_path, origins=("https://studio.example.org",))
    client = site.browser(None)
    client.base_url = "https://studio.example.org"
    client.headers["Origin"] = "https://studio.example.org"
    answer = client.get("/enter", params={"token": site.studio.links.create(ANALYST)}, follow_redirects=False)
    assert answer.headers["set-cookie"].startswith("__Host-matrixdp-studio-8765=")
    assert "secure" in answer.headers["set-cookie"].lower()
    assert "strict-transport-security" in answer.headers
    assert client.get("/datasets", headers={"Host": ORIGIN.removeprefix("http://")}).status_code == 421


def test_large_bodies_are_refused(site):
    client = site.browser()
    size = BODY_LIMIT
    assert client.post("/leave", content=b"x" * (size + 1)).status_code == 413

    def stream():
        for _ in range(size // 1000 + 2):
            yield b"x" * 1000

    del client.headers["X-CSRF-Token"]  # so that the form is read
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert client.post("/leave", content=stream(), headers=form).status_code == 413
    api = site.api(BOTH)
    answer = api.put(f"/api/tables/{TABLE}/schema", content=stream(), headers={"Content-Type": "application/json"})
    assert answer.status_code == 413
    assert client.get("/enter", headers={"Content-Length": "x"}).status_code == 413


def test_another_file_is_not_taken_for_the_studios(tmp_path):
    path = tmp_path / "studio.db"
    path.write_bytes(b"something else, and long enough to be no database of SQLite at all" * 10)
    with pytest.raises(UnavailableError, match="not a database"):
        State(path)
    with pytest.raises(UnavailableError, match="cannot be written"):
        State(path / "below")
    newer = tmp_path / "newer.db"
    with State(newer).writing() as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(UnavailableError, match="this version"):
        State(newer)
