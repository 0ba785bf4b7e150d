"""The server process."""

from __future__ import annotations

import logging
import socket
from asyncio import CancelledError
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import uvicorn

from matrixdp.studio.app import create_app
from matrixdp.studio.roles import Viewer
from matrixdp.studio.settings import Settings


class _AnnouncedServer(uvicorn.Server):
    """A server that says when it accepts requests."""

    announce: Callable[[], None]

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept requests."""
        await super().startup(sockets)
        if not self.should_exit:
            self.announce()


def _is_no_interruption(record: logging.LogRecord) -> bool:
    """Whether a line of the log is more than a simulation that was interrupted when the server stopped."""
    return record.exc_info is None or not isinstance(record.exc_info[1], CancelledError)


def run_server(
    settings: Settings,
    listening: socket.socket,
    certificate: tuple[Path | None, Path | None],
    user: Viewer,
    announce: Callable[[str], None],
) -> None:
    """Serve on a bound socket until the process is interrupted.

    Parameters
    ----------
    settings : Settings
    listening : socket
    certificate : tuple of Path or None
        Files of the TLS certificate and its key.
    user : Viewer
        The person whom the printed address signs in.
    announce : callable
        Called with the token of that address once the server accepts requests.
    """
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").addFilter(_is_no_interruption)
    app = create_app(settings, quick=True)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,  # it would contain the tokens of addresses
        proxy_headers=False,
        server_header=False,
        ws="none",
        lifespan="on",
        limit_concurrency=500,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=32 << 10,
        ssl_certfile=certificate[0],
        ssl_keyfile=certificate[1],
    )
    server = _AnnouncedServer(config)
    server.announce = lambda: announce(app.state.studio.links.create(user))
    with suppress(KeyboardInterrupt):
        server.run(sockets=[listening])
