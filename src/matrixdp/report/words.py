"""A release's guarantee, limits and error bars in plain words."""

from __future__ import annotations

import math

from matrixdp.privacy import Neighbours
from matrixdp.release import Release
from matrixdp.report.content import LedgerState, Result
from matrixdp.report.svg import short


def guarantee(release: Release) -> str:
    """What nobody can do with the release."""
    epsilon, delta = release.privacy.epsilon, release.privacy.delta
    uncertainty = release.design.query.uncertainty
    return (
        f"Whoever sees this release, whatever else they know, can hardly tell whether {uncertainty}. "
        f"Precisely: the odds they give to either case change by a factor of at most e^ε = "
        f"{short(math.exp(min(epsilon, 700.0)), 4)} (ε = {epsilon:g}), except with a probability of at most "
        f"δ = {delta:.3g}. This is ({epsilon:g}, {delta:.3g})-differential privacy."
    )


def neighbours(release: Release) -> str:
    """Which pairs of data sets the guarantee compares."""
    return release.design.query.adjacency


def protected(release: Release) -> list[str]:
    """What is protected, and what is not."""
    what = release.design.query.protects
    return [
        f"Protected: {what}, with all its values together, also against people who know all the others.",
        f"Not protected: what many people have in common. A pattern that is in the data with or without {what} can be "
        "learned from this release; that is what it is for.",
        f"Not protected as well: people who are in the data more than once. The guarantee is for {what}; for k of "
        "them at once it is about k times weaker.",
        "Public, and so not protected: the names of rows and columns, the bounds, the number of records where it is "
        "declared public, and how the noise was made. Bounds must not have been taken from the data.",
        "Further releases from the same data add up. A ledger keeps the sum.",
    ]


def error_bars(result: Result) -> list[str]:
    """How the error bars are to be read."""
    lines = [
        "Each number is the true one plus noise. Its error bar, written after ±, is the standard deviation of that "
        "noise: the true number is within one error bar in 68 of 100 cases, within two in 95.",
        "An entry with a dot in the picture is within two error bars of zero: noise alone could have made it.",
        "The error bars speak of the noise that protects privacy alone. How far these data are from the population "
        "that they come from is another question, with its own error bars.",
        "Records outside the bounds were moved to the bounds before anything was computed. How many there were is "
        "private, and nowhere recorded.",
    ]
    if result.kind != "matrix":
        lines.append(
            f"The {result.title} and its error bars were computed from the released mean and second moment, to first "
            "order in the noise. That costs no privacy. A dash marks an entry that noise made impossible to compute."
        )
    if result.square and result.kind != "correlation":
        lines.append(
            "Noise can make a matrix of moments impossible (with a negative variance in some direction). "
            "Release.nearest_psd() gives the nearest possible one, at no cost."
        )
    if result.release.design.query.rowwise:
        lines.append("Every record has noise of its own, large enough to hide it: read averages of rows, not rows.")
    return lines


def subject(result: Result) -> str:
    """What is released, in one sentence."""
    query = result.release.design.query
    records = getattr(query, "records", None)
    of = "" if records is None else f" of {records:,} records"
    if records is not None and result.release.neighbours is Neighbours.ADD_REMOVE:
        of = f" of about {records:,} records (a public figure; their true number is private)"
    if result.kind == "matrix":
        return query.subject(of)
    height, width = result.matrix.shape
    return f"The {result.title}{of}, {height:,} x {width:,}."


def spent(release: Release) -> str:
    """What the release cost."""
    design = release.design
    kind = "exactly" if design.exact else "at most"
    return (
        f"{kind} μ = {release.mu:.6g} of Gaussian differential privacy, which is ε = {design.epsilon:.4g} "
        f"at δ = {design.privacy.delta:.3g}"
    )


def ledger(state: LedgerState | None) -> list[str]:
    """The ledger's account of the release, or that there is none."""
    if state is None:
        return [
            "No ledger was used. Nobody has added up what this and other releases from the same data spend together; "
            "the guarantee above holds for this release alone."
        ]
    return [
        f"Charged to “{state.dataset}” before any noise was drawn. Of its total (ε = {state.epsilon:g} at "
        f"δ = {state.delta:.3g}), ε = {state.left_before:.4g} was left before and ε = {state.left_after:.4g} is left "
        "after this release.",
        f"The ledger stood at entry {state.entry}, {state.hash[:16]}…, when this page was written. Kept elsewhere, "
        "this number and hash show later that nothing before them was altered.",
    ]
