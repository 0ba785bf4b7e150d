"""No neighbouring tables are farther apart than claimed when levels, missing values and groups change."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matrixdp as mdp
from audits.campaign import random_design
from matrixdp.audit import worst_record_pair
from matrixdp.mechanisms.mechanism import prepare
from matrixdp.noise.table_noise import OBSERVED, VALUE
from nightly import examples

PRIVACY = mdp.Privacy(1.0, 1e-6)
SEEDS = st.integers(0, 2**32 - 1)
NEIGHBOURS = st.sampled_from(["replace", "add-remove"])
NAMES = st.sampled_from(["TableMoments", "TableMoments, groups", "TableMoments, shapes", "TableMoments, bins"])


def integers(design, data):
    return prepare(design, data, clip=True, missing="error").astype(object)


def apart(design, first, second):
    """Distance of integers before noise, in standard deviations."""
    return math.sqrt(sum(int(k) ** 2 for k in (first - second).ravel())) * 2.0**-design.grid.bits


def values(column):
    """The extreme values of a column, and its middle."""
    gone = [None] if column.missing else []
    if isinstance(column, mdp.Number):
        return [column.lower, column.lower + (column.upper - column.lower) / 2, column.upper, *gone]
    return [*(column.levels if isinstance(column, mdp.Category) else (False, True)), *gone]


def table(half, *, missing, levels=2):
    return mdp.Columns(
        [
            mdp.Number("x", -half, half, missing=missing),
            mdp.Number("y", 0.0, 1.0),
            mdp.Category("c", [f"l{i}" for i in range(levels)], missing=missing),
            mdp.YesNo("g"),
        ]
    )


@pytest.mark.parametrize("by", [(), ("g",), ("g", "c")])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize(
    ("half", "share", "importance", "shapes", "bins"),
    [
        (1.0, None, {}, 0.0, 0),
        (1e60, 0.5, {"y": 1e6}, 0.5, 0),
        (2e-60, 0.01, {"x": 1e-6}, 0.0, 0),
        (1.0, 0.5, {"x": 1e-6, "y": 1e-6}, 0.1, 0),
        (1.0, None, {}, 0.0, 8),
        (1e60, 0.01, {"x": 1e6}, 0.1, 2),
        (2e-60, 0.5, {"y": 1e-6}, 0.0, 3),
    ],
)
def test_all_combinations_of_extreme_values(by, neighbours, half, share, importance, shapes, bins):
    """In integers before noise: a level changes, a value becomes missing, a record changes its group, all at once."""
    columns = table(half, missing=not by)
    options = {"mean_share": share, "importance": importance, "shapes": shapes, "bins": bins}
    design = mdp.make_design(mdp.TableMoments(columns, 2, by, neighbours=neighbours, **options), PRIVACY)
    other = (half / 3, 0.9, "l1", True)
    records = list(itertools.product(*map(values, columns)))
    answers = [integers(design, [other, record]) for record in records]
    if neighbours == "add-remove":
        alone = integers(design, [other])
        worst = max(apart(design, answer, alone) for answer in answers)
        assert worst == pytest.approx(design.distance, rel=1e-5)
    else:
        worst = max(apart(design, a, b) for a, b in itertools.combinations(answers, 2))
        assert worst > (0.999 if by else 0.9) * design.distance
    assert worst <= design.distance <= design.mu


@examples(40)
@given(SEEDS, NAMES)
def test_random_tables_keep_their_distance(seed, name):
    """Bounds of any scale, importances from 1e-6 to 1e6, any kinds of columns."""
    rng = np.random.default_rng(seed)
    design, domain = random_design(name, rng)
    family = domain(rng)
    answers = [integers(design, family.build(record)) for record in family.records[:24]]
    if family.clique:
        worst = max(apart(design, a, b) for a, b in itertools.combinations(answers, 2))
    else:
        alone = integers(design, family.build(None))
        worst = max(apart(design, answer, alone) for answer in answers)
    assert worst <= design.distance


@examples(30)
@given(SEEDS, NEIGHBOURS, st.booleans(), st.integers(1, 4), st.floats(0.01, 0.5))
def test_gradient_ascent_on_numbers_finds_no_worse_pair(seed, neighbours, grouped, m, share):
    """Over the values, for any indicators and levels, which may be 1 where the layout allows no such record."""
    rng = np.random.default_rng(seed)
    numbers = [mdp.Number(f"x{i}", -(h := 10.0 ** rng.integers(-9, 9)), h, missing=i % 2 == 0) for i in range(m)]
    columns = mdp.Columns([*numbers, mdp.Category("c", ["a", "b", "c"]), mdp.Category("g", ["p", "q"])])
    importance = {f"x{i}": 10 ** rng.uniform(-3, 3) for i in range(m)}
    query = mdp.TableMoments(
        columns, 1, ("g",) if grouped else (), neighbours=neighbours, mean_share=share, importance=importance
    )
    design = mdp.make_design(query, PRIVACY)
    layout, structure, p = query.layout, design.structure, query.layout.size
    own, place = layout.of_kind(VALUE), layout.of_kind(OBSERVED)
    halfwidths = np.array([one.upper for one in numbers])
    fixed = [], []
    for chosen in fixed:
        z = np.zeros(p)
        z[0] = 1.0
        z[query.places["c"].value + rng.integers(0, 3)] = 1.0
        if not grouped:
            z[query.places["g"].value + rng.integers(0, 2)] = 1.0
        z[place] = rng.random(place.size) < 0.7
        chosen.append(z)
    moves = grouped and rng.random() < 0.7

    def squared_distance(x, y):
        change = np.zeros((query.groups, p, p))
        for sign, group, record, (base,) in zip((1, -1), (0, int(moves)), (x, y), fixed, strict=True):
            if sign > 0 or neighbours == "replace":
                z = base.copy()
                z[own] = record
                for i, column in enumerate(numbers):
                    if column.missing:
                        z[own[i]] *= z[own[i] - 1]
                change[group] += sign * np.outer(z, z)
        return float(np.square(structure.whiten(design.noise, change.reshape(-1, p))).sum())

    claim = query.sensitivity.structured_distance(design.colcov, structure)
    found = math.sqrt(
        worst_record_pair(np.vectorize(squared_distance, signature="(m),(m)->()"), halfwidths, None, rng, starts=3)
    )
    assert found <= claim.value * (1 + 1e-9)
    assert claim.attained <= claim.value * (1 + 1e-9)


@examples(60)
@given(SEEDS, NEIGHBOURS, st.booleans(), st.integers(1, 5), st.sampled_from([0.0, 0.3]))
def test_the_bound_holds_for_any_scales_and_squares(seed, neighbours, grouped, m, shapes):
    """A stored design may have any: the distance is bounded for what is stored."""
    rng = np.random.default_rng(seed)
    columns = mdp.Columns([*(mdp.Number(f"x{i}", -1, 1, missing=i == 0) for i in range(m)), mdp.YesNo("g")])
    query = mdp.TableMoments(columns, 1, ("g",) if grouped else (), neighbours=neighbours, shapes=shapes)
    change, design = query.sensitivity, mdp.make_design(query, PRIVACY)
    noise = design.structure
    noise = replace(
        noise,
        scales=noise.scales * 10 ** rng.uniform(-2, 2, noise.scales.size),
        strengths=noise.strengths * 10 ** rng.uniform(-1, 1, noise.strengths.size),
        shift=noise.shift * float(rng.uniform(0, 4)),
        bin_precision=noise.bin_precision * float(10 ** rng.uniform(-2, 2)),
    )
    claim = change.structured_distance(design.colcov, noise).value
    p = query.layout.size

    def whitened(record, group):
        answer = query.evaluate([record], clip=True, missing="error")
        assert group is None or answer[group * p : (group + 1) * p].any()
        return noise.whiten(design.noise, answer)

    rows = [
        (*(None if i == 0 and rng.random() < 0.3 else float(rng.choice([-1, 0, 1, 0.5])) for i in range(m)), g)
        for g in (False, True)
        for _ in range(12)
    ]
    answers = [whitened(row, int(row[-1]) if grouped else None) for row in rows]
    if neighbours == "add-remove":
        worst = max(float(np.linalg.norm(a)) for a in answers)
    else:
        worst = max(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(answers, 2))
    assert worst <= claim * (1 + 1e-9)


@pytest.mark.parametrize("by", [(), ("g",)])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("person", [None, mdp.Person("id", rows=2)], ids=["records", "people"])
def test_an_altered_design_is_refused(by, neighbours, person):
    query = mdp.TableMoments(table(1.0, missing=True), 5, by, neighbours=neighbours, person=person, shapes=0.2)
    design = mdp.make_design(query, PRIVACY)
    noise = design.structure
    for altered in (
        replace(noise, strengths=noise.strengths * 4 / 3),
        replace(noise, shift=noise.shift / 2),
        replace(noise, scales=noise.scales * 1.1),
        replace(noise, groups=noise.groups + 1),
        replace(noise, counted=not noise.counted),
        replace(noise, bin_precision=noise.bin_precision * 1.1),
        replace(noise, bins=noise.bins - 1),
    ):
        with pytest.raises(mdp.ParameterError):
            replace(design, structure=altered).check()
