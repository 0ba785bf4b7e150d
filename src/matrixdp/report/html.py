"""One page that explains a release: no scripts, nothing from elsewhere, readable in light and dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from matrixdp.report import words
from matrixdp.report.content import Result
from matrixdp.report.pictures import matrix_picture, std_picture
from matrixdp.report.svg import FONT, short, with_bar

_MOST_TABLE = 10  # columns of a matrix that is written out in full
_ROWS = 20
_STYLE = f"""
:root{{color-scheme:light dark;--ink:#1c2330;--soft:#5b6472;--line:#d9dee6;--card:#ffffff;--page:#f4f6f9}}
@media (prefers-color-scheme:dark){{:root{{--ink:#e6e9ef;--soft:#a3acba;--line:#333b47;--card:#1a1f28;--page:#11151b}}}}
*{{box-sizing:border-box}}
body{{margin:0;background:var(--page);color:var(--ink);font:16px/1.55 {FONT}}}
main{{max-width:980px;margin:0 auto;padding:32px 20px 64px}}
h1{{font-size:1.9rem;line-height:1.2;margin:0 0 .3em}}
h2{{font-size:1.2rem;margin:0 0 .6em}}
p{{margin:.4em 0 .8em}} li{{margin:.35em 0}} ul{{padding-left:1.2em;margin:.2em 0}}
.lead{{font-size:1.06rem;color:var(--soft)}}
section{{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:20px 24px;margin:18px 0}}
.scroll{{overflow-x:auto}}
table{{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}}
th,td{{padding:4px 10px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}}
th{{font-weight:600}} th[scope=row],tr th:first-child,.facts th,.facts td{{text-align:left}}
.facts td{{white-space:normal}}
.bar{{color:var(--soft)}}
.warning{{border:2px solid #c2410c;border-radius:10px;padding:12px 18px;margin:18px 0;font-weight:600}}
code{{font-size:.9em}} footer{{color:var(--soft);font-size:.9rem}}
svg{{display:block}} figure{{margin:0}}
@media print{{body{{background:#fff}} section{{break-inside:avoid}}}}
"""


def release_page(result: Result, *, files: Sequence[str] = ()) -> str:
    """The report as one HTML document.

    Parameters
    ----------
    result : Result
    files : sequence of str
        Names of the files beside the report.

    Privacy
    -------
    Made from the release and public facts alone.
    """
    release = result.release
    parts = [
        f"<h1>Private {escape(result.title)}</h1>",
        f'<p class="lead">{escape(words.subject(result))}</p>',
        _warnings(result),
        _section("At a glance", _facts(result)),
        _section("The matrix", f'<figure class="scroll">{matrix_picture(result, inline=True)}</figure>'),
        _section("How precise it is", _precision(result)),
        _section("How to read it", _list(words.error_bars(result))),
        _section("The guarantee", _paragraphs([words.guarantee(release)]) + _list(words.protected(release))),
        _section("The ledger", _paragraphs(words.ledger(result.ledger))),
        _section("How the noise was made", _noise(result)),
        _files(files),
        f"<footer>Made by matrixdp {escape(release.version)}.</footer>",
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Private {escape(result.title)}</title><style>{_STYLE}</style></head>"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


def _warnings(result: Result) -> str:
    parts = []
    if result.release.simulation:
        parts.append(
            "Simulation. The noise can be repeated by whoever knows the seed, so this release protects nobody."
        )
    if result.ledger is None:
        parts.append("No ledger was used: what is spent on these data is added up nowhere.")
    return "".join(f'<p class="warning" role="note">{escape(part)}</p>' for part in parts)


def _facts(result: Result) -> str:
    release = result.release
    std = np.asarray(result.std)
    noisy = std[np.isfinite(std) & (std > 0)]
    bars = f"{short(float(noisy.min()))} to {short(float(noisy.max()))}" if noisy.size else "none"
    rows = [
        ("Released", words.subject(result)),
        ("Guarantee", f"({release.privacy.epsilon:g}, {release.privacy.delta:.3g})-differential privacy"),
        ("Neighbours", words.neighbours(release)),
        ("Protects", release.design.query.protects),
        ("Spent", words.spent(release)),
        ("Error bars", bars if len(set(bars.split(" to "))) > 1 else bars.split(" to ")[0]),
        ("Ledger", "none used" if result.ledger is None else f"charged to {result.ledger.dataset}"),
        ("Software", f"matrixdp {release.version}" + (" (simulation)" if release.simulation else "")),
    ]
    return '<table class="facts">' + "".join(_fact(name, value) for name, value in rows) + "</table>"


def _fact(name: str, value: str) -> str:
    return f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'


def _precision(result: Result) -> str:
    parts = []
    if result.mean is not None:
        names = result.columns[1:] if result.kind == "matrix" else result.columns
        parts.append("<p>The means, each with its error bar:</p>" + _mean_table(result, names))
    height, width = result.matrix.shape
    if width <= _MOST_TABLE:
        shown = "" if height <= _ROWS else f" (the first {_ROWS} of {height:,} rows)"
        parts.append(f"<p>The matrix, each entry with its error bar{shown}:</p>" + _matrix_table(result))
    parts.append(f'<figure class="scroll">{std_picture(result, inline=True)}</figure>')
    return "".join(parts)


def _mean_table(result: Result, names: Sequence[str]) -> str:
    assert result.mean is not None
    rows = zip(names, result.mean.value, result.mean.std, strict=True)
    body = (_row(name, [_entry(float(value), float(std))]) for name, value, std in rows)
    return f'<div class="scroll"><table>{_header(["feature", "mean"])}{"".join(body)}</table></div>'


def _matrix_table(result: Result) -> str:
    shown = zip(result.rows[:_ROWS], result.matrix, np.broadcast_to(result.std, result.matrix.shape), strict=False)
    body = (
        _row(name, [_entry(float(value), float(std)) for value, std in zip(values, stds, strict=True)])
        for name, values, stds in shown
    )
    return f'<div class="scroll"><table>{_header(["", *result.columns])}{"".join(body)}</table></div>'


def _entry(value: float, std: float) -> str:
    number, bar = with_bar(value, std)
    return f'{number} <span class="bar">± {bar}</span>' if bar else number


def _header(names: Iterable[str]) -> str:
    return "<tr>" + "".join(f'<th scope="col">{escape(name)}</th>' for name in names) + "</tr>"


def _row(name: str, cells: Iterable[str]) -> str:
    return f'<tr><th scope="row">{escape(name)}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _noise(result: Result) -> str:
    design = result.release.design
    basis = "the features themselves" if design.directions is None else "a basis of its own"
    return _paragraphs(
        [
            f"Gaussian noise from exact integer arithmetic, calibrated by “{design.calibration}”. Directions: {basis}; "
            f"allocation: {design.allocation.rule}. Relative to the entries' range its error is {_gain(design.gain)} "
            "noise of the same size for all features.",
            *result.notes,
        ]
    )


def _gain(gain: float) -> str:
    if abs(gain - 1) < 0.005:
        return "that of"
    return f"{short(gain)} times smaller than that of" if gain > 1 else f"{short(1 / gain)} times larger than that of"


def _files(files: Sequence[str]) -> str:
    if not files:
        return ""
    items = "".join(f'<li><a href="{escape(name)}"><code>{escape(name)}</code></a></li>' for name in files)
    return _section("Files beside this page", f"<ul>{items}</ul>")


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>"


def _paragraphs(lines: Iterable[str]) -> str:
    return "".join(f"<p>{escape(line)}</p>" for line in lines)


def _list(lines: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"
