"""Run the experiments and write the report."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from matrixdp.checks import check_integer
from matrixdp.errors import MissingExtraError, ParameterError, install_hint
from matrixdp.paper.build_report import Run, write_report
from matrixdp.paper.cells import DATA, origins, part_cells, part_rows
from matrixdp.paper.report_table import SIMULATED
from matrixdp.paper.runner import run_cells
from matrixdp.release.registry import load_plugins

PARTS = ("exp1", "exp2", "exp3", "gains", "directions", "runtime", "subspace", "readings", "pictures", "claims")
DEFAULT_FOLDER = Path("matrixdp-paper")
_NEEDS = {
    "gains": ("exp1", "exp2", "exp3"),
    "claims": ("exp1", "exp2", "exp3", "directions", "runtime", "subspace"),
    "readings": ("exp1",),
    "subspace": ("exp1",),
}


def reproduce(
    parts: Sequence[str] = (),
    trials: int = 100,
    seed: int = 0,
    out: Path | str = DEFAULT_FOLDER,
    *,
    processes: int = 2,
    progress: TextIO | None = None,
    plugins: Sequence[str] = (),
) -> Path:
    """Repeat the paper's experiments and write ``report.html``, figures and tables.

    Parameters
    ----------
    parts : sequence of str
        Of `PARTS`; all by default. Parts that these need are run as well.
    trials : int
        At least 2: an error bar needs two.
    seed : int
        Seed of the streams: the same seed gives the same figures.
    out : path
        Folder to write to. Trials that are stored there are not run again, so an interrupted run resumes.
    processes : int
    progress : text stream, optional
        Where progress is written; standard error by default.
    plugins : sequence of str
        Modules that register mechanisms (`matrixdp.release.register_mechanism`), each of which gets a row in the tables
        of its tasks.

    Returns
    -------
    Path
        Path of the report.

    Privacy
    -------
    Simulations on public data with seeded noise: they protect nothing.
    """
    chosen = _chosen(parts)
    check_integer(trials, "trials", at_least=2, rule="an integer of at least 2, since an error bar needs two trials")
    for name, value, least in (("seed", seed, 0), ("processes", processes, 1)):
        check_integer(value, name, at_least=least, rule=f"an integer of at least {least}")
    _require_extra()
    load_plugins(plugins)
    part_rows.cache_clear()
    out = Path(out)
    measured = [part for part in DATA if part in chosen]
    cells = [cell for part in measured for cell in part_cells(part, trials=trials, seed=seed)]
    _warn_of_simulated_data(measured, sys.stderr if progress is None else progress)
    results = run_cells(cells, out / "cache", processes=processes, out=progress, plugins=plugins)
    by_part = {part: [result for result in results if result.cell.part == part] for part in measured}
    return write_report(Run(chosen, by_part, out, trials=trials, seed=seed))


def _chosen(parts: Sequence[str]) -> list[str]:
    """The parts that were requested and those that they need, in the report's order."""
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise ParameterError(f"parts must be among {', '.join(PARTS)}, got {', '.join(unknown)} instead.")
    wanted = set(parts or PARTS)
    wanted |= {need for part in tuple(wanted) for need in _NEEDS.get(part, ())}
    return [part for part in PARTS if part in wanted]


def _warn_of_simulated_data(parts: Sequence[str], out: TextIO) -> None:
    """Warn before the run, not only in the report, that the data are not the published ones."""
    if any("simulated" in origins(part) for part in parts):
        out.write(f"{SIMULATED}. Set MATRIXDP_DATA to a folder with liver.csv, movement.csv and ctg.csv.\n")


def _require_extra() -> None:
    try:
        import matplotlib  # noqa: F401
        import sklearn  # noqa: F401
    except ImportError:
        raise MissingExtraError(f"the experiments need scikit-learn and matplotlib. {install_hint('paper')}") from None
