"""One tree of exceptions.

::

    MatrixDPError
    ├── ParameterError      (ValueError)    a public argument is out of its range
    ├── DataError           (ValueError)    records do not fit the declared domain; shows no private value
    ├── StreamError         (RuntimeError)  a random stream may not be used in this way
    ├── MissingExtraError   (ImportError)   an optional dependency is not installed
    └── LedgerError         (RuntimeError)  the ledger cannot be read, written or trusted
        └── BudgetExceededError             a release would overdraw its data set's total

Messages name the parameter, the limit, the value and the remedy. They never show private data.
"""


class MatrixDPError(Exception):
    """Base of every error that this library raises on purpose."""


class ParameterError(MatrixDPError, ValueError):
    """A public argument is out of its range."""


class DataError(MatrixDPError, ValueError):
    """Records do not fit the declared domain; the message shows no private value."""


class StreamError(MatrixDPError, RuntimeError):
    """A random stream may not be used in this way."""


class MissingExtraError(MatrixDPError, ImportError):
    """An optional dependency is not installed."""


class LedgerError(MatrixDPError, RuntimeError):
    """The ledger cannot be read, written or trusted."""


class BudgetExceededError(LedgerError):
    """A release would overdraw its data set's total."""
