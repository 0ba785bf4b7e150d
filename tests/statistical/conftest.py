"""What statistical tests share."""

import pytest

from matrixdp.answers import models


@pytest.fixture
def no_draws(monkeypatch):
    """Plausible ranges, which take most of the time of a regression, where they are not looked at."""
    monkeypatch.setattr(models, "draw_range", lambda view, answer: None)
