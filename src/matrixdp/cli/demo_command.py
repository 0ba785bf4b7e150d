"""What the demo does: 442 patients, one private release, one report, by the commands that anybody would use."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path
from typing import Any

import click
import numpy as np

from matrixdp.errors import MissingExtraError, ParameterError
from matrixdp.release.output_folder import OutputFolder
from matrixdp.report.tables import matrix_table

_MARK = "made-by-matrixdp-demo"
_COLUMNS = {  # public, from what such measurements can be at all, not from these patients
    "age": (18, 90),
    "bmi": (15, 45),
    "blood_pressure": (60, 140),
    "progression": (0, 350),
}
_BUDGET = ["--epsilon", "2", "--delta", "1e-5"]
_DESIGN = ["--schema", "schema.toml", "--query", "correlation", *_BUDGET, "--importance", "bmi=4,progression=4"]
_LEDGER = ["--ledger", "clinic.db", "--dataset", "clinic"]


def show(place: Path) -> None:
    """Design, release and report, with the ledger before and after."""
    records = _patients()
    if place.is_dir() and any(place.iterdir()) and not (place / _MARK).exists():
        raise ParameterError(f"out must be a new folder or that of an earlier demo, but {place} holds other files.")
    with OutputFolder(place, force=True) as folder:
        (folder.path / _MARK).touch()
        _write_inputs(folder.path, records)
        with contextlib.chdir(folder.path):
            click.echo("442 patients (from scikit-learn) in clinic.csv, their public bounds in schema.toml.")
            _do("A ledger, with all that may ever be spent on these data", "ledger", "new", "clinic.db", "--dataset",
                "clinic", "--epsilon", "4", "--delta", "1e-5")  # fmt: skip
            _do("How accurate would a release be? Without looking at the data", "design", *_DESIGN, "--records", "442",
                "--plot", "design.svg", "--features", "bmi,progression", *_LEDGER)  # fmt: skip
            _do("The release", "release", "clinic.csv", *_DESIGN, *_LEDGER, "--out", "out")
            _do("The ledger afterwards", "ledger", "show", "clinic.db")
        _title("The true correlation, shown only because these data are public anyway")
        names = list(_COLUMNS)
        click.echo(matrix_table(np.corrcoef(records.T), names, names, digits=2))
        folder.finish()
    _title("To look at")
    click.echo(f"  the report       {place / 'out' / 'report.html'}\n  the matrix       {place / 'out' / 'matrix.svg'}")
    click.echo(f"  the noise        {place / 'design.svg'}\n  the numbers      {place / 'out' / 'matrix.csv'}")


def _patients() -> Any:
    """Records of shape (442, 4)."""
    try:
        from sklearn.datasets import load_diabetes
    except ImportError:
        raise MissingExtraError(
            "the demo's data come with scikit-learn. Install it: pip install 'matrixdp[demo]'"
        ) from None
    data = load_diabetes(scaled=False)
    columns = [data.feature_names.index(name) for name in ("age", "bmi", "bp")]
    return np.column_stack([data.data[:, columns], data.target])


def _write_inputs(folder: Path, records: Any) -> None:
    header = ",".join(_COLUMNS)
    np.savetxt(folder / "clinic.csv", records, fmt="%.6g", delimiter=",", header=header, comments="", encoding="utf-8")
    parts = [f"[columns.{name}]\nlower = {low}\nupper = {high}\n" for name, (low, high) in _COLUMNS.items()]
    (folder / "schema.toml").write_text("\n".join(parts), encoding="utf-8")


def _do(title: str, *words: str) -> None:
    """Show a command, and run it."""
    from matrixdp.cli.main import cli

    _title(title)
    click.echo(click.style("$ matrixdp " + shlex.join(words), fg="cyan"))
    cli.main(list(words), prog_name="matrixdp", standalone_mode=False)


def _title(words: str) -> None:
    click.echo(f"\n{click.style(words, bold=True)}")
