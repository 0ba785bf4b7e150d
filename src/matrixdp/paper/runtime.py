"""The runtime table: time of one release, calibration included, as a ratio to MVG's in the same run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from matrixdp.design import binary, make_design
from matrixdp.paper import component, covariance, regression
from matrixdp.paper.files import write_atomically
from matrixdp.paper.published import RUNTIME
from matrixdp.paper.report_table import ReportTable
from matrixdp.privacy import Privacy
from matrixdp.queries import Identity, SecondMoment
from matrixdp.release import find_mechanism
from matrixdp.types import Floats

NAMES = {
    "mvg": "MVG (exact)",
    "gaussian": "Gaussian",
    "jl": "JL transform",
    "laplace": "Laplace",
    "exponential": "Exponential",
}
EXPERIMENTS = ("I", "II", "III")
Timings = dict[str, dict[str, list[float]]]


def measure(repeats: int) -> Timings:
    """Seconds of each release, by experiment and mechanism, measured in turns so that a busy machine is fair."""
    found: Timings = {}
    for name, (query, data, important) in _setups().items():
        releases = _releases(query, data, important)
        for release in releases.values():
            release()
        times: dict[str, list[float]] = {key: [] for key in releases}
        for _ in range(repeats):
            for key, release in releases.items():
                started = time.perf_counter()
                release()
                times[key].append(time.perf_counter() - started)
        found[name] = times
    return found


def load_or_measure(folder: Path, repeats: int) -> Timings:
    """Timings of an earlier run into the same folder, or new ones."""
    path = folder / f"runtime-{repeats}.json"
    try:
        content: Timings = json.loads(path.read_text("utf-8"))
        return content
    except (OSError, ValueError):
        found = measure(repeats)
        write_atomically(path, json.dumps(found))
        return found


def table(timings: Timings) -> ReportTable:
    """Milliseconds, and ratios to MVG, measured and published."""
    rows = []
    for key, label in NAMES.items():
        row: dict[str, Any] = {"method": label, "key": key}
        for i, name in enumerate(EXPERIMENTS):
            own, mvg = (float(np.median(timings[name][one])) for one in (key, "mvg"))
            row |= {
                f"ms_{name}": own * 1e3,
                f"ratio_{name}": own / mvg,
                f"published_ms_{name}": float(RUNTIME[key][i]),
                f"published_ratio_{name}": RUNTIME[key][i] / RUNTIME["mvg"][i],
            }
        rows.append(row)
    columns = {"method": "Method"}
    for name in EXPERIMENTS:
        columns |= {
            f"ms_{name}": f"{name}: ms",
            f"ratio_{name}": "to MVG",
            f"published_ms_{name}": "published ms",
            f"published_ratio_{name}": "to MVG",
        }
    notes = (
        "Medians of one release with its calibration, measured in turns in one process; published on other hardware.",
        "The rivals here draw from their laws directly: no projection matrix, no singular values, no Markov chain "
        "(docs/rivals.md). The published times are those of other algorithms for the same laws.",
    )
    return ReportTable("runtime", "Runtime", columns, rows, notes)


def _setups() -> dict[str, tuple[Identity | SecondMoment, Floats, tuple[str, ...]]]:
    return {
        "I": (regression.QUERY, regression.split(0)[0], regression.IMPORTANT),
        "II": (component.QUERY, component.truth().records, component.IMPORTANT),
        "III": (covariance.QUERY, covariance.truth().records, covariance.IMPORTANT),
    }


def _releases(
    query: Identity | SecondMoment, data: Floats, important: tuple[str, ...]
) -> dict[str, Callable[[], object]]:
    privacy = Privacy(1.0, 1 / query.records)
    moment = isinstance(query, SecondMoment)
    names = {
        "gaussian": "Analyze Gauss" if moment else "classical Gaussian",
        "jl": "Johnson-Lindenstrauss",
        "laplace": "Laplace",
        "exponential": "PPCA" if moment else "exponential",
    }
    return {
        "mvg": lambda: make_design(query, privacy, allocation=binary(important, 0.95)).release(data),
        **{key: partial(find_mechanism(name).function, query, privacy, data) for key, name in names.items()},
    }
