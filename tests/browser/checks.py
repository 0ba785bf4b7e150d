"""What every page must satisfy: accessible, as wide as the window, and no script of a stranger."""

from axe_playwright_python.sync_playwright import Axe

AXE = Axe()
_SCROLLS = """() => {  // null, or the beginning of the innermost element that makes the page too wide
  const root = document.documentElement;
  if (root.scrollWidth <= root.clientWidth) return null;
  const wide = [...document.body.querySelectorAll("*")].filter((one) =>
    (one.scrollWidth > one.clientWidth || one.getBoundingClientRect().right > root.clientWidth)
    && !one.closest(".scroll, .chart-scroll, pre"));
  return (wide.at(-1)?.outerHTML ?? "unknown").slice(0, 300);
}"""

_SETTLED = """() => document.readyState === "complete" && !document.querySelector(".htmx-request, [aria-busy]")"""


def check_page(page):
    """Check the page that is shown, also with axe-core."""
    check_layout(page)
    found = AXE.run(page).response["violations"]
    problems = {one["id"]: [node["html"][:160] for node in one["nodes"]][:3] for one in found}
    assert problems == {}, f"{page.url}: {problems}"


def wait_until_settled(page):
    """Wait until nothing of the page is on its way any more."""
    page.wait_for_function(_SETTLED)


def check_layout(page):
    """Check that the page fits, and that no script of a stranger ran."""
    wait_until_settled(page)
    assert page.evaluate("window.hacked") is None, f"a script ran on {page.url}"
    assert page.evaluate(_SCROLLS) is None, f"{page.url} scrolls sideways: {page.evaluate(_SCROLLS)}"


class HeldRequests:
    """The requests of a page to an address, each of which waits until it is let go."""

    def __init__(self, page, address):
        self._page, self._routes = page, []
        page.route(address, lambda route: self._routes.append(route))

    def wait_for(self, number):
        """Wait until so many requests wait."""
        for _ in range(6000):
            if len(self._routes) >= number:
                return
            self._page.wait_for_timeout(10)
        raise AssertionError(f"{len(self._routes)} requests wait instead of {number}")

    def let_go(self, *, aborted=False):
        """Let the first one go that waits, and the page show the answer; of one that was `aborted` there is none."""
        self.wait_for(1)
        route = self._routes.pop(0)
        if aborted:
            route.continue_()
            return
        with self._page.expect_event("requestfinished", lambda request: request == route.request):
            route.continue_()
        self._page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
