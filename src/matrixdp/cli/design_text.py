"""What ``matrixdp design`` prints, for people or as JSON: predicted errors, and the cost of a release."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from matrixdp.answers.described_table import SHAPES
from matrixdp.answers.table_forecast import compare_questions
from matrixdp.cli.output import echo_json, echo_section, wrap_text
from matrixdp.design import Design
from matrixdp.design.noise_ellipse import feature_names
from matrixdp.display import Numbers, format_number, format_numbers, format_table, has_equal_rows, make_visible
from matrixdp.errors import ParameterError
from matrixdp.ledger import Remaining
from matrixdp.privacy import describe_guarantee
from matrixdp.queries import TableMoments
from matrixdp.release.output_folder import write_file
from matrixdp.release.plan import Plan
from matrixdp.report.answers import Answer
from matrixdp.report.forecast import (
    KINDS,
    forecast_fit,
    judged_by,
    list_predictions,
    predict_std,
    vary_epsilon,
)
from matrixdp.report.guarantee import describe_odds, name_loss
from matrixdp.report.pictures import draw_design
from matrixdp.types import Floats

_SHOWN = ("median_std", "largest_std")
_GUARANTEE = 2  # lines of an explained design that say what is released, and with what guarantee
_MOST_TABLES = 12
_MOST_NUMBERS = 40  # with more, other epsilons take too long to simulate
_NUMBER_COLUMNS = ("mean", "standard deviation")
_DESCRIBED = (
    "by simulation of releases, for data as the schema expects (expected_mean, expected_std, expected_missing,\n"
    "  expected_shares, expected_correlation), or as tables usually are; no data were read\n"
    "  percentages are of the width of the bounds, for covariances of the product of two widths"
)
Left = tuple[Remaining, Remaining] | None  # in the ledger, now and after a release


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


def print_design(made: Plan, design: Design, left: Left, plot: Path | None, *, as_json: bool) -> None:
    """Print the predicted errors and the cost of a plain release, and the path of its picture."""
    if as_json:
        echo_json(_collect_facts(made, design.distance, left) | _collect_design_facts(made, design))
        return
    if made.choice is not None:
        click.echo(f"Method: a plain release. {made.choice.reason}")
    lines = make_visible(design.explain(), keep="\n").split("\n")
    table = isinstance(design.query, TableMoments)  # what is predicted first, and how the noise was chosen last
    click.echo("\n".join(lines[: _GUARANTEE if table else None]))
    if table:
        _print_predictions(made, design)
    else:
        _print_std(made)
    echo_section("Cost in the ledger", _describe_cost(made, design.distance, left))
    if table:
        echo_section("How the noise was chosen", "\n".join(lines[_GUARANTEE:]))
    if plot is not None:
        click.echo(f"\nPicture: {plot}")


def _tabulate_epsilons(made: Plan) -> list[dict[str, float]]:
    """Errors of the same design at smaller and larger epsilons."""
    rows = []
    for other in vary_epsilon(made):
        std, _, _ = predict_std(other)
        assert other.design is not None
        finite = std[np.isfinite(std)]
        errors = {"median_std": _median(finite), "largest_std": float(finite.max(initial=0.0))}
        relative = other.design.relative_error
        rows.append(
            {"epsilon": other.request.epsilon, "mu": other.design.distance, **errors, "relative_error": relative}
        )
    return rows


def _collect_facts(made: Plan, mu: float, left: Left) -> dict[str, Any]:
    """The facts that plain releases and fits have in common."""
    request = made.request
    facts: dict[str, Any] = {
        "query": request.question,
        **({} if made.choice is None else made.choice._asdict()),
        "epsilon": request.epsilon,
        "delta": request.delta,
        "neighbours": str(made.neighbours),
        "unit": str(made.unit),
        "mu": mu,
        "mu_squared": mu**2,
    }
    if left is not None:
        facts["ledger"] = {"epsilon_left_before": left[0].epsilon, "epsilon_left_after": left[1].epsilon}
    return facts


def _collect_design_facts(made: Plan, design: Design) -> dict[str, Any]:
    std, rows, columns = predict_std(made)
    equal_rows = has_equal_rows(std)
    facts: dict[str, Any] = {
        "shape": list(design.query.shape),
        "calibration": design.calibration,
        "allocation": design.allocation.rule,
        "directions_mu": made.learning_mu,
        "exact": design.exact,
        "gain": design.gain,
        "excess": design.excess,
        "relative_error": design.relative_error,
        "rows": None if equal_rows else list(rows),
        "columns": list(columns),
        "std": (std[:1] if equal_rows else std).tolist(),
        "budgets": _tabulate_epsilons(made),
    }
    if isinstance(design.query, TableMoments):
        facts["answers"] = _collect_predictions(made)
        facts["asked_alone"] = [
            {"question": one.title, "times_less_noise": one.ratio} for one in compare_questions(design)
        ]
    return facts


def _collect_predictions(made: Plan) -> list[dict[str, Any]]:
    """The predictions as content of JSON; not finite where noise would hide an answer."""
    found = {data: list_predictions(made, data=data) for data in SHAPES}
    return [
        {
            "title": answers[0].title,
            "rows": answers[0].estimate.rows,
            "columns": answers[0].estimate.columns,
            "std": found["typical"][number].estimate.std.tolist(),
            **{data: one.estimate.std.tolist() for data, one in zip(found, answers, strict=True)},
        }
        for number, answers in enumerate(zip(*found.values(), strict=True))
    ]


def _print_std(made: Plan) -> None:
    """The predicted error of every entry, and the error at other epsilons."""
    std, rows, columns = predict_std(made)
    subject, note = "every entry", ""
    if has_equal_rows(std):
        subject, std, rows = "each entry of every row", std[:1], ["all"]
    if made.request.kind != "matrix":
        subject += f" of the {made.request.kind}"
        note = (
            "\n  for data as the schema expects (expected_mean, expected_std, expected_correlation), or as tables "
            "usually are"
        )
    echo_section(f"Predicted standard deviation of {subject}", format_numbers(Numbers(std, None, rows, columns)) + note)
    errors = [
        [f"{row['epsilon']:g}", *(f"{row[name]:.3g}" for name in _SHOWN), f"{row['relative_error']:.2%}"]
        for row in _tabulate_epsilons(made)
    ]
    header = ["epsilon", "median std", "largest std", "relative to range"]
    echo_section("Error at other epsilons", format_table(header, errors))


def _print_predictions(made: Plan, design: Design) -> None:
    """The predicted error of each answer for typical data, its range, and the error at other epsilons."""
    ranges = {data: list_predictions(made, data=data) for data in SHAPES}
    for answer in ranges["typical"][:_MOST_TABLES]:
        estimate = answer.estimate
        width = 1 if answer.name == "regression" else len(estimate.columns)  # the second one is the sampling error
        errors = Numbers(estimate.std, None, estimate.rows, estimate.columns, estimate.reasons, estimate.unknown)
        shown = format_numbers(errors.cut(len(estimate.rows), width))
        echo_section(make_visible(f"Predicted error of: {answer.title}"), shown)
    query = design.query
    assert isinstance(query, TableMoments)
    table = _tabulate_medians(query, list(ranges), list(ranges.values()))
    echo_section("Median error, by how easy the data are where the schema has no guess", table)
    click.echo(f"  {_DESCRIBED}")
    if len(query.used.numbers) <= _MOST_NUMBERS and made.request.kind != "components":
        others = list(vary_epsilon(made))
        found = [list_predictions(other) for other in others]
        table = _tabulate_medians(query, [f"epsilon {other.request.epsilon:g}" for other in others], found)
        echo_section("Median error at other epsilons, for typical data", table)
    if made.request.question == "everything":
        single = [f"  {make_visible(one.title)}: {one.words}" for one in compare_questions(design)]
        echo_section("If only this were released, with the same guarantee", "\n".join(single))


def _tabulate_medians(query: TableMoments, header: list[str], found: list[list[Answer]]) -> str:
    """Median errors of each table, in one column for each list of tables."""
    rows: list[list[str]] = []
    for answers in list(zip(*found, strict=True))[:_MOST_TABLES]:
        parts = [_list_parts(answer, query) for answer in answers]
        rows += [[make_visible(one[0].label), *map(_show_median, one)] for one in zip(*parts, strict=True)]
    return format_table(["", *header], rows)


class _Part(NamedTuple):
    """Errors that can be compared with each other."""

    label: str
    errors: Floats
    relative: bool = False  # to the width of the bounds


def _list_parts(answer: Answer, query: TableMoments) -> list[_Part]:
    """The errors of a table, in units in which they can be compared."""
    std, title = answer.estimate.std, answer.title
    widths = np.array([[number.upper - number.lower for number in query.used.numbers]])
    if answer.name == "means":
        return [_Part(f"{title}: {name}", std[:, [k]] / widths.T, True) for k, name in enumerate(_NUMBER_COLUMNS)]
    if answer.name == "groups":
        return [_Part(f"{title}: share", std[:, :1]), _Part(f"{title}: means", std[:, 1:] / widths, True)]
    if answer.name == "means_by_level":
        return [_Part(title, std[:, 1:] / widths, True)]
    if answer.name == "covariance":
        return [_Part(title, std / widths / widths.T, True)]
    if answer.name == "regression":
        return [_Part(f"{title}: {name}", std[k, :1]) for k, name in enumerate(answer.estimate.rows)]
    return [_Part(title, std)]


def _show_median(part: _Part) -> str:
    median = _median(np.where(np.isnan(part.errors), np.inf, part.errors))
    if not np.isfinite(median):
        return "hidden"
    return f"{median:.2%}" if part.relative else format_number(median, 3)


def _median(errors: Floats) -> float:
    """The median of the errors, without those that are zero, as on the diagonal of a correlation; 0 if all are."""
    noisy = errors[errors > 0]
    return float(np.median(noisy)) if noisy.size else 0.0


def _describe_cost(made: Plan, mu: float, left: Left) -> str:
    lines = [f"a release costs mu {mu:.6g}, that is mu^2 {mu**2:.6g}"]
    if made.learning_mu is not None:
        lines += [
            f"learning its directions costs another mu {made.learning_mu:.6g}",
            "the errors above are for the standard directions; with learned ones they can be smaller, or much larger "
            "if the ranges of the features differ a lot",
        ]
    if left is not None:
        lines.append(f"epsilon {left[0].epsilon:.4g} is left, and {left[1].epsilon:.4g} would be left after a release")
    return "\n".join(f"  {line}" for line in lines)


def print_fit(made: Plan, left: Left, *, as_json: bool) -> None:
    """Print the method and why, the guarantee, predicted errors, and the cost of an adaptive fit."""
    found, request = forecast_fit(made), made.request
    if as_json:
        facts = {
            "loss": name_loss(request.epsilon),
            "records": made.records,
            "columns": list(made.bounds.names or ()),
            "shown": judged_by(request.question),
            "std": {kind: std.tolist() for kind, std in found.items()},
            "budgets": _vary_fit(made, found),
        }
        echo_json(_collect_facts(made, request.privacy.mu, left) | facts)
        return
    privacy, names = request.privacy, made.bounds.names or ()
    assert made.choice is not None  # of an adaptive fit
    click.echo(f"Method: an adaptive fit. {made.choice.reason}")
    guarantee = describe_guarantee(privacy.epsilon, privacy.delta, made.neighbours, made.unit)
    odds = describe_odds(privacy.epsilon, privacy.delta, made.unit.words)
    click.echo(f"Guarantee: {guarantee}: {name_loss(privacy.epsilon)}\n{wrap_text(odds)}")
    typical, shown = found["typical"], judged_by(request.question)
    rows = names if len(typical) > 1 else ("all",)
    subject = {"means": "mean"}.get(shown, shown)
    echo_section(
        f"Predicted error of every {subject}, for typical data", format_numbers(Numbers(typical, None, rows, names))
    )
    ranges = [[kind, f"{_median(std):.3g}", f"{std.max():.3g}", KINDS[kind]] for kind, std in found.items()]
    echo_section("Range over the shapes that data may have", format_table(["data", "median", "largest", ""], ranges))
    click.echo(
        "  by simulation of the fit, for records that fill their bounds as the schema expects (expected_mean,\n"
        "  expected_std, expected_correlation), or as tables usually do; no data were read"
    )
    if shown != request.question:
        click.echo("  components and regressions are computed from these correlations")
    others = _vary_fit(made, found)
    if len(others) > 1:
        lines = [[f"{row['epsilon']:g}", *(f"{row[kind]:.3g}" for kind in KINDS)] for row in others]
        echo_section("Median error at other epsilons", format_table(["epsilon", *KINDS], lines))
    echo_section("Cost in the ledger", _describe_cost(made, privacy.mu, left))


def _vary_fit(made: Plan, found: dict[str, Floats]) -> list[dict[str, float]]:
    """Median errors of a fit at smaller and larger epsilons."""
    rows = []
    for other in [made] if made.bounds.size > _MOST_NUMBERS else vary_epsilon(made):
        try:
            errors = found if other is made else forecast_fit(other)
        except ParameterError:  # an epsilon for which no fit can be made
            continue
        medians = {kind: _median(std) for kind, std in errors.items()}
        rows.append({"epsilon": other.request.epsilon, "mu": other.request.privacy.mu, **medians})
    return rows
