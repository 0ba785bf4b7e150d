"""At any scale: either a `ParameterError`, or integers of neighbours that are no further apart than the design says."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import matrixdp as mdp
import matrixdp.noise.matrix as covariance_module
import matrixdp.queries.graphs as graph_queries
import matrixdp.sensitivity.graph_change as graph_changes
from matrixdp.checks import check_number
from matrixdp.design import builder
from matrixdp.mechanisms.mechanism import convert_rows, prepare
from matrixdp.privacy import LargeDeltaWarning
from matrixdp.sensitivity import Distance, EdgeChange
from matrixdp.sensitivity.distance import column_norms
from nightly import examples

SEEDS = st.integers(0, 2**32 - 1)
SLACK = 1 + 1e-12


def integers(design, data):
    """What a release adds noise to."""
    with np.errstate(all="ignore"):  # as a release does
        prepared = prepare(design, data, clip=True, missing="error")
        if not design.entrywise:
            return [int(k) for k in prepared.ravel()]
        steps = np.empty(prepared.shape)
        convert_rows(design)[0](prepared, steps)
        return [int(k) for k in steps.ravel()]


def apart(design, first, second):
    """Distance of two data sets' integers, in standard deviations."""
    pairs = zip(integers(design, first), integers(design, second), strict=True)
    return math.sqrt(sum((a - b) ** 2 for a, b in pairs)) * 2.0**-design.grid.bits


class Scales:
    """Random numbers of a scale: `base` itself, or anything from 1e-300 to 1e300."""

    def __init__(self, rng, exponent):
        self.rng, self.base = rng, 10.0**exponent

    def one(self, wild=0.1):
        if self.rng.random() < wild:
            return 10.0 ** self.rng.uniform(-300, 300)
        return self.base * 10.0 ** self.rng.uniform(-2, 2)

    def moderate(self, low, high, wild=0.1):
        return 10.0 ** self.rng.uniform(*((-300, 300) if self.rng.random() < wild else (low, high)))

    def many(self, count):
        return np.array([self.one(wild=0.05) for _ in range(count)])


def random_bounds(scales, m):
    rng, widths = scales.rng, scales.many(m)
    lower = rng.choice([-widths, np.zeros(m), widths * rng.uniform(-3, 3, m)])
    radius = float(np.linalg.norm(widths) * rng.uniform(0.1, 1)) if rng.random() < 0.3 else None
    return mdp.Bounds(lower, lower + 2 * widths, radius=radius)


def records_of(bounds, rng, count):
    corners = np.where(rng.random((count, bounds.size)) < 0.5, bounds.lower, bounds.upper)
    inside = bounds.lower + rng.random((count, bounds.size)) * (bounds.upper - bounds.lower)
    return np.where(rng.random((count, 1)) < 0.5, corners, inside)


def replaced(bounds, rng, records):
    """Two data sets that differ in one record."""
    first = records_of(bounds, rng, records)
    second = first.copy()
    second[rng.integers(records)] = records_of(bounds, rng, 1)[0]
    return first, second


def bounded_case(scales):
    rng = scales.rng
    bounds, records = random_bounds(scales, int(rng.integers(1, 5))), int(rng.integers(1, 5))
    kind = rng.choice([mdp.Identity, mdp.SecondMoment, mdp.Moments])
    if kind is mdp.Identity or rng.random() < 0.5:
        options = {}
        if kind is mdp.SecondMoment and rng.random() < 0.3:
            options["centre"] = rng.choice([bounds.lower, scales.many(bounds.size), np.zeros(bounds.size)])
        if kind is mdp.Moments:
            options["mean_share"] = min(0.5, scales.moderate(-3, 0))
        return kind(bounds, records, **options), lambda: replaced(bounds, rng, records)
    query = kind(bounds, records, neighbours="add-remove")

    def pair():
        data = records_of(bounds, rng, records + 1)
        return data, data[1:]

    return query, pair


def gram_case(scales):
    rng = scales.rng
    bounds, records = random_bounds(scales, int(rng.integers(1, 3))), int(rng.integers(2, 5))
    options = {"kernel": rng.choice(["gaussian", "laplacian"]), "bandwidth": scales.moderate(-2, 2)}
    if rng.random() < 0.7:
        far = 10.0 ** rng.uniform(-1, 2)
        places = rng.uniform(-far, far, (int(rng.integers(1, 7)), bounds.size))
        if rng.random() < 0.3:  # two points that are the same, or nearly
            places[-1] = places[0] + 10.0 ** rng.uniform(-18, -2)
        options["points"] = bounds.midpoint + places * bounds.halfwidths
    return mdp.GramMatrix(bounds, records, **options), lambda: replaced(bounds, rng, records)


def graph_case(scales):
    rng, n = scales.rng, int(scales.rng.integers(2, 6))
    query = rng.choice([mdp.Adjacency, mdp.Laplacian])(n, scales.one())

    def pair():
        first = np.triu(rng.choice([0.0, query.weight], (n, n)), 1)
        first += first.T
        second = first.copy()
        i, j = rng.choice(n, 2, replace=False)
        first[i, j] = first[j, i] = 0.0
        second[i, j] = second[j, i] = query.weight
        return first, second

    return query, pair


def table_case(scales):
    rng = scales.rng
    rows, columns = range(int(rng.integers(1, 4))), range(int(rng.integers(1, 4)))
    add = rng.random() < 0.5
    query = mdp.ContingencyTable(rows, columns, 9, neighbours="add-remove" if add else "replace")

    def pair():
        data = [(int(rng.choice(rows)), int(rng.choice(columns))) for _ in range(9)]
        other = data[1:] if add else [(int(rng.choice(rows)), int(rng.choice(columns))), *data[1:]]
        return data, other

    return query, pair


def ball_case(scales):
    rng, shape = scales.rng, tuple(map(int, scales.rng.integers(1, 4, 2)))
    radius = scales.one()
    query = mdp.Query(
        shape, mdp.sensitivity.FrobeniusBall(radius), bound=2 * radius, side=rng.choice(["rows", "columns"])
    )

    def pair():
        u, v = rng.standard_normal(shape[0]), rng.standard_normal(shape[1])
        change = np.outer(u / np.linalg.norm(u), v / np.linalg.norm(v)) * radius * (1 - 1e-14)
        return np.zeros(shape), change

    return query, pair


def vertex_case(scales):
    rng, shape = scales.rng, tuple(map(int, scales.rng.integers(1, 4, 2)))
    changes = rng.standard_normal((3, *shape)) * np.array([scales.one(wild=0.02) for _ in range(3)])[:, None, None]
    query = mdp.Query(shape, mdp.sensitivity.Vertices(changes), bound=2 * float(np.abs(changes).max()))
    return query, lambda: (np.zeros(shape), changes[rng.integers(3)] * rng.choice([-1, 1]))


CASES = [bounded_case, gram_case, graph_case, table_case, ball_case, vertex_case]


def random_allocation(scales, query):
    rng, m = scales.rng, query.features
    match rng.integers(6):
        case 0:
            return mdp.allocations.isotropic()
        case 1:
            return mdp.allocations.optimal()
        case 2:
            vertices = isinstance(query.sensitivity, mdp.sensitivity.Vertices)
            weights = [scales.moderate(-2, 2) for _ in range(query.shape[0] * query.shape[1] if vertices else m)]
            return mdp.allocations.optimal(np.reshape(weights, query.shape) if vertices else weights)
        case 3:
            theta = np.array([scales.moderate(-6, 0) for _ in range(m)])
            return mdp.allocations.shares(theta / theta.sum())
        case 4:
            return mdp.allocations.binary(1, min(scales.moderate(-6, 0), 0.9))
    return mdp.allocations.uniform()


def random_design(seed, exponent, case):
    """A design at a random scale, and a function that returns two neighbours."""
    rng = np.random.default_rng(seed)
    scales = Scales(rng, exponent)
    query, pair = case(scales)
    m = query.features
    options = {"allocation": random_allocation(scales, query)}
    if isinstance(query, mdp.GramMatrix) and rng.random() < 0.5:
        options["allocation"] = rng.choice([None, "kernel"])
    elif rng.random() < 0.4:
        options["directions"] = np.linalg.qr(rng.standard_normal((m, m)))[0]
    if rng.random() < 0.3:
        options["calibration"] = rng.choice(["theorem2", "theorem2-corrected", "theorem2-psd"])
    if rng.random() < 0.2:
        options["share"] = min(1.0, scales.moderate(-3, 0))
    privacy = mdp.Privacy(min(scales.moderate(-8, 2, wild=0.05), 1e11), min(scales.moderate(-12, -2, wild=0.05), 0.5))
    return mdp.make_design(query, privacy, **options), pair


EXPONENTS = st.integers(-300, 300) | st.integers(-60, 60) | st.just(0)


@pytest.mark.parametrize("case", CASES)
@settings(examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SEEDS, EXPONENTS)
def test_neighbours_at_all_scales(case, capfd, seed, exponent):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", LargeDeltaWarning)  # which depends on public numbers alone
        try:
            with np.errstate(all="ignore"):  # of the random numbers
                design, pair = random_design(seed, exponent, case)
        except mdp.ParameterError:
            return
        design.check()
        for _ in range(4):
            first, second = pair()
            assert apart(design, first, second) <= design.distance * SLACK
        assert 0 < design.distance <= design.mu
        assert str(design)
        released = design.release(first)  # nothing fails after a charge
        assert np.array_equal(mdp.Release.from_json(released.to_json()).matrix, released.matrix)
        assert all(np.isfinite(value) for value in (design.rmse, design.epsilon))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("case", CASES)
def test_most_designs_at_ordinary_scales_are_not_refused(case):
    made = 0
    for seed in range(40):
        try:
            with np.errstate(all="ignore"):  # of the random numbers
                random_design(seed, 0, case)
        except mdp.ParameterError:
            continue
        made += 1
    assert made >= 10


def test_a_distance_that_squares_before_it_normalises_is_found(monkeypatch):
    """Without limits, precisions of 1e-166 lose all digits when they are multiplied, and the claim is too small."""

    def distance(self, rowcov, colcov):
        first, second = -np.sort(-column_norms(rowcov.whitening, rowcov.size))[:2]
        value = max(math.sqrt(2 * first * second), 1e-300)  # a distance of 0 is refused
        return Distance(value, value).times(self.weight)

    monkeypatch.setattr(EdgeChange, "distance", distance)
    for module in (graph_queries, graph_changes):
        monkeypatch.setattr(module, "check_magnitude", check_number)
    monkeypatch.setattr(covariance_module, "LARGEST_VARIANCE", 1e300)
    monkeypatch.setattr(builder, "_LARGEST_SCALE", 1e300)
    design = mdp.make_design(mdp.Adjacency(3, 1e165), mdp.Privacy(1, 1e-6))
    first, second = np.zeros((3, 3)), np.zeros((3, 3))
    second[0, 1] = second[1, 0] = 1e165
    assert apart(design, first, second) > 1e6 * design.distance


@pytest.mark.parametrize(
    "make",
    [
        lambda: mdp.Adjacency(3, 1e165),
        lambda: mdp.Laplacian(3, 1e-61),
        lambda: mdp.sensitivity.Vertices([[[1e-170]]]),
        lambda: mdp.sensitivity.FrobeniusBall(1e61),
        lambda: mdp.GramMatrix(mdp.Bounds([-1], [1]), 3, bandwidth=1e300),
        lambda: mdp.GramMatrix(mdp.Bounds([-1], [1]), 3, points=[[1e61]]),
        lambda: mdp.Query((1, 1), mdp.sensitivity.FrobeniusBall(1.0), bound=1e-61),
        lambda: mdp.Query((1, 1), mdp.sensitivity.FrobeniusBall(1.0), bound=1.0, gamma_bound=1e300),
        lambda: mdp.SecondMoment(mdp.Bounds([-1], [1]), 3, centre=[1e61]),
        lambda: mdp.noise.Covariance.diagonal([1.0, 1e-151]),
        lambda: mdp.Bounds([0], [1e61]),
        lambda: mdp.allocations.optimal([1e-200, 1.0]),
    ],
)
def test_magnitudes_are_limited_with_a_remedy(make):
    with pytest.raises(mdp.ParameterError, match=r"must be .*change the units"):
        make()


def test_a_kernel_far_away_in_bandwidths():
    """The kernel's range at the point is subnormal, and its square would lose its digits."""
    query = mdp.GramMatrix(mdp.Bounds([-1], [1]), 2, points=[[2.0]], bandwidth=0.036694)
    design = mdp.make_design(query, mdp.Privacy(1e-8, 1e-12))
    rng = np.random.default_rng(0)
    for _ in range(200):
        first = rng.choice([-1.0, 1.0, 0.99], (2, 1))
        second = first.copy()
        second[0] = rng.uniform(-1, 1)
        assert apart(design, first, second) <= design.distance * SLACK


def test_a_kernel_matrix_with_one_precise_record():
    """Beside one large precision all others count, too."""
    from matrixdp.sensitivity import KernelChange

    covariance = mdp.noise.Covariance.diagonal([1e-20, 1.0, 1.0])
    claim = KernelChange(3, 1.0).distance(covariance, covariance).value
    assert claim >= math.sqrt(2 * 1e20 * 2)


def test_a_theorem2_design_with_all_records_at_zero_steps_is_printed():
    query = mdp.Identity(mdp.Bounds([0], [1]), 100_000)
    design = mdp.make_design(query, mdp.Privacy(1e-5, 1e-9), calibration="theorem2")
    assert 0 < design.distance <= design.mu
    assert "Data set" in str(design)


def test_extreme_parameters_raise_parameter_errors(capfd):
    bounds = mdp.Bounds([-1, -1], [1, 1])
    query = mdp.SecondMoment(bounds, 10)
    for options in (
        {"allocation": mdp.allocations.binary(1, 1e-59), "calibration": "theorem2", "share": 1e-30},
        {"share": 1e-300},
        {"share": 1e-300, "calibration": "theorem2"},
        {"directions": [[1e200, 0], [0, 1e200]]},
    ):
        with pytest.raises(mdp.ParameterError):
            mdp.make_design(query, mdp.Privacy(1, 1e-6), **options)
    for privacy in (mdp.Privacy(1e-300, 1e-300), mdp.Privacy(1e-30, 1e-30)):
        for calibration in ("exact", "theorem2"):
            with pytest.raises(mdp.ParameterError):
                mdp.make_design(query, privacy, calibration=calibration)
    assert capfd.readouterr() == ("", "")
