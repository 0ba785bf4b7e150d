"""Examples, seeds and noise are the same in every run, except in nightly runs."""

import hashlib
import itertools
import os
from pathlib import Path

# Before NumPy is imported:
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # workers share the processors
os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")  # the last digits of stored outputs depend on the processor

import pytest
from hypothesis import settings

from matrixdp import Stream
from nightly import SEED, fresh_seed
from postgres_server import PostgresServer

os.environ["MPLBACKEND"] = "Agg"  # plots need no display

collect_ignore = ["plugin_mechanisms.py"]  # registers mechanisms when it is imported

settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.register_profile("nightly", deadline=None, database=None, print_blob=True)
settings.load_profile("nightly" if SEED else "fixed")


def pytest_report_header():
    """How to repeat a nightly run."""
    return f"nightly: repeat with make nightly SEED={SEED}" if SEED else None


_system_stream = Stream.__init__
_streams = itertools.count()
_process = os.getpid()


def pytest_runtest_protocol():
    """Start counting streams anew for each test, so that its noise does not depend on the tests before it."""
    global _streams
    _streams = itertools.count()


def _repeatable_stream(stream, seed=None):
    """Start a stream that is the same in every run, though it counts as one keyed by the operating system.

    The noise of a release cannot be seeded, and a test of what it shows must not fail by chance. What is set up for
    a whole module gets the same keys whichever of its tests is the first. Other processes draw their own keys.
    """
    _system_stream(stream, seed)
    if seed is None and os.getpid() == _process:
        test = os.environ.get("PYTEST_CURRENT_TEST", "")
        key = test.split("::")[0] if test.endswith("(setup)") else test
        stream._start(hashlib.sha256(f"{SEED} {key} {next(_streams)}".encode()).digest(), seeded=False)


Stream.__init__ = _repeatable_stream


@pytest.fixture(scope="session")
def postgres_server():
    """A PostgreSQL server of this session, or of this worker of pytest-xdist."""
    memory = Path("/dev/shm")  # where nothing waits for a disk
    with PostgresServer(memory if os.access(memory, os.W_OK) else None) as server:
        yield server


@pytest.fixture(scope="module", autouse=SEED is not None)
def _fresh_streams(request):
    """Seeded streams of the statistical tests start from other seeds every night."""
    with pytest.MonkeyPatch.context() as patch:
        if "statistical" in request.path.parts:
            start = Stream.__init__
            patch.setattr(
                Stream, "__init__", lambda stream, seed=None: start(stream, None if seed is None else fresh_seed(seed))
            )
        yield
