"""Forecasts: what the pages predict is what the library designs, and errors fall as epsilon grows."""

import math
import re
from dataclasses import replace
from threading import BoundedSemaphore

import numpy as np
import pytest

from matrixdp import Ledger, Privacy
from matrixdp.errors import ParameterError
from matrixdp.studio import forecasts
from matrixdp.studio.forecasts import (
    EPSILONS,
    LARGEST,
    TYPICAL,
    ErrorTable,
    Forecaster,
    draw_ellipse,
    open_forecaster,
    preview_ledger,
)
from matrixdp.studio.refusals import UnavailableError
from matrixdp.studio.requests import ReleaseSpec

NUMBERS = """\
records = 5000
[columns.age]
lower = 0
upper = 100
[columns.bmi]
lower = 10
upper = 60
[columns.alt]
lower = 0
upper = 500
"""
MIXED = NUMBERS + '[columns.ward]\nlevels = ["north", "south"]\n[columns.smoker]\ntype = "yes/no"\n'
GRAPH = "[graph]\nnodes = 6\n"


def make_spec(query, **changes):
    return ReleaseSpec.from_mapping({"query": query, "epsilon": 1.0, "delta": 1e-6, **changes})


def start_forecaster():
    """A forecaster that remembers nothing yet."""
    return Forecaster(open_forecaster(NUMBERS, "schema.toml").schema)


def predict(text, spec):
    return open_forecaster(text, "schema.toml").predict(spec)


@pytest.mark.parametrize(
    ("text", "spec", "title", "shape"),
    [
        (NUMBERS, make_spec("correlation", method="plain"), "Correlation", (3, 3)),
        (NUMBERS, make_spec("covariance", method="plain", importance="age=4"), "Covariance", (3, 3)),
        (NUMBERS, make_spec("moments"), "Entries of the mean and second moment", (4, 4)),
        (NUMBERS, make_spec("components"), "Correlation", (3, 3)),
        (NUMBERS, make_spec("regression", target="bmi", on="age"), "Correlation", (2, 2)),
        (MIXED, make_spec("everything"), "Means", (3, 1)),
        (MIXED, make_spec("means", by="ward"), "Means by ward", (2, 4)),
        (MIXED, make_spec("regression", target="bmi", on="age,ward"), "Regression of bmi", (3, 1)),
        (MIXED, make_spec("table", cells="ward,smoker"), "Records by ward and smoker", (3, 3)),
        (GRAPH, make_spec("laplacian"), "Entries of the graph Laplacian", (6, 6)),
    ],
)
def test_every_query_has_a_forecast(text, spec, title, shape):
    found = predict(text, spec)
    table = found.tables[0]
    assert (table.title, table.std.shape) == (title, shape)
    assert (len(table.rows), len(table.columns)) == shape
    assert 0 < table.read(table.choose()) < math.inf


def test_a_plain_forecast_is_the_design_that_would_be_released():
    found = predict(NUMBERS, make_spec("moments", importance="age=4"))
    assert not found.plan.adaptive
    assert found.design is found.plan.design
    assert found.tables[0].std.tolist() == found.design.std.tolist()


def test_the_curve_falls_and_does_not_depend_on_the_slider():
    forecaster = open_forecaster(NUMBERS, "schema.toml")
    spec = make_spec("correlation", method="plain")
    curve = forecaster.follow(spec, TYPICAL)
    assert [epsilon for epsilon, _ in curve] == list(EPSILONS[::6])
    errors = [error for _, error in curve]
    assert errors == sorted(errors, reverse=True)
    assert forecaster.follow(replace(spec, epsilon=7.0, allowance="team"), TYPICAL) is curve
    at = EPSILONS[36]
    assert forecaster.predict(replace(spec, epsilon=at)).tables[0].read(TYPICAL) == errors[6]


def test_the_way_back_gives_the_least_epsilon_of_the_slider():
    forecaster = open_forecaster(NUMBERS, "schema.toml")
    spec = make_spec("correlation", method="plain")
    epsilon, error = forecaster.find_epsilon(spec, LARGEST, 0.05)
    assert error <= 0.05

    def read(epsilon):
        return forecaster.predict(replace(spec, epsilon=epsilon)).tables[0].read(LARGEST)

    assert read(epsilon) == error
    assert read(EPSILONS[EPSILONS.index(epsilon) - 1]) > 0.05
    assert forecaster.find_epsilon(spec, LARGEST, 1e-9) is None


@pytest.mark.parametrize("entry", ["0,9", "9,0", "x", "-1,0", "0", "0,0,0", "0,²", ""])
def test_entries_outside_of_the_table_are_replaced_by_the_largest_error(entry):
    table = ErrorTable("t", np.ones((2, 2)), ("a", "b"), ("a", "b"), True)
    assert table.choose(entry) == LARGEST
    assert table.read(entry) == math.inf


def test_entries_are_named_and_those_without_noise_are_left_out():
    table = ErrorTable("t", np.array([[0.0, 0.2], [0.2, 0.3]]), ("a", "b"), ("a", "b"), True)
    assert {entry: name for entry, (name, _) in table.entries.items()} == {
        LARGEST: "the least precise entry",
        TYPICAL: "a typical entry (median)",
        "0,1": "a and b",
        "1,1": "b (variance)",
    }
    assert [table.read(entry) for entry in table.entries] == [0.3, 0.2, 0.2, 0.3]


def test_an_entry_that_noise_hides_has_an_infinite_error():
    table = ErrorTable("t", np.array([[0.5, np.nan]]), ("a",), ("a", "b"), True)
    assert table.read("0,1") == table.read(LARGEST) == table.read(TYPICAL) == math.inf
    assert table.choose() == "0,0"


def test_the_ellipse_is_that_of_the_design():
    found = predict(NUMBERS, make_spec("moments", importance="age=100"))
    assert found.features == ("age", "bmi", "alt")
    drawn = draw_ellipse(found.design, found.features, (2, 0)).svg
    assert drawn.index("noise in the means of alt") < drawn.index("noise in the means of age")
    across, up = (np.ptp([float(pair.split(",")[k]) for pair in outline_points(drawn)]) for k in (0, 1))
    wide, high = found.design.std[0, [3, 1]]
    assert across / up == pytest.approx(wide / high * 360 / 220, rel=1e-2)  # both axes have the same scale
    mixed = predict(MIXED, make_spec("everything"))
    assert draw_ellipse(mixed.design, mixed.features, (0, 1)) is None


def outline_points(svg):
    return re.search(r'<polygon points="([^"]*)"', svg)[1].split()


def test_what_would_be_left_is_what_the_ledger_says(tmp_path):
    found = predict(NUMBERS, make_spec("moments"))
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        ledger.register("clinic", Privacy(2, 1e-6), neighbours="replace")
        left = preview_ledger(ledger, "clinic", found.plan, None)
        assert left.before == ledger.remaining("clinic").epsilon
        assert left.after == ledger.whatif("clinic", found.design).epsilon
        large = predict(NUMBERS, make_spec("moments", epsilon=3.0))
        refused = preview_ledger(ledger, "clinic", large.plan, None)
        assert refused.after is None
        assert "clinic" in refused.refusal
        assert ledger.history("clinic") == []


class TestSimulations:
    """Adaptive fits, which are predicted by simulation."""

    spec = make_spec("correlation", records=300)

    def test_a_range_has_the_columns_of_the_plain_forecast_and_is_remembered(self):
        forecaster = start_forecaster()
        found = forecaster.predict(self.spec)
        assert found.plan.adaptive
        assert forecaster.recall(self.spec) is None
        simulated = forecaster.simulate(self.spec)
        assert simulated["typical"].rows == found.tables[0].rows == ("age", "bmi", "alt")
        friendly, typical, hostile = (simulated[kind].read(LARGEST) for kind in ("friendly", "typical", "hostile"))
        assert min(friendly, typical) > 0
        assert hostile >= typical
        assert forecaster.simulate(replace(self.spec, allowance="team")) is simulated

    def test_the_target_of_a_regression_keeps_its_place(self):
        regression = start_forecaster().simulate(replace(self.spec, question="regression", target="age"))
        assert regression["typical"].rows == ("age", "bmi", "alt")
        assert np.diag(regression["typical"].std).tolist() == [0, 0, 0]

    def test_the_way_back_is_for_typical_data(self):
        forecaster = start_forecaster()
        epsilon, error = forecaster.find_epsilon(self.spec, LARGEST, 0.2)
        assert error <= 0.2
        assert forecaster.simulate(replace(self.spec, epsilon=epsilon))["typical"].read(LARGEST) == error

    def test_large_tables_are_not_simulated(self):
        wide = "records = 5000\n" + "".join(f"[columns.c{i}]\nlower = 0\nupper = 1\n" for i in range(41))
        with pytest.raises(ParameterError, match="at most 40"):
            open_forecaster(wide, "wide.toml").simulate(make_spec("correlation"))

    def test_simulations_leave_threads_for_pages(self, monkeypatch):
        simulator = start_forecaster()
        known = simulator.simulate(self.spec)
        places = BoundedSemaphore(1)
        monkeypatch.setattr(forecasts, "_PLACES", places)
        with places:
            assert simulator.simulate(self.spec) is known
            with pytest.raises(UnavailableError, match="too many"):
                simulator.simulate(replace(self.spec, epsilon=2.0))
        assert simulator.simulate(replace(self.spec, epsilon=2.0)) is not known
