"""Queries: matrices to release, each with its public domain and the changes that one record or person can make."""

from matrixdp.queries.base import MatrixQuery
from matrixdp.queries.counts import ContingencyTable
from matrixdp.queries.gram import GramMatrix
from matrixdp.queries.graphs import Adjacency, Laplacian
from matrixdp.queries.identity import Identity
from matrixdp.queries.moments import Moments, SecondMoment
from matrixdp.queries.query import Query
from matrixdp.queries.table_moments import TableMoments

__all__ = ["Adjacency", "ContingencyTable", "GramMatrix", "Identity", "Laplacian", "MatrixQuery", "Moments", "Query"]
__all__ += ["SecondMoment", "TableMoments"]
