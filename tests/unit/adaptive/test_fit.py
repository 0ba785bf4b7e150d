"""A whole fit: what its queries sum, and how it shares its budget."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.adaptive import budget as fit_budget
from matrixdp.adaptive.coordinates import LEVELS
from matrixdp.adaptive.fit import Purpose, fit_moment
from matrixdp.adaptive.measure import PrivateMeasurements
from matrixdp.adaptive.moment import private_moment
from matrixdp.adaptive.queries import BoxMoments, ExcessMean, TracedMoments
from matrixdp.adaptive.records import grid_records
from matrixdp.adaptive.settings import SETTINGS
from matrixdp.domain.bounds import square_lengths
from matrixdp.privacy import Neighbours
from matrixdp.queries.sums import sum_levels


def settled(records, bounds):
    """Each record as it enters a moment in a ball, by itself."""
    everything = records.grid.place(records.source.steps)
    grid = sum_levels(len(records))
    on_sphere = bounds.quantise(everything, grid) * bounds.steps(grid)
    return np.where((records.source.lengths > bounds.radius * (1 - 1e-13))[:, None], on_sphere, everything)


def row_lengths(records):
    return np.sqrt(square_lengths(records))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.integers(1, 6), records=st.integers(1, 300), epsilon=st.floats(0.05, 20))
def test_each_term_of_a_moment_lies_in_its_box_and_ball(seed, size, records, epsilon):
    """Replays what each moment's query does with its records, one by one: box and ball hold for what is summed."""
    rng = np.random.default_rng(seed)
    data = rng.standard_cauchy((records, size)) * rng.choice([1e-3, 1, 1e3])
    steps = grid_records(mdp.Bounds([-1] * size, [1] * size), data, LEVELS)
    assert np.abs(steps.source.steps).max() <= LEVELS
    seen = []

    class Watch(fit_budget.FitBudget):
        def release(self, name, query, data, *, share, structured=False):
            seen.append((query, data))
            return super().release(name, query, data, share=share, structured=structured)

    watched = Watch(mdp.Privacy(epsilon, 1e-6), Neighbours.REPLACE, mdp.Stream(seed=seed), simulation=True)
    for chosen in SETTINGS.values():
        watched._releases.clear()
        fit_moment(PrivateMeasurements(steps, watched, records), Purpose(chosen))
    for query, answer in seen:
        if isinstance(query, TracedMoments):
            bounds = query.moments.bounds
            inside = settled(answer, bounds)
            assert (np.abs(inside) <= bounds.halfwidths * (1 + 1e-15)).all()
            assert (row_lengths(inside) <= bounds.radius * (1 + 1e-12)).all()
            full = np.column_stack([np.ones(records), inside])
            found = query.moments.evaluate(answer, clip=True, missing="error")
            assert np.allclose(found, full.T @ full / records, rtol=0, atol=1e-12 * query.moments.magnitude)
        elif isinstance(query, BoxMoments):
            full = np.column_stack([np.ones(records), answer.grid.place(answer.source.steps)])
            assert (np.abs(full) <= 1).all()
            assert np.allclose(query.evaluate(answer, clip=True, missing="error"), full.T @ full / records, atol=1e-12)
        elif query.shape == (1, 2 * size + 1):
            placed = answer.grid.place(answer.source.steps)
            assert (np.abs(placed) <= 1).all()
            values = query.function(answer)[0]
            assert np.allclose(values[1 : size + 1], placed.mean(axis=0), rtol=0, atol=1e-12)
            assert np.allclose(values[size + 1 :], 1.66 * ((placed**2).mean(axis=0) - 0.5), rtol=0, atol=1e-12)
        elif isinstance(query.function, ExcessMean):
            assert 0 <= query.function(answer)[0, 0] <= query.function.limit * (1 + 1e-12)
        else:
            assert 0 <= query.function(answer)[0, 0] <= records


@pytest.mark.parametrize("shape", ["gaussian", "uniform"])
def test_few_features_are_not_clipped_by_half_where_counts_are_noisy(shape):
    rng = np.random.default_rng(2)
    data = rng.normal(size=(1000, 1)) / 4 if shape == "gaussian" else rng.uniform(-1, 1, (1000, 1))
    found = [
        private_moment(
            data, mdp.Bounds([-1], [1]), mdp.Privacy(0.5, 1e-6), stream=mdp.Stream(seed=seed), simulation=True
        ).covariance[0, 0]
        for seed in range(20)
    ]
    assert np.mean(found) == pytest.approx(data.var(), rel=0.15)
