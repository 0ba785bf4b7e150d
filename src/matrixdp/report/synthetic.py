"""Synthetic tables as files, and the report beside them: how far they are from the release, and what was assumed."""

from __future__ import annotations

import io
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.answers.synthetic import Comparison, SyntheticTable
from matrixdp.answers.view import table_query
from matrixdp.display import Numbers
from matrixdp.domain.file_rules import DateRule
from matrixdp.errors import ParameterError, import_extra
from matrixdp.queries import TableMoments
from matrixdp.release.result import Release
from matrixdp.report.page import Block, Page, Section, note, render_page, show_numbers
from matrixdp.report.svg import Curve, Drawing, Scale, draw_curves, make_image
from matrixdp.types import Floats
from matrixdp.version import __version__

WARNING = (
    "These rows are not records of anyone. They were made from one private release and add nothing to its privacy "
    "cost. They have its means, spreads, shares, tables of two columns and correlations, up to the noise of the "
    "release. They do not show interactions of three columns, curved relations, or the shape of numbers (unless "
    "released). Use them to write code, teach and plan. Do not test hypotheses on one table: its standard errors "
    "ignore the noise. Use the answers of the release (matrixdp answer), or several tables and matrixdp.combine."
)
SUFFIXES = {".csv": "write_csv", ".parquet": "write_table", ".feather": "write_feather"}
_KINDS = {"table": "Tables of two categories", "means": "Means by level", "correlation": "Correlations"}
_MOST_DOTS, _WORST, _MISFIT, _FEW_ROWS, _MANY_ROWS = 400, 10, 0.5, 100, 2.0
_MOST_NOISE = 1.0  # of a correlation that is drawn


def load_table_release(found: Any) -> Release:
    """The release of the moments of a table, or a `ParameterError`."""
    if not isinstance(found, Release) or not isinstance(found.query, TableMoments):
        raise ParameterError("a synthetic table follows from TableMoments (--query everything), not from this release.")
    return found


def write_table_file(table: SyntheticTable, suffix: str, dates: Sequence[DateRule] = ()) -> bytes:
    """The content of a CSV, Parquet or Feather file; dates and times as text."""
    pyarrow = import_extra("pyarrow", "files of tables need pyarrow", "files")
    rules, columns = {rule.name: rule for rule in dates}, {}
    for name, (values, gone) in table.columns.items():
        dated = [_write_date(rules[name], one) for one in values.tolist()] if name in rules else values
        columns[name] = pyarrow.array(dated, mask=gone)
    out = io.BytesIO()
    getattr(import_module(f"pyarrow.{suffix[1:]}"), SUFFIXES[suffix])(pyarrow.table(columns), out)
    return out.getvalue()


def _write_date(rule: DateRule, number: float) -> str:
    when = rule.moment(number)
    return when.strftime(rule.formats[0]) if rule.formats and when is not None else rule.show(number)


def list_remarks(release: Release, table: SyntheticTable) -> list[str]:
    """What a reader must know of this table besides the warning."""
    rows, found = len(next(iter(table.columns.values()))[0]), []
    if release.simulation:
        found.append("The release is a simulation that protects nothing, and so is the table.")
    misfit = f"misfit {table.misfit:.2f}" if table.misfit > _MISFIT else ""
    if misfit and rows >= _FEW_ROWS:
        more = ", or release histograms with --shapes" if table.assumed else ""
        found.append(
            f"The table does not fit the release ({misfit}): its columns and their pairs contradict each other. "
            f"This can be noise where one column determines another. Else check the bounds{more}."
        )
    if table.shown:
        pairs = ", ".join(table.shown[:10]) + ", ..." * (len(table.shown) > 10)
        found.append(f"The table has no pairs that cannot occur by the schema, but the release shows some: {pairs}.")
    if rows < _FEW_ROWS:
        why = f", so that they cannot fit the release ({misfit})" if misfit else ""
        found.append(f"{rows:,} rows are few: shares are rounded to whole rows{why}.")
    elif release.records and rows > _MANY_ROWS * release.records:
        found.append(f"{rows:,} rows hold no more information than the {release.records:,} records of the release.")
    return found


def render_synthetic(release: Release, table: SyntheticTable, *, seed: int, tables: int | None = None) -> str:
    """The report of a synthetic table, or of the first of several, as an HTML page."""
    one, rows = table.comparison, len(next(iter(table.columns.values()))[0])
    panels = [_draw_kind(one, kind) for kind in _KINDS if _find_dots(one, kind).size]
    panels += [_draw_errors(one.errors)] if one.released.size else []
    words = "Released and synthetic numbers"
    images = [make_image(panels[k : k + 2], words, inline=True) for k in range(0, len(panels), 2)]
    figures = [Block("figure", image, words) for image in images]
    several = f"{tables}, of which this is the first; each from the release with noise once more" if tables else ""
    epsilon, delta = release.epsilon, release.privacy.delta
    page = Page(
        title="Synthetic table",
        kicker="Synthetic table",
        heading=f"{rows:,} rows from one private release",
        facts=[
            ("Release", f"({epsilon:.4g}, {delta:.3g})-differential privacy; the table adds nothing to its cost"),
            ("Seed", str(seed)),
            ("Tables", several),
            ("Misfit", f"{table.misfit:.2f} standard deviations of the noise, root mean square over pairs of columns"),
        ],
        warnings=[WARNING, *list_remarks(release, table)],
        sections=[
            Section("Released and synthetic", [*figures, note(_explain(one, table_query(release.design).bins))]),
            Section("Furthest from the release", [_list_worst(one)]),
            Section("What was assumed", [Block("list", list_assumptions(table))]),
        ],
        footer=f"Made by matrixdp {__version__}.",
    )
    return render_page(page)


def _explain(one: Comparison, bins: int) -> list[str]:
    words = [
        "Each dot is a pair of levels or numbers, as a correlation: across what the table has, up what was released, "
        "with one standard deviation of its noise. Orange: within two standard deviations of zero, so hidden by noise; "
        "such numbers are moved towards zero, as far as noise suggests. Noise may take "
        "released numbers beyond -1 and 1."
    ]
    if bins:
        words.append(
            "Numbers in bins count as categories: bin 1 of a number is the first of its equal parts, from the lower "
            "bound, and the last one is that of the upper bound."
        )
    left = int((one.std > _MOST_NOISE).sum())
    if left:
        words.append(f"Not drawn: {left:,} pairs with noise above 1, more than any correlation.")
    if max(_find_dots(one, kind).size for kind in _KINDS) > _MOST_DOTS:
        words.append(f"At most {_MOST_DOTS} dots of a kind are drawn.")
    return words


def _find_dots(one: Comparison, kind: str) -> NDArray[np.intp]:
    """Places of the pairs of a kind that can be drawn."""
    return np.flatnonzero((one.kinds == kind) & (one.std <= _MOST_NOISE))


def _draw_kind(one: Comparison, kind: str) -> Drawing:
    """Released against synthetic numbers of a kind."""
    places = _find_dots(one, kind)
    places = places[:: -(-places.size // _MOST_DOTS)]
    points, std = np.stack([one.found, one.released])[:, places], one.std[places]
    firm = np.abs(points[1]) > 2 * std
    reach = 1.05 * float(np.abs([points[0], np.abs(points[1]) + std]).max())
    scale = Scale(-reach, reach)
    curves = [
        Curve(np.array([[-reach, reach], [-reach, reach]]), kind="p-guide", dashed=True),
        Curve(points[:, ~firm], "hidden by noise" * (not firm.all()), "p-other", halves=std[~firm], scattered=True),
        Curve(points[:, firm], "stands out" * bool(firm.any()), halves=std[firm], scattered=True),
    ]
    return draw_curves(curves, scale, scale, ("synthetic", "released"), title=_KINDS[kind])


def _draw_errors(errors: Floats) -> Drawing:
    """Histogram of the differences in standard deviations of the noise."""
    edges = np.linspace(-4, 4, 33)
    share = np.histogram(np.clip(errors, -4, 4), edges)[0] / errors.size
    steps = np.stack([np.repeat(edges, 2), np.concatenate([[0.0], np.repeat(share, 2), [0.0]])])
    inside = [f"{100 * float((np.abs(errors) < k).mean()):.0f}%" for k in (1, 2)]
    curve = Curve(steps, f"{inside[0]} within 1, {inside[1]} within 2", fill=0.3)
    names = ("(synthetic - released)/noise", "share of pairs")
    return draw_curves([curve], Scale(-4, 4), Scale(0, 1.1 * float(share.max())), names, title="Differences")


def _list_worst(one: Comparison) -> Block:
    """The pairs that are furthest from the release, as correlations."""
    worst = np.argsort(-np.abs(one.errors), kind="stable")[:_WORST]
    value = np.stack([one.released, one.found, one.errors], axis=1)[worst]
    std = np.stack([one.std, 0 * one.std, 0 * one.std], axis=1)[worst]
    heads = ("released", "synthetic", "difference/noise")
    pairs = Numbers(value, std, [one.names[k] for k in worst.tolist()], heads)
    return show_numbers(pairs, "Pairs, as correlations", fades=False)


def list_assumptions(table: SyntheticTable) -> list[str]:
    """What a table has that was not released."""
    found = ["Columns depend on each other by pairs alone."]
    if table.assumed:
        shape = "The shape is not released, and that of a beta distribution between the bounds is assumed"
        found.append(f"{shape}: {', '.join(table.assumed)}. Histograms (--shapes 0.1) release it.")
    if table.hidden:
        found.append(f"Hidden by noise, and so a guess: {', '.join(table.hidden[:100])}.")
    return found


def make_files(
    release: Release,
    output: Path,
    *,
    rows: int | None = None,
    tables: int | None = None,
    seed: int = 0,
    dates: Sequence[DateRule] = (),
) -> tuple[dict[Path, bytes], SyntheticTable]:
    """The files of synthetic tables and their report, by path, and the first table."""
    suffix = output.suffix.lower()
    if suffix not in SUFFIXES:
        raise ParameterError(f"the output must end with {', '.join(SUFFIXES)}, got {output.name!r} instead.")
    made = release.make_synthetic(rows, tables, seed)
    names = [output] if tables is None else [output.with_stem(f"{output.stem}-{k + 1}") for k in range(len(made))]
    found = {path: write_table_file(one, suffix, dates) for path, one in zip(names, made, strict=True)}
    found[output.with_name(f"{output.stem}.report.html")] = render_synthetic(
        release, made[0], seed=seed, tables=tables
    ).encode()
    return found, made[0]
