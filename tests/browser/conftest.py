"""A running studio and a real Chromium. Without one the tests are skipped, or fail if MATRIXDP_BROWSER=required.

MATRIXDP_BROWSER_SLOW=SEED looks for tests and pages that depend on timing: the browser has a sixth of the processor,
and answers of the studio come up to 0.8 s late, at random.
"""

import asyncio
import os
import random
import shutil
import socket
import threading

import pytest
import uvicorn

from studio_site import BOTH, Site

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
TIMEOUT = 60_000  # milliseconds; a deadline for busy machines, and never waited for in a run that passes
SLOW = os.environ.get("MATRIXDP_BROWSER_SLOW")
EXPECTED = (
    "Failed to load resource: the server responded with a status of 4",  # a refusal that a test asks for
    "Response Status Error Code 4",
    "htmx:afterRequest",  # a forecast that a later one replaced
    "htmx:sendAbort",
)


@pytest.fixture(scope="session")
def chromium():
    """The browser; a session, or a worker of pytest-xdist, starts it once."""
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        message = f"none of {', '.join(NAMES)} is installed"
        if os.environ.get("MATRIXDP_BROWSER") == "required":
            pytest.fail(message)
        pytest.skip(message)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=TIMEOUT)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


class RunningSite(Site):
    """A `Site` that a browser can reach."""

    def __init__(self, folder, **changes):
        self._socket = socket.create_server(("127.0.0.1", 0))
        port = self._socket.getsockname()[1]
        super().__init__(folder, port=port, **changes)
        self.url = f"http://127.0.0.1:{port}"
        config = uvicorn.Config(delay_answers(self.app) if SLOW else self.app, log_level="critical", access_log=False)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})

    def __enter__(self):
        self._thread.start()
        while not self._server.started:
            self._thread.join(0.02)
            assert self._thread.is_alive(), "the server ended"
        return self

    def __exit__(self, *_):
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


def delay_answers(app):
    """An app whose answers come late, at random, apart from static files."""
    rng = random.Random(SLOW)

    async def answer(scope, receive, send):
        if scope["type"] == "http" and not scope["path"].startswith("/static/"):
            await asyncio.sleep(rng.choice([0, 0, 0.1, 0.3, 0.8]))
        await app(scope, receive, send)

    return answer


@pytest.fixture
def open_page(chromium, site):
    """A function that opens a page for a person who is signed in; fails if a page ran into an error."""
    contexts, problems = [], []

    def open_one(viewer=BOTH, *, width=1280, dark=False):
        scheme = "dark" if dark else "light"
        context = chromium.new_context(
            base_url=site.url,
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            reduced_motion="reduce",
        )
        context.set_default_timeout(TIMEOUT)
        contexts.append(context)
        context.on("console", lambda line: _note(problems, line))
        context.on("weberror", lambda error: problems.append(str(error.error)))
        page = context.new_page()
        if SLOW:
            context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": 6})
        page.goto(f"/enter?token={site.studio.links.create(viewer)}")
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert problems == []


def _note(problems, line):
    """Keep errors and violations of the Content-Security-Policy; both are errors of the console."""
    if line.type in ("error", "warning") and not line.text.startswith(EXPECTED):
        problems.append(line.text)
