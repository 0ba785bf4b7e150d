"""Differential privacy for matrices.

The way through: data -> Bounds -> query -> design (made without the data) -> release.

Names are imported when they are first used, so that the command line need not wait for NumPy and SciPy to say how it
is called.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from matrixdp.version import __version__

if TYPE_CHECKING:
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
    from matrixdp.engines import DatasetRelease, open_records, release_dataset
    from matrixdp.errors import (
        BudgetExceededError,
        DataError,
        EngineError,
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
        Blocks,
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

__all__ = [
    "Adjacency",
    "Blocks",
    "Bounds",
    "BudgetExceededError",
    "ContingencyTable",
    "Covariance",
    "DataError",
    "DatasetRelease",
    "Design",
    "EngineError",
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
    "open_records",
    "optimal",
    "principal_directions",
    "release_dataset",
    "shares",
    "uniform",
    "unimodal",
]

_HOMES = {
    "matrixdp.bounds": ("Bounds",),
    "matrixdp.calibration": ("isotropic_scale",),
    "matrixdp.components": (
        "PrincipalDirections",
        "principal_directions",
    ),
    "matrixdp.design": (
        "Design",
        "binary",
        "equimodal",
        "isotropic",
        "make_design",
        "optimal",
        "shares",
        "uniform",
        "unimodal",
    ),
    "matrixdp.engines": (
        "DatasetRelease",
        "open_records",
        "release_dataset",
    ),
    "matrixdp.errors": (
        "BudgetExceededError",
        "DataError",
        "EngineError",
        "LedgerError",
        "MatrixDPError",
        "MissingExtraError",
        "ParameterError",
        "StreamError",
    ),
    "matrixdp.ledger": ("Ledger",),
    "matrixdp.noise": (
        "Covariance",
        "MatrixGaussian",
        "Stream",
        "draw_gaussian",
    ),
    "matrixdp.privacy": (
        "Neighbours",
        "Privacy",
        "gdp_delta",
        "gdp_epsilon",
    ),
    "matrixdp.queries": (
        "Adjacency",
        "Blocks",
        "ContingencyTable",
        "GramMatrix",
        "Identity",
        "Laplacian",
        "Moments",
        "Query",
        "SecondMoment",
        "TransitionCounts",
    ),
    "matrixdp.release": ("Release",),
    "matrixdp.sensitivity": (
        "FrobeniusBall",
        "Vertices",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value
    if f"{__name__}.{name}" in _HOMES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'matrixdp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
