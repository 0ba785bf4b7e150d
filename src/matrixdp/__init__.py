"""Differential privacy for matrices.

The way through: data -> Bounds -> query -> design (made without the data) -> release.

Names are imported when they are first used, so that the command line need not wait for NumPy and SciPy to say how it
is called.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from matrixdp.version import __version__

if TYPE_CHECKING:
    from matrixdp.adaptive import PrincipalDirections, principal_directions
    from matrixdp.design import (
        Design,
        binary,
        equimodal,
        isotropic,
        isotropic_scale,
        make_design,
        optimal,
        shares,
        uniform,
        unimodal,
    )
    from matrixdp.domain import Bounds
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
        ContingencyTable,
        GramMatrix,
        Identity,
        Laplacian,
        Moments,
        Query,
        SecondMoment,
    )
    from matrixdp.records import Blocks, open_records
    from matrixdp.release import DatasetRelease, Release, release_dataset
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
    "matrixdp.adaptive": ("PrincipalDirections", "principal_directions"),
    "matrixdp.design": (
        "Design",
        "binary",
        "equimodal",
        "isotropic",
        "isotropic_scale",
        "make_design",
        "optimal",
        "shares",
        "uniform",
        "unimodal",
    ),
    "matrixdp.domain": ("Bounds",),
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
    "matrixdp.noise": ("Covariance", "MatrixGaussian", "Stream", "draw_gaussian"),
    "matrixdp.privacy": ("Neighbours", "Privacy", "gdp_delta", "gdp_epsilon"),
    "matrixdp.queries": (
        "Adjacency",
        "ContingencyTable",
        "GramMatrix",
        "Identity",
        "Laplacian",
        "Moments",
        "Query",
        "SecondMoment",
    ),
    "matrixdp.records": ("Blocks", "open_records"),
    "matrixdp.release": ("DatasetRelease", "Release", "release_dataset"),
    "matrixdp.sensitivity": ("FrobeniusBall", "Vertices"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_PACKAGES = frozenset(
    {"adaptive", "answers", "baselines", "datasets", "design", "domain", "errors", "estimators", "ledger", "noise"}
    | {"paper", "privacy", "queries", "records", "release", "report", "sensitivity"}
)


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'matrixdp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
