"""Examples and seeds of the tests: fixed by default, fresh in a nightly run.

``MATRIXDP_NIGHTLY=SEED`` makes a run nightly; the same seed repeats it. `make nightly` sets it.
"""

import hashlib
import os

from hypothesis import settings

SEED = os.environ.get("MATRIXDP_NIGHTLY")
_MORE = 10  # times as many examples


def examples(count):
    """Hypothesis settings for a property test of `count` examples, more in a nightly run."""
    return settings(max_examples=count * (_MORE if SEED else 1))


def fresh_seed(seed):
    """`seed` itself or, in a nightly run, one that follows from it and the run's seed."""
    return int.from_bytes(hashlib.sha256(f"{SEED} {seed}".encode()).digest()[:8]) if SEED else seed


def times(few, many):
    """`few` repetitions or, in a nightly run, `many`: of kills, races, seeds and sizes that state the same claim."""
    return many if SEED else few
