"""Synthetic tables as files, and the report beside them: how far they are from the release, and what was assumed."""

from __future__ import annotations

import io
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.answers.estimate import Estimate
from matrixdp.answers.synthetic import Comparison, SyntheticTable
from matrixdp.answers.view import table_query
from matrixdp.display import Numbers
from matrixdp.domain import YesNo
from matrixdp.domain.file_rules import DateRule
from matrixdp.errors import ParameterError, import_extra
from matrixdp.queries import TableMoments
from matrixdp.release.result import Release
from matrixdp.report.page import Block, Page, Section, note, show_numbers, write_words
from matrixdp.report.svg import Curve, Drawing, Scale, draw_curves, make_image
from matrixdp.types import Floats
from matrixdp.version import __version__

SUFFIXES = {".csv": "write_csv", ".parquet": "write_table", ".feather": "write_feather"}
_KINDS = {"table": "Tables of two categories", "means": "Means by level", "correlation": "Correlations"}
_MOST_DOTS, _WORST = 400, 10
_MOST_NOISE = 1.0  # of a correlation that is drawn


def load_table_release(found: Any) -> Release:
    """The release of the moments of a table, or a `ParameterError`."""
    if not isinstance(found, Release) or not isinstance(found.query, TableMoments):
        raise ParameterError("a synthetic table follows from TableMoments (--query everything), not from this release.")
    return found


def write_table_file(table: SyntheticTable, suffix: str, dates: Sequence[DateRule] = ()) -> bytes:
    """The content of a CSV, Parquet or Feather file; a CSV file has dates and times as the schema writes them."""
    pyarrow = import_extra("pyarrow", "files of tables need pyarrow", "files")
    rules, columns = {rule.name: rule for rule in dates}, {}
    for name, (values, gone) in table.columns.items():
        write = _write_date if suffix == ".csv" else DateRule.convert
        dated = [write(rules[name], one) for one in values.tolist()] if name in rules else values
        columns[name] = pyarrow.array(dated, mask=gone)
    out = io.BytesIO()
    getattr(import_module(f"pyarrow.{suffix[1:]}"), SUFFIXES[suffix])(pyarrow.table(columns), out)
    return out.getvalue()


def _write_date(rule: DateRule, number: float) -> str:
    when = rule.moment(number)
    return when.strftime(rule.formats[0]) if rule.formats and when is not None else rule.show(number)


def list_remarks(release: Release, table: SyntheticTable) -> list[str]:
    """What a reader must know of this table."""
    rows = len(next(iter(table.columns.values()))[0])
    return [*write_words("synthetic_warning"), *write_words("synthetic_remarks", release, table, rows)]


def render_synthetic(
    release: Release, table: SyntheticTable, *, seed: int, tables: int | None = None, dates: Sequence[DateRule] = ()
) -> str:
    """The report of a synthetic table, or of the first of several, as an HTML page."""
    one, rows = table.comparison, len(next(iter(table.columns.values()))[0])
    dots = {kind: np.flatnonzero((one.kinds == kind) & (one.std <= _MOST_NOISE)) for kind in _KINDS}
    panels = [_draw_kind(one, _KINDS[kind], places) for kind, places in dots.items() if places.size]
    panels += [_draw_errors(one.errors)] if one.released.size else []
    label, query = "Released and synthetic numbers", table_query(release.design)
    images = [make_image(panels[k : k + 2], label, inline=True) for k in range(0, len(panels), 2)]
    figures = [Block("figure", image, label) for image in images]
    many = _MOST_DOTS if max(places.size for places in dots.values()) > _MOST_DOTS else 0
    words = write_words("synthetic_dots", query.bins, int((one.std > _MOST_NOISE).sum()), many)
    other = {f"{one.name}={one.level_names[0]}" for one in query.columns.categories if len(one.level_names) == 2}
    order = np.argsort(-np.abs(one.errors), kind="stable")  # of two levels, the second says it all
    worst = [k for k in order.tolist() if other.isdisjoint(one.names[k].rpartition(": ")[2].split(" × "))][:_WORST]
    value = np.stack([one.released, one.found, one.errors], axis=1)[worst]
    std = np.stack([one.std, 0 * one.std, 0 * one.std], axis=1)[worst]
    heads = ("released", "synthetic", "difference/noise")
    pairs = Numbers(value, std, [one.names[k] for k in worst], heads)
    several = f"{tables}, of which this is the first; each from the release with noise once more" if tables else ""
    epsilon, delta = release.epsilon, release.privacy.delta
    return Page(
        title="Synthetic table",
        kicker="Synthetic table",
        heading=f"{rows:,} rows from one private release",
        facts=[
            ("Release", f"({epsilon:.4g}, {delta:.3g})-differential privacy; the table adds nothing to its cost"),
            ("Seed", str(seed)),
            ("Tables", several),
            ("Misfit", f"{table.misfit:.2f} standard deviations of the noise, root mean square over pairs of columns"),
        ],
        warnings=list_remarks(release, table),
        sections=[
            Section("Columns", [show_numbers(_compare_columns(release, table, dates), "Columns", fades=False)]),
            Section("Pairs of columns", [*figures, note(words)]),
            Section("Furthest from the release", [show_numbers(pairs, "Pairs, as correlations", fades=False)]),
            Section("What was assumed", [Block("list", write_words("synthetic_assumptions", table))]),
        ],
        footer=f"Made by matrixdp {__version__}.",
    ).render()


def _compare_columns(release: Release, table: SyntheticTable, dates: Sequence[DateRule]) -> Numbers:
    """Means and spreads of numbers and shares of levels, as released and in a table."""
    query, rows, released, found = table_query(release.design), [], [], []

    def add(name: str, estimate: Estimate, row: int, column: int, value: float) -> None:
        rows.append(name)
        released.append([getattr(estimate, part)[row, column] for part in ("value", "bars", "low", "high")])
        found.append([value, 0.0, np.nan, np.nan])

    if query.columns.numbers:
        means, counted = release.means(), {rule.name: f"{rule.name} ({rule.meaning})" for rule in dates}
        for k, name in enumerate(means.rows):
            values, gone = table.columns[name]
            there = values[~gone].astype(float)
            for column, value in enumerate((there.mean(), there.std()) if there.size else ()):
                add(f"{counted.get(name, name)}: {means.columns[column]}", means, k, column, float(value))
            if gone.any():
                add(f"{name}: {means.columns[2]}", means, k, 2, float(1 - gone.mean()))
    for category in query.columns.categories:
        values, gone = table.columns[category.name]
        levels = np.where(values, "yes", "no") if isinstance(category, YesNo) else values.astype(str)
        texts, shares = np.where(gone, category.level_names[-1], levels), release.means(by=category.name)
        for k, level in enumerate(shares.rows):
            add(f"{category.name}={level}", shares, k, 0, float((texts == level).mean()))
    numbers, std, low, high = (np.array([released, found])[..., k].T for k in range(4))
    return Numbers(numbers, std, rows, ("released", "synthetic"), low=low, high=high)


def _draw_kind(one: Comparison, title: str, places: NDArray[np.intp]) -> Drawing:
    """Released against synthetic numbers of a kind, which are at some places."""
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
    return draw_curves(curves, scale, scale, ("synthetic", "released"), title=title)


def _draw_errors(errors: Floats) -> Drawing:
    """Histogram of the differences in standard deviations of the noise."""
    edges = np.linspace(-4, 4, 33)
    share = np.histogram(np.clip(errors, -4, 4), edges)[0] / errors.size
    steps = np.stack([np.repeat(edges, 2), np.concatenate([[0.0], np.repeat(share, 2), [0.0]])])
    inside = [f"{100 * float((np.abs(errors) < k).mean()):.0f}%" for k in (1, 2)]
    curve = Curve(steps, f"{inside[0]} within 1, {inside[1]} within 2", fill=0.3)
    names = ("(synthetic - released)/noise", "share of pairs")
    return draw_curves([curve], Scale(-4, 4), Scale(0, 1.1 * float(share.max())), names, title="Differences")


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
        release, made[0], seed=seed, tables=tables, dates=dates
    ).encode()
    return found, made[0]
