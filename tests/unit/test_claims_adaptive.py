"""The steps of a fit, each attacked by itself: integers of neighbours before noise, and shares of the budget."""

import math
from fractions import Fraction

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.adaptive import private_moment, private_scales, queries
from matrixdp.adaptive.budget import FitBudget
from matrixdp.adaptive.measure import PrivateMeasurements
from matrixdp.adaptive.moment import prepare_fit
from matrixdp.adaptive.queries import ball_query, count_query, scales_query
from matrixdp.adaptive.records import EXCESS_STEPS, grid_levels, grid_records, may_be_outside, validate_records
from matrixdp.audit import distance_between, replay
from matrixdp.privacy import Neighbours
from matrixdp.release.charging import release_fit

PRIVACY = mdp.Privacy(1, 1e-6)
BOX = mdp.Bounds([-1, -1], [1, 1])
EITHER = list(Neighbours)


def on_grid(data):
    return grid_records(mdp.Bounds([-1] * data.shape[1], [1] * data.shape[1]), data, grid_levels(len(data)))


def neighbours_of(data, kind, record):
    """The data with their first record replaced, or without it."""
    return np.vstack([[record], data[1:]]) if kind is Neighbours.REPLACE else data[1:]


@pytest.mark.parametrize("kind", EITHER)
def test_a_count_moves_by_no_more_than_its_design_says(kind):
    design = mdp.make_design(count_query(50, kind), PRIVACY, allocation="isotropic")
    data = np.vstack([[[1.0, 1.0]], np.random.default_rng(0).normal(0, 0.1, (49, 2))])
    other = neighbours_of(data, kind, [0.0, 0.0])
    counts = [on_grid(rows).counter([0.5])(0.5) for rows in (data, other)]
    assert 0 < distance_between(design, *counts) <= design.distance


@pytest.mark.parametrize("kind", EITHER)
@pytest.mark.parametrize("limit", [0.05, 0.5, 1.5])
def test_an_excess_moves_by_no_more_than_its_design_says(kind, limit):
    """One record far outside of the radius, whose excess is cut off at the limit, against one inside of it."""
    data = np.vstack([[[1.0, 1.0]], np.random.default_rng(0).normal(0, 0.1, (49, 2))])

    def fit(rows):
        measure = PrivateMeasurements(on_grid(rows), FitBudget(PRIVACY, kind), 50)
        return measure.excess("tail", 0.5, limit, 1.0)[0]

    found = replay(fit, data, neighbours_of(data, kind, [0.0, 0.0]), claim=PRIVACY)
    assert not found.broken
    (step,) = found.steps
    assert step.distance > 0.99 * step.claim


def test_an_excess_of_one_record_is_at_most_its_limit():
    for length in (0.6, 1.0, math.sqrt(2)):
        data = np.full((1, 2), length / math.sqrt(2))
        assert 0 < on_grid(data).excess(0.5, 1e-3) <= EXCESS_STEPS


@pytest.mark.parametrize("kind", EITHER)
@pytest.mark.parametrize("ratio", [0.0625, 0.25, 1.0])
def test_a_moment_in_a_ball_moves_by_no_more_than_its_design_says(kind, ratio):
    """Pairs on the sphere at all angles, pairs of which one is in the middle, and records far outside."""
    for size in (1, 2, 3):
        query = ball_query(size, 0.7, 4, kind, ratio=ratio)
        design = mdp.make_design(query, PRIVACY, allocation="isotropic")
        rng, worst = np.random.default_rng(size), 0.0
        others = rng.uniform(-1, 1, (3, size))
        for angle in np.linspace(0, math.pi, 41):
            ends = np.zeros((2, size))
            ends[:, 0] = 1, math.cos(angle)
            if size > 1:
                ends[1, 1] = math.sin(angle)
            for first, second in ((0.7, 0.7), (1.0, 0.0), (1.0, 1.0), (0.0, 0.7)):
                pair = [np.vstack([[end * length], others]) for end, length in zip(ends, (first, second), strict=True)]
                if kind is not Neighbours.REPLACE:
                    pair[1] = others
                worst = max(worst, distance_between(design, *(on_grid(rows) for rows in pair)))
        assert worst <= design.distance
        if size > 1:
            assert worst > 0.98 * design.distance


def test_no_record_outside_of_the_ball_is_summed_as_it_is():
    """For balls through a record, where rounding decides: records that are not clipped lie inside, exactly."""
    records = on_grid(np.random.default_rng(0).uniform(-1, 1, (300, 3)))
    block = records.source
    squares = (block.steps.astype(np.int64) ** 2).sum(axis=1).tolist()
    for length in block.lengths[:100].tolist():
        for radius in (length, math.nextafter(length, 0), math.nextafter(length, 2)):
            ball = ball_query(3, radius, 300, Neighbours.REPLACE).moments.bounds
            inside = np.count_nonzero(~may_be_outside(block.lengths, ball))
            assert inside <= sum(square <= (Fraction(radius) * records.levels) ** 2 for square in squares)


@pytest.mark.parametrize("kind", EITHER)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_scales_move_by_no_more_than_their_design_says(kind, size):
    query = scales_query(size, 4, kind)
    design = mdp.make_design(query, PRIVACY, allocation="isotropic")
    box = mdp.Bounds([-1] * size, [1] * size)
    rng, worst = np.random.default_rng(0), 0.0
    others = rng.uniform(-1, 1, (3, size))
    ends = [np.full(size, value) for value in (-1.0, 0.0, 1.0, 9.0, 0.5, 0.7, -0.9)]
    ends += [rng.choice([-1.0, 0.0, 1.0], size) for _ in range(20)]
    for first in ends:
        for second in ends:
            pair = [np.vstack([[end], others]) for end in (first, second)]
            if kind is not Neighbours.REPLACE:
                pair[1] = others
            records = [grid_records(box, rows, grid_levels(4)) for rows in pair]
            worst = max(worst, distance_between(design, *records))
    assert 0.99 * design.distance < worst <= design.distance


@pytest.mark.parametrize("kind", EITHER)
def test_a_fit_that_locates_records_is_within_its_claim_and_more_weight_on_squares_is_noticed(kind, monkeypatch):
    """Two features whose records move from an end of their bounds, where values and squares change most."""
    data = np.zeros((60, 2))
    data[0] = -1.0
    other = neighbours_of(data, kind, [1.0, 0.3])

    def fit(rows):
        return private_moment(rows, BOX, PRIVACY, aim="correlation", neighbours=kind, records=60)

    found = replay(fit, data, other)
    assert not found.broken
    assert found.steps[0].shape == (1, 5)
    exact = queries.scales_row
    monkeypatch.setattr(queries, "scales_row", lambda moment: 1.5 * exact(moment))
    assert replay(fit, data, other).broken


def test_the_shares_of_a_fit_never_exceed_its_total():
    """However the shares are chosen, the designs together claim no more than the budget."""
    query = mdp.SecondMoment(BOX, 3)
    rng = np.random.default_rng(0)
    for _ in range(30):
        budget = FitBudget(PRIVACY, Neighbours.REPLACE)
        for share in rng.dirichlet(np.ones(7)):
            budget.release("step", query, np.zeros((3, 2)), share=min(float(share), budget.remaining))
        assert sum(step.mu**2 for step in budget.steps) <= PRIVACY.mu**2
        assert budget.mu <= PRIVACY.mu
        with pytest.raises(mdp.ParameterError, match="share must be"):
            budget.release("more", query, np.zeros((3, 2)), share=0.01)


@pytest.mark.parametrize("function", [private_moment, private_scales])
@pytest.mark.parametrize("kind", EITHER)
def test_a_fit_spends_what_its_steps_release(function, kind):
    """The transcript's designs together claim what the fit says that it spent, and no more than its total."""
    data = np.random.default_rng(0).normal(0, 0.3, (400, 2))
    options = {} if kind is Neighbours.REPLACE else {"records": 400}
    spent = {}

    def fit(rows):
        result = function(rows, BOX, PRIVACY, neighbours=kind, **options)
        spent["mu"] = getattr(result, "spending", result).mu
        return spent["mu"]

    found = replay(fit, data, neighbours_of(data, kind, [1.0, 1.0]), claim=PRIVACY)
    assert not found.broken
    assert spent["mu"] == pytest.approx(found.spent, rel=1e-12)
    assert found.spent <= PRIVACY.mu


def test_a_fit_is_charged_its_whole_budget(tmp_path):
    with mdp.Ledger.create(tmp_path / "l.db") as ledger:
        ledger.register("d", PRIVACY, neighbours="replace")
        prepared = prepare_fit(np.zeros((30, 2)), BOX, PRIVACY, aim="covariance")
        fitted = release_fit(prepared, ledger=ledger.path, dataset="d")
        (charge,) = ledger.history("d")
        assert charge.event.mu >= fitted.mu
        assert ledger.remaining("d").mu ** 2 <= PRIVACY.mu**2 - fitted.mu**2 + 1e-12


@pytest.mark.parametrize("function", [private_moment, private_scales])
def test_a_private_number_of_records_has_a_public_limit(function):
    options = {"records": 5, "neighbours": "add-remove"}
    function(np.zeros((10, 2)), BOX, PRIVACY, **options)
    with pytest.raises(mdp.DataError, match="at most 2 x 5"):
        function(np.zeros((11, 2)), BOX, PRIVACY, **options)
    with pytest.raises(mdp.ParameterError, match="records must be given"):
        function(np.zeros((10, 2)), BOX, PRIVACY, neighbours="add-remove")


def test_principal_directions_spend_their_share():
    found = replay(
        lambda rows: mdp.principal_directions(rows, BOX, PRIVACY, records=3, share=0.2).release,
        np.zeros((3, 2)),
        np.array([[1.0, 1.0], [0, 0], [0, 0]]),
        claim=PRIVACY.mu * math.sqrt(0.2),
    )
    assert not found.broken


def test_queries_of_other_neighbours_are_refused():
    budget = FitBudget(PRIVACY, Neighbours.REPLACE)
    with pytest.raises(mdp.ParameterError, match="same neighbours"):
        budget.release("count", count_query(5, Neighbours.ADD_REMOVE), None, share=0.5)


def test_counts_of_files_are_those_of_arrays(tmp_path):
    """Records whose length is exactly the cut are not above it, wherever they are stored."""
    data = np.array([[0.5, 0.0], [0.0, 0.25], [1.0, 0.0], [0.0, 0.0]])
    np.save(tmp_path / "data.npy", data)
    cuts = [0.0, 0.25, 0.5, 0.75, 1.0]
    counters = [
        validate_records(source, BOX)[1](4).counter(cuts)
        for source in (data, mdp.open_records(np.load(tmp_path / "data.npy", mmap_mode="r")))
    ]
    for cut in cuts:
        assert counters[0](cut) == counters[1](cut) == np.count_nonzero(np.linalg.norm(data, axis=1) > cut)
