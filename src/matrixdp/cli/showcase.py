"""What the demo does: 442 patients, one private release, one report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from matrixdp.bounds import Bounds
from matrixdp.design import Design, make_design, optimal
from matrixdp.errors import MissingExtraError, ParameterError
from matrixdp.ledger import Ledger
from matrixdp.privacy import Privacy
from matrixdp.queries import Moments
from matrixdp.report.folder import OutputFolder, write_folder
from matrixdp.report.pictures import design_picture
from matrixdp.report.result import LedgerState, Result, make_result
from matrixdp.report.tables import matrix_table, table

_MARK = "made-by-matrixdp-demo"
_COLUMNS = {  # public, from what such measurements can be at all, not from these patients
    "age": (18.0, 90.0),
    "bmi": (15.0, 45.0),
    "blood_pressure": (60.0, 140.0),
    "progression": (0.0, 350.0),
}
_IMPORTANCE = {"bmi": 4.0, "progression": 4.0}
_TOTAL, _ASKED = Privacy(epsilon=4, delta=1e-5), Privacy(epsilon=2, delta=1e-5)


def show(place: Path) -> None:
    """Design, release and report, with the ledger before and after."""
    records = _patients()
    old = place / _MARK
    if place.exists() and any(place.iterdir()) and not old.exists():
        raise ParameterError(f"out must be a new folder or that of an earlier demo; {place} holds other files.")
    with OutputFolder(place, force=True) as folder:
        design = _design(len(records))
        _say("The design, made without looking at the data", str(design))
        _say("What it would be at other budgets", _budgets(design))
        names = ("1", *_COLUMNS)
        pair = (1, 3)
        chosen = ("bmi", "progression")
        (folder.path / "design.svg").write_text(design_picture(design, names, names, pair, chosen), encoding="utf-8")
        result, before, after = _release(design, records, folder.path / "clinic.db", place / "clinic.db")
        _say("The ledger", _ledger_table(before, after))
        _say("The private correlation ± its error bar", _matrix(result))
        true = np.corrcoef(records.T)
        _say(
            "The true one, shown here because these data are public anyway",
            matrix_table(true, result.rows, result.columns, digits=2),
        )
        write_folder(result, folder.path)
        (folder.path / _MARK).touch()
        folder.finish()
    click.echo(f"\nThe report: {place / 'report.html'}\nThe picture: {place / 'matrix.svg'}")


def _patients() -> Any:
    try:
        from sklearn.datasets import load_diabetes
    except ImportError:
        raise MissingExtraError(
            "the demo's data come with scikit-learn. Install it: pip install 'matrixdp[demo]'"
        ) from None
    data = load_diabetes(scaled=False)
    columns = [data.feature_names.index(name) for name in ("age", "bmi", "bp")]
    return np.column_stack([data.data[:, columns], data.target])


def _design(records: int) -> Design:
    lower, upper = zip(*_COLUMNS.values(), strict=True)
    bounds = Bounds(lower, upper, names=list(_COLUMNS))
    weights = np.array([_IMPORTANCE.get(name, 1.0) for name in _COLUMNS]) / bounds.halfwidths**2
    return make_design(Moments(bounds, records), _ASKED, allocation=optimal(weights))


def _budgets(design: Design) -> str:
    rows = []
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        other = make_design(design.query, Privacy(epsilon, design.privacy.delta), allocation=design.allocation)
        rows.append([f"{epsilon:g}", f"{other.std[0, 2]:.3g}", f"{other.std[0, 4]:.3g}", f"{other.rmse:.3g}"])
    return table(["epsilon", "std of mean bmi", "std of mean progression", "root mean square"], rows)


def _release(design: Design, records: Any, path: Path, shown: Path) -> tuple[Result, float, float]:
    with Ledger.create(path) as ledger:
        ledger.register("clinic", _TOTAL, "replace")
        before = ledger.remaining("clinic").epsilon
        release = design.release(records, ledger=ledger, dataset="clinic")
        after, head = ledger.remaining("clinic").epsilon, ledger.head
    state = LedgerState(str(shown), "clinic", _TOTAL.epsilon, _TOTAL.delta, before, after, head.entry, head.hash)
    return make_result(release, "correlation", ledger=state), before, after


def _ledger_table(before: float, after: float) -> str:
    rows = [["before", f"{before:.4g}"], ["after", f"{after:.4g}"]]
    return table(["clinic", f"epsilon left of {_TOTAL.epsilon:g} at delta {_TOTAL.delta:g}"], rows)


def _matrix(result: Result) -> str:
    return matrix_table(result.matrix, result.rows, result.columns, result.std, digits=2)


def _say(title: str, words: str) -> None:
    click.echo(f"\n{click.style(title, bold=True)}\n{words}")
