"""Examples and seeds are the same in every run, except in nightly runs."""

import os

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


@pytest.fixture(scope="session")
def postgres_server():
    """A PostgreSQL server of this session, or of this worker of pytest-xdist."""
    with PostgresServer() as server:
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
