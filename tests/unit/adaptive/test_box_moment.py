"""Moments of the whole box beside learned coordinates: exact, private, and as good as a plain release in the limit."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.adaptive import private_moment, queries
from matrixdp.adaptive.queries import BoxMoments
from matrixdp.adaptive.records import grid_records
from matrixdp.audit import replay

RNG = np.random.default_rng(5)


def unit(d):
    return mdp.Bounds(-np.ones(d), np.ones(d))


def skewed(n, d):
    """Records at one end of their box, with a long tail to the other."""
    logs = np.exp(np.random.default_rng(d).standard_normal((n, d)))
    return 2 * logs / logs.max(axis=0) - 1


def test_the_moment_is_that_of_all_records():
    data = RNG.uniform(-1, 1, (50, 3))
    data[0] = 1.0
    query = BoxMoments(unit(3), 50)
    records = grid_records(unit(3), data, 1 << 19)
    on_grid = np.column_stack([np.ones(50), records.grid.place(records.source.steps)])
    assert np.allclose(query.evaluate(records, clip=True, missing="error"), on_grid.T @ on_grid / 50, rtol=1e-14)


def neighbours(d):
    """Data in which one record is a corner, and half of it replaced by the opposite corner."""
    data = skewed(80, d)
    data[0] = 1.0
    other = data.copy()
    other[0, : (d + 1) // 2] = -1.0
    centre = data.copy()
    centre[0] = 0.0
    return data, [other, centre]


@pytest.mark.parametrize(("d", "epsilon"), [(1, 1.0), (2, 300.0), (6, 3000.0)])
@pytest.mark.parametrize("kind", ["replace", "add-remove"])
def test_fits_with_box_moments_are_within_their_claim(d, epsilon, kind):
    data, others = neighbours(d)
    if kind == "add-remove":
        others = [data[1:]]

    def fit(records):
        return private_moment(records, unit(d), mdp.Privacy(epsilon, 1e-6), neighbours=kind, records=_public(kind))

    for other in others:
        found = replay(fit, data, other)
        assert not found.broken, str(found)
        assert any(step.query == "BoxMoments" for step in found.steps)


def test_a_box_moment_with_too_little_noise_is_noticed(monkeypatch):
    class Broken(BoxMoments):
        def evaluate(self, data, *, clip, missing):
            answer = super().evaluate(data, clip=clip, missing=missing)
            answer[1:, 1:] *= 1.2
            return answer

    monkeypatch.setattr(queries, "BoxMoments", Broken)
    data = np.zeros((80, 1))
    other = data.copy()
    other[0] = 1.0
    assert replay(lambda x: private_moment(x, unit(1), mdp.Privacy(1, 1e-6), aim="second moment"), data, other).broken


def _public(kind):
    return 80 if kind == "add-remove" else None


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_the_error_vanishes_like_that_of_a_plain_release(d):
    data = skewed(600, d)
    truth = data.T @ data / len(data)
    about = np.atleast_2d(np.cov(data.T, bias=True))
    for epsilon in (30.0, 300.0, 3000.0):
        privacy = mdp.Privacy(epsilon, 1e-6)
        design = mdp.make_design(mdp.Moments(unit(d), len(data)), privacy)
        ours, plain = [], []
        for seed in range(6):
            options = {"stream": mdp.Stream(seed=seed), "simulation": True}
            found = private_moment(data, unit(d), privacy, **options)
            ours.append([np.linalg.norm(found.second_moment - truth), np.linalg.norm(found.covariance - about)])
            release = design.release(data, **options)
            plain.append(
                [
                    np.linalg.norm(release.matrix[1:, 1:] - truth),
                    np.linalg.norm(release.covariance().value - about),
                ]
            )
        factor = 3 if epsilon < 100 else 2
        assert np.all(np.mean(ours, axis=0) < factor * np.mean(plain, axis=0)), epsilon
