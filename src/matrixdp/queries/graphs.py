"""Matrices of an undirected graph on public nodes, whose edges are private, one by one or all those of a node."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from matrixdp.checks import check_integer, check_magnitude
from matrixdp.domain.bounds import check_missing
from matrixdp.errors import DataError, ParameterError, show
from matrixdp.privacy import Neighbours
from matrixdp.queries.base import MatrixQuery
from matrixdp.records import is_out_of_core, read_array
from matrixdp.sensitivity import EdgeChange, NodeChange
from matrixdp.serialise import builtin_kind
from matrixdp.types import Floats

_GRID = 1 << 20  # steps from no edge to one of full weight, as weights are read
FINE = 1 << 40  # the same for graphs of bounded degrees
MOST_NODES = 10_000  # so that rounding the multipliers to steps stays within the tolerance
_HALVINGS = 6
T = TypeVar("T", np.int64, np.float64)


def tolerance(nodes: int) -> int:
    """Distance that a sum of weights may have from the bound, in steps: ``2^-12/nodes`` of the largest weight."""
    return (FINE >> 12) // nodes


def bound_degrees(weights: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """The nearest graph in which no node's weights sum to more than `limit`, up to the tolerance, of shape (n, n).

    ``P(A)`` is the graph nearest to A, in the sum of squares over edges, among those with weights of at least 0 in
    which no node's weights sum to more than D. A graph within the bound stays as it is. It has multipliers
    ``lambda >= 0`` with ::

        B_ij = max(0, A_ij - lambda_i - lambda_j),   lambda_i > 0 only where the weights of i sum to D

    `weights` are symmetric, with a zero diagonal. All numbers are in steps, the multipliers as well, and `limit` is at
    least one full weight.

    Privacy
    -------
    `docs/sensitivity-graphs.md` proves from the two lines above how far the edges of one node can move B. The proof
    also covers sums that miss D by a `tolerance`, so that integers suffice: both lines are checked exactly.
    """
    if (weights.sum(axis=1) <= limit).all():
        return weights
    shares, bound = weights / FINE, limit / FINE
    multipliers = np.zeros(len(weights))
    while True:  # dual ascent converges; integers within the tolerance end it
        _sweep(shares, bound, multipliers)
        _newton_step(shares, bound, multipliers)
        steps = np.rint(multipliers * FINE).astype(np.int64)
        found = _positive_part(weights, steps)
        if _certified(found, steps, limit):
            return found


def _certified(found: NDArray[np.int64], steps: NDArray[np.int64], limit: int) -> bool:
    """True if sums are at most the limit, and equal to it where there is a multiplier, up to the tolerance."""
    sums, slack = found.sum(axis=1), tolerance(len(found))
    return bool((steps >= 0).all() and (sums <= limit + slack).all() and (sums[steps > 0] >= limit - slack).all())


def _sweep(shares: Floats, bound: float, multipliers: Floats) -> None:
    """Set each multiplier in turn to its best value for the others, in place."""
    for node, row in enumerate(shares):
        rest = row - multipliers
        rest[node] = 0.0
        largest = -np.sort(-rest[rest > 0])
        sums = np.cumsum(largest)
        if not sums.size or sums[-1] <= bound:
            multipliers[node] = 0.0
            continue
        levels = (sums - bound) / np.arange(1, sums.size + 1)
        multipliers[node] = max(0.0, levels[np.flatnonzero(largest > levels)[-1]])


def _newton_step(shares: Floats, bound: float, multipliers: Floats) -> None:
    """Solve for all multipliers at once, as if the edges that are left stayed the same; kept where it is better."""
    active = np.flatnonzero(multipliers)
    if not active.size:
        return
    found = _positive_part(shares, multipliers)
    kept = (found > 0)[active]
    matrix = kept[:, active].astype(np.float64) + np.diag(kept.sum(axis=1) + 1e-9)
    step = np.linalg.solve(matrix, found[active].sum(axis=1) - bound)
    before, factor = _dual(found, multipliers, bound), 1.0
    for _ in range(_HALVINGS):
        tried = multipliers.copy()
        tried[active] = np.maximum(tried[active] + factor * step, 0.0)
        if _dual(_positive_part(shares, tried), tried, bound) > before:
            multipliers[:] = tried
            return
        factor /= 2


def _positive_part(weights: NDArray[T], multipliers: NDArray[T]) -> NDArray[T]:
    """``max(0, A_ij - lambda_i - lambda_j)`` off the diagonal, in floats or in whole steps."""
    found = np.maximum(weights - multipliers[:, None] - multipliers[None, :], 0)
    np.fill_diagonal(found, 0)
    return np.asarray(found)


def _dual(found: Floats, multipliers: Floats, bound: float) -> float:
    """The dual function, up to a constant; its largest value belongs to the nearest graph."""
    return -float(np.square(found).sum()) / 4 - bound * float(multipliers.sum())


@dataclass(frozen=True, eq=False)
class _Graph(MatrixQuery):
    """A matrix of an undirected graph, from its adjacency matrix in whole steps of weight."""

    nodes: int
    weight: float = 1.0
    node_names: tuple[str, ...] | None = field(default=None, kw_only=True)
    neighbours: Neighbours = field(default=Neighbours.ADD_REMOVE, kw_only=True)
    unit: str = field(default="edge", kw_only=True, metadata={"absent": "edge"})
    max_degree: float | None = field(default=None, kw_only=True, metadata={"omit_none": True})
    side = "both"
    names = property(attrgetter("node_names"), doc="Those of the nodes.")
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", check_integer(self.nodes, "nodes", at_least=2))
        object.__setattr__(self, "weight", check_magnitude(self.weight, "weight (the largest of an edge)"))
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))
        rule, of_edge = "", self.unit == "edge"
        if self.unit not in ("edge", "node"):
            rule = f"unit must be 'edge' or 'node' for a graph, got {show(self.unit)} instead."
        elif of_edge and self.neighbours is not Neighbours.ADD_REMOVE:
            rule = "neighbours must be 'add-remove' for the edges of a graph: one comes, goes or changes its weight."
        elif of_edge and self.max_degree is not None:
            rule = "max_degree must be left out for unit='edge': degrees are not bounded."
        elif not of_edge and self.max_degree is None:
            rule = (
                "max_degree must be given for unit='node': a public bound on the sum of the weights of a node's edges."
            )
        elif not of_edge and self.nodes > MOST_NODES:
            rule = f"nodes must be at most {MOST_NODES:,} for unit='node', got {self.nodes:,} instead."
        if rule:
            raise ParameterError(rule)
        if self.max_degree is not None:
            degree = check_magnitude(self.max_degree, "max_degree")
            object.__setattr__(self, "max_degree", degree)
            if degree < self.weight:
                least = f"at least the weight of an edge, {self.weight:g}"
                raise ParameterError(f"max_degree must be {least}, got {degree:g}.")
        if self.node_names is not None:
            names: Sequence[str] = tuple(self.node_names)
            if len(names) != self.nodes:
                raise ParameterError(f"node_names must be {self.nodes} strings, got {len(names)} instead.")
            object.__setattr__(self, "node_names", names)

    @cached_property
    def shape(self) -> tuple[int, int]:
        """(nodes, nodes)."""
        return self.nodes, self.nodes

    @property
    def relative_error(self) -> float:
        """Of turning integers into weights."""
        return 2 * float(np.finfo(float).eps)

    @cached_property
    def sensitivity(self) -> EdgeChange | NodeChange:
        """One edge changes, or those of one node."""
        if self.max_degree is None:
            return EdgeChange(self.kind, self.weight)
        replaced = self.neighbours is Neighbours.REPLACE
        return NodeChange(self.kind, self.nodes, self.weight, self.max_degree, replaced)

    def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
        weights, unit = self._weights(data, clip=clip, missing=missing), _GRID
        if isinstance(self.sensitivity, NodeChange):
            weights, unit = weights * (FINE // _GRID), FINE
            if self.sensitivity.bounded:
                weights = bound_degrees(weights, int(self.sensitivity.max_degree / self.weight * FINE))
        return self._entries(weights).astype(np.float64) * (self.weight / unit)

    @abstractmethod
    def _entries(self, weights: NDArray[np.int64]) -> NDArray[np.int64]:
        """The matrix of the graph with these weights."""

    def _weights(self, data: Any, *, clip: bool, missing: str) -> NDArray[np.int64]:
        """Weights in grid units, of shape (nodes, nodes)."""
        check_missing(missing)
        if is_out_of_core(data):
            data = read_array(data, self.nodes, self.node_names)
        if self.node_names is not None and hasattr(data, "loc"):  # a pandas frame: nodes are found by name
            names = list(self.node_names)
            if not (set(names) <= set(data.index) and set(names) <= set(data.columns)):
                raise DataError("the frame's rows and columns must have the names of the nodes.")
            data = data.loc[names, names]
        if getattr(data, "shape", np.shape(data)) != self.shape:
            raise DataError(f"the graph must be given as its adjacency matrix, of shape {self.shape}.")
        array = read_array(data, self.nodes).astype(np.float64)
        if not np.isfinite(array).all():
            if missing == "error":
                raise DataError(
                    "weights must be finite, got NaN or infinity instead. Replace them, or say missing='midpoint'."
                )
            array = np.where(np.isfinite(array), array, self.weight / 2)
        if not np.array_equal(array, array.T):
            raise DataError("the adjacency matrix must be symmetric: the graph is undirected.")
        if np.diagonal(array).any():
            raise DataError("the adjacency matrix must have a zero diagonal: loops are not part of the domain.")
        if not clip and not ((array >= 0) & (array <= self.weight)).all():
            raise DataError("weights must lie between 0 and `weight` when clip=False.")
        shares = np.clip(array, 0.0, self.weight) / self.weight
        return np.asarray(np.rint(np.minimum(shares, 1.0) * _GRID).astype(np.int64))


@builtin_kind
@dataclass(frozen=True, eq=False)
class Adjacency(_Graph):
    """Adjacency matrix of an undirected graph without loops, of shape (nodes, nodes).

    Parameters
    ----------
    nodes : int
        The public number of nodes.
    weight : float
        Largest weight of an edge; weights lie between 0 and this.
    node_names : sequence of str, optional
    unit : 'edge' or 'node'
        What is protected: one edge, or one node with all its edges. The nodes themselves are public.
    max_degree : float, optional
        For ``unit="node"``: a public bound on the sum of the weights of a node's edges, at least `weight`. The noise
        grows with its root. A graph that exceeds it is replaced by the nearest one that does not, in which edges of
        nodes with too many have less weight.
    neighbours : 'add-remove' or 'replace'
        For nodes: whether the edges of one node all come or go, or are replaced by others, which needs more noise.

    Privacy
    -------
    Neighbours differ in one edge, or in any number of edges of one node. For nodes the guarantee holds for all graphs,
    also for those that exceed `max_degree`, and none raises an error, which would show that one does.

    Examples
    --------
    >>> Adjacency(nodes=34).shape
    (34, 34)
    """

    title = "adjacency matrix"
    kind = "adjacency"

    @cached_property
    def magnitude(self) -> Floats:
        return np.full((1, 1), self.weight)

    @property
    def gamma(self) -> float:
        return self.weight * math.sqrt(self.nodes * (self.nodes - 1))

    def _entries(self, weights: NDArray[np.int64]) -> NDArray[np.int64]:
        return weights

    @property
    def possible(self) -> tuple[Floats, Floats]:
        return np.zeros((1, 1)), self.magnitude

    @property
    def public(self) -> NDArray[np.bool_]:
        return np.eye(self.nodes, dtype=bool)


@builtin_kind
@dataclass(frozen=True, eq=False)
class Laplacian(_Graph):
    """Laplacian, degrees less weights, of an undirected graph given by its adjacency matrix, of shape (nodes, nodes).

    Parameters are those of `Adjacency`.

    Privacy
    -------
    Neighbours are those of `Adjacency`. If they differ in one edge, the noise by default is that of a Laplacian itself:
    it is added to the edges, so that rows sum to zero (up to rounding), and has the least total variance that Gaussian
    noise can have. Degrees have more noise than with ``allocation="isotropic"``, which adds independent noise to
    entries; all other entries have less.

    Examples
    --------
    >>> Laplacian(nodes=34).sensitivity.frobenius
    2.0
    """

    title = "graph Laplacian"
    kind = "laplacian"

    @cached_property
    def magnitude(self) -> Floats:
        degree = self.nodes - 1.0
        if self.max_degree is not None:
            degree = min(degree, self.max_degree / self.weight + 2.0**-12)
        return self.weight * np.where(np.eye(self.nodes, dtype=bool), degree, 1.0)

    @property
    def error_units(self) -> Floats:
        return np.full((1, 1), self.weight)

    def _entries(self, weights: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.diag(weights.sum(axis=1)) - weights

    @property
    def possible(self) -> tuple[Floats, Floats]:
        diagonal = np.eye(self.nodes, dtype=bool)
        return np.where(diagonal, 0.0, -self.weight), np.where(diagonal, self.magnitude, 0.0)
