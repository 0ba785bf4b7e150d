"""Sizes of allowances, their guarantees, and balances that they divide, in exact units."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrixdp.errors import BudgetExceededError, ParameterError
from matrixdp.gdp import gdp_delta
from matrixdp.ledger import Gaussian, Pure, Registration, Reserve
from matrixdp.ledger.accounting import Amount, payment_options, root_above, square_above, total_amount
from matrixdp.ledger.balance import AllowanceBalance, Balance, allowance_size, guaranteed_epsilon, parse_share
from matrixdp.privacy import Neighbours, Privacy

PATH = "clinic.db"
TOTAL = Privacy(epsilon=2, delta=1e-6)
RESERVE = Reserve(epsilon=0.5, delta=1e-7)


def make_balance(reserve=RESERVE):
    registration = Registration("clinic", TOTAL, Neighbours.REPLACE, reserve)
    return Balance(registration, total_amount(TOTAL, reserve), Amount())


def make_allowance(balance, name="ann", **size):
    amount, epsilon = allowance_size(balance.total, balance.registration.privacy, **size)
    return AllowanceBalance(name, amount, Amount(), epsilon)


def allot(balance, allowance):
    balance.require_room(allowance.name, allowance.size, PATH)
    content = {"allowance": allowance.name, "size": allowance.size.to_json(), "epsilon": allowance.epsilon}
    return replace(balance.apply("allowance", content), allowance=None)


def pay(balance, event, allowance=None):
    return replace(balance, allowance=allowance).pay(payment_options(event), PATH)


def test_an_allowance_of_epsilon_pays_for_a_release_with_that_epsilon():
    allowance = make_allowance(make_balance(), epsilon=0.3)
    (cost,) = payment_options(Gaussian(Privacy(0.3, TOTAL.delta).mu))
    assert allowance.size == cost
    assert allowance.epsilon == 0.3


@given(share=st.fractions(Fraction(1, 10**6), 1), reserve=st.sampled_from([Reserve(), RESERVE, Reserve(0.1, 9e-7)]))
def test_the_guarantee_of_a_share_holds(share, reserve):
    balance = make_balance(reserve)
    allowance = make_allowance(balance, share=share)
    size = [
        Fraction(units, 2**192) for units in (allowance.size.mu_squared, allowance.size.epsilon, allowance.size.delta)
    ]
    gaussian = Fraction(allowance.epsilon) - size[1]
    assert gaussian >= 0
    mu = root_above(allowance.size.mu_squared)
    assert Fraction(mu) ** 2 >= size[0]
    assert gdp_delta(mu=mu, epsilon=float(gaussian) * (1 + 1e-12)) + float(size[2]) <= TOTAL.delta * (1 + 1e-12)
    assert allowance.epsilon <= TOTAL.epsilon * (1 + 1e-9)


def test_the_guarantee_of_the_whole_is_that_of_the_data_set():
    for reserve in (Reserve(), RESERVE, Reserve(epsilon=2, delta=1e-6)):
        epsilon = guaranteed_epsilon(make_balance(reserve).total, TOTAL.delta)
        assert math.isclose(epsilon, TOTAL.epsilon, rel_tol=1e-9)


def test_no_guarantee_at_this_delta():
    assert guaranteed_epsilon(Amount(delta=make_balance().total.delta * 20), TOTAL.delta) == math.inf
    assert guaranteed_epsilon(Amount(mu_squared=1, delta=total_amount(TOTAL, Reserve(0, 1e-6)).delta), 1e-6) == math.inf


def test_ten_tenths_and_three_thirds_are_the_whole():
    for share, count in ((0.1, 10), ("1/3", 3), (Fraction(1, 11), 11), (1 / 3, 3)):
        balance = make_balance()
        for i in range(count):
            balance = allot(balance, make_allowance(balance, str(i), share=share))
        with pytest.raises(BudgetExceededError, match="'clinic' has mu"):
            allot(balance, make_allowance(balance, "more", share=1e-9))
        assert balance.allotted.within(balance.total)


def test_epsilons_of_allowances_add_up_as_squares_of_mu():
    balance = make_balance(Reserve())
    half = make_allowance(balance, share=0.5).epsilon
    assert half > TOTAL.epsilon / 2  # two allowances of this epsilon fit, although their epsilons add up to more
    for name in "ab":
        balance = allot(balance, make_allowance(balance, name, epsilon=half * (1 - 1e-9)))


def test_a_charge_uses_its_own_allowance_only():
    balance = make_balance(Reserve())
    ann = make_allowance(balance, share=0.25)
    balance = allot(balance, ann)
    mu = balance.remaining().mu
    with pytest.raises(BudgetExceededError, match="the allowance 'ann' of 'clinic' has epsilon"):
        pay(balance, Gaussian(mu), ann)
    cost, after = pay(balance, Gaussian(mu))
    assert cost.mu_squared == square_above(mu)
    with pytest.raises(BudgetExceededError, match="The rest of its total is allotted: name an allowance"):
        pay(after, Gaussian(1e-3))
    spent, last = pay(after, Gaussian(replace(balance, allowance=ann).remaining().mu), ann)
    assert last.spent == cost + spent
    assert last.allotted == ann.size - spent
    assert last.allowance.left == last.allotted


def test_the_reserve_is_divided_as_well():
    balance = make_balance()
    ann = make_allowance(balance, epsilon=0.6, reserve=Reserve(epsilon=0.3, delta=1e-8))
    balance = allot(balance, ann)
    assert balance.remaining().reserve.epsilon == 0.2
    cost, after = pay(balance, Pure(0.25), ann)
    assert cost == payment_options(Pure(0.25))[0]
    assert after.remaining().reserve.epsilon == pytest.approx(0.05)
    with pytest.raises(BudgetExceededError, match=r"needs mu .* and epsilon 0.3"):
        allot(balance, make_allowance(balance, "bob", epsilon=0.6, reserve=Reserve(epsilon=0.3)))


def test_what_is_left_of_a_returned_allowance_can_be_used_again():
    balance = make_balance(Reserve())
    ann = make_allowance(balance, share=0.5)
    cost, after = pay(allot(balance, ann), Gaussian(0.01), ann)
    after = after.apply("return", {"returned": after.allowance.unspent.to_json()})
    after = replace(after, allowance=None)
    assert after.allotted == Amount()
    assert after.available() == balance.total - cost


def test_the_total_limits_allowances_as_well():
    balance = make_balance(Reserve())
    ann = make_allowance(balance, share=0.5)
    spent = Balance(balance.registration, balance.total, balance.total, ann.size)  # as after "treat as spent"
    assert replace(spent, allowance=ann).available() == Amount() == spent.available()


@pytest.mark.parametrize("size", [{}, {"epsilon": 1.0, "share": 0.5}])
def test_a_size_is_an_epsilon_or_a_share(size):
    with pytest.raises(ParameterError, match="epsilon or share must be given"):
        make_allowance(make_balance(), **size)


def test_a_share_includes_its_reserve():
    with pytest.raises(ParameterError, match="reserve must be left out with share"):
        make_allowance(make_balance(), share=0.5, reserve=Reserve(0.1))


@pytest.mark.parametrize("share", [0, -0.5, 1.01, math.nan, "0", "2", "half", "1/0", "1e-999999999", "", True, "3/2"])
def test_other_shares_are_refused(share):
    with pytest.raises(ParameterError, match="share must be"):
        parse_share(share)


def test_a_share_of_nothing_is_refused():
    with pytest.raises(ParameterError, match="share is too small"):
        make_allowance(make_balance(Reserve()), share=1e-300)
