"""Differential privacy for matrices.

Workflow: public Bounds -> query -> design (made without the data) -> release of private data.

Names are imported when they are first used, so that commands such as `matrixdp --help` do not load
NumPy and SciPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from matrixdp.version import __version__

if TYPE_CHECKING:
    from matrixdp.baselines import MechanismRelease, register_mechanism, release_mechanism
    from matrixdp.design import (
        Allocation,
        Design,
        binary,
        equimodal,
        error_curve,
        isotropic,
        isotropic_scale,
        make_design,
        optimal,
        shares,
        uniform,
        unimodal,
    )
    from matrixdp.domain import Bounds, Category, Columns, Number, Person, YesNo
    from matrixdp.errors import (
        BudgetExceededError,
        DataError,
        EngineError,
        LedgerError,
        MatrixDPError,
        MechanismError,
        MissingExtraError,
        ParameterError,
        RequestPendingError,
        StreamError,
    )
    from matrixdp.gdp import gdp_delta, gdp_epsilon, gdp_mu
    from matrixdp.ledger import Ledger
    from matrixdp.noise import Covariance, MatrixGaussian, Stream, draw_gaussian
    from matrixdp.privacy import Neighbours, Privacy
    from matrixdp.queries import (
        Adjacency,
        ContingencyTable,
        GramMatrix,
        Identity,
        Laplacian,
        MatrixQuery,
        Moments,
        Query,
        SecondMoment,
        TableMoments,
    )
    from matrixdp.records import Blocks, Records, open_records, register_engine, register_source, with_ids
    from matrixdp.release.comparison import compare
    from matrixdp.release.covariance_release import CovarianceRelease
    from matrixdp.release.dataset import DatasetRelease, release_dataset
    from matrixdp.release.reading import read_release
    from matrixdp.release.result import Release
    from matrixdp.release.table import release_covariance
    from matrixdp.sensitivity import Distance, FrobeniusBall, Sensitivity, Vertices
    from matrixdp.serialise import register
    from matrixdp.studio.client import Studio

__all__ = [
    "Adjacency",
    "Allocation",
    "Blocks",
    "Bounds",
    "BudgetExceededError",
    "Category",
    "Columns",
    "ContingencyTable",
    "Covariance",
    "CovarianceRelease",
    "DataError",
    "DatasetRelease",
    "Design",
    "Distance",
    "EngineError",
    "FrobeniusBall",
    "GramMatrix",
    "Identity",
    "Laplacian",
    "Ledger",
    "LedgerError",
    "MatrixDPError",
    "MatrixGaussian",
    "MatrixQuery",
    "MechanismError",
    "MechanismRelease",
    "MissingExtraError",
    "Moments",
    "Neighbours",
    "Number",
    "ParameterError",
    "Person",
    "PrincipalDirections",
    "Privacy",
    "Query",
    "Records",
    "Release",
    "RequestPendingError",
    "SecondMoment",
    "Sensitivity",
    "Stream",
    "StreamError",
    "Studio",
    "TableMoments",
    "Vertices",
    "YesNo",
    "__version__",
    "binary",
    "compare",
    "draw_gaussian",
    "equimodal",
    "error_curve",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_mu",
    "isotropic",
    "isotropic_scale",
    "make_design",
    "open_records",
    "optimal",
    "principal_directions",
    "read_release",
    "register",
    "register_engine",
    "register_mechanism",
    "register_source",
    "release_covariance",
    "release_dataset",
    "release_mechanism",
    "shares",
    "uniform",
    "unimodal",
    "with_ids",
]

_HOMES = {
    "matrixdp.baselines": ("MechanismRelease", "register_mechanism", "release_mechanism"),
    "matrixdp.design": (
        "Allocation",
        "Design",
        "binary",
        "equimodal",
        "error_curve",
        "isotropic",
        "isotropic_scale",
        "make_design",
        "optimal",
        "shares",
        "uniform",
        "unimodal",
    ),
    "matrixdp.domain": ("Bounds", "Category", "Columns", "Number", "Person", "YesNo"),
    "matrixdp.errors": (
        "BudgetExceededError",
        "DataError",
        "EngineError",
        "LedgerError",
        "RequestPendingError",
        "MatrixDPError",
        "MechanismError",
        "MissingExtraError",
        "ParameterError",
        "StreamError",
    ),
    "matrixdp.gdp": ("gdp_delta", "gdp_epsilon", "gdp_mu"),
    "matrixdp.ledger": ("Ledger",),
    "matrixdp.noise": ("Covariance", "MatrixGaussian", "Stream", "draw_gaussian"),
    "matrixdp.privacy": ("Neighbours", "Privacy"),
    "matrixdp.queries": (
        "Adjacency",
        "ContingencyTable",
        "GramMatrix",
        "Identity",
        "Laplacian",
        "MatrixQuery",
        "Moments",
        "Query",
        "SecondMoment",
        "TableMoments",
    ),
    "matrixdp.records": ("Blocks", "Records", "open_records", "register_engine", "register_source", "with_ids"),
    "matrixdp.release.comparison": ("compare",),
    "matrixdp.release.covariance_release": ("CovarianceRelease",),
    "matrixdp.release.dataset": ("DatasetRelease", "release_dataset"),
    "matrixdp.release.directions": ("PrincipalDirections", "principal_directions"),
    "matrixdp.release.reading": ("read_release",),
    "matrixdp.release.result": ("Release",),
    "matrixdp.release.table": ("release_covariance",),
    "matrixdp.sensitivity": ("Distance", "FrobeniusBall", "Sensitivity", "Vertices"),
    "matrixdp.serialise": ("register",),
    "matrixdp.studio.client": ("Studio",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_PACKAGES = frozenset(
    {"adaptive", "answers", "baselines", "datasets", "design", "domain", "errors", "estimates", "estimators", "ledger"}
    | {"audit", "gdp", "noise", "paper", "privacy", "queries", "records", "release", "report", "sensitivity"}
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
