"""What every page must satisfy: accessible, as wide as the window, and no script of a stranger."""

from axe_playwright_python.sync_playwright import Axe

AXE = Axe()
_SCROLLS = """() => {  // null, or the beginning of the innermost element that makes the page too wide
  const root = document.documentElement;
  if (root.scrollWidth <= root.clientWidth) return null;
  const wide = [...document.body.querySelectorAll("*")].filter((one) =>
    (one.scrollWidth > one.clientWidth || one.getBoundingClientRect().right > root.clientWidth)
    && !one.closest(".scroll, pre"));
  return (wide.at(-1)?.outerHTML ?? "unknown").slice(0, 300);
}"""


def check_page(page):
    """Check the page that is shown, also with axe-core."""
    check_layout(page)
    found = AXE.run(page).response["violations"]
    serious = {
        one["id"]: [node["html"][:160] for node in one["nodes"]][:3]
        for one in found
        if one["impact"] in ("serious", "critical")
    }
    assert serious == {}, f"{page.url}: {serious}"


def check_layout(page):
    """Check that the page fits, that its charts are drawn, and that no script of a stranger ran."""
    page.wait_for_function(
        "[...document.querySelectorAll('[data-chart]')].every((one) => one.dataset.drawn || one.dataset.failed)"
    )
    assert page.evaluate("window.hacked") is None, f"a script ran on {page.url}"
    assert page.evaluate(_SCROLLS) is None, f"{page.url} scrolls sideways: {page.evaluate(_SCROLLS)}"
    failed = page.evaluate("[...document.querySelectorAll('[data-failed]')].map((one) => one.dataset.failed)")
    assert failed == [], f"charts of {page.url}: {failed}"
