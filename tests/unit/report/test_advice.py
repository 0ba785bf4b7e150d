"""A report in which noise hides numbers says what would show them, and that does."""

import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from matrixdp.domain.schema_file import parse_schema
from matrixdp.noise import Stream
from matrixdp.release.plan import plan
from matrixdp.release.request import Request
from matrixdp.release.run import run
from matrixdp.report.content import make_content
from matrixdp.report.release_page import list_advice

SCHEMA = parse_schema("""
records = 800
[columns]
age = { type = "number", lower = 18, upper = 90 }
stay = { type = "number", lower = 0, upper = 60 }
ward = { type = "category", levels = ["north", "south"] }
""")


def make_table():
    rng = np.random.default_rng(1)
    age, ward = np.clip(rng.normal(50, 15, 800), 18, 90), rng.choice(["north", "south"], 800)
    return pa.table({"age": age, "stay": np.clip(0.3 * age + rng.normal(5, 8, 800), 0, 60), "ward": ward})


def report(request, seed):
    released = run(plan(request), make_table(), stream=Stream(seed=seed), simulation=True).release
    return make_content(released, request.kind, target=request.target, on=request.on)


def count_hidden(request):
    """The numbers in the first column that noise hides, in five releases."""
    reports = [report(request, seed) for seed in range(5)]
    return sum(one.answers[0].estimate.hidden[:, 0].sum() for one in reports)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("Regression of stay", {"question": "regression", "target": "stay", "on": ["age", "ward"]}),
        ("Principal components", {"question": "components", "columns": ["age", "stay", "ward"], "epsilon": 0.1}),
        ("Correlation", {"question": "correlation", "columns": ["age", "stay"], "method": "plain"}),
    ],
)
def test_advice_has_numbers_and_helps(name, options):
    request = Request(schema=SCHEMA, **{"epsilon": 0.2, "delta": 1e-6, **options})
    advice = next(line for line in list_advice(report(request, 0)) if line.startswith(name))
    epsilon = float(re.search(r"epsilon ([\d.]+) in place of", advice)[1])
    assert re.search(r"or [\d.]+ times the records", advice)
    assert count_hidden(replace(request, epsilon=epsilon)) <= 0.7 * count_hidden(request)


def test_advice_is_of_the_release_itself():
    """Noise hides the only correlation of both, so that the same numbers are shown; the means are others."""
    request = Request(
        schema=SCHEMA, question="correlation", columns=["age", "stay"], method="plain", epsilon=0.1, delta=1e-6
    )
    reports = [report(request, seed) for seed in range(12)]
    hidden = [one for one in reports if one.main.estimate.hidden[0, 1]]
    advice = [list_advice(one)[0] for one in hidden]
    assert len({one.main.estimate.value.tobytes() for one in hidden}) < len(set(advice))


def test_advice_on_means_beyond_their_bounds_by_rounding():
    """A report is written after the charge, so it must not fail."""
    schema = parse_schema("""
records = 40
[columns]
x = { type = "number", lower = -0.001, upper = 999999.999 }
y = { type = "number", lower = -0.001, upper = 999999.999 }
""")
    asked = Request(schema=schema, question="correlation", method="plain", epsilon=0.2, delta=1e-6)
    for end in (-0.001, 999999.999):
        table = pa.table({"x": np.full(40, end), "y": np.full(40, end)})
        for seed in range(8):
            released = run(plan(asked), table, stream=Stream(seed=seed), simulation=True).release
            assert list_advice(make_content(released, asked.kind)) is not None
