"""Connections that keep a server waiting: nobody else is kept out, and none is kept for long. With real sockets."""

import http.client
import socket
import threading
import time
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest
import uvicorn
from starlette.responses import StreamingResponse

from matrixdp.studio import app as server
from studio_site import BOTH, make_settings

HALF = b"GET /enter HTTP/1.1\r\nHost: 127.0.0.1"


@contextmanager
def serve(folder, monkeypatch):
    """A studio that listens, and the port that it listens on."""
    servers, ready = [], threading.Event()

    class Noted(uvicorn.Server):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            servers.append(self)

    monkeypatch.setattr(server.uvicorn, "Server", Noted)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        arguments = (make_settings(folder, port=port), listening, (None, None), BOTH, lambda _: ready.set())
        thread = threading.Thread(target=server.run_server, args=arguments)
        thread.start()
        try:
            assert ready.wait(60)
            yield port
        finally:
            servers[0].should_exit = True
            thread.join()


def connect(stack, port, sent=b""):
    found = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
    found.settimeout(20)
    found.sendall(sent)
    return found


def ask(port):
    """The status of a page that anybody may see."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", "/enter")
    found = connection.getresponse()
    found.read()
    connection.close()
    return found.status


def is_open(connection):
    """Whether the server has not closed a connection on which it sent nothing."""
    connection.setblocking(False)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def count_open(connections, most):
    """How many connections are open, as soon as they are at most so many, or after five seconds."""
    end = time.monotonic() + 5.0
    while (number := sum(map(is_open, connections))) > most and time.monotonic() < end:
        time.sleep(0.02)  # closing takes a moment to arrive
    return number


def wait_until_closed(connection):
    """The seconds until the server closes a connection, and what it sent before."""
    start, content = time.monotonic(), b""
    try:
        while part := connection.recv(1 << 16):
            content += part
    except ConnectionResetError:
        pass
    return time.monotonic() - start, content


@pytest.mark.parametrize(
    "sent", [b"", HALF, b"POST /enter HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Length: 9\r\n\r\n"]
)
def test_half_open_connections_of_one_address_keep_nobody_out(tmp_path, monkeypatch, sent):
    with serve(tmp_path, monkeypatch) as port, ExitStack() as stack:
        sent = sent.replace(b"{}", str(port).encode())
        waiting = [connect(stack, port, sent) for _ in range(520)]
        assert [ask(port) for _ in range(5)] == [200] * 5
        assert count_open(waiting, server.MOST_FROM_ADDRESS) <= server.MOST_FROM_ADDRESS
        assert all(map(is_open, waiting[-20:]))  # those that have waited longest are closed


def test_half_open_connections_of_many_addresses_keep_nobody_out(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "MOST_FROM_ADDRESS", 10**6)
    with serve(tmp_path, monkeypatch) as port, ExitStack() as stack:
        waiting = [connect(stack, port, HALF) for _ in range(520)]
        assert [ask(port) for _ in range(5)] == [200] * 5
        assert count_open(waiting, server.MOST_WAITING) <= server.MOST_WAITING


def test_a_request_that_does_not_arrive_in_time_is_given_up(tmp_path, monkeypatch):
    """Neither silence nor a byte now and then keeps a connection, whether the head is missing or the body."""
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.4)
    monkeypatch.setattr(server, "BODY_SECONDS", 0.8)
    with serve(tmp_path, monkeypatch) as port, ExitStack() as stack:
        head = b"POST /enter HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 1000\r\n" % port
        head += b"Content-Type: application/x-www-form-urlencoded\r\n\r\n"
        silent, half, body = (connect(stack, port, sent) for sent in (b"", HALF, head + b"token="))
        dripping = threading.Thread(target=drip, args=([half, body],))
        dripping.start()
        for connection in (silent, half, body):
            seconds, content = wait_until_closed(connection)
            assert seconds < 8
            assert b"200" not in content
        dripping.join()


def drip(connections):
    """Send a byte now and then for longer than a server waits, until it has closed all of them."""
    left, end = list(connections), time.monotonic() + 12
    while left and time.monotonic() < end:
        for connection in left[:]:
            try:
                connection.sendall(b"x")
            except OSError:
                left.remove(connection)
        time.sleep(0.05)


def test_an_answer_may_take_longer_and_a_connection_is_used_again(tmp_path, monkeypatch):
    """Only the arrival of a request is limited, and each request of a connection has its own time."""
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.6)
    render = server.Visit.render

    def render_slowly(*arguments, **options):
        time.sleep(0.9)
        return render(*arguments, **options)

    monkeypatch.setattr(server.Visit, "render", render_slowly)
    with serve(tmp_path, monkeypatch) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        for _ in range(3):
            connection.request("GET", "/enter")
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200
            time.sleep(0.3)
        connection.close()


@pytest.mark.parametrize("parts", [1, 200])
def test_an_answer_that_nobody_takes_is_given_up(tmp_path, monkeypatch, parts):
    """One that is taken slowly is sent to its end."""
    size = 20_000_000
    monkeypatch.setattr(server, "HEAD_SECONDS", 2.0)
    monkeypatch.setattr(server, "ANSWER_SECONDS", 2.0)
    answer = partial(StreamingResponse, headers={"Content-Length": str(size)})
    monkeypatch.setattr(server.Visit, "render", lambda *a, **k: answer(iter([b"x" * (size // parts)] * parts)))
    with serve(tmp_path, monkeypatch) as port, ExitStack() as stack:
        request = b"GET /enter HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n" % port
        silent, slow = (connect(stack, port, request) for _ in range(2))
        found = 0
        while part := slow.recv(1 << 20):
            found += len(part)
            time.sleep(0.15)
        assert found > size
        assert 0 < len(wait_until_closed(silent)[1]) < size
