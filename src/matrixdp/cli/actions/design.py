"""What ``matrixdp design`` does: predict the accuracy and the cost of a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from matrixdp.answers.moments import correlation, covariance
from matrixdp.answers.single_question import compare_questions
from matrixdp.cli.actions.adaptive_design import AdaptiveDesign, show_adaptive_design
from matrixdp.cli.actions.describe_data import describe_data
from matrixdp.cli.actions.design_options import DesignOptions, build_design, build_query, find_records, refuse_extremes
from matrixdp.cli.actions.ledger import open_ledger, require_dataset
from matrixdp.cli.actions.method import choose_method_for, find_bounds, parse_features
from matrixdp.cli.actions.output import echo_json, warn_about_delta, write_file
from matrixdp.cli.actions.person_options import find_person
from matrixdp.cli.actions.schema_file import read_schema
from matrixdp.design import Design
from matrixdp.design.noise_ellipse import feature_names
from matrixdp.display.numbers import make_visible
from matrixdp.errors import ParameterError
from matrixdp.gdp import share_mu
from matrixdp.ledger import Gaussian
from matrixdp.ledger.location import Location
from matrixdp.report.answer_tables import MODELS, SUMMARIES, AnswerTable, make_even_release, predict_answers
from matrixdp.report.content import has_equal_rows
from matrixdp.report.model_tables import make_model
from matrixdp.report.pictures import draw_design
from matrixdp.report.tables import format_matrix, format_table
from matrixdp.types import Floats

_MOST_TABLES = 12
_EPSILON_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)


def run_design(
    options: DesignOptions,
    *,
    plot: Path | None,
    features: str | None,
    ledger: Location | None,
    dataset: str | None,
    allowance: str | None,
    as_json: bool,
) -> None:
    """Make a design and print what it predicts."""
    schema = read_schema(options.schema)
    records = find_records(options, schema)
    choice = choose_method_for(options, schema, records)
    if choice is not None and choice.method == "adaptive":
        assert records is not None  # only graphs have none
        if plot is not None or features is not None:
            raise ParameterError("--plot and --features show the noise of a plain release: add --method plain.")
        warn_about_delta(options.privacy, records)
        bounds = find_bounds(options, schema)
        person = find_person(options, schema)
        fit = AdaptiveDesign(options, bounds, records, choice, describe_data(schema, bounds), person)
        preview = None if ledger is None else fit.preview(ledger, require_dataset(dataset), allowance)
        show_adaptive_design(fit, preview, as_json=as_json)
        return
    design = build_design(options, build_query(options, schema, records))
    warn_about_delta(options.privacy, records)
    left = None
    if ledger is not None:
        left = _preview_ledger(ledger, require_dataset(dataset), allowance, options, design)
    with refuse_extremes():
        if plot is not None:
            pair = _parse_pair(features, design)
            write_file(plot, draw_design(design, pair), option="plot")
        if as_json:
            method = {} if choice is None else choice._asdict()
            echo_json(method | _collect_facts(options, design, left))
        else:
            if choice is not None:
                click.echo(f"Method: a plain release. {choice.reason}")
            _print_design(options, design, left)
            if plot is not None:
                click.echo(f"\nPicture: {plot}")


def _preview_ledger(
    path: Location, dataset: str, allowance: str | None, options: DesignOptions, design: Design
) -> tuple[float, float]:
    """Epsilon left in the ledger, now and after a release."""
    with open_ledger(path) as ledger:
        before = ledger.remaining(dataset, allowance=allowance)
        after = ledger.whatif(dataset, design, allowance=allowance)
        if options.learned:  # directions and release together cost the whole budget
            after = ledger.whatif(dataset, Gaussian(options.privacy.mu), allowance=allowance)
    return before.epsilon, after.epsilon


def _parse_pair(features: str | None, design: Design) -> tuple[int, int] | None:
    """Numbers of the two features of --features; by default the first two, if there are two. None for a table."""
    names = feature_names(design.query)
    if design.query.places is not None:
        if features is not None:
            raise ParameterError("--features must be left out for the moments of a table, which have no noise ellipse.")
        return None
    if features is None:
        return (0, 1) if len(names) > 1 else None
    chosen = [name.strip() for name in features.split(",")]
    if len(chosen) != 2 or chosen[0] == chosen[1] or not set(chosen) <= set(names):
        raise ParameterError(f"--features must name two of {', '.join(names[:20])}, got {features!r} instead.")
    return names.index(chosen[0]), names.index(chosen[1])


def predict_std(options: DesignOptions, design: Design) -> tuple[Floats, Sequence[str], Sequence[str]]:
    """Standard deviation of every entry that a report would show, and the names of rows and columns.

    For a covariance or correlation it depends on the data; the prediction is for uncorrelated features that are
    distributed uniformly within their bounds.
    """
    rows, columns = design.query.entry_names
    if options.kind == "matrix" or options.kind in SUMMARIES:
        return design.std, rows, columns
    if design.query.places is not None:
        answers = predict_answers(design, options.kind, groups=False)
        found = next(one.estimate for one in answers if one.name == options.kind)
        return found.std, found.rows, found.columns
    assert design.query.moment_bounds is not None
    moments = np.diag(np.concatenate([[1.0], design.query.moment_bounds.halfwidths**2 / 3]))
    estimate = (covariance if options.kind == "covariance" else correlation)(moments, design)
    return estimate.std, rows[1:], columns[1:]


def _vary_epsilon(options: DesignOptions, design: Design) -> list[dict[str, float]]:
    """Errors of the same design at smaller and larger epsilons."""
    rows = []
    for factor in _EPSILON_FACTORS:
        try:
            scaled = replace(options, epsilon=options.epsilon * factor)
            other = design if factor == 1.0 else build_design(scaled, design.query)
        except ParameterError:  # an epsilon for which no design can be made
            continue
        std, _, _ = predict_std(options, other)
        noisy = std[np.isfinite(std) & (std > 0)]  # none in the correlation of a single feature
        rows.append(
            {
                "epsilon": other.privacy.epsilon,
                "mu": other.distance,
                "median_std": float(np.median(noisy)) if noisy.size else 0.0,
                "largest_std": float(noisy.max(initial=0.0)),
                "relative_error": other.relative_error,
            }
        )
    return rows


def _learning_mu(options: DesignOptions) -> float | None:
    """Cost of learning the directions, if they are learned."""
    return share_mu(options.privacy.mu, options.directions_share) if options.learned else None


def _collect_facts(options: DesignOptions, design: Design, left: tuple[float, float] | None) -> dict[str, Any]:
    std, rows, columns = predict_std(options, design)
    equal_rows = has_equal_rows(std)
    facts: dict[str, Any] = {
        "query": options.query,
        "shape": list(design.query.shape),
        "epsilon": design.privacy.epsilon,
        "delta": design.privacy.delta,
        "neighbours": str(design.neighbours),
        "unit": str(design.unit),
        "calibration": design.calibration,
        "allocation": design.allocation.rule,
        "mu": design.distance,
        "mu_squared": design.distance**2,
        "directions_mu": _learning_mu(options),
        "exact": design.exact,
        "gain": design.gain,
        "excess": design.excess,
        "relative_error": design.relative_error,
        "rows": None if equal_rows else list(rows),
        "columns": list(columns),
        "std": (std[:1] if equal_rows else std).tolist(),
        "budgets": _vary_epsilon(options, design),
    }
    if design.query.places is not None:
        facts["answers"] = [
            {"title": answer.title, "rows": answer.estimate.rows, "columns": answer.estimate.columns, "std": bars}
            for answer in list_predictions(options, design)
            for bars in [answer.estimate.std.tolist()]
        ]
        facts["asked_alone"] = [
            {"question": one.title, "times_less_noise": one.ratio} for one in compare_questions(design)
        ]
    if left is not None:
        facts["ledger"] = {"epsilon_left_before": left[0], "epsilon_left_after": left[1]}
    return facts


def _print_design(options: DesignOptions, design: Design, left: tuple[float, float] | None) -> None:
    click.echo(make_visible(design.explain(), keep="\n"))
    if options.kind in SUMMARIES:
        _print_predictions(options, design)
    else:
        _print_std(options, design)
    errors = [
        [f"{row['epsilon']:g}", f"{row['median_std']:.3g}", f"{row['largest_std']:.3g}", f"{row['relative_error']:.2%}"]
        for row in _vary_epsilon(options, design)
    ]
    header = ["epsilon", "median std", "largest std", "relative to range"]
    _print_section("Error at other epsilons", format_table(header, errors))
    _print_section("Cost in the ledger", _describe_cost(options, design, left))


def list_predictions(options: DesignOptions, design: Design) -> list[AnswerTable]:
    """What a report shows of all records, and of all groups in one table."""
    if options.kind in MODELS:
        found = make_model(make_even_release(design), options.kind, options.target, parse_features(options))
        return [found[0]]  # how much a regression explains has no error bar
    return list(predict_answers(design, options.kind, groups=False))


def _print_predictions(options: DesignOptions, design: Design) -> None:
    for answer in list_predictions(options, design)[:_MOST_TABLES]:
        estimate = answer.estimate
        table = format_matrix(estimate.std, estimate.rows, estimate.columns)
        _print_section(make_visible(f"Predicted standard deviation of: {answer.title}"), table)
    click.echo(
        "  for numbers that fill their bounds evenly, and levels and groups of equal size; larger for smaller groups\n"
        "  and where values are missing; many times larger for correlations of numbers that fill little of their bounds"
    )
    if options.query == "everything":
        lines = [f"  {make_visible(one.title)}: {_describe_ratio(one.ratio)}" for one in compare_questions(design)]
        _print_section("If only this were released, with the same guarantee", "\n".join(lines))


def _describe_ratio(ratio: float) -> str:
    if not np.isfinite(ratio):
        return "noise hides the answer either way"
    return f"{ratio:.2g} times less noise" if ratio > 1.05 else "as much noise"


def _print_std(options: DesignOptions, design: Design) -> None:
    std, rows, columns = predict_std(options, design)
    subject, note = "every entry", ""
    if has_equal_rows(std):
        subject, std, rows = "each entry of every row", std[:1], ["all"]
    if options.kind != "matrix":
        subject += f" of the {options.kind}"
        note = "\n  for uncorrelated features that fill their bounds evenly; larger for features that do not"
    _print_section(f"Predicted standard deviation of {subject}", format_matrix(std, rows, columns) + note)


def _describe_cost(options: DesignOptions, design: Design, left: tuple[float, float] | None) -> str:
    lines = [f"a release costs mu {design.distance:.6g}, that is mu^2 {design.distance**2:.6g}"]
    learning = _learning_mu(options)
    if learning is not None:
        lines += [
            f"learning its directions costs another mu {learning:.6g}",
            "the errors above are for the standard directions; with learned ones they can be smaller, or much larger "
            "if the ranges of the features differ a lot",
        ]
    if left is not None:
        lines.append(f"epsilon {left[0]:.4g} is left, and {left[1]:.4g} would be left after a release")
    return "\n".join(f"  {line}" for line in lines)


def _print_section(title: str, text: str) -> None:
    click.echo(f"\n{click.style(title, bold=True)}\n{text}")
