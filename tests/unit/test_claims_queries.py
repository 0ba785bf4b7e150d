"""What queries claim of their domain: records outside of it do no harm, and everything inside is answered."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.audit import attack, distance_between

release = mdp.Design.release

PRIVACY = mdp.Privacy(1, 1e-6)
BOX = mdp.Bounds([0, -3], [1, 4])
BALL = mdp.Bounds([0, -3], [1, 4], radius=2.0)
ROTATION = [[0.6, -0.8], [0.8, 0.6]]


@pytest.mark.parametrize(
    "design",
    [
        mdp.make_design(mdp.Identity(BOX, 3), PRIVACY),
        mdp.make_design(mdp.Identity(BOX, 3), PRIVACY, directions=ROTATION),
        mdp.make_design(mdp.Identity(BALL, 3), PRIVACY),
        mdp.make_design(mdp.SecondMoment(BOX, 3), PRIVACY),
        mdp.make_design(mdp.SecondMoment(BOX, 3, centre=[0, 0]), PRIVACY),
        mdp.make_design(mdp.Moments(BALL, 3), PRIVACY),
        mdp.make_design(mdp.GramMatrix(BOX, 3, [[0.5, 0.0]]), PRIVACY),
    ],
    ids=lambda design: type(design.query).__name__,
)
@pytest.mark.parametrize("far", [10.0, 1e6, 1e300])
def test_a_record_outside_of_the_bounds_counts_as_one_inside(design, far):
    data = np.array([[0.5, 0.5], [1.0, -3.0], [0.0, 4.0]])
    for record in ([far, 1.0], [-far, -far], [0.5, far], [far, -far]):
        other = data.copy()
        other[1] = record
        assert distance_between(design, data, other) <= design.distance
        assert distance_between(design, other, data) <= design.distance


@pytest.mark.parametrize("name", ["adjacency", "laplacian"])
def test_an_edge_of_any_weight_counts_as_one_inside(name):
    kind = {"adjacency": mdp.Adjacency, "laplacian": mdp.Laplacian}[name]
    design = mdp.make_design(kind(4, 2.0), PRIVACY)
    graph = np.full((4, 4), 2.0) - np.diag([2.0] * 4)
    for weight in (0.0, -5.0, 100.0, 1e300):
        other = graph.copy()
        other[0, 2] = other[2, 0] = weight
        assert distance_between(design, graph, other) <= design.distance


@pytest.mark.parametrize("kind", [mdp.Moments, mdp.SecondMoment])
def test_a_private_number_of_records_may_be_anything_up_to_twice_the_public_one(kind):
    """A data set of up to 2N records is answered, wherever they are, and one record more is refused, wherever."""
    design = mdp.make_design(kind(BOX, 5, neighbours="add-remove"), PRIVACY)
    for corner in (BOX.lower, BOX.upper):
        answer = release(design, np.tile(corner, (10, 1)), stream=mdp.Stream(seed=1), simulation=True).matrix
        truth = design.query.evaluate(np.tile(corner, (10, 1)), clip=True, missing="error")
        assert (np.abs(answer - truth) <= 12 * design.std + 1e-12).all()
    for record in (BOX.lower, BOX.midpoint, BOX.upper):
        with pytest.raises(mdp.DataError, match="at most 2 x 5"):
            release(design, np.tile(record, (11, 1)))


def test_every_graph_is_answered():
    """A complete graph has the largest degrees, and a graph without edges the smallest."""
    for nodes in (2, 3, 9):
        complete = 3.0 * (np.ones((nodes, nodes)) - np.eye(nodes))
        for kind in (mdp.Adjacency, mdp.Laplacian):
            design = mdp.make_design(kind(nodes, 3.0), PRIVACY)
            for graph in (complete, 0 * complete):
                found = release(design, graph, stream=mdp.Stream(seed=1), simulation=True).matrix
                truth = graph if kind is mdp.Adjacency else np.diag(graph.sum(axis=1)) - graph
                assert (np.abs(found - truth) <= 12 * design.std + 1e-9).all()


@pytest.mark.parametrize("centre", [[0.0, -3.0], [0.0, 0.0], [0.5, -10.0], [-1.0, 5.0]])
def test_second_moments_about_any_point(centre):
    """Where all records lie on one side of the centre less noise is needed than where they do not."""
    for bounds in (BOX, mdp.Bounds([-1, -1], [1, 1])):
        design = mdp.make_design(mdp.SecondMoment(bounds, 2, centre=centre), PRIVACY)
        assert not attack(design, starts=4).broken


def test_a_kernel_matrix_is_answered_as_it_is():
    """Values at the ends of the kernel's range are not cut off."""
    for query in (mdp.GramMatrix(BOX, 2, bandwidth=3.0), mdp.GramMatrix(BOX, 2, [[0.0, -3.0]], bandwidth=3.0)):
        design = mdp.make_design(query, mdp.Privacy(1e9, 1e-6))
        found = release(design, [BOX.lower, BOX.upper], stream=mdp.Stream(seed=1), simulation=True).matrix
        apart = np.exp(-(4.0 * 2) / (2 * 9))
        expected = [[1, apart], [apart, 1]] if query.points is None else [[1], [apart]]
        assert np.allclose(found, expected, atol=1e-3)
        assert not attack(mdp.make_design(query, PRIVACY), starts=4).broken


def test_counts_above_their_public_bound_are_refused():
    query = mdp.ContingencyTable(("a", "b"), ("x", "y"), 3, neighbours="add-remove")
    design = mdp.make_design(query, PRIVACY)
    design.release([("a", "x")] * 3)
    for pairs in ([("a", "x")] * 4, [("a", "x"), ("b", "x"), ("a", "y"), ("b", "y")]):
        with pytest.raises(mdp.ParameterError, match="records must be"):
            design.release(pairs)


class Lopsided(mdp.queries.MatrixQuery):
    """Says that its answer is symmetric, and gives another."""

    neighbours = mdp.Neighbours.REPLACE
    shape = (2, 2)
    side = "both"
    sensitivity = mdp.sensitivity.FrobeniusBall(1.0)
    magnitude = np.ones((1, 1))

    def evaluate(self, data, *, clip, missing):
        return np.array([[0.0, data], [0.0, 0.0]])


def test_an_answer_that_is_not_symmetric_is_refused():
    """Its upper triangle would be left out of the integers, and neighbours might differ there."""
    design = mdp.make_design(Lopsided(), PRIVACY)
    design.release(0.0)
    with pytest.raises(mdp.DataError, match="must be symmetric"):
        design.release(1.0)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_sizes_of_groups_have_noise(neighbours):
    """A replaced record may change its group, so that the sizes of two groups change."""
    columns = mdp.Columns([mdp.Number("x", 0, 1), mdp.YesNo("g")])
    design = mdp.make_design(mdp.TableMoments(columns, 4, ["g"], neighbours=neighbours), PRIVACY)
    place = [0, design.query.layout.size]
    data = {"x": [0.1, 0.2, 0.3, 0.4], "g": [True, True, True, False]}
    released = [design.release(data, stream=mdp.Stream(seed=k), simulation=True).matrix for k in range(3)]
    sizes = np.array([matrix[place, 0] for matrix in released])
    assert len(np.unique(sizes)) == sizes.size
    assert (design.std[place, 0] > 0).all()
