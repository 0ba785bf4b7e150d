"""KaTeX reads every formula of the documents."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
FORMULA = re.compile(r"^```.*?^```|`[^`]*`|(\$\$?)([^$]+)\1", re.DOTALL | re.MULTILINE)


def test_formulas_have_no_errors(chromium):
    page = chromium.new_page()
    page.add_script_tag(path=DOCS / "assets" / "vendor" / "katex.min.js")
    wrong, read = [], 0
    for document in sorted(DOCS.rglob("*.md")):
        formulas = [(mark, text) for mark, text in FORMULA.findall(document.read_text("utf-8")) if mark]
        read += len(formulas)
        wrong += page.evaluate(
            """formulas => formulas.flatMap(([mark, text]) => {
              try { katex.renderToString(text, {displayMode: mark === "$$", strict: "error"}); return []; }
              catch (error) { return [error.message]; }
            })""",
            formulas,
        )
    page.close()
    assert wrong == []
    assert read > 1000
