"""What ``matrixdp design`` does: predict the accuracy and the cost of a release."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from matrixdp.answers.moments import correlation, covariance
from matrixdp.answers.table_forecast import compare_questions
from matrixdp.cli.actions.adaptive_design import AdaptiveDesign, show_adaptive_design
from matrixdp.cli.actions.describe_data import describe_data, describe_moments
from matrixdp.cli.actions.design_options import DesignOptions, build_design, build_query, find_records, refuse_extremes
from matrixdp.cli.actions.ledger import open_ledger, require_dataset
from matrixdp.cli.actions.method import choose_method_for, find_bounds
from matrixdp.cli.actions.output import echo_json, warn_about_delta, write_file
from matrixdp.cli.actions.person_options import find_person
from matrixdp.cli.actions.table_design import (
    collect_predictions,
    list_predictions,
    print_predictions,
    print_section,
    vary_design,
)
from matrixdp.design import Design
from matrixdp.design.noise_ellipse import feature_names
from matrixdp.display import Numbers, format_numbers, format_table, has_equal_rows, make_visible
from matrixdp.domain.schema import Schema
from matrixdp.domain.schema_file import read_schema
from matrixdp.errors import ParameterError
from matrixdp.gdp import share_mu
from matrixdp.ledger import Gaussian
from matrixdp.ledger.location import Location
from matrixdp.queries import Moments, TableMoments
from matrixdp.report.answers import SUMMARIES
from matrixdp.report.pictures import draw_design
from matrixdp.types import Floats

_SHOWN = ("median_std", "largest_std")
_GUARANTEE = 2  # lines of an explained design that say what is released, and with what guarantee


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
            echo_json(method | _collect_facts(options, design, schema, left))
        else:
            if choice is not None:
                click.echo(f"Method: a plain release. {choice.reason}")
            _print_design(options, design, schema, left)
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
    if isinstance(design.query, TableMoments):
        if features is not None:
            raise ParameterError("--features must be left out for the moments of a table, which have no noise ellipse.")
        return None
    if features is None:
        return (0, 1) if len(names) > 1 else None
    chosen = [name.strip() for name in features.split(",")]
    if len(chosen) != 2 or chosen[0] == chosen[1] or not set(chosen) <= set(names):
        raise ParameterError(f"--features must name two of {', '.join(names[:20])}, got {features!r} instead.")
    return names.index(chosen[0]), names.index(chosen[1])


def predict_std(options: DesignOptions, design: Design, schema: Schema) -> tuple[Floats, Sequence[str], Sequence[str]]:
    """Error of every entry that a report would show, and the names of rows and columns.

    For a covariance or correlation it depends on the data; the prediction is for data as the schema expects.
    """
    rows, columns = design.query.entry_names
    if options.kind == "matrix" or options.kind in SUMMARIES:
        return design.std, rows, columns
    if isinstance(design.query, TableMoments):
        answers = list_predictions(options, design, schema)
        found = next(one.estimate for one in answers if one.name == options.kind)
        return found.std, found.rows, found.columns
    assert isinstance(design.query, Moments)
    read = covariance if options.kind == "covariance" else correlation
    return read(describe_moments(schema, design.query.bounds), design).std, rows[1:], columns[1:]


def _vary_epsilon(options: DesignOptions, design: Design, schema: Schema) -> list[dict[str, float]]:
    """Errors of the same design at smaller and larger epsilons."""
    rows = []
    for other in vary_design(options, design):
        std, _, _ = predict_std(options, other, schema)
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


def _collect_facts(
    options: DesignOptions, design: Design, schema: Schema, left: tuple[float, float] | None
) -> dict[str, Any]:
    std, rows, columns = predict_std(options, design, schema)
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
        "budgets": _vary_epsilon(options, design, schema),
    }
    if isinstance(design.query, TableMoments):
        facts["answers"] = collect_predictions(options, design, schema)
        facts["asked_alone"] = [
            {"question": one.title, "times_less_noise": one.ratio} for one in compare_questions(design)
        ]
    if left is not None:
        facts["ledger"] = {"epsilon_left_before": left[0], "epsilon_left_after": left[1]}
    return facts


def _print_design(options: DesignOptions, design: Design, schema: Schema, left: tuple[float, float] | None) -> None:
    lines = make_visible(design.explain(), keep="\n").split("\n")
    if isinstance(design.query, TableMoments):  # what is predicted first, and how the noise was chosen last
        click.echo("\n".join(lines[:_GUARANTEE]))
        print_predictions(options, design, schema)
        if options.query == "everything":
            single = [f"  {make_visible(one.title)}: {_describe_ratio(one.ratio)}" for one in compare_questions(design)]
            print_section("If only this were released, with the same guarantee", "\n".join(single))
    else:
        click.echo("\n".join(lines))
        _print_std(options, design, schema)
        rows = _vary_epsilon(options, design, schema)
        shown = [[f"{row['epsilon']:g}", *(f"{row[name]:.3g}" for name in _SHOWN)] for row in rows]
        errors = [[*cells, f"{row['relative_error']:.2%}"] for cells, row in zip(shown, rows, strict=True)]
        header = ["epsilon", "median std", "largest std", "relative to range"]
        print_section("Error at other epsilons", format_table(header, errors))
    print_section("Cost in the ledger", _describe_cost(options, design, left))
    if isinstance(design.query, TableMoments):
        print_section("How the noise was chosen", "\n".join(lines[_GUARANTEE:]))


def _describe_ratio(ratio: float) -> str:
    if not np.isfinite(ratio):
        return "noise hides the answer either way"
    return f"{ratio:.2g} times less noise" if ratio > 1.05 else "as much noise"


def _print_std(options: DesignOptions, design: Design, schema: Schema) -> None:
    std, rows, columns = predict_std(options, design, schema)
    subject, note = "every entry", ""
    if has_equal_rows(std):
        subject, std, rows = "each entry of every row", std[:1], ["all"]
    if options.kind != "matrix":
        subject += f" of the {options.kind}"
        note = (
            "\n  for data as the schema expects (expected_mean, expected_std, expected_correlation), or as tables "
            "usually are"
        )
    print_section(
        f"Predicted standard deviation of {subject}", format_numbers(Numbers(std, None, rows, columns)) + note
    )


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
