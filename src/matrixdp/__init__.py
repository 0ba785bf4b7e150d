"""Differential privacy for matrices.

`release_table` answers questions about a table in one call. For other matrices: public Bounds -> query -> design (made
without the data) -> release of private data. What extends the library is in its packages: `allocations`, `noise`,
`queries`, `records`, `sensitivity`, `baselines`.

Names are imported when they are first used, so that commands such as `matrixdp --help` do not load
NumPy and SciPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from matrixdp.version import __version__ as __version__

if TYPE_CHECKING:  # for type checkers: what `_HOMES` lists
    from matrixdp.answers.estimate import combine as combine
    from matrixdp.baselines import release_mechanism as release_mechanism
    from matrixdp.baselines.comparison import compare as compare
    from matrixdp.design import Design as Design
    from matrixdp.design import make_design as make_design
    from matrixdp.domain import Bounds as Bounds
    from matrixdp.domain import Category as Category
    from matrixdp.domain import Columns as Columns
    from matrixdp.domain import Number as Number
    from matrixdp.domain import Person as Person
    from matrixdp.domain import YesNo as YesNo
    from matrixdp.domain.schema import Schema as Schema
    from matrixdp.errors import BudgetExceededError as BudgetExceededError
    from matrixdp.errors import DataError as DataError
    from matrixdp.errors import EngineError as EngineError
    from matrixdp.errors import LedgerError as LedgerError
    from matrixdp.errors import MatrixDPError as MatrixDPError
    from matrixdp.errors import MechanismError as MechanismError
    from matrixdp.errors import MissingExtraError as MissingExtraError
    from matrixdp.errors import ParameterError as ParameterError
    from matrixdp.errors import RequestPendingError as RequestPendingError
    from matrixdp.errors import StreamError as StreamError
    from matrixdp.ledger import Ledger as Ledger
    from matrixdp.noise import Stream as Stream
    from matrixdp.privacy import Neighbours as Neighbours
    from matrixdp.privacy import Privacy as Privacy
    from matrixdp.queries import Adjacency as Adjacency
    from matrixdp.queries import ContingencyTable as ContingencyTable
    from matrixdp.queries import GramMatrix as GramMatrix
    from matrixdp.queries import Identity as Identity
    from matrixdp.queries import Laplacian as Laplacian
    from matrixdp.queries import Moments as Moments
    from matrixdp.queries import Query as Query
    from matrixdp.queries import SecondMoment as SecondMoment
    from matrixdp.queries import TableMoments as TableMoments
    from matrixdp.records import open_records as open_records
    from matrixdp.release.adaptive_release import AdaptiveRelease as AdaptiveRelease
    from matrixdp.release.dataset import DatasetRelease as DatasetRelease
    from matrixdp.release.dataset import release_dataset as release_dataset
    from matrixdp.release.reading import from_json as from_json
    from matrixdp.release.reading import load as load
    from matrixdp.release.result import Release as Release
    from matrixdp.release.result import principal_directions as principal_directions
    from matrixdp.release.run import release_table as release_table
    from matrixdp.release.stream import MatrixStream as MatrixStream
    from matrixdp.release.stream import PublishedStream as PublishedStream
    from matrixdp.release.stream_plan import make_stream as make_stream
    from matrixdp.studio.client import Studio as Studio

_HOMES = {
    "answers.estimate": "combine",
    "baselines": "release_mechanism",
    "baselines.comparison": "compare",
    "design": "Design make_design",
    "domain": "Bounds Category Columns Number Person YesNo",
    "domain.schema": "Schema",
    "errors": "BudgetExceededError DataError EngineError LedgerError MatrixDPError MechanismError MissingExtraError "
    "ParameterError RequestPendingError StreamError",
    "ledger": "Ledger",
    "noise": "Stream",
    "privacy": "Neighbours Privacy",
    "queries": "Adjacency ContingencyTable GramMatrix Identity Laplacian Moments Query SecondMoment TableMoments",
    "records": "open_records",
    "release.adaptive_release": "AdaptiveRelease",
    "release.dataset": "DatasetRelease release_dataset",
    "release.reading": "from_json load",
    "release.result": "Release principal_directions",
    "release.run": "release_table",
    "release.stream": "MatrixStream PublishedStream",
    "release.stream_plan": "make_stream",
    "studio.client": "Studio",
}
_HOME_OF = {name: f"matrixdp.{home}" for home, names in _HOMES.items() for name in names.split()}
__all__ = sorted([*_HOME_OF, "__version__"])
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
