"""A short campaign over all queries and fits finds nothing, and every broken variant is caught."""

import ast
import sys
from pathlib import Path

import pytest

import matrixdp.queries
from audits import __main__ as command
from audits.broken import BROKEN
from audits.campaign import ESTIMATORS, FITS, QUERIES, attack_designs, replay_fits
from matrixdp import audit, estimators
from matrixdp.audit.replay import Tally


@pytest.mark.parametrize("mistake", BROKEN)
def test_every_broken_variant_is_caught(mistake):
    assert BROKEN[mistake]()


def test_there_are_enough_broken_variants():
    assert len(BROKEN) >= 12


def test_all_queries_and_estimators_are_in_the_catalogue():
    queries = set(matrixdp.queries.__all__) - {"MatrixQuery"}
    assert {name for name in queries if isinstance(getattr(matrixdp.queries, name), type)} <= {
        name.split(",")[0] for name in QUERIES
    }
    concrete = {name for name in estimators.__all__ if name.startswith("Private")} - {"PrivateEstimator"}
    assert concrete == set(ESTIMATORS)


def test_a_short_campaign_of_attacks():
    tallies = attack_designs(pairs=100_000, seconds=6, seed=1000, starts=1)
    assert set(tallies) == set(QUERIES)
    assert {name: tally.broken for name, tally in tallies.items() if tally.broken} == {}
    assert all(tally.audits and tally.pairs for tally in tallies.values())


def test_a_short_campaign_of_replays():
    tallies = replay_fits(replays=120, seconds=6, seed=1000)
    assert set(tallies) == set(FITS)
    assert {name: tally.broken for name, tally in tallies.items() if tally.broken} == {}
    assert max(tally.worst for tally in tallies.values()) > 0.9
    assert not any(tally.skipped for tally in tallies.values())  # everything was compared


def test_the_command_prints_counts_and_fails_if_a_claim_is_exceeded(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["audit", "--pairs", "1", "--replays", "1"])
    monkeypatch.setattr(command, "BROKEN", {"half the noise": lambda: True})
    monkeypatch.setattr(command, "attack_designs", lambda **_: {"Moments": Tally(1, 10, 0.9)})
    monkeypatch.setattr(command, "replay_fits", lambda **_: {"PrivatePCA": Tally(1, 1, 0.9)})
    assert command.main() == 0
    assert "10 pairs, 1 replays: 0 above their claim" in capsys.readouterr().out
    monkeypatch.setattr(command, "replay_fits", lambda **_: {"PrivatePCA": Tally(1, 1, 1.1, [7])})
    assert command.main() == 1
    assert "1 above their claim" in capsys.readouterr().out


def test_audits_draw_no_noise_of_their_own():
    """All noise of an audit comes from releases and from `mechanisms.mechanism.add_noise`."""
    for path in Path(audit.__file__).parent.glob("*.py"):
        names = {getattr(node, "id", getattr(node, "attr", "")) for node in ast.walk(ast.parse(path.read_text()))}
        assert not names & {"draw_gaussian", "BlockKey", "draw_laplace", "draw_normal"}, path.name
