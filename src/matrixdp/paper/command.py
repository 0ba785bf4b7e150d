"""The one command: run, tabulate, draw, report."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from matrixdp.errors import MissingExtraError, ParameterError
from matrixdp.paper.assembly import Run, write_report
from matrixdp.paper.points import DATA, origins, points
from matrixdp.paper.runner import run_points
from matrixdp.paper.sheet import SIMULATED

PARTS = ("exp1", "exp2", "exp3", "directions", "runtime", "subspace", "readings", "pictures", "claims")
_NEEDS = {
    "claims": ("exp1", "exp2", "exp3", "directions", "runtime", "subspace"),
    "readings": ("exp1",),
    "subspace": ("exp1",),
}


def reproduce(
    parts: Sequence[str] = (),
    trials: int = 100,
    seed: int = 0,
    out: Path | str = Path("reproduction"),
    *,
    processes: int = 2,
    progress: TextIO | None = None,
) -> Path:
    """Repeat the paper's experiments and write ``report.html``, figures and tables.

    Parameters
    ----------
    parts : sequence of str
        Of `PARTS`; all by default. What a part needs is run as well.
    trials : int
        At least 2.
    seed : int
        Of the streams: the same seed gives the same figures.
    out : path
        Folder to write to. Trials that it already has are not run again, so an interrupted run goes on.
    processes : int
    progress : text stream, optional
        Where to say how far it is; standard error by default.

    Returns
    -------
    Path
        Of the report.

    Privacy
    -------
    Simulations on public data with seeded noise: they protect nothing.
    """
    chosen = _chosen(parts)
    for name, value, least in (("trials", trials, 2), ("seed", seed, 0), ("processes", processes, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ParameterError(f"{name} must be an integer of at least {least}, got {value!r} instead.")
    _require_extra()
    out = Path(out)
    measured = [part for part in DATA if part in chosen]
    asked = [point for part in measured for point in points(part, trials=trials, seed=seed)]
    _warn_of_stand_ins(measured, sys.stderr if progress is None else progress)
    results = run_points(asked, out / "cache", processes=processes, out=progress)
    by_part = {part: [result for result in results if result.point.part == part] for part in measured}
    return write_report(Run(chosen, by_part, out, trials=trials, seed=seed))


def _chosen(parts: Sequence[str]) -> list[str]:
    """The parts asked for and what they need, in the report's order."""
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise ParameterError(f"parts must be among {', '.join(PARTS)}, got {', '.join(unknown)} instead.")
    wanted = set(parts or PARTS)
    wanted |= {need for part in tuple(wanted) for need in _NEEDS.get(part, ())}
    return [part for part in PARTS if part in wanted]


def _warn_of_stand_ins(parts: Sequence[str], out: TextIO) -> None:
    """Say at the start, not only in the report, that the data are not the published ones."""
    if any("simulated" in origins(part) for part in parts):
        out.write(f"{SIMULATED}. Set MATRIXDP_DATA to a folder with liver.csv, movement.csv and ctg.csv.\n")


def _require_extra() -> None:
    try:
        import matplotlib  # noqa: F401
        import sklearn  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            "the experiments need scikit-learn and matplotlib: pip install 'matrixdp[paper]'."
        ) from None
