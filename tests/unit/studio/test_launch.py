"""``matrixdp studio``: options, tokens, and a real server that is started and stopped."""

import re
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from datetime import UTC, datetime, timedelta
from http.cookiejar import CookieJar
from ipaddress import ip_address

import pytest
import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from matrixdp import Ledger
from matrixdp.cli.main import run
from matrixdp.studio import app as server
from matrixdp.studio import launch
from matrixdp.studio.sign_in import find_token
from matrixdp.studio.state import State


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


def test_the_studios_own_files_are_not_taken_for_a_table(folder, tmp_path, capsys):
    for state in (folder, folder / "state", folder / "deep" / ".state"):
        assert "--state must be outside" in run_refused(capsys, "token", "list", folder, "--state", state)
    for state in (folder / ".own", tmp_path / "state"):
        assert run(["studio", "token", "list", str(folder), "--state", str(state)]) == 0


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
    assert capsys.readouterr().out == f"Token {token.id} of ann is revoked; no browser was signed in with it.\n"
    assert find_token(state, secret) is None
    assert run(["studio", "token", "list", str(folder)]) == 0
    assert "revoked" in capsys.readouterr().out
    assert run(["studio", "token", "revoke", str(folder), "unknown"]) == 2


def write_certificate(folder):
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "studio")])
    present = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(present - timedelta(days=1))
        .not_valid_after(present + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    for file, content in (("cert.pem", certificate.public_bytes(serialization.Encoding.PEM)), ("key.pem", secret)):
        (folder / file).write_bytes(content)
    return folder / "cert.pem", folder / "key.pem"


def test_a_server_speaks_tls(folder, tmp_path, monkeypatch):
    certificate, key = write_certificate(tmp_path)
    servers, printed = [], []

    class Noted(uvicorn.Server):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            servers.append(self)

    monkeypatch.setattr(server.uvicorn, "Server", Noted)
    monkeypatch.setattr(launch.click, "echo", printed.append)
    words = ["studio", str(folder), "--port", "0", "--tls-cert", str(certificate), "--tls-key", str(key)]
    thread = threading.Thread(target=run, args=(words,))
    thread.start()
    deadline = time.monotonic() + 60
    while not any("Ctrl-C" in line for line in printed):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    address = re.search(r"https://127\.0\.0\.1:\d+/enter\?token=[\w-]+", "\n".join(printed))[0]
    context = ssl.create_default_context(cafile=certificate)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # no certificate authority made it
    opener = urllib.request.build_opener(
        urllib.request.HTTPSHandler(context=context), urllib.request.HTTPCookieProcessor(jar := CookieJar())
    )
    with opener.open(address) as answer:
        assert answer.headers["strict-transport-security"]
    (cookie,) = jar
    assert cookie.secure
    assert cookie.name.startswith("__Host-")
    servers[0].should_exit = True
    thread.join()


def test_a_server_starts_signs_in_and_stops(folder, capsys):
    command = [sys.executable, "-u", "-m", "matrixdp", "studio", str(folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        address = re.search(r"http://\S+", process.stdout.readline())[0]
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        with opener.open(address) as page:
            assert page.status == 200
            assert page.url.endswith("/datasets")
            assert "server" not in page.headers
        assert "another studio uses" in run_refused(capsys, folder, "--port", "0")
        process.send_signal(signal.SIGTERM if signal.getsignal(signal.SIGINT) is signal.SIG_IGN else signal.SIGINT)
        _, log = process.communicate(timeout=60)
    assert process.returncode in (0, -signal.SIGTERM)
    assert log == ""
    with Ledger.open(folder / ".studio" / "ledger.db") as ledger:
        assert ledger.datasets() == []
