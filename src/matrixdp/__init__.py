"""Differential privacy for matrices.

The way through: data -> Bounds -> query -> design (made without the data) -> release.
"""

from matrixdp.bounds import Bounds
from matrixdp.calibration import isotropic_scale
from matrixdp.components import PrincipalDirections, principal_directions
from matrixdp.design import (
    Design,
    binary,
    equimodal,
    isotropic,
    make_design,
    optimal,
    shares,
    uniform,
    unimodal,
)
from matrixdp.errors import (
    BudgetExceededError,
    DataError,
    LedgerError,
    MatrixDPError,
    MissingExtraError,
    ParameterError,
    StreamError,
)
from matrixdp.ledger import Ledger
from matrixdp.noise import Covariance, MatrixGaussian, Stream, draw_gaussian
from matrixdp.privacy import Neighbours, Privacy, gdp_delta, gdp_epsilon
from matrixdp.queries import (
    Adjacency,
    ContingencyTable,
    GramMatrix,
    Identity,
    Laplacian,
    Moments,
    Query,
    SecondMoment,
    TransitionCounts,
)
from matrixdp.release import Release
from matrixdp.sensitivity import FrobeniusBall, Vertices
from matrixdp.version import __version__

__all__ = [
    "Adjacency",
    "Bounds",
    "BudgetExceededError",
    "ContingencyTable",
    "Covariance",
    "DataError",
    "Design",
    "FrobeniusBall",
    "GramMatrix",
    "Identity",
    "Laplacian",
    "Ledger",
    "LedgerError",
    "MatrixDPError",
    "MatrixGaussian",
    "MissingExtraError",
    "Moments",
    "Neighbours",
    "ParameterError",
    "PrincipalDirections",
    "Privacy",
    "Query",
    "Release",
    "SecondMoment",
    "Stream",
    "StreamError",
    "TransitionCounts",
    "Vertices",
    "__version__",
    "binary",
    "draw_gaussian",
    "equimodal",
    "gdp_delta",
    "gdp_epsilon",
    "isotropic",
    "isotropic_scale",
    "make_design",
    "optimal",
    "principal_directions",
    "shares",
    "uniform",
    "unimodal",
]
