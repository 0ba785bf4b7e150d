"""The tables of the three experiments, of the subspace projection, and of the sweeps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matrixdp.paper.best_setting import Best, best_variant
from matrixdp.paper.cells import CellResult, origins, part_rows
from matrixdp.paper.published import TABLES
from matrixdp.paper.report_table import ReportTable

TITLES = {
    "exp1": "Exp. I: regression on the Liver data, RMSE on held-out records",
    "exp2": "Exp. II: first principal component of the Movement data, error in captured variance",
    "exp3": "Exp. III: covariance of the Cardiotocography data, residual sum of squares",
    "subspace": "Subspace projection: Exp. I with ALT and Y alone, RMSE",
}
GROUPS = {
    "reference": "References",
    "paper": "As in the paper",
    "calibration": "MVG in the other calibrations",
    "beyond": "Beyond the paper, exactly calibrated",
    "registered": "Registered mechanisms",
}
_COLUMNS = {
    "method": "Method",
    "epsilon": "epsilon",
    "delta": "delta",
    "spent": "epsilon really spent",
    "mean": "Measured",
    "half": "± (95%)",
    "relative": "of random guess",
    "published": "Published",
    "published_half": "± (95%)",
    "published_relative": "of random guess",
    "setting": "Best setting",
}
_SELECTION = (
    "The setting is the best of all that were tried, judged by the test error, as in the paper. That is optimistic, "
    "and choosing on private data is not free: a real deployment would have to pay for the choice."
)
_SPENT = (
    "Epsilon and delta are what the mechanism was calibrated for, checked in every trial. “Really spent” is the "
    "smallest epsilon at that delta that its noise gives; far below 1 where a calibration is loose."
)


def table(part: str, best: Mapping[str, Best]) -> ReportTable:
    """The table of an experiment, published figures beside measured ones."""
    guess = best["random guess"].summary.mean if "random guess" in best else None
    order = {group: i for i, group in enumerate(GROUPS)}
    listed = sorted(best.values(), key=lambda one: order[one.row.group])
    return ReportTable(
        part,
        TITLES[part],
        _COLUMNS,
        [_row(part, one, guess) for one in listed],
        (_SPENT, _SELECTION),
        "simulated" in origins(part),
        GROUPS,
    )


def _row(part: str, best: Best, guess: float | None) -> dict[str, Any]:
    published = TABLES[part].get(best.row.key)
    published_guess = TABLES[part].get("random guess")
    column, summary = best.row.column, best.summary
    return {
        "method": best.row.label,
        "epsilon": f"{column.epsilon:g}" if column else "–",
        "delta": ("0" if column.delta == 0 else f"1/{round(1 / column.delta)}") if column else "–",
        "spent": best.epsilon,
        "mean": summary.mean,
        "half": summary.half,
        "relative": summary.mean / guess if guess else None,
        "published": published.mean if published else None,
        "published_half": (published.half or None) if published else None,
        "published_relative": published.mean / published_guess.mean if published and published_guess else None,
        "setting": best.setting,
        "group": best.row.group,
        "key": best.row.key,
        "tried": best.tried,
        "trials": best.values.size,
    }


def sweep(parts: Mapping[str, Sequence[CellResult]]) -> ReportTable:
    """Every setting of every row, by its best variant."""
    rows = []
    for part, results in parts.items():
        for result in results:
            row = part_rows(part)[result.cell.row]
            one = best_variant(row, result)
            rows.append(
                {
                    "part": part,
                    "method": row.label,
                    "setting": one.setting,
                    "mean": one.summary.mean,
                    "half": one.summary.half,
                    "spent": result.epsilon,
                    "key": row.key,
                }
            )
    simulated = any("simulated" in origins(part) for part in parts)
    columns = {
        "part": "Part",
        "method": "Method",
        "setting": "Setting",
        "mean": "Measured",
        "half": "± (95%)",
        "spent": "epsilon really spent",
    }
    return ReportTable("sweeps", "All settings that were tried", columns, rows, (), simulated)


def interval(best: Best) -> str:
    """Mean and interval in words."""
    mean, half = best.summary
    return f"{mean:.3g}" if math.isnan(half) or half == 0 else f"{mean:.3g} ± {half:.1g}"
