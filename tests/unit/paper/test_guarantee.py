"""A table's column is what its mechanism guarantees, or the experiment stops."""

import pytest

from matrixdp import Privacy
from matrixdp.baselines import find_mechanism
from matrixdp.paper import components, trials
from matrixdp.paper.experiment import (
    Guarantee,
    GuaranteeMismatchError,
    Row,
    Trial,
    check_guarantee,
    mvg,
    mvg_pca,
    simulate,
)
from matrixdp.paper.trials import Cell, Part, run_cell

ONE = Guarantee(1.0, 1 / 2021)


@pytest.mark.parametrize(
    ("column", "claimed", "epsilon"),
    [
        (ONE, Guarantee(2.0, 1 / 2021), 0.5),
        (ONE, Guarantee(1.0, 0.0), 1.0),
        (Guarantee(1.0, 0.0), ONE, 1.0),
        (ONE, ONE, 1.001),
        (ONE, None, 0.5),
        (None, ONE, 0.5),
        (ONE, ONE, float("nan")),
    ],
)
def test_any_mismatch_raises(column, claimed, epsilon):
    with pytest.raises(GuaranteeMismatchError, match="the row 'MVG'"):
        check_guarantee("MVG", column, Trial(None, claimed, epsilon))


def test_less_than_stated_will_do():
    check_guarantee("MVG", ONE, Trial(None, ONE, 0.0))
    check_guarantee("MVG", ONE, Trial(None, ONE, 1.0))
    check_guarantee("reference", None, Trial(None))


def part(monkeypatch, column, build):
    row = Row("row", "Row", "paper", column, build)
    monkeypatch.setitem(trials.PARTS, "toy", Part("Toy", lambda: [row]))
    trials.part_rows.cache_clear()
    return Cell("toy", "row", 0, 2, 0)


def test_an_experiment_with_the_wrong_budget_stops(monkeypatch, stand_ins):
    """The column says epsilon 1; the mechanism was made for 2."""

    def build(setting):
        return components.FIRST.runner(mvg(components.MOVEMENT, Privacy(2.0, 1 / 2021), important=None))

    with pytest.raises(GuaranteeMismatchError, match=r"states \(1, .*claims \(2, "):
        run_cell(part(monkeypatch, ONE, build))


def test_a_pure_column_refuses_a_gaussian_mechanism(monkeypatch, stand_ins):
    def build(setting):
        return components.FIRST.runner(mvg(components.MOVEMENT, Privacy(1.0, 1 / 2021), important=None))

    with pytest.raises(GuaranteeMismatchError):
        run_cell(part(monkeypatch, Guarantee(1.0, 0.0), build))


def test_a_reference_that_is_private_after_all_is_refused(monkeypatch):
    with pytest.raises(GuaranteeMismatchError, match="no privacy"):
        run_cell(part(monkeypatch, None, lambda setting: lambda trial, stream: Trial([0.0], ONE, 1.0)))


@pytest.mark.parametrize("calibration", ["theorem2", "exact"])
def test_directions_and_noise_together_cost_the_budget(calibration, stand_ins):
    from matrixdp import Stream
    from matrixdp.paper import regression

    release = mvg_pca(regression.QUERY, regression.EXPERIMENT.budget(), tau=0.75, calibration=calibration)
    spent = release(regression.split(0)[0], Stream(seed=1))
    assert spent.claimed.epsilon == pytest.approx(1.0)
    assert spent.claimed.delta == pytest.approx(1 / 248)
    assert spent.epsilon <= 1.0
    if calibration == "exact":
        assert spent.epsilon == pytest.approx(1.0, abs=1e-6)


def test_a_rival_says_what_it_really_has(stand_ins):
    from matrixdp import Stream
    from matrixdp.paper import regression

    def spent(name):
        rival = simulate(find_mechanism(name), regression.QUERY, regression.EXPERIMENT.budget())
        return rival(regression.split(0)[0], Stream(seed=0))

    assert spent("Laplace")[1:] == (Guarantee(1.0, 0.0), 1.0)
    assert spent("classical Gaussian").epsilon == pytest.approx(0.568, abs=1e-3)
