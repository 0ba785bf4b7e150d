"""The picture of the README: six private correlations with their error bars, beside the true ones.

``python -m benchmarks.picture`` writes ``docs/images/release.svg``. The data are public (442 patients of scikit-learn's
diabetes data) and the noise is seeded, so that the picture can be made again.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes

import matrixdp as mdp

PLACE = Path(__file__).parents[1] / "docs" / "images" / "release.svg"
BOUNDS = {"age": (18, 90), "bmi": (15, 45), "bp": (60, 140), "target": (0, 350)}
_LEFT, _WIDTH, _STEP = 236.0, 420.0, 34.0
_LOW, _HIGH = -0.2, 1.0
_BLUE = "#3987c4"
_HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
    'role="img" aria-label="Private correlations with error bars, beside the true ones" '
    'font-family="system-ui, sans-serif"><style>svg{{background:#ffffff;color:#1c2330}}'
    "@media (prefers-color-scheme:dark){{svg{{background:#14181f;color:#e6e9ef}}}}</style>"
    '<g transform="translate(16 16)">'
)


def make_picture() -> str:
    """The SVG image."""
    source = load_diabetes(scaled=False)
    features = [source.data[:, source.feature_names.index(name)] for name in ("age", "bmi", "bp")]
    data = np.column_stack([*features, source.target])
    lower, upper = zip(*BOUNDS.values(), strict=True)
    released = mdp.release_table(
        data,
        mdp.Bounds(lower, upper, names=list(BOUNDS)),
        mdp.Privacy(epsilon=2, delta=1e-5),
        question="correlation",
        stream=mdp.Stream(seed=1),
        simulation=True,
    ).correlation()
    truth = np.corrcoef(data.T)
    elements = [text(0, 16, "Correlations of 442 patients, private with epsilon = 2", font_size=16, font_weight="bold")]
    elements += [_axis(tick) for tick in (-0.2, 0.0, 0.2, 0.4, 0.6, 0.8, 1.0)]
    for row, (i, j) in enumerate(combinations(range(len(BOUNDS)), 2)):
        y = 56.0 + _STEP * row
        names = list(BOUNDS)
        elements.append(text(_LEFT - 14, y + 4, f"{names[i]} and {names[j]}", font_size=13, text_anchor="end"))
        elements += _mark(y, float(released.value[i, j]), float(released.std[i, j]), float(truth[i, j]))
    elements += _legend(56.0 + 6 * _STEP + 34)
    return _HEAD.format(width=_LEFT + _WIDTH + 32, height=328) + "".join(elements) + "</g></svg>\n"


def element(name: str, content: str = "", **attributes: object) -> str:
    """One element of the image."""
    written = "".join(
        f' {key.replace("_", "-")}="{f"{value:.1f}" if isinstance(value, float) else value}"'
        for key, value in attributes.items()
    )
    return f"<{name}{written}>{content}</{name}>"


def text(x: float, y: float, words: str, **attributes: object) -> str:
    """A line of text."""
    return element("text", words, x=x, y=y, fill="currentColor", **attributes)


def _x(value: float) -> float:
    return _LEFT + _WIDTH * (min(max(value, _LOW), _HIGH) - _LOW) / (_HIGH - _LOW)


def _axis(tick: float) -> str:
    x, end = _x(tick), 56.0 + 5 * _STEP + 18
    line = element("line", x1=x, y1=38, x2=x, y2=end, stroke="currentColor", stroke_opacity=0.18)
    return line + text(x, end + 16, f"{tick:g}", font_size=12, text_anchor="middle", fill_opacity=0.75)


def _mark(y: float, value: float, std: float, truth: float) -> list[str]:
    """The true value as a hollow circle, and the private one with its 95% interval."""
    ends: dict[str, Any] = {"x1": _x(value - 1.96 * std), "x2": _x(value + 1.96 * std), "y1": y, "y2": y}
    return [
        element("line", **ends, stroke=_BLUE, stroke_width=4, stroke_opacity=0.45, stroke_linecap="round"),
        element("circle", cx=_x(value), cy=y, r=5.5, fill=_BLUE),
        element("circle", cx=_x(truth), cy=y, r=7, fill="none", stroke="currentColor", stroke_width=1.8),
    ]


def _legend(y: float) -> list[str]:
    return [
        element("line", x1=14, x2=46, y1=y, y2=y, stroke=_BLUE, stroke_width=4, stroke_opacity=0.45),
        element("circle", cx=30, cy=y, r=5.5, fill=_BLUE),
        text(56, y + 4, "private value with its 95% interval, as published", font_size=13),
        element("circle", cx=400, cy=y, r=7, fill="none", stroke="currentColor", stroke_width=1.8),
        text(414, y + 4, "true value, which is not published", font_size=13),
    ]


if __name__ == "__main__":
    PLACE.parent.mkdir(exist_ok=True)
    PLACE.write_text(make_picture(), encoding="utf-8")
    print(PLACE)
