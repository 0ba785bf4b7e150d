"""Graphs: edges and nodes that are taken to change less than they do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from matrixdp.audit.attack import attack
from matrixdp.audit.broken.registry import PRIVACY, broken
from matrixdp.design import make_design
from matrixdp.noise import Covariance, MatrixGaussian, NoiseStructure
from matrixdp.privacy import Neighbours
from matrixdp.queries import Adjacency, Laplacian
from matrixdp.sensitivity import (
    Distance,
    EdgeChange,
    NodeChange,
)
from matrixdp.types import Floats


@broken("half an edge")
def _half_edge() -> bool:
    class HalfEdge(Adjacency):
        @property
        def sensitivity(self) -> EdgeChange:
            return EdgeChange("adjacency", self.weight / 2)

    return attack(make_design(HalfEdge(4), PRIVACY), starts=2).broken


@broken("edges of a node that come, without those that go")
def _half_node() -> bool:
    class HalfNode(Adjacency):
        @property
        def sensitivity(self) -> NodeChange:
            return NodeChange("adjacency", self.nodes, self.weight, float(self.max_degree or 0), replaced=False)

    query = HalfNode(9, unit="node", max_degree=3, neighbours=Neighbours.REPLACE)
    return attack(make_design(query, PRIVACY), starts=2).broken


@broken("degrees cut in the order of the nodes")
def _cut_degrees() -> bool:
    class FirstEdges(Adjacency):
        """Keeps an edge if it is among the first of both of its nodes: one node moves edges of all others."""

        def evaluate(self, data: Any, *, clip: bool, missing: str) -> Floats:
            kept = np.cumsum(np.asarray(data) > 0, axis=1) <= float(self.max_degree or 0)
            return np.asarray(data, np.float64) * (kept & kept.T)

    query = FirstEdges(12, unit="node", max_degree=1, neighbours=Neighbours.ADD_REMOVE)
    return attack(make_design(query, PRIVACY), starts=20).broken


@dataclass(frozen=True)
class _OwnEdge(EdgeChange):
    """As if an edge moved its own coordinate only, and not those of edges that share a node."""

    def structured_distance(self, side: Covariance, structure: NoiseStructure) -> Distance:
        laplacian = np.zeros((side.size, side.size))
        laplacian[:2, :2] = [[1.0, -1.0], [-1.0, 1.0]]
        own = structure.whiten(MatrixGaussian(side, side), laplacian)[0] * self.weight
        return Distance(float(own), float(own))


@broken("edges that share a node left out")
def _own_edge() -> bool:
    class OwnEdge(Laplacian):
        @property
        def sensitivity(self) -> EdgeChange:
            return _OwnEdge("laplacian", self.weight)

    return attack(make_design(OwnEdge(5), PRIVACY), starts=2).broken
