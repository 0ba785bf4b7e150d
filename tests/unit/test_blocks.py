"""Records that come block by block give the same bits as records in one array."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.records import Blocks

RNG = np.random.default_rng(3)
DATA = RNG.uniform(-1.5, 1.5, (1000, 3))
BOUNDS = mdp.Bounds([-1] * 3, [1] * 3)


def blocks(*ends):
    return Blocks(lambda: iter(np.split(DATA, ends)))


@pytest.mark.parametrize(
    "query",
    [
        mdp.Moments(BOUNDS, 1000),
        mdp.SecondMoment(BOUNDS, 1000),
        mdp.SecondMoment(BOUNDS, 1000, centre=[0.1, 0.2, 0.3]),
        mdp.Moments(BOUNDS, 900, neighbours="add-remove"),
        mdp.Moments(mdp.Bounds([-1] * 3, [1] * 3, radius=1.2), 1000),
        mdp.Identity(BOUNDS, 1000),
    ],
    ids=["moments", "second", "centred", "add-remove", "radius", "identity"],
)
@pytest.mark.parametrize("ends", [(), (1,), (10, 10, 400), tuple(range(0, 1000, 7))])
def test_the_partition_cannot_change_a_bit(query, ends):
    whole = query.evaluate(DATA, clip=True, missing="error")
    assert np.array_equal(query.evaluate(blocks(*ends), clip=True, missing="error"), whole)


@pytest.mark.parametrize("records", [999, 1001, 5])
def test_the_number_of_records_is_checked(records):
    with pytest.raises(mdp.ParameterError, match="records must be the number of rows"):
        mdp.Moments(BOUNDS, records).evaluate(blocks(500), clip=True, missing="error")


def test_a_domain_of_twice_the_records_is_checked():
    with pytest.raises(mdp.DataError, match="at most 2 x 499"):
        mdp.Moments(BOUNDS, 499, neighbours="add-remove").evaluate(blocks(500), clip=True, missing="error")


def test_no_blocks_are_no_records():
    with pytest.raises(mdp.ParameterError, match="records must be"):
        mdp.Moments(BOUNDS, 1).evaluate(Blocks(lambda: iter(())), clip=True, missing="error")


def test_an_error_in_a_late_block_draws_nothing():
    broken = DATA.copy()
    broken[900, 1] = np.nan
    design = mdp.make_design(mdp.Moments(BOUNDS, 1000), mdp.Privacy(1, 1e-6))
    with pytest.raises(mdp.DataError, match="finite"):
        design.release(Blocks(lambda: iter(np.split(broken, [500]))))
