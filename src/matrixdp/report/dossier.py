"""The dossier of a data set: all its releases, what they cost and what is left, for a committee to read."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from matrixdp.display import format_number
from matrixdp.errors import MatrixDPError
from matrixdp.gdp import gdp_epsilon
from matrixdp.ledger import Charge, Gaussian, Head, Ledger, Step, Summary
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.release.options import title_charge
from matrixdp.release.reading import from_json
from matrixdp.report.content import KINDS, make_content
from matrixdp.report.dates import add_dates, parse_rule
from matrixdp.report.guarantee import describe_odds, name_loss
from matrixdp.report.page import Block, Page, Section, WordTable, fold, note, say, write_words
from matrixdp.report.provenance import split_approval
from matrixdp.report.release_page import list_main_blocks


def write_dossier(ledger: Ledger, dataset: str, contact: str = "") -> str:
    """The dossier of a data set as an HTML document, from the ledger and the releases stored in it, which are public.

    The whole ledger is verified first. `contact` is who answers questions, as in the schema.
    """
    head = ledger.verify()
    summary, charges = ledger.summary(dataset), ledger.history(dataset)
    registration, now = summary.registration, datetime.now(UTC)
    privacy, unit = registration.privacy, registration.unit
    subject = f"Everything that was released from {dataset}, and everything that will be,"
    protected = write_words("promise", subject, privacy, name_loss(privacy.epsilon), unit.words)
    protected.append(describe_odds(privacy.epsilon, privacy.delta, unit.words))
    return Page(
        title=f"Dossier – {dataset}",
        heading=f"Releases from {dataset}",
        kicker=f"Privacy dossier · {now.day} {now:%B %Y, %H:%M} UTC",
        facts=[
            ("Protects", unit.words),
            ("Total", f"ε = {privacy.epsilon:g}, δ = {privacy.delta:.3g}"),
            ("Releases", f"{len(charges):,}"),
            ("Spent", f"{_share(summary.spent_mu, summary):.0%} of the total"),
            ("Left", f"ε = {summary.unspent.epsilon:.3g} if one release spends all of it, or less for each of several"),
            ("Contact", contact),
        ],
        sections=[
            Section("What is protected", [say(*protected)]),
            Section("Releases under this total", _list_charges(summary, charges)),
            *(_show_release(ledger, charge, number) for number, charge in enumerate(charges, start=1)),
            Section("How to verify it", _show_proof(ledger, head)),
            Section("Glossary", [Block("facts", [line.split(": ", 1) for line in write_words("glossary")])]),
        ],
    ).render()


def list_steps(ledger: Ledger, charge: Charge) -> list[Step]:
    """The steps of the stream that a charge paid for, which cost nothing more; none for other charges."""
    if "stream" not in charge.description or charge.request is None:
        return []
    return ledger.steps(charge.dataset, charge.request)


def charge_epsilon(charge: Charge, delta: float) -> float:
    """The epsilon of a charge: that of its request or, where it has none, that of its event at `delta`."""
    event, given = charge.event, charge.description.get("epsilon")
    if isinstance(given, float):
        return given
    return gdp_epsilon(mu=event.mu, delta=delta) if isinstance(event, Gaussian) else getattr(event, "epsilon", math.nan)


def _share(mu: float, summary: Summary) -> float:
    """The share of a data set's total that Gaussian releases of `mu` together take: squares of mu add up."""
    return (mu / summary.total_mu) ** 2 if summary.total_mu else 0.0


def _list_charges(summary: Summary, charges: Sequence[Charge]) -> list[Block]:
    if not charges:
        return [say("Nothing has been released.")]
    delta, rows = summary.registration.privacy.delta, []
    for number, charge in enumerate(charges, start=1):
        cost = _share(charge.event.mu, summary) if isinstance(charge.event, Gaussian) else math.nan
        purpose, approver = split_approval(charge.purpose)
        rows.append(
            {
                "No.": str(number),
                "Date": charge.time[:10],
                "Question": title_charge(charge),
                "Purpose": purpose or "not recorded",
                "By": charge.actor or "not recorded",
                "Approved by": approver,
                "ε": format_number(charge_epsilon(charge, delta)),
                "Share of the total": "" if math.isnan(cost) else "below 0.1%" if cost < 0.001 else f"{cost:.1%}",
                "State": "" if charge.released else "charged; no release is stored",
            }
        )
    return [_show_rows("All releases", rows), note(write_words("adding_up"))]


def _show_rows(title: str, rows: list[dict[str, str]]) -> Block:
    """A table of words; columns in which nothing stands are left out."""
    heads = {head: head for head in rows[0] if any(row[head] for row in rows)}
    return Block("words", WordTable(title.split()[-1].lower(), title, heads, rows))


def _show_release(ledger: Ledger, charge: Charge, number: int) -> Section:
    """The answers of one release at a glance, under its number in the list."""
    title = f"{number}. {title_charge(charge)}, {charge.time[:10]}"
    blocks = [Block("facts", [("Request", charge.request or "none"), ("Ledger entry", str(charge.entry))])]
    text = None
    if "stream" in charge.description:
        steps = list_steps(ledger, charge)
        rows = [{"Period": one.name, "Published": one.time[:16], "Hash": one.digest} for one in steps]
        words = f"It was charged once, and has published {len(rows):,} periods, which cost nothing more."
        shown = [fold("The periods", _show_rows("Periods", rows))] if rows else []
        return Section(title, [*blocks, say(words), *shown])
    if charge.request is not None and charge.released:
        text = ledger.stored(charge.dataset, charge.request)
    if text is None:
        return Section(title, [*blocks, say("The release is not stored in the ledger.")])
    try:
        release: Any = from_json(text)
        options = charge.options or {}
        kind = str(options["aim"]) if options.get("aim") in KINDS else "matrix"
        if isinstance(release, AdaptiveRelease) and kind == "matrix":
            kind = "covariance"
        content = make_content(release, kind, target=options.get("target"), on=options.get("on"))
        rules = options.get("reading", {}).get("dates", {})
        content = add_dates(content, [parse_rule(name, rule) for name, rule in rules.items()])
    except MatrixDPError:  # of a question that has no report of its own
        return Section(title, [*blocks, say("It is a matrix, which its own report shows.")])
    return Section(title, [*blocks, *list_main_blocks(content), note(content.units)])


def _show_proof(ledger: Ledger, head: Head) -> list[Block]:
    anchor = f"{head.entry}:{head.hash}"
    first, second = write_words("proof", head.entry)
    blocks = [say(first), Block("data", anchor), say(second)]
    blocks.append(Block("data", f"matrixdp ledger verify LEDGER --anchor {anchor}"))
    spots = [f"This file system does not show {what}." for what in ledger.blind_spots]
    return [*blocks, *([note(spots)] if spots else [])]
