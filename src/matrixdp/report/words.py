"""Guarantee, limits and error bars of a release in plain words."""

from __future__ import annotations

import numpy as np

from matrixdp.queries import Identity, MatrixQuery
from matrixdp.release.result import Release
from matrixdp.report.content import ReportContent
from matrixdp.report.ledger_summary import LedgerSummary
from matrixdp.report.mechanism_facts import MechanismFacts
from matrixdp.report.queries import describe_adjacency, describe_answer, describe_uncertainty
from matrixdp.report.strength import describe_odds, name_loss

DASH = (
    "A dash (–) marks a correlation that noise hides: a variance that it needs is not positive, or its error bar would "
    "be as wide as the whole range from -1 to 1."
)
_LEARNED = {
    "small privacy loss": "learns little about",
    "moderate privacy loss": "can learn something about",
    "large privacy loss, weak protection": "may find out",
}


def describe_subject(content: ReportContent) -> str:
    """One sentence on what is released."""
    query = content.mechanism.query
    count = getattr(query, "records", None)
    records = "" if count is None else f" of {count:,} {query.count_word}"
    if count is not None and not query.public_number:
        records = f" of about {count:,} {query.count_word} (a public figure; their true number is private)"
    if content.title == query.title:
        return describe_answer(query, records)
    if content.mechanism.adaptive:
        return f"The {content.title}{records}."
    if content.answers:
        return f"The {content.title}{records}, computed from {_lower_first(describe_answer(query, ''))}"
    height, width = content.matrix.shape
    return f"The {content.title}{records}, {height:,} x {width:,}."


def _lower_first(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def describe_guarantee(mechanism: MechanismFacts) -> str:
    """How much the release may reveal, by the strength of its guarantee."""
    loss = name_loss(mechanism.epsilon)
    return (
        f"{loss[0].upper()}{loss[1:]}: someone who sees this release {_LEARNED[loss]} whether "
        f"{describe_uncertainty(mechanism.query)}, whatever else they know. "
        f"{describe_odds(mechanism.epsilon, mechanism.delta, mechanism.query.protects)}"
    )


def describe_formally(mechanism: MechanismFacts) -> list[tuple[str, str]]:
    """The guarantee in symbols: facts with their names, and formulas without."""
    slack = " + δ" if mechanism.delta else ""
    value = f"with ε = {mechanism.epsilon:g}" + (f" and δ = {mechanism.delta:.3g}" if mechanism.delta else "")
    facts = [
        ("Guarantee", f"{mechanism.guarantee}: for all neighbours D and D′ and every set S of results,"),
        ("", f"Pr[M(D) ∈ S] ≤ exp(ε) Pr[M(D′) ∈ S]{slack}, {value}"),
        ("Neighbours", describe_adjacency(mechanism.query)),
        ("Spent", mechanism.cost),
    ]
    if "μ" in mechanism.cost:
        facts.append(("", "δ(ε) = Φ(−ε/μ + μ/2) − exp(ε) Φ(−ε/μ − μ/2), with the normal distribution function Φ"))
    return facts


def describe_protection(mechanism: MechanismFacts) -> list[str]:
    """What is protected and what is not."""
    query, unit = mechanism.query, mechanism.query.protects
    values = ", with all its values together" if query.unit in ("record", "edge") else ""
    return [
        f"Protected: {unit}{values}, even against someone who knows all the others.",
        f"Not protected: what many people have in common. A pattern that is in the data with or without {unit} can be "
        "learned from this release; that is its purpose.",
        _describe_repetition(query),
        "Public, and therefore not protected: the names of rows and columns, the bounds, the number of "
        f"{query.count_word} where it is declared public, and how the noise was generated. The bounds must not have "
        "been taken from the data.",
        "Every further release from the same data adds to the privacy loss. A ledger keeps the total.",
    ]


def _describe_repetition(query: MatrixQuery) -> str:
    """What the guarantee says about somebody who is in the data several times."""
    match query.unit:
        case "person":
            return (
                "Protected as well: people who appear in the data more than once, however often. Only who has several "
                "ids is protected as several people."
            )
        case "node":
            return "Protected as well: nodes with many edges. Public, however: which nodes there are."
        case "edge":
            return (
                "Not protected either: several edges at once. The guarantee is for one edge; for k of them, such as "
                "all those of one node, it is about k times weaker."
            )
    return (
        f"Not protected either: people who appear in the data more than once. The guarantee is for {query.protects}; "
        "for k of them at once it is about k times weaker."
    )


def explain_error_bars(content: ReportContent) -> list[str]:
    """How to read the error bars."""
    if content.std is None:
        lines = [
            "Each number is the true one changed by the mechanism. The error bars are unknown: the mechanism does not "
            "say how large its noise is."
        ]
    elif content.mechanism.adaptive:
        lines = _explain_adaptive(content)
    elif content.summary:
        lines = _explain_answers(content.mechanism.query.count_word)
    else:
        lines = [
            "Each number is the true one plus noise. Its error bar, written after ±, is the standard deviation of that "
            "noise: the true number is within one error bar in 68 of 100 cases, and within two in 95.",
            "A pale entry is within two error bars of zero: it could be noise alone.",
            "The error bars cover only the noise that protects privacy. How far these data are from the population "
            "that they come from is a separate question, with its own error bars.",
        ]
    lines += _explain_weights(content.mechanism.query)
    if not content.answers and content.kind != "matrix" and not content.mechanism.adaptive:
        lines.append(
            f"The {content.title} and its error bars were computed from the released mean and second moment, to first "
            "order in the noise. This uses no privacy budget."
        )
    if content.kind == "correlation" and np.isnan(content.matrix).any():
        lines.append(DASH)
    if content.square and content.kind != "correlation" and not content.summary and not content.mechanism.adaptive:
        lines.append(
            "Noise can make a matrix of moments impossible (with a negative variance in some direction). "
            "matrixdp.answers.nearest_psd(matrix, std) returns the nearest possible one, where std are the error bars, "
            "and uses no privacy budget."
        )
    if isinstance(content.release, Release) and content.mechanism.query.total is not None:
        lines.append(
            f"The number of {content.mechanism.query.count_word} is public, so the noisy counts were adjusted to sum "
            "to it. This makes every error bar smaller, and the errors of two counts slightly opposite: the error of a "
            "sum of counts is smaller than if they were independent, and that of all counts together is zero."
        )
    if isinstance(content.mechanism.query, Identity):
        lines.append(
            "Every record has noise of its own, large enough to hide it: use averages of rows, not single rows."
        )
    return lines


def _explain_adaptive(content: ReportContent) -> list[str]:
    lines = [
        "Each number is an estimate from noisy answers. Its error bar, written after ±, is a standard deviation: the "
        "number without noise is within one error bar in about 68 of 100 cases, and within two in 95.",
        "A part of the budget was spent on finding where the records lie, so that they could be measured there with "
        "less noise. Records far away from the others were moved towards them, and variances that may be noise alone "
        "were shrunk. The error bars allow for this, as far as it can be told from noisy answers.",
        "The error bars are for these records. How far they are from the population that they come from is a separate "
        "question, with its own error bars: “matrixdp answer sampling” shows both.",
    ]
    if content.kind == "regression":
        lines.append(
            "Coefficients that may be noise alone are close to zero. The column “sampling std” is the standard error "
            "of a coefficient for the population, without the noise. “Hidden by noise” is a coefficient of columns "
            "that are nearly collinear, so that noise hides which of them matters."
        )
    return lines


def _explain_weights(query: MatrixQuery) -> list[str]:
    """How people with several rows count."""
    if query.person is None or isinstance(query, Identity):
        return []
    if query.person.rows is None:
        return [
            "Each person counts once, whatever the number of their rows: numbers are means over people, of the means "
            "over the rows of each, and shares and counts are of people."
        ]
    return [
        f"Each row counts, but all rows of a person with more than {query.person.rows:,} of them together count as "
        f"{query.person.rows:,}."
    ]


def _explain_answers(records: str) -> list[str]:
    return [
        "Each number is the true one plus noise. Its error bar, written after ±, is the standard deviation of that "
        "noise, to first order: the true number is within one error bar in about 68 of 100 cases, within two in 95.",
        f"“Too few” marks a number that would be computed from so few {records} that noise hides their number, and "
        "“hidden by noise” a standard deviation or correlation for which noise hides a variance. A pale number in "
        "grey is within two error bars of zero: it could be noise alone.",
        "All numbers follow from one noisy matrix, so showing more of them uses no privacy budget: “matrixdp answer” "
        "reads regressions, principal components and more off release.json. Counts, means and totals "
        "are adjusted to each other, so that they add up; a small count can be negative.",
        "The error bars cover only the noise that protects privacy. How far these data are from the population that "
        "they come from is a separate question, with its own error bars: “matrixdp answer sampling” shows both.",
    ]


def describe_ledger(ledger: LedgerSummary | None) -> list[str]:
    """What the ledger recorded, or that there is none."""
    if ledger is None:
        return [
            "No ledger was used. The guarantee above is for this release alone; nothing keeps the total of this and "
            "other releases from the same data."
        ]
    target = (
        f"“{ledger.dataset}”" if ledger.allowance is None else f"“{ledger.allowance}”, a part of “{ledger.dataset}”,"
    )
    return [
        f"Charged to {target} before any noise was drawn. Of its total budget (ε = {ledger.epsilon:g} at "
        f"δ = {ledger.delta:.3g}), ε = {ledger.left_before:.4g} was left before this release and "
        f"ε = {ledger.left_after:.4g} is left after it.",
        f"When this page was written, the last entry of the ledger was number {ledger.entry} (hash "
        f"{ledger.hash[:16]}…). Keep the number and the full hash elsewhere (matrixdp ledger verify prints them): they "
        "show later whether an earlier entry was altered.",
    ]
