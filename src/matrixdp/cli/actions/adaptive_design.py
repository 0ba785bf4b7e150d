"""What ``matrixdp design`` shows where an adaptive fit is the method: its errors, predicted by simulation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import click
import numpy as np

from matrixdp.adaptive.forecast import Description, Forecast, forecast
from matrixdp.adaptive.method import MethodChoice
from matrixdp.cli.actions.design_options import DesignOptions, refuse_extremes
from matrixdp.cli.actions.ledger import open_ledger
from matrixdp.cli.actions.output import echo_json, wrap_text
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.person import Person, find_unit
from matrixdp.errors import ParameterError
from matrixdp.release.covariance_release import find_recipe
from matrixdp.ledger import Gaussian
from matrixdp.ledger.location import Location
from matrixdp.privacy import Neighbours, Privacy, Unit, describe_guarantee
from matrixdp.report.strength import describe_odds, name_loss
from matrixdp.report.tables import format_matrix, format_table
from matrixdp.types import Floats

_EPSILON_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
_MOST_FEATURES = 40  # with more, other epsilons take too long to simulate
_NO_ERROR = 1e-100  # of the diagonal of a correlation
_KINDS = ("friendly", "typical", "hostile")
_LOOKS = "Gaussian numbers", "the mean over six shapes of data", "the shape with the largest error"


@dataclass(frozen=True)
class AdaptiveDesign:
    """The public facts of an adaptive release, and what it is expected to look like."""

    options: DesignOptions
    bounds: Bounds
    records: int
    choice: MethodChoice
    description: Description
    person: Person | None = None

    @property
    def unit(self) -> Unit:
        """What the guarantee protects."""
        return find_unit(self.person)

    @property
    def neighbours(self) -> Neighbours:
        """What one person may change."""
        return Neighbours.parse(self.options.neighbours or Neighbours.REPLACE)

    @property
    def shown(self) -> str:
        """The numbers whose errors are predicted: components and regressions follow from correlations."""
        return self.options.query if self.options.query in ("means", "covariance") else "correlation"

    def predict(self, privacy: Privacy | None = None) -> Forecast:
        """Errors by simulation of the fit."""
        recipe, budget = find_recipe(self.options.query), privacy or self.options.privacy
        with refuse_extremes():
            return forecast(
                self.bounds,
                self.records,
                budget,
                description=self.description,
                aim=recipe,
                neighbours=self.neighbours,
                person=self.person,
            )

    def read(self, found: Forecast, kind: str) -> Floats:
        """The errors that are shown, as a matrix."""
        errors = getattr(found, kind)
        name = "mean_std" if self.shown == "means" else f"{self.shown}_std"
        values = np.atleast_2d(getattr(errors, name))
        return np.where(values > _NO_ERROR, values, 0.0)

    def preview(self, path: Location, dataset: str, allowance: str | None) -> tuple[float, float]:
        """Epsilon left in the ledger, now and after a release."""
        with open_ledger(path) as ledger:
            before = ledger.remaining(dataset, allowance=allowance)
            after = ledger.whatif(dataset, Gaussian(self.options.privacy.mu), allowance=allowance)
        return before.epsilon, after.epsilon


def show_adaptive_design(design: AdaptiveDesign, left: tuple[float, float] | None, *, as_json: bool) -> None:
    """Print the method and why, the guarantee, predicted errors, and the cost."""
    found = design.predict()
    if as_json:
        echo_json(_collect_facts(design, found, left))
        return
    privacy, names = design.options.privacy, design.bounds.names or ()
    click.echo(f"Method: an adaptive fit. {design.choice.reason}")
    guarantee = describe_guarantee(privacy.epsilon, privacy.delta, design.neighbours, design.unit)
    odds = describe_odds(privacy.epsilon, privacy.delta, design.unit.words)
    click.echo(f"Guarantee: {guarantee}: {name_loss(privacy.epsilon)}\n{wrap_text(odds)}")
    typical = design.read(found, "typical")
    rows = names if len(typical) > 1 else ("all",)
    subject = {"means": "mean"}.get(design.shown, design.shown)
    _print_section(f"Predicted error of every {subject}, for typical data", format_matrix(typical, rows, names))
    ranges = [
        [kind, f"{_median(design.read(found, kind)):.3g}", f"{design.read(found, kind).max():.3g}", look]
        for kind, look in zip(_KINDS, _LOOKS, strict=True)
    ]
    _print_section("Range over the shapes that data may have", format_table(["data", "median", "largest", ""], ranges))
    click.echo(
        "  by simulation of the fit, for records that fill their bounds as the schema expects (expected_mean,\n"
        "  expected_std, expected_correlation), or as tables usually do; no data were read"
    )
    if design.shown != design.options.query:
        click.echo("  components and regressions are computed from these correlations")
    others = _vary_epsilon(design, found)
    if len(others) > 1:
        lines = [[f"{row['epsilon']:g}", *(f"{row[kind]:.3g}" for kind in _KINDS)] for row in others]
        _print_section("Median error at other epsilons", format_table(["epsilon", *_KINDS], lines))
    cost = f"  a release costs mu {privacy.mu:.6g}, that is mu^2 {privacy.mu**2:.6g}"
    if left is not None:
        cost += f"\n  epsilon {left[0]:.4g} is left, and {left[1]:.4g} would be left after a release"
    _print_section("Cost in the ledger", cost)


def _vary_epsilon(design: AdaptiveDesign, found: Forecast) -> list[dict[str, float]]:
    """Median errors at smaller and larger epsilons."""
    rows = []
    for factor in _EPSILON_FACTORS:
        if factor != 1.0 and design.bounds.size > _MOST_FEATURES:
            continue
        try:
            privacy = replace(design.options.privacy, epsilon=design.options.epsilon * factor)
            other = found if factor == 1.0 else design.predict(privacy)
        except ParameterError:  # an epsilon for which no fit can be made
            continue
        medians = {kind: _median(design.read(other, kind)) for kind in _KINDS}
        rows.append({"epsilon": privacy.epsilon, "mu": privacy.mu, **medians})
    return rows


def _collect_facts(design: AdaptiveDesign, found: Forecast, left: tuple[float, float] | None) -> dict[str, Any]:
    options = design.options
    facts: dict[str, Any] = {
        "query": options.query,
        **design.choice._asdict(),
        "epsilon": options.epsilon,
        "delta": options.delta,
        "loss": name_loss(options.epsilon),
        "neighbours": str(design.neighbours),
        "unit": str(design.unit),
        "records": design.records,
        "mu": options.privacy.mu,
        "mu_squared": options.privacy.mu**2,
        "columns": list(design.bounds.names or ()),
        "shown": design.shown,
        "std": {kind: design.read(found, kind).tolist() for kind in _KINDS},
        "budgets": _vary_epsilon(design, found),
    }
    if left is not None:
        facts["ledger"] = {"epsilon_left_before": left[0], "epsilon_left_after": left[1]}
    return facts


def _median(errors: Floats) -> float:
    """The median of the errors, without those of the diagonal of a correlation, which are zero."""
    noisy = errors[errors > 0]
    return float(np.median(noisy)) if noisy.size else 0.0


def _print_section(title: str, text: str) -> None:
    click.echo(f"\n{click.style(title, bold=True)}\n{text}")
