"""What ``matrixdp studio`` does: checks its options and starts the server. Imports FastAPI only then."""

import fcntl
import ipaddress
import logging
import os
import re
import socket
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from getpass import getuser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from matrixdp.errors import MissingExtraError, ParameterError, install_hint, show
from matrixdp.ledger import Ledger
from matrixdp.ledger.location import Location
from matrixdp.studio.moving import check_place
from matrixdp.studio.roles import Role, Viewer
from matrixdp.studio.state import LOCAL_HOSTS, Proxy, Settings, State

_NEEDED = {"fastapi": "fastapi", "jinja2": "jinja2", "python_multipart": "python-multipart", "uvicorn": "uvicorn"}
_LOCAL = ("localhost", "127.0.0.1", "::1")
_ORIGIN = re.compile(r"https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")


def start_studio(
    *,
    folder: Path,
    ledger: Location | None,
    state: Path | None,
    host: str,
    port: int,
    origin: tuple[str, ...],
    open_browser: bool,
    log_requests: bool,
    tls_cert: Path | None,
    tls_key: Path | None,
    without_tls: bool,
    **forwarding: Any,
) -> None:
    """Serve until Ctrl-C; the options of ``matrixdp studio``, as they were given."""
    if missing := [package for module, package in _NEEDED.items() if find_spec(module) is None]:
        raise MissingExtraError(f"the studio requires {', '.join(missing)}. {install_hint('studio')}")
    from matrixdp.studio.app import run_server

    proxy = _check_proxy(**forwarding)
    certificate = _check_network(host, origin, tls_cert, tls_key, without_tls)
    if log_requests:
        _log_to_stderr()
    for address in origin:
        if not _ORIGIN.fullmatch(address):
            raise ParameterError(
                "--origin must be an address without a path, such as https://studio.example.org, got "
                f"{show(address)} instead."
            )
    place = find_state(folder, state)
    check_place(place)
    if ledger is None and not (place / "ledger.db").exists():
        State(place / "studio.db")  # makes the folder
        Ledger.create(place / "ledger.db").close()
    ledger = ledger or place / "ledger.db"
    if isinstance(ledger, Path):
        Ledger.open(ledger).close()
    with _hold_state(place), _bind(host, port) as listening:
        settings = Settings(
            folder=folder,
            ledger=ledger,
            state=place,
            port=listening.getsockname()[1],
            hosts=LOCAL_HOSTS if host in _LOCAL else (f"[{host}]" if ":" in host else host,),
            tls=certificate[0] is not None,
            origins=tuple(map(str.lower, origin)),
            proxy=proxy,
        )

        def announce(token: str) -> None:
            address = f"{settings.addresses[0]}/enter?token={token}"
            click.echo(f"Tables: {folder}   Ledger: {ledger}   Own files: {place}")
            click.echo(f"Open in a browser (signs in one browser, once): {address}")
            click.echo("Stop with Ctrl-C; requests that are approved are finished when it is started again.")
            if open_browser:
                _open_browser(place, address)

        run_server(settings, listening, certificate, _find_user(), announce)


def _check_proxy(trust_proxy: tuple[str, ...], user_header: str, groups_header: str, **groups: Any) -> Proxy | None:
    """The proxy whose headers are believed; an error for addresses that are none."""
    for network in trust_proxy:
        try:
            ipaddress.ip_network(network)
        except ValueError:
            raise ParameterError(
                f"--trust-proxy must be the address of a proxy, or a network such as 10.0.0.0/24, got {show(network)} "
                "instead."
            ) from None
    if any(groups.values()) and not trust_proxy:
        raise ParameterError("--curators and --analysts need --trust-proxy: the proxy that says the groups of people.")
    headers: Any = {"user_header": user_header.lower(), "groups_header": groups_header.lower()}
    return Proxy(networks=trust_proxy, **headers, **groups) if trust_proxy else None


def _log_to_stderr() -> None:
    """Write a line of JSON for each request to standard error."""
    log = logging.getLogger("matrixdp.studio.requests")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False


def find_state(folder: Path, state: Path | None) -> Path:
    """The folder of the studio's own files: ``--state``, or a hidden folder in the folder of tables."""
    if state is None:
        return folder / ".studio"
    place, tables = Path(os.path.realpath(state)), Path(os.path.realpath(folder))
    if place == tables or (tables in place.parents and not place.relative_to(tables).parts[0].startswith((".", "_"))):
        raise ParameterError(f"--state must be outside of {folder}, where it would be taken for a table, or hidden.")
    return state


def open_state(folder: Path, state: Path | None) -> State:
    """The file with the tokens of a studio."""
    return State(find_state(folder, state) / "studio.db")


def _check_network(
    host: str, origin: tuple[str, ...], tls_cert: Path | None, tls_key: Path | None, without_tls: bool
) -> tuple[Path | None, Path | None]:
    """The certificate and its key; an error for an address that is not local without them."""
    if (tls_cert is None) != (tls_key is None):
        raise ParameterError("--tls-cert and --tls-key must be given together: the certificate, and its private key.")
    for name, path in (("--tls-cert", tls_cert), ("--tls-key", tls_key)):
        if path is not None and not path.is_file():
            raise ParameterError(f"{name}: there is no file at {path}.")
    if tls_cert is not None and without_tls:
        raise ParameterError("--without-tls must be left out with --tls-cert.")
    if tls_cert is None and not without_tls and host not in _LOCAL:
        raise ParameterError(
            f"--host {host} is reached over the network, where tokens and results can be read without TLS. Add "
            "--tls-cert and --tls-key, or --without-tls if something else protects the connection."
        )
    if _is_wildcard(host) and not origin:
        raise ParameterError(
            f"--origin must be given with --host {host}: the address under which browsers reach the server, "
            "such as https://studio.example.org. Others are refused."
        )
    return tls_cert, tls_key


def _is_wildcard(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return not host


@contextmanager
def _hold_state(state: Path) -> Iterator[None]:
    """Make sure that no other server uses the same files."""
    State(state / "studio.db")
    with (state / "server.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ParameterError(f"another studio uses {state}. Stop it first, or choose another --state.") from None
        yield


@contextmanager
def _bind(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except OSError as error:
            raise ParameterError(
                f"--host {host} --port {port} cannot be used: {error.strerror}. Choose another; port 0 is a free one."
            ) from None
        yield listening


def _find_user() -> Viewer:
    """The person who starts the server: both curator and analyst."""
    try:
        name = getuser()
    except (KeyError, OSError):  # a user id without a name, as in containers
        name = "desk"
    return Viewer(name if name.isprintable() else "desk", frozenset(Role))


def _open_browser(state: Path, address: str) -> None:
    """Open the address in a browser by way of a file, since command lines can be read by other users."""
    page = state / "open.html"
    page.unlink(missing_ok=True)
    with os.fdopen(os.open(page, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={address}">\n')
    webbrowser.open(page.absolute().as_uri())
