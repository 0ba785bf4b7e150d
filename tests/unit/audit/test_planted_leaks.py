"""A replay compares all that a fit returns, releases, warns of and raises: a private value anywhere is noticed."""

import functools
import threading
import types
import warnings
from collections import deque
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.adaptive import private_scales
from matrixdp.audit import replay
from matrixdp.audit.snapshot import compare_snapshots, take_snapshot
from matrixdp.estimators import PrivateCovariance
from matrixdp.noise import Covariance
from matrixdp.release.result import principal_directions

PRIVACY = mdp.Privacy(1, 1e-6)
BOX = mdp.Bounds([-1, -1], [1, 1])
DATA = np.random.default_rng(0).normal(0, 0.2, (60, 2))
NEIGHBOUR = np.vstack([[[0.9, 0.9]], DATA[1:]])
DESIGN = mdp.make_design(mdp.SecondMoment(BOX, 60), PRIVACY)
SHARED = []


def largest(data):
    """A private number."""
    return float(np.abs(data).max())


class Plain:
    def __init__(self, value):
        self.value = value


class Forgetful(Plain):
    """Drops its value when it is pickled."""

    def __getstate__(self):
        return {}


class Slotted:
    __slots__ = ("__secret", "shown")

    def __init__(self, value):
        self.__secret, self.shown = value, 1.0


class Unpicklable(Plain):
    def __reduce__(self):
        raise TypeError


class Locked(Plain):
    def __init__(self, value):
        super().__init__(value)
        self.lock = threading.Lock()


class Array(np.ndarray):
    """An array with an attribute."""


class Shy(str):
    """Does not show its letters."""

    __slots__ = ()

    def __repr__(self):
        return "Shy()"


class Lazy:
    """Has a value that was computed once and stored."""

    def __init__(self, value):
        self.__dict__["cached"] = value

    @functools.cached_property
    def cached(self):
        return 0.0


def attribute(data):
    found = np.zeros(2).view(Array)
    found.note = largest(data)
    return found


def local_class(data):
    class Found:
        secret = largest(data)

    return Found


def wrapped_function(data):
    return functools.partial(max, largest(data))


def closure(data):
    found = largest(data)
    return lambda: found


def default(data):
    return lambda found=largest(data): found  # noqa: B008


def bound_method(data):
    return [largest(data)].append


def generator(data):
    found = largest(data)
    yield found


def order(data):
    return {"a": 1, "b": 2} if largest(data) > 0.7 else {"b": 2, "a": 1}


def global_object(data):
    SHARED[:] = [largest(data)]
    return SHARED


def presence(data):
    found = replace(BOX)
    if largest(data) > 0.7:
        object.__setattr__(found, "note", 1)
    return found


def error_with_a_cause(data):
    found = ValueError()
    found.__cause__ = ValueError(largest(data))
    return found


def cycle(data):
    found = [largest(data)]
    found.append(found)
    return found


IN_RESULTS = {
    "a number": largest,
    "a sign of zero": lambda data: -0.0 if largest(data) > 0.7 else 0.0,
    "a type": lambda data: 1 if largest(data) > 0.7 else True,
    "a length": lambda data: [0] * (1 + (largest(data) > 0.7)),
    "the order of a dictionary": order,
    "a key": lambda data: {largest(data): 1},
    "a set": lambda data: {largest(data), 2.0},
    "a deque": lambda data: deque([largest(data)]),
    "a shape": lambda data: np.zeros((2, 3) if largest(data) > 0.7 else (3, 2)),
    "an array of objects": lambda data: np.array([Plain(largest(data)), None], dtype=object),
    "an attribute of an array": attribute,
    "an attribute": lambda data: Plain(Plain(largest(data))),
    "an attribute that is not pickled": lambda data: Forgetful(largest(data)),
    "a private slot": lambda data: Slotted(largest(data)),
    "an object that cannot be pickled": lambda data: Unpicklable(largest(data)),
    "an object with a lock": lambda data: Locked(largest(data)),
    "the presence of an attribute": presence,
    "a stored property": lambda data: Lazy(largest(data)),
    "a closure": closure,
    "a default": default,
    "a method": lambda data: Plain(largest(data)).__init__,
    "a method of a list": bound_method,
    "a wrapped function": wrapped_function,
    "a local class": local_class,
    "a read-only mapping": lambda data: types.MappingProxyType({"a": largest(data)}),
    "an error": lambda data: ValueError(largest(data)),
    "a text that does not show itself": lambda data: Shy(largest(data)),
    "the rest of an array that is shown in part": lambda data: np.append(np.zeros(2), largest(data))[:2],
    "a note on the type of an array": lambda data: np.zeros(2, np.dtype("f8", metadata={"a": largest(data)})),
    "how an array is stored": lambda data: np.zeros((2, 2), order="C" if largest(data) > 0.7 else "F"),
    "the cause of an error": error_with_a_cause,
    "a class without a place": lambda data: type("Found", (), {"secret": largest(data)}),
    "a path": lambda data: Path(f"{largest(data)}"),
    "an object that both fits change": global_object,
    "a list that contains itself": cycle,
}


@pytest.mark.parametrize("kind", IN_RESULTS)
def test_a_private_value_in_a_result_is_noticed(kind):
    found = replay(lambda data: (DESIGN.release(data), IN_RESULTS[kind](data)), DATA, NEIGHBOUR, claim=PRIVACY)
    assert found.broken
    assert "the result, in" in found.difference
    public = replay(lambda data: (DESIGN.release(data), IN_RESULTS[kind](DATA)), DATA, NEIGHBOUR, claim=PRIVACY)
    assert not public.broken, str(public)  # the same object made of public data


def leaking_scales(data):
    scales = private_scales(data, BOX, PRIVACY)
    return replace(scales, **{name: getattr(scales, name) + largest(data) for name in ("mean",)})


def leaking_directions(data):
    found = principal_directions(data, BOX, PRIVACY, records=60)
    return replace(found, directions=found.directions * largest(data))


def leaking_estimator(data):
    estimator = PrivateCovariance(epsilon=1, delta=1e-6, bounds=(-1, 1)).fit(data)
    estimator._note = closure(data)
    return estimator


@pytest.mark.parametrize("fit", [leaking_scales, leaking_directions, leaking_estimator])
def test_a_private_value_beside_what_a_fit_spent_is_noticed(fit):
    found = replay(fit, DATA, NEIGHBOUR)
    assert found.broken
    assert "the result, in" in found.difference


def stretched(data, design=DESIGN):
    """A design whose noise depends on the data where neither its price nor its variances say so."""
    return 1 + (largest(data) > 0.7) * 1e-9, design


def other_strengths(data):
    by, design = stretched(data)
    return replace(design, structure=replace(design.structure, strengths=design.structure.strengths * by))


def other_directions(data):
    angle = 1e-9 * (largest(data) > 0.7)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return replace(DESIGN, colcov=Covariance(DESIGN.colcov.variances, turn))


def other_query(data):
    shift = 0.5 * (largest(data) > 0.7)
    bounds = mdp.Bounds([-1 + shift, -1 + shift], [1 + shift, 1 + shift])
    return mdp.make_design(mdp.SecondMoment(bounds, 60), PRIVACY)


def other_names(data):
    names = ("a", "b") if largest(data) > 0.7 else ("c", "d")
    return mdp.make_design(mdp.SecondMoment(mdp.Bounds([-1, -1], [1, 1], names=names), 60), PRIVACY)


def other_privacy(data):
    return mdp.make_design(mdp.SecondMoment(BOX, 60), mdp.Privacy(1, 1e-6 if largest(data) > 0.7 else 1.0000001e-6))


@pytest.mark.parametrize("plan", [other_strengths, other_directions, other_query, other_names, other_privacy])
@pytest.mark.parametrize("swallowed", [False, True])
def test_a_design_that_depends_on_the_data_is_noticed(plan, swallowed, monkeypatch):
    monkeypatch.setattr(mdp.Design, "check_once", lambda self: None)  # a leak that no other check finds

    def fit(data):
        try:
            plan(data).release(data)
        except Exception:
            if not swallowed:
                raise

    found = replay(fit, DATA, NEIGHBOUR, claim=PRIVACY)
    assert found.broken
    assert "release 1 has another design, in " in found.difference


def test_a_warning_that_depends_on_the_data_is_noticed():
    def fit(data):
        if largest(data) > 0.7:
            warnings.warn("values were clipped", stacklevel=1)
        return DESIGN.release(data)

    assert "the warnings" in replay(fit, DATA, NEIGHBOUR).difference
    with pytest.warns(UserWarning, match="clipped"):  # the caller still sees them
        assert not replay(fit, NEIGHBOUR, NEIGHBOUR).broken


def test_an_error_that_depends_on_the_data_is_noticed():
    def fit(data):
        released = DESIGN.release(data)
        if largest(data) > 0.7:
            raise ValueError(largest(data))
        return released

    found = replay(fit, DATA, NEIGHBOUR)
    assert found.difference == "the fit of the neighbour raises ValueError"  # without its private message


@pytest.mark.parametrize(
    "hidden", [generator, lambda data: threading.Lock(), lambda data: functools.lru_cache(closure(data))]
)
def test_what_cannot_be_compared_is_counted_and_named(hidden):
    DESIGN.release(DATA)  # or the first of two fits stores what the design has not computed yet
    found = replay(lambda data: (DESIGN.release(data), hidden(DATA)), DATA, NEIGHBOUR, claim=PRIVACY)
    assert found.skipped == ("[1] of the result",)
    assert "NOT compared: [1] of the result" in str(found)


def test_a_value_that_only_one_design_has_stored_is_counted():
    """It follows from the fields of the design, which are compared."""
    one, other = (mdp.make_design(mdp.SecondMoment(BOX, 60), PRIVACY) for _ in range(2))
    assert one.std is not None
    place, skipped = compare_snapshots(take_snapshot(one), take_snapshot(other))
    assert not place
    assert ".std" in skipped


def test_snapshots_do_not_change_with_the_object():
    thing = {"a": [np.zeros(2)]}
    before = take_snapshot(thing)
    thing["a"][0][0] = 1.0
    assert compare_snapshots(before, take_snapshot(thing)) == ("['a'][0]", [])
