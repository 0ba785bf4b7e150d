"""The commands besides those of the workflow: ``demo``, ``reproduce`` and ``bench``."""

import contextlib
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click

from matrixdp.cli.options import PATH, Command, echo_section
from matrixdp.errors import ParameterError, import_extra

_COLUMNS = {  # public: from general knowledge of such measurements, not from these patients
    "age": (18, 90),
    "bmi": (15, 45),
    "blood_pressure": (60, 140),
    "progression": (0, 350),
}
_OPTIONS = "--schema schema.toml --query correlation --epsilon 2 --delta 1e-5 --ledger clinic.db --dataset clinic"
_STEPS = {
    "Create a ledger with the total budget of these data": "ledger new clinic.db --dataset clinic --epsilon 4 "
    "--delta 1e-5",
    "Predict the accuracy of a release, without reading the data": f"design {_OPTIONS} --records 442",
    "Release the correlation": f"release clinic.csv {_OPTIONS} --out out",
    "Show what is left": "ledger show clinic.db",
}
_CLONE = [Path(__file__).resolve().parents[3]]  # the repository, in an editable installation


@click.command(cls=Command, example="matrixdp demo")
@click.option("--out", type=PATH, default=Path("matrixdp-demo"), help="A new or empty folder for the results.")
def demo(out: Path) -> None:
    """Run the whole workflow on patient data from scikit-learn.

    It prints and runs the commands that create a ledger, design a release, release it and write a report.
    """
    import numpy as np

    from matrixdp.display import Numbers, format_numbers

    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise ParameterError(f"--out must be a new or empty folder, but {out} is there. Remove it, or choose another.")
    out.mkdir(parents=True, exist_ok=True)
    data = import_extra("sklearn.datasets", "the demo uses data from scikit-learn", "demo").load_diabetes(scaled=False)
    places = [data.feature_names.index(name) for name in ("age", "bmi", "bp")]
    patients, names = np.column_stack([data.data[:, places], data.target]), list(_COLUMNS)
    written = {"delimiter": ",", "header": ",".join(names), "comments": "", "encoding": "utf-8"}
    np.savetxt(out / "clinic.csv", patients, fmt="%.6g", **written)
    bounds = [f"[columns.{name}]\nlower = {low}\nupper = {high}\n" for name, (low, high) in _COLUMNS.items()]
    (out / "schema.toml").write_text("\n".join(bounds), encoding="utf-8")
    with contextlib.chdir(out):
        click.echo("442 patients (from scikit-learn) are in clinic.csv, their public bounds in schema.toml.")
        for title, words in _STEPS.items():
            echo_section(title, click.style(f"$ matrixdp {words}", fg="cyan"))
            click.get_current_context().find_root().command.main(words.split(), "matrixdp", standalone_mode=False)
    correlation = format_numbers(Numbers(np.asarray(np.corrcoef(patients.T)), None, names, names))
    echo_section("The true correlation, for comparison (these data are public)", correlation)
    shown = {"report": "report.html", "numbers": "matrix.csv", "error bars": "std.csv", "picture": "matrix.svg"}
    echo_section("Files to look at", "\n".join(f"  {what:10} {out / 'out' / name}" for what, name in shown.items()))


@click.command(cls=Command, example="matrixdp reproduce --trials 20 --out paper/")
@click.argument("parts", nargs=-1)
@click.option(
    "--trials", type=click.IntRange(min=2), default=100, help="Trials of each row, at least 2: an error bar needs two."
)
@click.option("--seed", type=int, default=0, help="Seed of the simulated noise.")
@click.option("--out", type=PATH, default=Path("matrixdp-paper"), help="Folder for the results.")
@click.option("--plugin", metavar="MODULE", multiple=True, help="Module that registers mechanisms. May be repeated.")
def reproduce(parts: tuple[str, ...], trials: int, seed: int, out: Path, plugin: tuple[str, ...]) -> None:
    """Repeat the paper's experiments: all, or the PARTS named."""
    try:
        command = import_module("matrixdp.paper.report")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("matrixdp.paper"):
            raise
        raise click.ClickException("this installation has no matrixdp.paper; install a complete release.") from None
    try:
        page = command.reproduce(list(parts), trials=trials, seed=seed, out=out, plugins=list(plugin))
    except KeyboardInterrupt:
        click.echo("\nFinished trials are stored: the same command resumes the run.", err=True)
        raise
    click.echo(f"Report: {page.resolve()}")


@click.command(cls=Command, example="matrixdp bench cli")
@click.argument("names", nargs=-1)
def bench(names: tuple[str, ...]) -> int:
    """Run all benchmarks, or those with the given NAMES.

    They are in the repository, not in the installed package.
    """
    for place in (Path.cwd(), *_CLONE):
        if (place / "benchmarks" / "__main__.py").is_file():
            return subprocess.run([sys.executable, "-m", "benchmarks", *names], cwd=place, check=False).returncode  # noqa: S603
    raise click.ClickException(
        "the benchmarks are in the repository, not in the installed package. Run this command from a clone of it."
    )
