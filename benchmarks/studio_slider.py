"""``python -m benchmarks.studio_slider``: from a move of the slider to the new forecast on the screen, in Chromium.

The time is from the event of the slider until all charts of the forecast are drawn: the pause in which further moves
are awaited, the request, the server, the swap and the drawing. Also as a ratio to a request for a static file from the
same page. Processor times of a move, which hardly depend on what else the machine does, include what the page asks for
when the slider rests. Needs Playwright, and Chromium on the path.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, sync_playwright

from benchmarks.sizes import size
from benchmarks.studio import FEATURES, Server, make_folder, serve
from matrixdp.studio.roles import Role
from matrixdp.studio.sign_in import create_token
from matrixdp.studio.state import State

MOVES, FIRST = size((60, 5), (1, 1))
_MOVE = """async (step) => {
  const slider = document.querySelector("#epsilon-slider");
  const wait = () => new Promise((done) => setTimeout(done, 2));
  performance.clearMarks();
  const start = performance.now();
  slider.value = step;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  while (!performance.getEntriesByName("forecast shown").length) await wait();
  const shown = performance.getEntriesByName("forecast shown")[0].startTime;
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));  // pictures are painted
  const last = performance.now();
  const middle = performance.now();
  await (await fetch(document.querySelector("link[rel=stylesheet]").href, { cache: "no-store" })).text();
  return [shown - start, last - start, performance.now() - middle];
}"""
_NOTE = """() => document.body.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id === "forecast") performance.mark("forecast shown");
})"""


def measure(page: Page, query: str, server: Server) -> tuple[np.ndarray, np.ndarray]:
    """Milliseconds until text and charts of a forecast are there, and for a static file, of shape (MOVES, 3).

    And processor milliseconds of a move, in the browser and in the server.
    """
    page.select_option("#query", query)
    page.wait_for_timeout(6000)  # simulations of adaptive fits, which are kept
    page.evaluate(_NOTE)
    rng, found = np.random.default_rng(0), []
    before = measure_processor(page, server)
    for i in range(MOVES + FIRST):
        times = page.evaluate(_MOVE, str(rng.integers(-30, 31)))
        page.wait_for_timeout(100)
        if i >= FIRST:
            found.append(times)
    return np.array(found), (measure_processor(page, server) - before) / (MOVES + FIRST)


def measure_processor(page: Page, server: Server) -> np.ndarray:
    """Processor milliseconds so far of the pages, with their drawing, and of the server."""
    assert page.context.browser is not None
    session = page.context.browser.new_browser_cdp_session()
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    pages = sum(one["cpuTime"] for one in processes if one["type"] in ("renderer", "GPU"))
    return 1e3 * np.array([pages, server.cpu()])


def main() -> None:
    """Print the figures."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        make_folder(Path(place))
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        secret, _ = create_token(State(Path(place) / ".studio" / "studio.db"), "bench", Role)
        with serve(Path(place)) as server:
            for query in ("correlation", "covariance", "everything"):
                page = browser.new_page(viewport={"width": 1280, "height": 900})
                page.goto(f"{server.origin}/enter")
                page.fill("#token", secret)
                page.click("button:has-text('Sign in')")
                page.goto(f"{server.origin}/design")
                times, used = measure(page, query, server)
                text, charts = np.quantile(times[:, :2], 0.95, axis=0)
                ratio = np.median(times[:, 1]) / np.median(times[:, 2])
                print(
                    f"slider to forecast of {FEATURES} columns, {query}: text p95 {text:.0f} ms, "
                    f"charts p50 {np.median(times[:, 1]):.0f} ms, p95 {charts:.0f} ms (target 150), "
                    f"{ratio:.1f} times a static file; processor: browser {used[0]:.0f} ms, "
                    f"server {used[1]:.0f} ms a move"
                )
                page.close()
        browser.close()


if __name__ == "__main__":
    main()
