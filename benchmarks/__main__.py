"""``python -m benchmarks [name ...]``: the table of ratios."""

from __future__ import annotations

import importlib
import os
import platform
import sys

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from benchmarks.timing import show

NAMES = (
    "noise",
    "mechanism",
    "estimators",
    "ledger",
    "rivals",
    "cli",
    "scale",
    "structure_moments",
    "tables",
    "people",
)


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(f"unknown benchmark {unknown[0]!r}; there are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    modules = {name: importlib.import_module(f"benchmarks.{name}") for name in names or NAMES}
    blas = ", ".join(sorted({f"{info['internal_api']} {info['version']}" for info in threadpool_info()}))
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {os.cpu_count()} cores")
    print(f"BLAS ({blas}) is pinned to one thread.")
    print("Each ratio is measured side by side in this run: medians, turn by turn.\n")
    with threadpool_limits(1):  # pins what is loaded by now, SciPy's own BLAS among it
        for name, module in modules.items():
            rows = list(module.run())
            print(f"{name}\n{'':-<{len(name)}}")
            show(rows, max(len(str(row["what"])) for row in rows))
            print(flush=True)
    return 0


sys.exit(main(sys.argv[1:]))
