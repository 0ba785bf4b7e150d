"""One person with all their rows: neighbours' integers are never further apart than the design says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.domain.person import Person
from matrixdp.queries.sums import UNIT, weight_left
from nightly import examples
from property.test_rounding import apart

PRIVACY = mdp.Privacy(1, 1e-6)
BOUNDS = mdp.Bounds([-1, 0, 5], [1, 4, 6], names=["x", "y", "z"])
COLUMNS = mdp.Columns(
    [
        mdp.Number("x", -1, 1, missing=True),
        mdp.Number("y", 0, 4),
        mdp.Category("c", ["a", "b", "c"]),
        mdp.YesNo("s"),
        mdp.Category("g", ["u", "v"]),
    ]
)
PEOPLE = 4
SEEDS = st.integers(0, 2**32 - 1)


def person_rows(rng, rows):
    """Rows of one person: mostly in corners, in several groups; sometimes all the same."""
    distinct = 1 if rng.random() < 0.3 else rows
    table = {
        "x": rng.choice([-1.0, 1.0, 0.0, np.nan], distinct, p=[0.4, 0.4, 0.1, 0.1]),
        "y": rng.choice([0.0, 4.0, 2.0, 9.0], distinct),
        "z": rng.choice([5.0, 6.0], distinct),
        "c": rng.choice(["a", "b", "c"], distinct),
        "s": rng.choice([True, False], distinct),
        "g": rng.choice(["u", "v"], distinct),
    }
    return {name: np.resize(values, rows) for name, values in table.items()}


def joined(people):
    """A table with the rows of all people, shuffled."""
    ids = np.repeat(list(people), [len(rows["x"]) for rows in people.values()])
    order = np.random.default_rng(1).permutation(len(ids))
    parts = list(people.values())
    return {"id": ids[order], **{name: np.concatenate([p[name] for p in parts])[order] for name in parts[0]}}


def frame(people, names):
    import pandas as pd

    table = pd.DataFrame(joined(people))
    return table[[*names, "id"]].fillna(0.0)


def designs(person, neighbours):
    """Queries of every kind, each with the function that makes its data."""
    records = PEOPLE if isinstance(person, str) else 12
    options = {"person": person, "neighbours": neighbours}
    unit = np.linalg.qr(np.random.default_rng(3).standard_normal((3, 3)))[0]
    yield mdp.make_design(mdp.Moments(BOUNDS, records, **options), PRIVACY), lambda p: frame(p, "xyz")
    yield (
        mdp.make_design(mdp.SecondMoment(BOUNDS, records, **options), PRIVACY, directions=unit),
        lambda p: frame(p, "xyz"),
    )
    corner = mdp.SecondMoment(BOUNDS, records, centre=BOUNDS.lower, **options)
    yield mdp.make_design(corner, PRIVACY), lambda p: frame(p, "xyz")
    yield mdp.make_design(mdp.TableMoments(COLUMNS, records, **options), PRIVACY), joined
    yield mdp.make_design(mdp.TableMoments(COLUMNS, records, ["g"], **options), PRIVACY), joined
    yield mdp.make_design(mdp.TableMoments(COLUMNS, records, ["g"], shapes=0.5, **options), PRIVACY), joined
    yield mdp.make_design(mdp.TableMoments(COLUMNS, records, ["g"], bins=3, **options), PRIVACY), joined
    table = mdp.ContingencyTable(["a", "b", "c"], ["u", "v"], 2 * records, **options)
    if table.public_number:
        table = mdp.ContingencyTable(["a", "b", "c"], ["u", "v"], records, **options)
    yield mdp.make_design(table, PRIVACY), lambda p: frame(p, "cg")


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("person", ["id", Person("id", rows=3)], ids=["once", "rows"])
@examples(8)
@given(SEEDS)
def test_one_person_moves_the_integers_no_further_than_the_design_says(person, neighbours, seed):
    rng = np.random.default_rng(seed)
    people = {i: person_rows(rng, int(rng.choice([1, 2, 7]))) for i in range(PEOPLE - 1)}
    first = people | {"last": person_rows(rng, 1)}
    second = people | {"other": person_rows(rng, int(rng.choice([1, 3, 1000])))}
    if neighbours == "add-remove":
        second = people
    for design, data in designs(person, neighbours):
        assert apart(design, data(first), data(second)) <= design.distance


def one_feature(neighbours="add-remove", **options):
    bounds = mdp.Bounds([-1], [1], names=["x"])
    return mdp.make_design(mdp.SecondMoment(bounds, 2, neighbours=neighbours, person="id", **options), PRIVACY)


def all_ones(rows):
    import pandas as pd

    return pd.DataFrame({"x": [0.0, *[1.0] * rows], "id": ["a", *["b"] * rows]})


@pytest.mark.parametrize("rows", [1, 3, 1000])
def test_a_person_with_any_number_of_rows_attains_the_distance(rows):
    design = one_feature()
    distance = apart(design, all_ones(rows), all_ones(0))
    assert design.distance * (1 - 1e-8) < distance <= design.distance


def test_weights_of_more_than_one_are_found(monkeypatch):
    """Rounded up, the weights of 10^5 rows sum to 1 + 1e-7."""
    honest = Person.weights
    monkeypatch.setattr(Person, "weights", lambda self, counts, unit: honest(self, counts, unit) + (counts > 1))
    design = one_feature()
    assert apart(design, all_ones(100_000), all_ones(0)) > design.distance


def test_a_person_who_counts_once_in_every_file_is_found():
    design = one_feature()
    query = design.query
    files = [all_ones(1), all_ones(2), all_ones(3)]

    class CountedByFile(mdp.SecondMoment):
        def evaluate(self, data, *, clip, missing):
            return sum(super(CountedByFile, self).evaluate(part, clip=clip, missing=missing) for part in data)

    broken = CountedByFile(query.bounds, 2, neighbours="add-remove", person="id")
    object.__setattr__(design, "query", broken)
    assert apart(design, files, [all_ones(0)] * 3) > 2 * design.distance


def test_rows_that_count_need_the_noise_of_all_of_them():
    design = one_feature()
    object.__setattr__(design.query, "person", Person("id", rows=3))  # and not the sensitivity, which is kept
    assert apart(design, all_ones(3), all_ones(0)) > 2 * design.distance


def test_a_number_of_people_that_is_not_public_needs_noise_of_its_own():
    """With rows that count, another number of rows moves the entry (0, 0)."""
    bounds = mdp.Bounds([-1], [1], names=["x"])
    query = mdp.Moments(bounds, 5, person=Person("id", rows=3))
    assert query.public is None
    first, second = (query.evaluate(all_ones(rows), clip=True, missing="error") for rows in (1, 3))
    assert second[0, 0] - first[0, 0] == pytest.approx(2 / 5)


def test_what_rounding_takes_from_weights_is_given_to_a_public_record():
    """Without it, the constant of a person with many rows is smaller than that of others."""
    left = weight_left(np.array([1, 3]), np.array([5, 2]), Person("id"))
    assert left == 2 * (UNIT % 3)
    bounds = mdp.Bounds([-1], [1], names=["x"])
    answer = mdp.Moments(bounds, 2, person="id").evaluate(all_ones(3), clip=True, missing="error")
    assert answer[0, 0] == 1.0
