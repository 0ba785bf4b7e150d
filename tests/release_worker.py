"""Releases that tests run in a process of its own: one that is killed, and several that use one request id.

Run as ``python release_worker.py TASK LEDGER PATH [REQUEST ...]``. It has one thread, so that it may fork.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import matrixdp as mdp
from matrixdp.release.output_folder import OutputFolder

DATA = np.random.default_rng(0).uniform(size=(50, 2))
BOUNDS = mdp.Bounds([0, 0], [1, 1], names=["a", "b"])
DESIGN = mdp.make_design(mdp.Identity(BOUNDS, records=50), mdp.Privacy(1, 1e-6))
RACERS: tuple[dict[str, Any], ...] = ({}, {"missing": "midpoint"}, {"clip": False}, {})


def run_worker(task: str, ledger: Any, path: Path, *requests: str) -> int:
    """Run one task in a new process; returns its exit code."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    words = [sys.executable, __file__, task, str(ledger), str(path), *requests]
    return subprocess.run(words, env=environment, check=False).returncode


def release_folder(ledger: Any, out: Any, **options: Any) -> mdp.DatasetRelease:
    """Release a data set under the request id r."""
    blocks = mdp.records.Blocks(lambda: [DATA])
    return mdp.release_dataset(DESIGN, blocks, out, ledger=ledger, dataset="clinic", request="r", **options)


def kill(ledger: str, out: str) -> None:
    """Release a data set, and die when its folder is in place and the ledger does not know it yet."""
    finish = OutputFolder.finish

    def finish_and_die(self: OutputFolder) -> None:
        finish(self)
        os.kill(os.getpid(), signal.SIGKILL)

    OutputFolder.finish = finish_and_die  # type: ignore[method-assign]
    release_folder(ledger, out)


def race(ledger: str, path: str, *requests: str) -> None:
    """Release each request in as many processes as there are `RACERS`, and write what they returned to `path`."""
    found = []
    for request in requests:
        pipes, (gate, opened) = [], os.pipe()
        for options in RACERS:
            reader, writer = os.pipe()
            if os.fork() == 0:
                os.close(opened)
                os.read(gate, 1)  # until the parent closes it
                with os.fdopen(writer, "w") as answer:
                    json.dump(_try_release(ledger, request, options), answer)
                os._exit(0)
            os.close(writer)
            pipes.append(reader)
        os.close(gate)
        os.close(opened)
        found.append([json.load(os.fdopen(reader)) for reader in pipes])
    Path(path).write_text(json.dumps(found), encoding="utf-8")


def _try_release(ledger: str, request: str, options: dict[str, Any]) -> dict[str, str]:
    try:
        return {"release": DESIGN.release(DATA, ledger=ledger, dataset="clinic", request=request, **options).to_json()}
    except mdp.MatrixDPError as error:
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    {"kill": kill, "race": race}[sys.argv[1]](*sys.argv[2:])
