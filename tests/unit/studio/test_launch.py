"""``matrixdp studio``: options, tokens, and a real server that is started and stopped."""

import re
import signal
import subprocess
import sys
import urllib.request
from http.cookiejar import CookieJar

import pytest

from matrixdp import Ledger
from matrixdp.cli.main import run
from matrixdp.studio import launch
from matrixdp.studio.state import State
from matrixdp.studio.tokens import find_token


@pytest.fixture
def folder(tmp_path):
    found = tmp_path / "tables"
    found.mkdir()
    (found / "clinic.csv").write_text("age\n30\n", encoding="utf-8")
    return found


def run_refused(capsys, *words):
    assert run(["studio", *map(str, words)]) in (2, 4)
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "0.0.0.0"], "--without-tls"),
        (["--host", "0.0.0.0", "--without-tls"], "--origin must be given"),
        (["--host", "studio.example.org"], "TLS"),
        (["--tls-cert", "missing.pem"], "--tls-key"),
        (["--tls-cert", "missing.pem", "--tls-key", "missing.pem"], "no file"),
        (["--tls-cert", __file__, "--tls-key", __file__, "--without-tls"], "left out"),
        (["--origin", "studio.example.org"], "--origin must be an address"),
        (["--origin", "https://studio.example.org/path"], "--origin must be an address"),
        (["--ledger", "missing.db"], "no ledger"),
        (["--host", "192.0.2.1", "--without-tls"], "cannot be used"),
    ],
)
def test_options_that_are_not_safe_are_refused(folder, capsys, options, words):
    assert words in run_refused(capsys, folder, *options)


def test_a_folder_must_be_there(tmp_path, capsys):
    assert "FOLDER" in run_refused(capsys, tmp_path / "nothing")
    assert "FOLDER" in run_refused(capsys, "token", "list", tmp_path / "nothing")


def test_a_missing_extra_is_named(folder, capsys, monkeypatch):
    monkeypatch.setattr(launch, "find_spec", lambda name: None if name == "fastapi" else name)
    message = run_refused(capsys, folder)
    assert "requires fastapi" in message
    assert "[studio]" in message


def test_tokens_are_made_listed_and_revoked(folder, capsys):
    assert run(["studio", "token", "new", str(folder), "--name", "ann", "--role", "analyst", "--days", "30"]) == 0
    secret = capsys.readouterr().out.strip()
    state = State(folder / ".studio" / "studio.db")
    token = find_token(state, secret)
    assert token.name == "ann"
    assert run(["studio", "token", "list", str(folder)]) == 0
    listed = capsys.readouterr().out
    assert token.id in listed
    assert secret not in listed
    assert run(["studio", "token", "revoke", str(folder), token.id]) == 0
    assert find_token(state, secret) is None
    assert run(["studio", "token", "list", str(folder)]) == 0
    assert "revoked" in capsys.readouterr().out
    assert run(["studio", "token", "revoke", str(folder), "unknown"]) == 2


def test_the_address_is_opened_by_way_of_a_private_file(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(launch.webbrowser, "open", opened.append)
    for _ in range(2):
        launch._open_browser(tmp_path, "http://127.0.0.1/enter?token=secret")
    assert (tmp_path / "open.html").stat().st_mode & 0o077 == 0
    assert "secret" in (tmp_path / "open.html").read_text()
    assert not any("secret" in address for address in opened)


def test_a_server_starts_signs_in_and_stops(folder, capsys):
    command = [sys.executable, "-u", "-m", "matrixdp", "studio", str(folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        server.stdout.readline()
        address = re.search(r"http://\S+", server.stdout.readline())[0]
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        with opener.open(address) as page:
            assert page.status == 200
            assert page.url.endswith("/datasets")
            assert "server" not in page.headers
        assert "another studio uses" in run_refused(capsys, folder, "--port", "0")
        server.send_signal(signal.SIGTERM if signal.getsignal(signal.SIGINT) is signal.SIG_IGN else signal.SIGINT)
        _, log = server.communicate(timeout=60)
    assert server.returncode in (0, -signal.SIGTERM)
    assert log == ""
    with Ledger.open(folder / ".studio" / "ledger.db") as ledger:
        assert ledger.datasets() == []
