"""Classes of one's own are designed, charged, stored and reported like the built-in ones."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp import serialise
from matrixdp.mechanisms.mechanism import prepare
from matrixdp.noise.matrix import Covariance
from matrixdp.report.content import make_content
from matrixdp.report.release_folder import write_folder

PRIVACY = mdp.Privacy(epsilon=1, delta=1e-6)


@mdp.serialise.register
@dataclass(frozen=True)
class FrobeniusBall(mdp.sensitivity.Sensitivity):
    """Bears the name of the built-in set, with a tenth of its distance."""

    radius: float

    @property
    def frobenius(self):
        return self.radius / 10

    def distance(self, rowcov, colcov):
        value = self.radius / 10 / np.sqrt(rowcov.variances.min() * colcov.variances.min())
        return mdp.sensitivity.Distance(value * (1 + 1e-12), value)


@mdp.serialise.register
@dataclass(frozen=True)
class ColumnSums(mdp.queries.MatrixQuery):
    columns: int
    neighbours = mdp.Neighbours.REPLACE
    side = "columns"
    title = "column sums"

    @property
    def shape(self):
        return 1, self.columns

    @property
    def sensitivity(self):
        return mdp.sensitivity.FrobeniusBall(2 * np.sqrt(self.columns))

    @property
    def magnitude(self):
        return np.full((1, 1), 100.0)

    def evaluate(self, data, *, clip, missing):
        return np.clip(data, -1, 1).sum(axis=0, keepdims=True)


@mdp.serialise.register
@dataclass(frozen=True)
class Rising(mdp.allocations.Allocation):
    rule = "rising"

    def variances(self, query, directions):
        return 1.0 + np.arange(query.features)


@dataclass(frozen=True)
class Unregistered(ColumnSums):
    pass


@pytest.fixture
def ledger(tmp_path):
    with mdp.Ledger.create(tmp_path / "ledger.db") as found:
        found.register("data", PRIVACY, neighbours="replace")
        yield found


def test_a_query_and_an_allocation_are_charged_stored_and_reported(ledger, tmp_path):
    design = mdp.make_design(ColumnSums(3), PRIVACY, allocation=Rising())
    data = np.ones((5, 3))
    release = design.release(data, ledger=ledger, dataset="data", request="sums")
    again = design.release(data, ledger=ledger, dataset="data", request="sums")
    assert np.array_equal(release.matrix, again.matrix)
    assert isinstance(again.design.query, ColumnSums)
    assert isinstance(again.design.allocation, Rising)
    (charge,) = ledger.history("data")
    assert charge.released
    assert (charge.description["query"], charge.description["allocation"]) == ("ColumnSums", "rising")
    write_folder(make_content(again), tmp_path)
    assert "column sums" in (tmp_path / "report.html").read_text()


def test_a_class_with_the_name_of_a_built_in_one_stays_itself():
    own = mdp.make_design(mdp.Query((1, 2), FrobeniusBall(1.0), bound=9.0), PRIVACY)
    read = mdp.Release.from_json(own.release([[1.0, 2.0]]).to_json()).design.query.sensitivity
    assert type(read) is FrobeniusBall
    assert type(read) is not mdp.sensitivity.FrobeniusBall


def test_a_text_that_names_the_built_in_class_instead_is_refused():
    own = mdp.make_design(mdp.Query((1, 2), FrobeniusBall(1.0), bound=9.0), PRIVACY)
    content = json.loads(own.release([[1.0, 2.0]]).to_json())
    sensitivity = content["design"]["query"]["sensitivity"]
    assert sensitivity["kind"] == f"{__name__}.FrobeniusBall"
    sensitivity["kind"] = "FrobeniusBall"
    with pytest.raises(mdp.ParameterError, match="altered"):
        mdp.Release.from_json(json.dumps(content))


def test_a_class_that_is_not_registered_is_refused_before_the_charge(ledger):
    design = mdp.make_design(Unregistered(3), PRIVACY)
    with pytest.raises(mdp.ParameterError, match=r"Unregistered cannot be written.*@matrixdp\.serialise\.register"):
        design.release(np.ones((5, 3)), ledger=ledger, dataset="data", request="sums")
    assert ledger.history("data") == []


def test_a_text_with_a_class_that_is_not_registered_names_it():
    with pytest.raises(mdp.ParameterError, match=r"'somewhere\.Else' is not registered"):
        serialise.from_json_content({"kind": "somewhere.Else", "size": 3})


@pytest.mark.parametrize(
    "unfit",
    [lambda: None, 3, dict, dataclass(type("Thawed", (), {}))],
    ids=["function", "number", "class", "not frozen"],
)
def test_only_frozen_dataclasses_are_registered(unfit):
    with pytest.raises(mdp.ParameterError, match="frozen dataclass"):
        mdp.serialise.register(unfit)


def test_an_optimal_allocation_over_a_ball_is_isotropic_whatever_the_weights():
    query = mdp.Query((1, 3), mdp.sensitivity.FrobeniusBall(0.1), bound=9.0)
    design = mdp.make_design(query, PRIVACY, allocation=mdp.allocations.optimal([1.0, 10.0, 100.0]))
    assert design.colcov.same_as(mdp.make_design(query, PRIVACY, allocation="isotropic").colcov)


def test_covariances_of_one_column_are_refused_by_sets_that_have_no_such_form():
    with pytest.raises(mdp.ParameterError, match="no form"):
        mdp.sensitivity.FrobeniusBall(1.0).flat().distance(Covariance.identity(1), Covariance.identity(1))


@dataclass(frozen=True)
class Answering(mdp.queries.MatrixQuery):
    """A query whose answer and attributes are given."""

    answer: object
    shape: tuple = (1, 3)
    side: str = "columns"
    sensitivity: object = mdp.sensitivity.FrobeniusBall(1.0)
    neighbours: object = mdp.Neighbours.REPLACE
    largest: object = None

    @property
    def magnitude(self):
        return np.full((1, 1), 10.0) if self.largest is None else self.largest

    def evaluate(self, data, *, clip, missing):
        return self.answer


@pytest.mark.parametrize(
    "answer",
    [np.ones((1000, 3)), np.ones(3), 1.0, np.array([[np.nan, 1, 2]]), np.array([[1j, 1, 2]]), [[1, 2, 11]], None],
    ids=["records", "vector", "number", "NaN", "complex", "beyond its magnitude", "None"],
)
def test_an_answer_that_is_not_as_declared_is_refused_before_the_charge(answer):
    design = mdp.make_design(Answering(np.zeros((1, 3))), PRIVACY)
    object.__setattr__(design.query, "answer", answer)
    with pytest.raises(mdp.DataError, match="answer of Answering"):
        prepare(design, None, clip=True, missing="error")


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"shape": 3}, "shape"),
        ({"shape": (0, 3)}, "shape"),
        ({"side": "cols"}, "side"),
        ({"side": "both"}, "side"),
        ({"sensitivity": 1.4}, "sensitivity"),
        ({"neighbours": "replace"}, "neighbours"),
        ({"largest": 10.0}, "magnitude"),
        ({"largest": np.ones((2, 2))}, "magnitude"),
    ],
    ids=str,
)
def test_attributes_that_do_not_fit_are_named(changes, name):
    with pytest.raises(mdp.ParameterError, match=f"Answering.{name} must be"):
        mdp.make_design(Answering(None, **changes), PRIVACY)


@dataclass(frozen=True)
class Claiming(mdp.sensitivity.Sensitivity):
    """A set whose distance is given."""

    found: object
    frobenius = 1.0

    def distance(self, rowcov, colcov):
        return self.found


@pytest.mark.parametrize(
    "found",
    [
        1.0,
        mdp.sensitivity.Distance(np.nan, 0.0),
        mdp.sensitivity.Distance(0.0, 0.0),
        mdp.sensitivity.Distance(-1.0, -2.0),
        mdp.sensitivity.Distance(1.0, 2.0),
    ],
)
def test_a_distance_that_is_none_is_named(found):
    with pytest.raises(mdp.ParameterError, match=r"Claiming.distance must return"):
        mdp.make_design(Answering(None, sensitivity=Claiming(found)), PRIVACY)
