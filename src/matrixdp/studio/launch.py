"""What ``matrixdp studio`` does: checks its options and starts the server; backups, and the one place of a studio.

FastAPI is imported only when the server starts. A copy of a studio that runs beside the original would answer for it
twice, so the studio's file records the place at which it is used, as a ledger does (`matrixdp.ledger.place`).
"""

import ipaddress
import json
import logging
import os
import re
import shutil
import socket
import sqlite3
from contextlib import closing, suppress
from dataclasses import asdict
from getpass import getuser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from matrixdp.errors import LedgerError, MissingExtraError, ParameterError, install_hint, show
from matrixdp.ledger import Ledger
from matrixdp.ledger.location import Location
from matrixdp.ledger.place import Place, find_place
from matrixdp.studio.roles import Role, Viewer
from matrixdp.studio.state import LOCAL_HOSTS, Proxy, Settings, State, hold_lock

_NEEDED = {"fastapi": "fastapi", "jinja2": "jinja2", "python_multipart": "python-multipart", "uvicorn": "uvicorn"}
_LOCAL = ("localhost", "127.0.0.1", "::1")
_DATABASE, _LEDGER = "studio.db", "ledger.db"
_ORIGIN = re.compile(r"https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")


def start_studio(
    *,
    folder: Path,
    ledger: Location | None,
    state: Path | None,
    host: str,
    port: int,
    origin: tuple[str, ...],
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
    _check_network(host, origin, tls_cert, tls_key, without_tls)
    if log_requests:  # a line of JSON for each
        log, handler = logging.getLogger("matrixdp.studio.requests"), logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        log.propagate = False
    place = find_state(folder, state)
    check_place(place)
    State(place / _DATABASE)  # makes the folder
    if ledger is None and not (place / _LEDGER).exists():
        Ledger.create(place / _LEDGER).close()
    ledger = ledger or place / _LEDGER
    if isinstance(ledger, Path):
        Ledger.open(ledger).close()
    used = f"another studio uses {place}. Stop it first, or choose another --state."
    with hold_lock(place / "server.lock", used), _bind(host, port) as listening:
        settings = Settings(
            folder=folder,
            ledger=ledger,
            state=place,
            port=listening.getsockname()[1],
            hosts=LOCAL_HOSTS if host in _LOCAL else (f"[{host}]" if ":" in host else host,),
            tls=tls_cert is not None,
            origins=tuple(map(str.lower, origin)),
            proxy=proxy,
        )

        def announce(token: str) -> None:
            address = f"{settings.addresses[0]}/enter?token={token}"
            click.echo(f"Tables: {folder}   Ledger: {ledger}   Own files: {place}")
            click.echo(f"Open in a browser (signs in one browser, once): {address}")
            click.echo("Stop with Ctrl-C; requests that are approved are finished when it is started again.")

        run_server(settings, listening, (tls_cert, tls_key), _find_user(), announce)


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
    return State(find_state(folder, state) / _DATABASE)


def _check_network(
    host: str, origin: tuple[str, ...], tls_cert: Path | None, tls_key: Path | None, without_tls: bool
) -> None:
    """Raise for an address that is not local without a certificate and its key, and for an origin that is none."""
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
    wildcard = not host
    with suppress(ValueError):
        wildcard = ipaddress.ip_address(host).is_unspecified
    if wildcard and not origin:
        raise ParameterError(
            f"--origin must be given with --host {host}: the address under which browsers reach the server, "
            "such as https://studio.example.org. Others are refused."
        )
    for address in origin:
        if not _ORIGIN.fullmatch(address):
            rule = "--origin must be an address without a path, such as https://studio.example.org"
            raise ParameterError(f"{rule}, got {show(address)} instead.")


def _bind(host: str, port: int) -> socket.socket:
    """A socket that listens, so that whoever opens the printed address at once is answered, too."""
    family, both = (socket.AF_INET6, socket.has_dualstack_ipv6()) if ":" in host else (socket.AF_INET, False)
    try:
        return socket.create_server((host, port), family=family, dualstack_ipv6=both)
    except OSError as error:
        reason = str(error.strerror).partition(" (while")[0]
        raise ParameterError(
            f"--host {host} --port {port} cannot be used: {reason}. Choose another; port 0 is a free one."
        ) from None


def _find_user() -> Viewer:
    """The person who starts the server: both curator and analyst."""
    try:
        name = getuser()
    except (KeyError, OSError):  # a user id without a name, as in containers
        name = "desk"
    return Viewer(name if name.isprintable() else "desk", frozenset(Role))


def check_place(state: Path) -> None:
    """Record where the studio's own files are; a `ParameterError` if they are a copy, or were moved."""
    database = state / _DATABASE
    if not database.exists():
        return
    opened = State(database)
    recorded, here = _read_place(opened), find_place(database)
    if recorded is not None and not recorded.matches(here):
        original = Path(recorded.path).parent
        raise ParameterError(
            f"{state} is a copy of the studio at {original}, or was moved from there. Two studios would answer the "
            f"same requests. Use the one at {original}. If it was moved here: matrixdp studio moved. If it is lost, "
            "and this is a backup: matrixdp studio restore."
        )
    _write_place(opened, here)


def confirm_move(state: Path) -> None:
    """Record that the studio's own files were moved to `state`, with the ledger among them; refused for a copy."""
    database = state / _DATABASE
    if not database.is_file():
        raise ParameterError(f"there is no studio at {state}. Check FOLDER and --state.")
    opened = State(database)
    recorded = _read_place(opened)
    if recorded is not None:
        original = Path(recorded.path)
        if original.exists() and not original.samefile(database) and recorded.holds(find_place(original)):
            raise ParameterError(f"the studio at {original.parent} is still there. Use it, or move it away first.")
    if (state / _LEDGER).exists():
        Ledger.moved(state / _LEDGER).close()
    _write_place(opened, find_place(database))


def back_up(state: Path, ledger: Location | None, target: Path) -> None:
    """Copy a studio, which may be running, to a new folder: its file, schemas, releases, and its ledger if a file."""
    if not (state / _DATABASE).is_file():
        raise ParameterError(f"there is no studio at {state}. Check FOLDER and --state.")
    if target.exists():
        raise ParameterError(f"{target} is there already. Choose a new folder.")
    target.mkdir(mode=0o700, parents=True)
    # The ledger comes first: what was charged after it was copied has to be settled, and a release whose charge it
    # lacks is not made again with other noise.
    place = ledger if ledger is not None else state / _LEDGER
    if isinstance(place, Path):
        with Ledger.open(place) as opened:
            opened.backup(target / _LEDGER)
    with closing(sqlite3.connect(state / _DATABASE)) as source, closing(sqlite3.connect(target / _DATABASE)) as copy:
        source.backup(copy)
        copy.execute("DELETE FROM sessions")
        copy.execute("DELETE FROM place")
        copy.commit()
    (target / _DATABASE).chmod(0o600)
    _copy_folders(state, target)


def restore(source: Path, state: Path, ledger: Path | None) -> None:
    """Make a studio from a backup, at a place where there is none; nobody is signed in, and tokens are valid again."""
    if not (source / _DATABASE).is_file():
        raise ParameterError(f"{source} is no backup of a studio: it has no {_DATABASE}.")
    if (state / _DATABASE).exists():
        raise ParameterError(f"there is a studio at {state} already. Choose another --state, or move it away.")
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    if (source / _LEDGER).exists():
        place = ledger or state / _LEDGER
        try:
            Ledger.restore(source / _LEDGER, place).close()
        except LedgerError as error:
            raise ParameterError(f"the ledger cannot be restored to {place}: {error}") from None
    shutil.copyfile(source / _DATABASE, state / _DATABASE)
    (state / _DATABASE).chmod(0o600)
    _copy_folders(source, state)
    check_place(state)


def _copy_folders(source: Path, target: Path) -> None:
    for name in ("schemas", "releases"):
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name, ignore=shutil.ignore_patterns("*.tmp"))


def _read_place(state: State) -> Place | None:
    rows = state.select("SELECT content FROM place")
    return Place(**{**json.loads(rows[0]["content"]), "marks": frozenset()}) if rows else None


def _write_place(state: State, place: Place) -> None:
    content = {name: value for name, value in asdict(place).items() if name != "marks"}
    with state.writing() as connection:
        connection.execute("INSERT OR REPLACE INTO place VALUES (1, ?)", (json.dumps(content),))
