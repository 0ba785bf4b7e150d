"""The page of a stream: numbers over time with error bars, totals, the noise of windows, and what it protects."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from matrixdp.answers.series import Series
from matrixdp.domain.file_rules import DateRule
from matrixdp.errors import ParameterError
from matrixdp.gdp import gdp_epsilon
from matrixdp.queries import Moments, TableMoments
from matrixdp.release.stream import PublishedStream
from matrixdp.release.stream_plan import WindowNoise
from matrixdp.report.content import make_content
from matrixdp.report.dates import list_parts, show_date
from matrixdp.report.guarantee import describe_odds, name_loss
from matrixdp.report.page import Block, Page, Section, WordTable, fold, note, say, show_numbers, write_words
from matrixdp.report.release_page import list_main_blocks
from matrixdp.report.svg import Curve, Scale, draw_curves, make_image
from matrixdp.version import __version__

_MOST_NUMBERS, _MOST_GROUPS = 30, 24  # that have a chart
_MOST_SMOOTHED = 400  # periods
_SIZE = (600.0, 190.0)
_HALF = 1.96  # standard deviations of half a 95% interval


def render_stream(
    public: PublishedStream,
    *,
    by: str | None = None,
    columns: Sequence[str] | None = None,
    dates: Sequence[DateRule] = (),
) -> str:
    """The report on a stream as an HTML document: of all numbers or those of `columns`, also for the levels of `by`.

    Means of `dates` are shown as dates. Made from the public file of the stream alone.
    """
    plan, privacy = public.plan, public.plan.privacy
    public.require_steps()
    epsilon, (protects,) = gdp_epsilon(mu=plan.mu, delta=privacy.delta), write_words("stream_protects", plan)
    charged = [
        *write_words("all_periods", plan.mu, epsilon, privacy.delta),
        *write_words("promise", "The whole stream", privacy, name_loss(privacy.epsilon), protects),
        describe_odds(privacy.epsilon, privacy.delta, plan.unit.words),
    ]
    total = public.total()
    shown = "means" if isinstance(total.query, TableMoments) and total.query.used.numbers else "matrix"
    periods = f"{public.steps[0]} to {public.steps[-1]}" if len(public) > 1 else public.steps[0]
    ended = "" if plan.last is None else f" of {plan.last:,}"
    return Page(
        title=f"Stream {public.name}",
        heading=public.name,
        kicker=f"Differentially private stream · {periods}",
        facts=[
            ("Shows", f"{plan.query.title}, every {plan.every}"),
            ("Periods", f"{len(public):,}{ended}"),
            ("Protects", protects),
            ("Privacy", f"ε = {privacy.epsilon:g}, δ = {privacy.delta:.3g} for all periods together, charged once"),
        ],
        banner="Simulation: whoever knows the seed can repeat the noise, so this protects nobody." * public.simulation,
        sections=[
            *_show_series(public, by, columns, dates),
            Section("All periods together", list_main_blocks(make_content(total, shown))),
            Section("Noise by length of window", _show_noise(public)),
            Section("What was charged, and what is protected", [say(*charged)]),
            Section("What it rests on", [Block("list", plan.promises)]),
            Section("How to check it", _show_proof(public)),
        ],
        footer=f"Made by matrixdp {__version__}.",
    ).render()


def _show_series(
    public: PublishedStream, by: str | None, columns: Sequence[str] | None, dates: Sequence[DateRule]
) -> Iterator[Section]:
    """A section for the number of records and for each number."""
    query: Any = public.plan.query
    if not isinstance(query, Moments | TableMoments):
        if by is not None or columns is not None:
            raise ParameterError("«by» and «columns» must be left out: this stream has no means.")
        return
    used = [one.name for one in query.used.numbers] if isinstance(query, TableMoments) else query.bounds.names
    names = list(used or ())
    if columns is not None and not set(columns) <= set(names):
        raise ParameterError(f"«columns» must be numbers of the stream: {', '.join(names)}.")
    rules = {rule.name: rule for rule in dates}
    wanted = names if columns is None else list(columns)
    for column in [None, *wanted[:_MOST_NUMBERS]]:
        title = f"Number of {query.count_word}" if column is None else f"Mean of {column}"
        blocks = []
        for group in (None, *([by] if by is not None else [])):
            blocks += [] if group is None else [Block("heading", f"By {group}")]
            blocks += _show_one(public, column, group, None if column is None else rules.get(column))
        if column is None:
            blocks.append(note(write_words("periods")))
        yield Section(title, blocks)
    if len(wanted) > _MOST_NUMBERS:
        rest = ", ".join(wanted[_MOST_NUMBERS:])
        yield Section("Other numbers", [say(f"For these, choose columns (--columns): {rest}.")])


def _show_one(public: PublishedStream, column: str | None, by: str | None, rule: DateRule | None) -> list[Block]:
    """Charts of a number over time, one for each group, the last change, and a table."""
    raw = public.series(column, by)
    smooth = public.series(column, by, smooth=True) if 3 <= len(public) <= _MOST_SMOOTHED else None
    blocks = []
    for place, group in enumerate(raw.groups[:_MOST_GROUPS]):
        title = raw.what if by is None else f"{raw.what}, {by} {group}"
        blocks.append(_draw(title, raw, smooth, place, rule))
    if len(raw.groups) > _MOST_GROUPS:
        blocks.append(say(f"{len(raw.groups) - _MOST_GROUPS:,} more levels are in the table."))
    if len(public) > 1:
        change = raw.difference(public.steps[-1], public.steps[-2])
        last = f"The last change, from {public.steps[-2]} to {public.steps[-1]}, with its own error bar:"
        blocks += [say(last), show_numbers(change, f"Change of {raw.what}", corner=(by or "", ""), fades=False)]
    table = raw.to_estimate()
    text = None if rule is None else [[show_date(rule, *cell) for cell in line] for line in list_parts(table)]
    shown = show_numbers(table, f"{raw.what} by period", corner=("period", by or ""), text=text, fades=False)
    return [*blocks, fold("The numbers", shown)]


def _draw(title: str, raw: Series, smooth: Series | None, place: int, rule: DateRule | None) -> Block:
    """Points with bars, and the smoothed band, or that noise hides every point."""
    value, bar = raw.value[:, place], _HALF * raw.std[:, place]
    seen = np.flatnonzero(np.isfinite(value + bar))
    if not seen.size:
        return say(f"{title}: noise hides it in every period.")
    ends = [value[seen] - bar[seen], value[seen] + bar[seen]]
    curves, places = [], np.arange(len(raw.periods))
    x = Scale(-0.5, len(raw.periods) - 0.5, label=lambda number: raw.periods[round(number)])
    if smooth is not None and (sure := np.flatnonzero(np.isfinite(smooth.value[:, place] + smooth.std[:, place]))).size:
        line, width = smooth.value[sure, place], _HALF * smooth.std[sure, place]
        around = np.concatenate([line - width, (line + width)[::-1]])
        band = np.stack([np.concatenate([places[sure], places[sure][::-1]]), around])
        curves.append(Curve(band, kind="p-other", fill=0.16, band=True))
        curves.append(Curve(np.stack([places[sure], line]), "smoothed: assumes slow change (band: 95%)", "p-other"))
        ends.append(around)
    curves.append(Curve(np.stack([places[seen], value[seen]]), "", halves=bar[seen], scattered=True))
    low, high = max(min(map(np.min, ends)), raw.limits[0]), min(max(map(np.max, ends)), raw.limits[1])
    room = 0.06 * (high - low) or 1.0
    y = Scale(low - room, high + room, label=None if rule is None else rule.show)
    shown = np.unique(np.linspace(0, len(places) - 1, min(6, len(places))).round())
    drawing = draw_curves(curves, x, y, ("", ""), title=title, size=_SIZE, ticks=(shown.tolist(), y.ticks(4)))
    summary = f"{title} by period with error bars; the table has the same numbers."
    return Block("figure", make_image([drawing], summary, inline=True), summary)


def _show_noise(public: PublishedStream) -> list[Block]:
    """The noise of windows of the plan beside other ways."""
    heads = ("of the sum of", "this stream", "periods apart", "total anew", "binary tree")
    rows = [row._asdict() for row in public.plan.compare()]
    table = WordTable("noise", "Noise", dict(zip(WindowNoise._fields, heads, strict=True)), rows)
    blocks = [Block("words", table), note(write_words("windows"))]
    starts = sorted({one.start for one in public.published})
    if len(starts) > 1:
        names = ", ".join(public.steps[start] for start in starts[1:])
        blocks.append(say(f"The stream was restarted at {names}: sums across a restart have more noise than this."))
    return blocks


def _show_proof(public: PublishedStream) -> list[Block]:
    last = public.published[-1]
    first, second, third = map(say, write_words("stream_proof"))
    check = Block("data", f"matrixdp stream status {public.name}.json --ledger LEDGER --dataset NAME")
    answer = Block("data", f"matrixdp answer means {public.name}.json --last 4")
    return [first, check, second, Block("data", f"{last.name} {last.digest}"), third, answer]
