"""What ``matrixdp demo`` does: it shows and runs the commands that release a correlation of 442 patients."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path
from typing import Any

import click
import numpy as np

from matrixdp.display import Numbers, format_numbers
from matrixdp.errors import MissingExtraError, ParameterError, install_hint
from matrixdp.release.output_folder import OutputFolder

_MARK = "made-by-matrixdp-demo"
_COLUMNS = {  # public: from general knowledge of such measurements, not from these patients
    "age": (18, 90),
    "bmi": (15, 45),
    "blood_pressure": (60, 140),
    "progression": (0, 350),
}
_BUDGET = ["--epsilon", "2", "--delta", "1e-5"]
_DESIGN = ["--schema", "schema.toml", "--query", "correlation", *_BUDGET]
_LEDGER = ["--ledger", "clinic.db", "--dataset", "clinic"]


def run_demo(place: Path) -> None:
    """Create a ledger, design, release and report in the folder `place`."""
    patients = _load_patients()
    if place.is_dir() and any(place.iterdir()) and not (place / _MARK).exists():
        raise ParameterError(f"out must be a new folder or that of an earlier demo, but {place} has other files.")
    with OutputFolder(place, force=True) as folder:
        (folder.path / _MARK).touch()
        _write_inputs(folder.path, patients)
        with contextlib.chdir(folder.path):
            click.echo("442 patients (from scikit-learn) are in clinic.csv, their public bounds in schema.toml.")
            _run_command("Create a ledger with the total budget of these data", "ledger", "new", "clinic.db",
                         "--dataset", "clinic", "--epsilon", "4", "--delta", "1e-5")  # fmt: skip
            _run_command("Predict the accuracy of a release, without reading the data", "design", *_DESIGN,
                         "--records", "442", *_LEDGER)  # fmt: skip
            _run_command("Release the correlation", "release", "clinic.csv", *_DESIGN, *_LEDGER, "--out", "out")
            _run_command("Show what is left", "ledger", "show", "clinic.db")
        _print_title("The true correlation, for comparison (these data are public)")
        names = list(_COLUMNS)
        click.echo(format_numbers(Numbers(np.corrcoef(patients.T), None, names, names), digits=2))
        folder.finish()
    _print_title("Files to look at")
    click.echo(f"  report                {place / 'out' / 'report.html'}")
    click.echo(f"  picture of the matrix {place / 'out' / 'matrix.svg'}")
    click.echo(f"  error bars            {place / 'out' / 'std.csv'}")
    click.echo(f"  numbers               {place / 'out' / 'matrix.csv'}")


def _load_patients() -> Any:
    """Age, body mass index, blood pressure and progression of diabetes, of shape (442, 4)."""
    try:
        from sklearn.datasets import load_diabetes
    except ImportError:
        raise MissingExtraError(f"the demo uses data from scikit-learn. {install_hint('demo')}") from None
    data = load_diabetes(scaled=False)
    columns = [data.feature_names.index(name) for name in ("age", "bmi", "bp")]
    return np.column_stack([data.data[:, columns], data.target])


def _write_inputs(folder: Path, patients: Any) -> None:
    header = ",".join(_COLUMNS)
    np.savetxt(folder / "clinic.csv", patients, fmt="%.6g", delimiter=",", header=header, comments="", encoding="utf-8")
    columns = [f"[columns.{name}]\nlower = {low}\nupper = {high}\n" for name, (low, high) in _COLUMNS.items()]
    (folder / "schema.toml").write_text("\n".join(columns), encoding="utf-8")


def _run_command(title: str, *words: str) -> None:
    """Print a command and run it."""
    from matrixdp.cli.main import cli

    _print_title(title)
    click.echo(click.style("$ matrixdp " + shlex.join(words), fg="cyan"))
    cli.main(list(words), prog_name="matrixdp", standalone_mode=False)


def _print_title(words: str) -> None:
    click.echo(f"\n{click.style(words, bold=True)}")
