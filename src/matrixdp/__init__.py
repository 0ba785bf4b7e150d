"""Differential privacy for matrices.

`release_table` answers questions about a table in one call. For other matrices: public Bounds -> query -> design (made
without the data) -> release of private data. What extends the library is in its packages: `allocations`, `noise`,
`queries`, `records`, `sensitivity`, `baselines`.

Names are imported when they are first used, so that commands such as `matrixdp --help` do not load
NumPy and SciPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from matrixdp.version import __version__

if TYPE_CHECKING:
    from matrixdp.baselines import release_mechanism
    from matrixdp.design import Design, make_design
    from matrixdp.domain import Bounds, Category, Columns, Number, Person, YesNo
    from matrixdp.domain.schema import Schema
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
    from matrixdp.ledger import Ledger
    from matrixdp.noise import Stream
    from matrixdp.privacy import Neighbours, Privacy
    from matrixdp.queries import (
        Adjacency,
        ContingencyTable,
        GramMatrix,
        Identity,
        Laplacian,
        Moments,
        Query,
        SecondMoment,
        TableMoments,
    )
    from matrixdp.records import open_records
    from matrixdp.release.adaptive_release import AdaptiveRelease
    from matrixdp.release.comparison import compare
    from matrixdp.release.dataset import DatasetRelease, release_dataset
    from matrixdp.release.matrix import principal_directions
    from matrixdp.release.reading import from_json, load
    from matrixdp.release.result import Release
    from matrixdp.release.table import release_table
    from matrixdp.studio.client import Studio

__all__ = [
    "AdaptiveRelease",
    "Adjacency",
    "Bounds",
    "BudgetExceededError",
    "Category",
    "Columns",
    "ContingencyTable",
    "DataError",
    "DatasetRelease",
    "Design",
    "EngineError",
    "GramMatrix",
    "Identity",
    "Laplacian",
    "Ledger",
    "LedgerError",
    "MatrixDPError",
    "MechanismError",
    "MissingExtraError",
    "Moments",
    "Neighbours",
    "Number",
    "ParameterError",
    "Person",
    "Privacy",
    "Query",
    "Release",
    "RequestPendingError",
    "Schema",
    "SecondMoment",
    "Stream",
    "StreamError",
    "Studio",
    "TableMoments",
    "YesNo",
    "__version__",
    "compare",
    "from_json",
    "load",
    "make_design",
    "open_records",
    "principal_directions",
    "release_dataset",
    "release_mechanism",
    "release_table",
]

_HOMES = {
    "matrixdp.baselines": ("release_mechanism",),
    "matrixdp.design": (
        "Design",
        "make_design",
    ),
    "matrixdp.domain": (
        "Bounds",
        "Category",
        "Columns",
        "Number",
        "Person",
        "YesNo",
    ),
    "matrixdp.domain.schema": ("Schema",),
    "matrixdp.errors": (
        "BudgetExceededError",
        "DataError",
        "EngineError",
        "LedgerError",
        "MatrixDPError",
        "MechanismError",
        "MissingExtraError",
        "ParameterError",
        "RequestPendingError",
        "StreamError",
    ),
    "matrixdp.ledger": ("Ledger",),
    "matrixdp.noise": ("Stream",),
    "matrixdp.privacy": (
        "Neighbours",
        "Privacy",
    ),
    "matrixdp.queries": (
        "Adjacency",
        "ContingencyTable",
        "GramMatrix",
        "Identity",
        "Laplacian",
        "Moments",
        "Query",
        "SecondMoment",
        "TableMoments",
    ),
    "matrixdp.records": ("open_records",),
    "matrixdp.release.adaptive_release": ("AdaptiveRelease",),
    "matrixdp.release.comparison": ("compare",),
    "matrixdp.release.dataset": (
        "DatasetRelease",
        "release_dataset",
    ),
    "matrixdp.release.matrix": ("principal_directions",),
    "matrixdp.release.reading": (
        "from_json",
        "load",
    ),
    "matrixdp.release.result": ("Release",),
    "matrixdp.release.table": ("release_table",),
    "matrixdp.studio.client": ("Studio",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_PACKAGES = frozenset(
    {"adaptive", "allocations", "answers", "audit", "baselines", "datasets", "design", "domain", "errors", "gdp"}
    | {"estimators", "ledger", "mechanisms", "noise", "paper", "privacy", "queries", "records", "release", "report"}
    | {"sensitivity", "serialise"}
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
