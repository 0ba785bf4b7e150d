"""What ``matrixdp design`` and ``matrixdp release`` print, for people or as JSON: errors, answers and cost."""

import math
from pathlib import Path
from typing import Any

import click
import numpy as np

from matrixdp.adaptive.settings import MethodChoice
from matrixdp.answers.table_forecast import compare_questions
from matrixdp.cli.ledger import name_left
from matrixdp.cli.options import echo_json, echo_section, wrap_text
from matrixdp.design import Design
from matrixdp.design.explain import feature_names
from matrixdp.display import Numbers, format_number, format_numbers, format_table, make_visible
from matrixdp.errors import ParameterError
from matrixdp.ledger import Remaining
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.queries import TableMoments
from matrixdp.release.dataset import DatasetRelease
from matrixdp.release.options import title_question
from matrixdp.release.output_folder import write_file
from matrixdp.release.plan import Plan
from matrixdp.report.answers import Answer
from matrixdp.report.dates import show_dates
from matrixdp.report.forecast import (
    DATA_KINDS,
    EPSILON_FACTORS,
    judged_by,
    let_answers_fall,
    predict,
)
from matrixdp.report.guarantee import describe_odds, name_loss
from matrixdp.report.pictures import draw_design
from matrixdp.report.release_folder import ReleaseFolder
from matrixdp.report.release_page import DATASET_PAGE, list_advice
from matrixdp.report.wants import PricedWants
from matrixdp.types import Floats

_GUARANTEE = 2  # lines of an explained design that say what is released, and with what guarantee
_MOST_TABLES = 12
_MOST_NUMBERS = 40  # with more, other epsilons take too long to simulate
_DESCRIBED = (
    "for data as the schema expects (expected_mean, expected_std, expected_missing, expected_shares,\n"
    "  expected_correlation), or as tables usually are; no data were read\n"
    "  percentages are of the width of the bounds, for covariances of the product of two widths"
)
_WANTED = (
    "the largest error of the numbers, one standard deviation of the privacy noise, for data as the schema\n"
    "  expects, or as tables usually are; no data were read"
)
Left = tuple[Remaining, Remaining] | None  # in the ledger, now and after a release
Predictions = dict[str, list[Answer]]  # by the kind of data


def draw_plot(design: Design, path: Path, features: str | None) -> None:
    """Write a picture of the noise of a design, with the ellipse of the first two features or those of --features."""
    names = feature_names(design.query)
    pair = (0, 1) if len(names) > 1 else None
    if isinstance(design.query, TableMoments):
        if features is not None:
            raise ParameterError("--features must be left out for the moments of a table, which have no noise ellipse.")
        pair = None
    elif features is not None:
        chosen = [name.strip() for name in features.split(",")]
        if len(chosen) != 2 or chosen[0] == chosen[1] or not set(chosen) <= set(names):
            raise ParameterError(f"--features must name two of {', '.join(names[:20])}, got {features!r} instead.")
        pair = names.index(chosen[0]), names.index(chosen[1])
    write_file(path, draw_design(design, pair), option="plot")


def print_design(made: Plan, left: Left, plot: Path | None, *, as_json: bool) -> None:
    """Print the predicted errors and the cost of a release, and the path of its picture."""
    design, request = made.design, made.request
    predicted = predict(made)
    varied = _vary(made, predicted)
    predicted |= dict(varied)[made]
    if as_json:
        echo_json(_collect_design(made, predicted, left))
        return
    if made.choice is not None:
        click.echo(_say_method(made.choice))
    lines = _say_guarantee(request.privacy, made.neighbours, made.unit.words)
    if design is not None:
        lines = make_visible(design.explain(), keep="\n").split("\n")
    click.echo("\n".join(lines[:_GUARANTEE]))
    _print_predictions(made, predicted, varied)
    if request.question == "everything" and design is not None:
        questions = compare_questions(design)
        questions = questions if made.beside is None else questions[:-1]  # the last is a correlation, of the moments
        single = [f"  {make_visible(one.title)}: {one.words}" for one in questions]
        echo_section("If only this were released, with the same guarantee", "\n".join(single))
    mu = made.event.mu
    echo_section("Cost in the ledger", f"  a release costs mu {mu:.6g}, that is mu^2 {mu**2:.6g}")
    if left is not None:
        click.echo(f"  epsilon {left[0].epsilon:.4g} is left, and {left[1].epsilon:.4g} would be left after a release")
    if design is not None:
        echo_section("How the noise was chosen", "\n".join(lines[_GUARANTEE:]))
    if plot is not None:
        click.echo(f"\nPicture: {plot}")


def _print_predictions(made: Plan, predicted: Predictions, varied: list[tuple[Plan, Predictions]]) -> None:
    """The predicted error of each answer for typical data, its range, and the error at other epsilons."""
    request = made.request
    for answer in predicted["typical"][:_MOST_TABLES]:
        found = answer.estimate
        width = 1 if answer.name == "regression" else len(found.columns)  # the second one is the sampling error
        errors = Numbers(found.std, None, found.rows, found.columns, found.reasons)
        shown = format_numbers(errors.cut(len(found.rows), width))
        echo_section(make_visible(f"Predicted error of: {answer.title}"), shown)
    if len(predicted) > 1:
        table = tabulate_medians(made, predicted)
        echo_section("Median error, by how easy the data are where the schema has no guess", table)
        for kind, words in DATA_KINDS.items() if made.adaptive else ():
            click.echo(f"  {kind}: {words}")
    if request.kind != "matrix":
        click.echo(f"  {_DESCRIBED}")
    if made.adaptive and judged_by(request.question) != request.question:
        click.echo("  components and regressions are computed from these correlations")
    others = {f"epsilon {other.request.epsilon:g}": found["typical"] for other, found in varied}
    if len(others) > 1:
        echo_section("Median error at other epsilons, for typical data", tabulate_medians(made, others))


def _vary(made: Plan, predicted: Predictions) -> list[tuple[Plan, Predictions]]:
    """The plan and its predictions at smaller and larger epsilons, or it alone where others take too long."""
    query = made.query
    numbers = made.bounds.size if made.adaptive else len(query.used.numbers) if isinstance(query, TableMoments) else 0
    slow = numbers > _MOST_NUMBERS or (made.request.kind == "components" and not made.adaptive)
    kinds = tuple(DATA_KINDS) if made.adaptive else ("typical",)
    plans, found = [], []
    for factor in (1.0,) if slow else EPSILON_FACTORS:
        try:
            other = made if factor == 1.0 else made.at(made.request.epsilon * factor)
            answers = predicted if other is made else predict(other, kinds)
        except ParameterError:  # an epsilon for which no design or fit can be made
            continue
        plans.append(other)
        found.append({kind: answers[kind] for kind in kinds})
    return list(zip(plans, let_answers_fall(found), strict=True))


def _collect_design(made: Plan, predicted: Predictions, left: Left) -> dict[str, Any]:
    """The facts of a planned release, with the predicted errors of its answers by the kind of data."""
    request, design, mu = made.request, made.design, made.event.mu
    facts: dict[str, Any] = {
        "query": request.question,
        **({} if made.choice is None else made.choice._asdict()),
        "epsilon": request.epsilon,
        "delta": request.delta,
        "loss": name_loss(request.epsilon),
        "neighbours": str(made.neighbours),
        "unit": str(made.unit),
        "records": made.records,
        "mu": mu,
        "mu_squared": mu**2,
    }
    if left is not None:
        facts["ledger"] = name_left(left)
    if design is not None:
        facts |= {name: getattr(design, name) for name in ("calibration", "exact", "gain", "excess", "relative_error")}
        facts |= {"shape": list(design.query.shape), "allocation": design.allocation.rule}
        facts["correlation_share"] = 0.0 if made.beside is None else 1 - design.share
    facts["answers"] = []
    for answers in zip(*predicted.values(), strict=True):
        std = {kind: one.estimate.std.tolist() for kind, one in zip(predicted, answers, strict=True)}
        names = {"rows": list(answers[0].estimate.rows), "columns": list(answers[0].estimate.columns)}
        facts["answers"].append({"title": answers[0].title, **names, "std": std})
    return facts


def tabulate_medians(made: Plan, found: Predictions) -> str:
    """Median errors of each table, in one column for each list of tables."""
    rows: list[list[str]] = []
    for answers in list(zip(*found.values(), strict=True))[:_MOST_TABLES]:
        parts = [_list_parts(answer, made) for answer in answers]
        rows += [
            [make_visible(one[0][0]), *(_show_median(*part[1:]) for part in one)] for one in zip(*parts, strict=True)
        ]
    return format_table(["", *found], rows)


def _list_parts(answer: Answer, made: Plan) -> list[tuple[str, Floats, bool]]:
    """Title and errors of parts of a table that can be compared, and whether they are relative to bounds."""
    std, title, name, query = answer.estimate.std, answer.title, answer.name, made.query
    bounds = query.used.bounds if isinstance(query, TableMoments) else getattr(query, "bounds", None)
    widths = np.ones((1, 1)) if bounds is None else 2 * bounds.halfwidths[None]
    if name == "means":
        columns = answer.estimate.columns[:2]  # the third is a share
        return [(f"{title}: {one}", std[:, [k]] / widths.T, True) for k, one in enumerate(columns)]
    if name == "groups":
        return [(f"{title}: share", std[:, :1], False), (f"{title}: means", std[:, 1:] / widths, True)]
    if name == "means_by_level":
        return [(title, std[:, 1:] / widths, True)]
    if name == "covariance":
        return [(title, std / widths / widths.T, True)]
    if name == "regression":
        return [(f"{title}: {one}", std[k, :1], False) for k, one in enumerate(answer.estimate.rows)]
    return [(title, std, False)]


def _show_median(errors: Floats, relative: bool) -> str:
    """The median in words, without errors that are zero, as on the diagonal of a correlation; 0 if all are."""
    noisy = np.where(np.isnan(errors), np.inf, errors)[errors != 0]
    median = float(np.median(noisy)) if noisy.size else 0.0
    if not np.isfinite(median):
        return "hidden"
    return f"{median:.2%}" if relative else format_number(median, 3)


# Plans of several questions


def print_wants(priced: PricedWants) -> None:
    """Print the releases of a plan, their predicted errors beside those wanted, and what they cost together."""
    rows, left = [], priced.left.mu**2
    for number, one in enumerate(priced.releases, start=1):
        cost = _share(one.mu_squared, left) if one in priced.new else "released before"
        asked = one.plan.request
        named = {name: getattr(asked, name) for name in ("target", "cells", "columns", "on", "by")}
        rows.append([f"{number}. {title_question(asked.question, **named)}", f"{asked.epsilon:g}", cost, "", ""])
        for want, error in zip(one.wants, one.errors, strict=True):
            rows.append([f"   {want.words}", "", "", f"{want.error:g}", format_number(error, 3)])
    echo_section("Releases", format_table(["release", "epsilon", "of what is left", "wanted", "predicted"], rows))
    click.echo(f"  {_WANTED}")
    lines = [f"together they cost {_share(priced.cost, left)} of what is left"]
    for name, other in {"a release for each want": priced.separate, "one release for all": priced.together}.items():
        if math.inf > other > priced.mu_squared:
            lines.append(f"{name} would cost {other / priced.mu_squared:.3g} times as much")
    if priced.after is not None:
        lines.append(f"epsilon {priced.left.epsilon:.4g} is left, and {priced.after.epsilon:.4g} would be left")
    echo_section("Cost in the ledger", "\n".join(f"  {line}" for line in lines))
    if priced.reachable:
        shown = [[want.words, f"{want.error:g}", format_number(error, 3)] for want, error in priced.reachable.items()]
        title = "What could be reached with all that is left, divided in the same way"
        echo_section(title, format_table(["for", "wanted", "predicted"], shown))


def _share(cost: float, left: float) -> str:
    return f"{cost / left:.1%}" if left > 0 else "more than all"


def collect_wants(priced: PricedWants) -> dict[str, Any]:
    """The facts of a plan of several questions, as JSON content."""
    releases = []
    for one in priced.releases:
        wants = [
            {"want": want.words, "wanted": want.error, "predicted": error}
            for want, error in zip(one.wants, one.errors, strict=True)
        ]
        facts = {"mu_squared": one.mu_squared, "charged_before": one not in priced.new, "wants": wants}
        releases.append(one.plan.request.to_options() | facts)
    left, after = priced.left, priced.after
    return {
        "releases": releases,
        "mu_squared": priced.cost,
        "mu_squared_separate": priced.separate,
        "mu_squared_together": priced.together,
        "fits": after is not None,
        "ledger": {"epsilon_left_before": left.epsilon, "epsilon_left_after": None if after is None else after.epsilon},
        "reachable": [{"want": want.words, "predicted": error} for want, error in priced.reachable.items()],
    }


# Releases


def print_release(folder: ReleaseFolder, out: Path, *, as_json: bool) -> None:
    """Print a released matrix, its guarantee and the path of its report."""
    content, choice = folder.content, folder.outcome.plan.choice
    release, (height, width) = content.release, content.shape
    if as_json:
        echo_json(collect_release(folder, out))
        return
    if isinstance(release, DatasetRelease):
        count = len(release.files)
        click.echo(f"Wrote {height:,} noisy records of {width} columns to {out}, in {count:,} Parquet files")
    else:
        click.echo(click.style(f"Private {content.title} ± error bars", bold=True))
    long = ("covariance", "histogram")  # to be read in the report
    shown = [one for one in content.answers if one is content.main or not (one.group or one.name in long)]
    for answer in shown[:_MOST_TABLES]:
        table = format_numbers(answer.estimate, show_dates(answer, content.dates))
        click.echo(table if answer is content.main else f"\n{make_visible(answer.title)}\n{table}")
    if len(shown) < len(content.answers):
        click.echo("\nThe other tables are in the report and in the CSV files.")
    if notes := dict.fromkeys(f"{note}." for one in shown[:_MOST_TABLES] for note in one.estimate.list_notes()):
        click.echo("\n" + "\n".join(notes))
    if helping := list_advice(content):
        echo_section("What would help", "\n".join(wrap_text(make_visible(line)) for line in helping))
    for remark in content.caveats + content.units:
        click.echo(f"\n{click.style('Note:', bold=True)} {remark}")
    if choice is not None:
        click.echo(f"\n{_say_method(choice)}")
    unit = content.query.protects
    click.echo("\n".join(["", *_say_guarantee(release.privacy, release.neighbours, unit)]))
    if content.ledger is None:
        click.echo("No ledger was used: nothing keeps the total spent on these data.")
    else:
        after, before, total = content.ledger.left_after, content.ledger.left_before, content.ledger.epsilon
        click.echo(
            f"Ledger: epsilon {after:.4g} of {total:g} is left, {before:.4g} before this release (releases add up as "
            "squares of mu, not as epsilons)"
        )
    click.echo(f"Report: {out / (DATASET_PAGE if content.in_files else 'report.html')}")


def collect_release(folder: ReleaseFolder, out: Path) -> dict[str, Any]:
    """The facts and answers of a release, as JSON content."""
    content, choice, release = folder.content, folder.outcome.plan.choice, folder.outcome.release
    by, answers = getattr(content.query, "by", ()), []
    for answer in () if content.in_files else content.answers:
        group = dict(zip(by, answer.group, strict=True)) if answer.group else None
        named = {"file": f"{answer.name}.csv", "title": answer.title, "group": group}
        answers += [] if answer is content.main else [{**named, **answer.estimate.to_dict()}]
    return {
        "out": str(out),
        "files": list(folder.files),
        "epsilon": release.privacy.epsilon,
        "delta": release.privacy.delta,
        "loss": name_loss(release.privacy.epsilon),
        "neighbours": str(release.neighbours),
        "unit": str(release.unit),
        "mu": release.mu,
        "ledger": None if content.ledger is None else {**vars(content.ledger), "time": str(content.ledger.time)},
        "notes": list(content.caveats + content.units),
        **({} if choice is None else choice._asdict()),
        **({"answers": answers} if answers else {}),
        "result": content.title,
        "shape": list(content.shape),
    }


def _say_method(choice: MethodChoice) -> str:
    return f"Method: {'an adaptive fit' if choice.method == 'adaptive' else 'a plain release'}. {choice.reason}"


def _say_guarantee(privacy: Privacy, neighbours: Neighbours, unit: str) -> list[str]:
    """The guarantee in a line, and what it means."""
    guarantee = f"({privacy.epsilon:g}, {privacy.delta:.3g})-DP, {neighbours} neighbours, protects {unit}"
    odds = wrap_text(describe_odds(privacy.epsilon, privacy.delta, unit))
    return [f"Guarantee: {guarantee}: {name_loss(privacy.epsilon)}", odds]
