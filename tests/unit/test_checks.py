"""Checks of arguments: what they accept, what they return, and what their messages say."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from matrixdp.checks import (
    check_flag,
    check_integer,
    check_magnitude,
    check_magnitudes,
    check_number,
    power_of_two,
    root_mean_square,
    sum_of_others,
    to_floats,
)
from matrixdp.errors import ParameterError, show, word_options


@pytest.mark.parametrize(
    "value", [0.5, np.float32(0.5), np.float64(0.5), np.longdouble(0.5), np.array(0.5), Fraction(1, 2), Decimal("0.5")]
)
def test_numbers_become_plain_floats(value):
    assert type(check_number(value, "share")) is float
    assert check_number(value, "share") == 0.5


def test_whole_numbers_are_numbers():
    assert [check_number(value, "share") for value in (3, np.int8(3), np.uint64(3))] == [3.0] * 3


def test_negative_zero_loses_its_sign():
    assert math.copysign(1.0, check_number(-0.0, "delta", at_least=0)) == 1.0


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan"), 10**400, Decimal("snan")])
def test_numbers_must_be_finite(value):
    with pytest.raises(ParameterError, match="share must be a finite number, got"):
        check_number(value, "share")


@pytest.mark.parametrize(
    "value", [True, np.True_, np.array(True), "0.5", None, 1j, np.complex128(0.5), [0.5], np.array([0.5]), (0.5,)]
)
def test_other_values_are_no_numbers(value):
    with pytest.raises(ParameterError, match="share must be a finite number, got"):
        check_number(value, "share")


@pytest.mark.parametrize(
    ("limits", "accepted", "rejected", "rule"),
    [
        ({"above": 0}, [1e-300, 1e300], [0, -1], "finite and greater than 0"),
        ({"at_least": 0}, [0, 1], [-1e-300], "finite and at least 0"),
        ({"below": 0}, [-1], [0], "finite and less than 0"),
        ({"at_most": 2.5}, [2.5], [2.6], "finite and at most 2.5"),
        ({"above": 0, "below": 1}, [0.5], [0, 1], "strictly between 0 and 1"),
        ({"above": 0, "at_most": 1}, [1], [0, 1.1], "greater than 0 and at most 1"),
        ({"at_least": 0, "below": 1e12}, [0, 1e11], [-1, 1e12], "at least 0 and less than 1e+12"),
        ({"at_least": 0, "at_most": 1234567}, [0, 1234567], [-1, 1234568], "at least 0 and at most 1234567"),
        ({"above": 0, "rule": "a width"}, [1], [0], "a width"),
    ],
)
def test_limits_of_numbers(limits, accepted, rejected, rule):
    assert [check_number(value, "width", **limits) for value in accepted] == accepted
    for value in rejected:
        with pytest.raises(ParameterError) as caught:
            check_number(value, "width", **limits)
        assert str(caught.value) == f"width must be {rule}, got {value!r} instead."


@pytest.mark.parametrize(
    ("limits", "accepted", "rejected", "rule"),
    [
        ({}, [-5, 0, 10**30], [], "an integer"),
        ({"at_least": 0}, [0], [-1], "a non-negative integer"),
        ({"at_least": 1}, [1], [0], "a positive integer"),
        ({"at_least": 2}, [2], [1], "an integer of at least 2"),
        ({"at_most": 4}, [4, -9], [5], "an integer of at most 4"),
        ({"at_least": 1, "at_most": 4}, [1, 4], [0, 5], "an integer from 1 to 4"),
        ({"at_least": 0, "rule": "a seed or None"}, [0], [-1], "a seed or None"),
    ],
)
def test_limits_of_integers(limits, accepted, rejected, rule):
    assert [check_integer(value, "size", **limits) for value in accepted] == accepted
    for value in [*rejected, 1.0, True, "1", None, Fraction(1)]:
        with pytest.raises(ParameterError) as caught:
            check_integer(value, "size", **limits)
        assert str(caught.value).startswith(f"size must be {rule}, got ")


def test_numpy_integers_become_plain_ones():
    for value in (np.int8(3), np.uint64(3), np.array(3)):
        assert type(check_integer(value, "size")) is int
    for value in (np.True_, np.float64(3), np.array([3])):
        with pytest.raises(ParameterError, match="size must be an integer"):
            check_integer(value, "size")


def test_flags():
    assert check_flag(True, "clip") is True
    assert check_flag(np.False_, "clip") is False
    for value in (1, 0.0, "yes", None, np.array([True])):
        with pytest.raises(ParameterError, match="clip must be True or False"):
            check_flag(value, "clip")


def test_messages_show_scalars_and_no_arrays():
    with pytest.raises(ParameterError, match=r"got -1\.5 instead"):
        check_number(np.float64(-1.5), "width", above=0)
    with pytest.raises(ParameterError, match="got a ndarray instead"):
        check_number(np.array([0.123]), "width", above=0)


def test_units_and_roots_lose_no_bit_and_do_not_overflow():
    assert (power_of_two(5.0), power_of_two(0.3)) == (4.0, 0.25)
    assert root_mean_square(np.array([3e200, 3e200])) == 3e200
    assert sum_of_others(np.array([1e20, 1.0, 2.0])).tolist() == [3.0, 1e20, 1e20]


def test_magnitudes_and_arrays_that_floats_cannot_hold():
    assert check_magnitude(3, "weight") == 3.0
    with pytest.raises(ParameterError, match=r"from 1e-60 to 1e.60, got 1e.165 instead; change the units"):
        check_magnitude(1e165, "weight")
    check_magnitudes(np.array([0.0, -2.0]), "centre", signed=True)
    with pytest.raises(ParameterError, match="weights must be an array of real numbers"):
        to_floats([10**400], "weights")


def test_errors_show_short_values_and_the_types_of_others():
    assert [show(0.5), show("replace"), show([1.0, 2.0]), show((2, 3))] == ["0.5", "'replace'", "a list", "(2, 3)"]
    assert word_options("«by» must be left out.", lambda option: f"--{option}") == "--by must be left out."
