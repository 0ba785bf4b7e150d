"""Experiments on the published data or on stand-ins, never with a download."""

import pytest

from paper_data import forget_data


@pytest.fixture(autouse=True)
def _apart(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "cache"))
    monkeypatch.setenv("MATRIXDP_DATA_URL", "")


@pytest.fixture
def stand_ins(monkeypatch):
    """No data: every experiment runs on its stand-in."""
    monkeypatch.delenv("MATRIXDP_DATA", raising=False)
    forget_data()
    yield
    forget_data()
