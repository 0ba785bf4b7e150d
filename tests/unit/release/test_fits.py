"""Fits that are charged as a whole: once, and before the first random bit."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.adaptive.moment import prepare_fit
from matrixdp.estimators import PrivateCovariance
from matrixdp.release.charging import release_fit

BOUNDS = mdp.Bounds([-5] * 4, [5] * 4)
DATA = np.random.default_rng(0).normal(size=(500, 4))
PRIVACY = mdp.Privacy(1, 1e-6)


def charged_fit(data, bounds, privacy, *, simulation=False, **account):
    return release_fit(prepare_fit(data, bounds, privacy, aim="covariance", simulation=simulation), **account)


def test_a_simulation_is_not_charged_and_an_account_needs_its_ledger(tmp_path):
    with pytest.raises(mdp.ParameterError, match="left out for a simulation"):
        charged_fit(DATA, BOUNDS, PRIVACY, simulation=True, ledger=tmp_path / "l.db", dataset="clinic")
    with pytest.raises(mdp.ParameterError, match="ledger must be given"):
        charged_fit(DATA, BOUNDS, PRIVACY, dataset="clinic")


class TestLedger:
    @pytest.fixture
    def ledger(self, tmp_path):
        with mdp.Ledger.create(tmp_path / "clinic.db") as ledger:
            ledger.register("clinic", PRIVACY, neighbours="replace")
            yield ledger

    def test_one_charge_for_the_whole_fit(self, ledger):
        half = mdp.Privacy(0.5, 1e-6)
        charged_fit(DATA, BOUNDS, half, ledger=ledger.path, dataset="clinic")
        (charge,) = ledger.history("clinic")
        assert charge.event.mu == half.mu
        assert charge.released

    def test_charged_before_the_first_random_bit(self, ledger, monkeypatch):
        seen, draw = [], mdp.Stream.words

        def words(self, size, out=None):
            seen.append(len(ledger.history("clinic")))
            return draw(self, size, out=out)

        monkeypatch.setattr(mdp.Stream, "words", words)
        charged_fit(DATA, BOUNDS, PRIVACY, ledger=ledger.path, dataset="clinic")
        assert set(seen) == {1}

    @pytest.mark.parametrize("bad", [DATA * np.nan, DATA[:, :3], DATA[:0], DATA.astype(str)])
    def test_bad_data_cost_nothing(self, ledger, bad):
        with pytest.raises(mdp.DataError):
            charged_fit(bad, BOUNDS, PRIVACY, ledger=ledger.path, dataset="clinic")
        assert ledger.history("clinic") == []

    def test_an_overdraft_is_refused_and_nothing_is_drawn(self, ledger, monkeypatch):
        charged_fit(DATA, BOUNDS, PRIVACY, ledger=ledger.path, dataset="clinic")

        def words(self, size, out=None):
            raise AssertionError("noise was drawn")

        monkeypatch.setattr(mdp.Stream, "words", words)
        with pytest.raises(mdp.BudgetExceededError):
            charged_fit(DATA, BOUNDS, PRIVACY, ledger=ledger.path, dataset="clinic")

    def test_a_handle_is_refused_by_estimators(self, ledger):
        with pytest.raises(mdp.ParameterError, match="path of a ledger"):
            PrivateCovariance(bounds=BOUNDS, ledger=ledger, dataset="clinic").fit(DATA)
