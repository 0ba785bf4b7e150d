"""A connection between client and server that breaks at a commit."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Self


class CommitProxy:
    """Passes bytes between clients and a server, until a client sends COMMIT while a fault is set.

    Parameters
    ----------
    port : int
        The server's, on 127.0.0.1.

    Attributes
    ----------
    fault : callable or None
        Called once, at the next COMMIT, when the client's connection was closed without an answer. Its arguments are
        two functions: one that passes the COMMIT on to the server, one that ends the session without it; both return
        when the server is done.
    refuse : bool
        Whether new connections are closed at once.
    """

    def __init__(self, port: int) -> None:
        self.fault: Callable[[Callable[[], None], Callable[[], None]], object] | None = None
        self.refuse = False
        self._server_port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in list(self._threads):
            thread.join()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.refuse:
                    client.close()
                    continue
                thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self, client: socket.socket) -> None:
        server = socket.create_connection(("127.0.0.1", self._server_port))
        answers = threading.Thread(target=_pass_on, args=(server, client), daemon=True)
        answers.start()
        with contextlib.suppress(OSError), client, server:
            while data := client.recv(65536):
                fault = self.fault
                if fault is not None and data.endswith(b"COMMIT\0"):
                    self.fault = None
                    _close(client)
                    fault(
                        lambda message=data: _finish(server, answers, message),
                        lambda: _finish(server, answers, b""),
                    )
                    break
                server.sendall(data)
            _close(server)
            answers.join()


def _finish(server: socket.socket, answers: threading.Thread, message: bytes) -> None:
    """Send a message and then the end of the session; the server closes the connection when it is done."""
    server.sendall(message + b"X\0\0\0\x04")
    answers.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            with contextlib.suppress(OSError):  # the target may be gone; read to the end
                target.sendall(data)
    _close(target)


def _close(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
