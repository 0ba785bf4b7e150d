"""What the ledger claims in exact arithmetic: costs are never below the truth, totals never above it.

Costs are compared with fractions, and composed ones with sums over all outcomes at sixty digits, without any tolerance.
What is spent is never read from a part of the entries.
"""

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

import matrixdp as mdp
from ledger_stores import SQLiteFiles
from matrixdp.gdp import pure_mu
from matrixdp.ledger import Approximate, Gaussian, Ledger, Plan, Pure, Reserve
from matrixdp.ledger.accounting import (
    Amount,
    _curve,
    _difference_below,
    composed_epsilon,
    composed_mu,
    float_below,
    payment_options,
    remaining_epsilon,
    root_below,
    total_amount,
)

UNIT = Fraction(1, 2**192)
TOTAL = mdp.Privacy(1, 1e-6)
SIZES = [0.3, 1.0, 1e-3, 1e-20, 1e-45, 1e-60, 1e-100, 7e-58]  # many are no multiples of the unit


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(60):
        yield


@pytest.mark.parametrize("size", SIZES)
def test_no_event_costs_less_than_its_amount(size):
    (gaussian,) = payment_options(Gaussian(size))
    assert gaussian.mu_squared * UNIT >= Fraction(size) ** 2
    reserve, other = payment_options(Pure(size))
    assert reserve.epsilon * UNIT >= Fraction(size)
    assert other.mu_squared * UNIT >= Fraction(pure_mu(size)) ** 2
    for way in payment_options(Approximate(0.5, size / 2)):
        assert way.delta * UNIT >= Fraction(size / 2)
    reserve, other = payment_options(Plan([Gaussian(size), Gaussian(size), Approximate(0.5, size / 3)], delta=size / 4))
    assert reserve.mu_squared * UNIT >= 2 * Fraction(size) ** 2
    assert reserve.delta * UNIT >= Fraction(size / 3) + Fraction(size / 4)
    assert other.mu_squared * UNIT >= 2 * Fraction(size) ** 2 + Fraction(pure_mu(0.5)) ** 2
    assert other.delta * UNIT >= Fraction(size / 3)


@pytest.mark.parametrize("epsilon", [1e-7, 0.01, 0.9])
def test_a_plan_that_its_delta_covers_alone_is_charged_that_delta(epsilon, tmp_path):
    """The composed epsilon is zero, and yet the plan is not free."""
    delta = math.tanh(epsilon / 2) * 1.1
    assert composed_epsilon((epsilon,), delta) == 0.0
    reserve, gaussian = payment_options(Plan([Pure(epsilon)], delta=delta))
    assert reserve.delta * UNIT >= Fraction(delta)
    assert gaussian.mu_squared > 0
    with mdp.Ledger.create(tmp_path / "l.db") as ledger:
        ledger.register("d", TOTAL, neighbours="replace")
        before, charged = ledger.remaining("d").mu, False
        try:
            ledger.charge("d", Plan([Pure(epsilon)], delta=delta), neighbours="replace", description={})
            charged = True
        except mdp.BudgetExceededError:
            pass
        assert charged == (pure_mu(epsilon) <= TOTAL.mu)
        assert (ledger.remaining("d").mu < before) == charged


def test_a_pure_event_costs_a_mu_that_covers_it():
    """A randomised response of epsilon is `mu`-GDP for the mu that is charged: exactly, at its two error rates."""
    for epsilon in (1e-3, 0.1, 0.5, 1.0, 5.0, 20.0):
        mu = mp.sqrt(mp.mpf(payment_options(Pure(epsilon))[1].mu_squared) / mp.mpf(2) ** 192)
        error = 1 / (1 + mp.exp(mp.mpf(epsilon)))
        assert mp.ncdf(-mu / 2) <= error


@pytest.mark.parametrize(("epsilon", "delta"), [(0.25, 4e-7), (0.1, 1e-60), (1e-60, 0.0), (0.3, 1e-22), (1 / 3, 0.0)])
def test_no_total_is_above_its_guarantee(epsilon, delta):
    total = total_amount(TOTAL, Reserve(epsilon, delta))
    mu = mp.sqrt(mp.mpf(total.mu_squared) / mp.mpf(2) ** 192)
    left = [mp.mpf(whole) - mp.mpf(part) for whole, part in ((TOTAL.epsilon, epsilon), (TOTAL.delta, delta))]
    assert mp.ncdf(mu / 2 - left[0] / mu) - mp.exp(left[0]) * mp.ncdf(-mu / 2 - left[0] / mu) <= left[1]
    assert total.epsilon * UNIT <= Fraction(epsilon)
    assert total.delta * UNIT <= Fraction(delta)


@pytest.mark.parametrize("part", SIZES)
def test_what_a_reserve_leaves_is_rounded_down(part):
    for whole in (1.0, 1.5, part, 2 * part):
        if whole >= part:
            assert Fraction(_difference_below(whole, part)) <= Fraction(whole) - Fraction(part)


def test_what_is_left_is_rounded_down():
    rng = np.random.default_rng(0)
    for _ in range(300):
        units = int(rng.integers(1, 2**62)) << int(rng.integers(0, 130)) | int(rng.integers(0, 2**62))
        assert Fraction(float_below(units)) <= units * UNIT
        assert Fraction(root_below(units)) ** 2 <= units * UNIT
    for share in rng.uniform(0, 1, 40):
        mu = float(TOTAL.mu * share)
        assert mdp.gdp.gdp_mu(epsilon=remaining_epsilon(mu, TOTAL), delta=TOTAL.delta) <= mu or mu < 3e-6


@pytest.mark.parametrize("account", ["mu_squared", "epsilon", "delta"])
def test_no_account_may_exceed_its_total(account):
    total = Amount(10, 10, 10)
    assert Amount(**{account: 10}).within(total)
    assert not Amount(**{account: 11}).within(total)


LISTS = [(0.1,) * 2, (0.1,) * 7, (0.3, 0.7, 0.2), (1.0, 1e-3, 0.4), (2.0,) * 4, (0.011, 0.013, 0.017), (1 / 3,) * 5]


def exact_deltas(epsilons, points):
    """delta of randomised responses at each epsilon, from all outcomes."""
    outcomes = []
    for signs in itertools.product((1, -1), repeat=len(epsilons)):
        losses = [sign * mp.mpf(e) for sign, e in zip(signs, epsilons, strict=True)]
        outcomes.append((mp.fsum(losses), mp.fprod(1 / (1 + mp.exp(-loss)) for loss in losses)))
    return [
        mp.fsum(mass * (1 - mp.exp(mp.mpf(float(x)) - loss)) for loss, mass in outcomes if loss > mp.mpf(float(x)))
        for x in points
    ]


@pytest.mark.parametrize("epsilons", LISTS)
def test_the_curve_of_a_list_is_an_upper_bound(epsilons):
    epsilon, delta = _curve(tuple(sorted(epsilons)))
    places = np.unique(np.linspace(0, len(epsilon) - 1, 150).astype(int))
    places = np.concatenate([places, np.arange(max(0, len(epsilon) - 20), len(epsilon))])
    exact = exact_deltas(epsilons, epsilon[places])
    assert all(mp.mpf(float(delta[k])) >= value for k, value in zip(places, exact, strict=True))


@pytest.mark.parametrize("epsilons", LISTS)
@pytest.mark.parametrize("delta", [1e-2, 1e-3, 1e-6, 1e-12])
def test_a_composed_epsilon_covers_its_list(epsilons, delta):
    (value,) = exact_deltas(epsilons, [composed_epsilon(epsilons, delta)])
    assert value <= mp.mpf(delta)


def test_a_sum_of_epsilons_is_rounded_up():
    rng = np.random.default_rng(0)
    for _ in range(300):
        epsilons = tuple(map(float, 10.0 ** rng.uniform(-6, 1, 4)))
        assert Fraction(composed_epsilon(epsilons, 0.0)) >= sum(map(Fraction, epsilons))


@pytest.mark.parametrize("epsilons", LISTS)
def test_a_composed_mu_covers_its_list_at_every_epsilon(epsilons):
    mu = mp.mpf(composed_mu(epsilons))
    points = np.linspace(0, math.fsum(epsilons), 60)
    for x, value in zip(points, exact_deltas(epsilons, points), strict=True):
        x = mp.mpf(float(x))
        assert mp.ncdf(mu / 2 - x / mu) - mp.exp(x) * mp.ncdf(-mu / 2 - x / mu) >= value


@pytest.mark.parametrize("epsilons", [(1e-6,) * 3, (50.0,) * 3, (0.1,), (1e-5, 2e-5)])
def test_a_mu_of_events_one_by_one_is_rounded_up(epsilons):
    mu = composed_mu(epsilons)
    assert Fraction(mu) ** 2 >= sum(Fraction(pure_mu(e)) ** 2 for e in epsilons)


@pytest.fixture
def files(tmp_path):
    return SQLiteFiles(tmp_path)


@pytest.fixture
def charged(files):
    """Entries: 1 create, 2 register, 3 and 4 charges, 5 register."""
    with Ledger.create(files.new_path()) as ledger:
        ledger.register("clinic", TOTAL, neighbours="replace")
        for _ in range(2):
            ledger.charge("clinic", Gaussian(0.1), neighbours="replace", description={})
        ledger.register("other", TOTAL, neighbours="replace")
    return ledger


@pytest.mark.parametrize("change", [-1, 1])
def test_counters_are_compared_with_the_last_entries(charged, files, change):
    with files.without_triggers(files.new_path()) as connection:
        connection.execute("UPDATE counters SET charges = charges + ? WHERE dataset = 'clinic'", (change,))
    with pytest.raises(mdp.LedgerError, match="the counters of 'clinic' do not agree"):
        charged.charge("clinic", Gaussian(0.1), neighbours="replace", description={})


@pytest.mark.parametrize("column", ["kind = 'move'", "dataset = 'other'"])
def test_a_last_charge_that_is_hidden_is_missed(charged, files, column):
    """Were the one before it taken for the last, its cost could be spent again."""
    with files.without_triggers(files.new_path()) as connection:
        connection.execute(f"UPDATE entries SET {column} WHERE entry = 4")
    with pytest.raises(mdp.LedgerError, match="the last charge to 'clinic' is not the one that was counted"):
        charged.charge("clinic", Gaussian(0.1), neighbours="replace", description={})
