"""The figures of the paper's setting, row by row."""

import numpy as np
import pytest

from matrixdp import Bounds, Identity, Privacy, SecondMoment, make_design
from matrixdp.design import binary, equimodal, isotropic, unimodal
from matrixdp.design.theorem2 import VARIANTS, precision_budget
from matrixdp.errors import ParameterError

ONE = {"epsilon": 1.0, "delta": 1 / 248, "sensitivity": 6**0.5, "gamma": (6 * 248) ** 0.5, "columns": 248}
TWO = {"epsilon": 1.0, "delta": 1 / 2021, "sensitivity": 8 / 2021, "gamma": 4.0}
THREE = {"epsilon": 1.0, "delta": 1 / 2126, "sensitivity": 21**0.5, "gamma": (21 * 2126) ** 0.5, "columns": 2126}


def binary_theta(size, important):
    theta = np.full(size, 0.05 / (size - len(important)))
    theta[important] = 0.95 / len(important)
    return theta


def three_digits(value, expected):
    assert value == pytest.approx(expected, rel=6e-3)


@pytest.mark.parametrize(
    ("variant", "important", "other"),
    [("theorem2", 2.99e5, 7.43e5), ("theorem2-corrected", 7318, 18170), ("theorem2-psd", 7305, 18140)],
)
def test_first_experiment_under_theorem_2(variant, important, other):
    design = unimodal(**ONE, theta=binary_theta(6, [2, 5]), calibration=variant)
    three_digits(design.std[2, 0], important)
    three_digits(design.std[0, 0], other)
    assert design.distance < design.mu / 500  # very far from necessary


@pytest.mark.parametrize(
    ("variant", "both", "mixed", "neither"),
    [
        ("theorem2", 9.72, 20.3, 42.4),
        ("theorem2-corrected", 9.15, 19.1, 39.9),
        ("theorem2-psd", 0.470, 0.982, 2.05),
    ],
)
def test_second_experiment_under_theorem_2(variant, both, mixed, neither):
    design = equimodal(**TWO, theta=binary_theta(4, [0, 3]), calibration=variant)
    three_digits(design.noise.std[0, 3], both)
    three_digits(design.noise.std[0, 1], mixed)
    three_digits(design.noise.std[1, 1], neither)


@pytest.mark.parametrize(
    ("variant", "important", "other"),
    [("theorem2", 1.007e8, 3.292e8), ("theorem2-corrected", 4.706e5, 1.538e6), ("theorem2-psd", 4.706e5, 1.538e6)],
)
def test_third_experiment_under_theorem_2(variant, important, other):
    design = unimodal(**THREE, theta=binary_theta(21, [0, 7, 9]), calibration=variant)
    three_digits(design.std[0, 0], important)
    three_digits(design.std[1, 0], other)


def test_first_experiment_exactly():
    query = Identity(Bounds([0] * 6, [1] * 6), records=248)
    privacy = Privacy(1, 1 / 248)
    three_digits(make_design(query, privacy, allocation=isotropic()).std[0, 0], 5.30)
    design = make_design(query, privacy, allocation=binary([2, 5], 0.95))
    three_digits(design.std[0, 2], 3.14)
    three_digits(design.std[0, 0], 19.4)
    assert design.exact


def test_second_experiment_exactly():
    query = SecondMoment(Bounds([-1] * 4, [1] * 4), records=2021)
    privacy = Privacy(1, 1 / 2021)
    assert query.sensitivity.frobenius == pytest.approx(4 * 2**0.5 / 2021)  # not 8/2021
    three_digits(make_design(query, privacy, allocation=isotropic()).noise.std[0, 0], 0.00775)
    design = make_design(query, privacy, allocation=binary([0, 3], 0.95))
    three_digits(design.noise.std[0, 3], 0.00408)
    three_digits(design.noise.std[0, 1], 0.0178)
    three_digits(design.noise.std[1, 1], 0.0775)
    assert design.exact
    three_digits(design.std[0, 3], 0.00408 / 2**0.5)  # after symmetrising


def test_third_experiment_exactly():
    query = Identity(Bounds([0] * 21, [1] * 21), records=2126)
    privacy = Privacy(1, 1 / 2126)
    mu = privacy.mu
    three_digits(make_design(query, privacy, allocation=isotropic()).std[0, 0], 21**0.5 / mu)
    design = make_design(query, privacy, allocation=binary([0, 7, 9], 0.95))
    three_digits(design.std[0, 0], (0.95 / 3) ** -0.5 / mu)
    three_digits(design.std[0, 1], (0.05 / 18) ** -0.5 / mu)


def test_the_printed_root_cancels_and_ours_does_not():
    """Where the paper's form of the root still has digits, both agree."""
    budget = precision_budget(Privacy(1, 1 / 2021), (4, 4), sensitivity=8 / 2021, gamma=4.0, variant="theorem2-psd")
    import mpmath as mp

    mp.mp.dps = 60
    h = mp.fsum(mp.mpf(1) / i for i in range(1, 5))
    log = mp.log(mp.mpf(1) / 2021)
    zeta = 2 * mp.sqrt(-16 * log) - 2 * log + 16
    s2 = mp.mpf(8) / 2021
    alpha, beta = 4 * h * 4 * s2, 2 * mp.mpf(16) ** 0.25 * h * s2 * mp.sqrt(zeta)
    phi = (-beta + mp.sqrt(beta**2 + 8 * alpha)) / (2 * alpha)
    assert budget == pytest.approx(float(phi**2), rel=1e-12)


def test_unknown_variants_are_named():
    assert VARIANTS == ("theorem2", "theorem2-corrected", "theorem2-psd")
    with pytest.raises(ParameterError, match="variant must be one of"):
        precision_budget(Privacy(1, 1e-6), (1, 1), sensitivity=1.0, gamma=1.0, variant="theorem3")
