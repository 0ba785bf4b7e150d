"""One tree of exceptions.

::

    MatrixDPError
    ├── ParameterError      (ValueError)    a public argument is out of its range
    ├── DataError           (ValueError)    records do not fit the declared domain; shows no private value
    ├── StreamError         (RuntimeError)  a random stream may not be used in this way
    ├── MissingExtraError   (ImportError)   an optional dependency is not installed
    ├── MechanismError      (RuntimeError)  a mechanism returned a result that its registration does not cover
    ├── EngineError         (RuntimeError)  a cluster cannot be reached, or lost its workers
    ├── ChargedError                        an error after a release was charged, with how to get the release
    └── LedgerError         (RuntimeError)  the ledger cannot be read, written or trusted
        ├── RefusedError                    the ledger works, and refuses what it is asked
        │   └── BudgetExceededError         a release would overdraw its data set's total
        └── RequestPendingError             a request was charged before, and its release is not stored yet

Messages name the parameter, the limit, the value and the remedy. They never show private data.
"""

import contextlib
import json
import numbers
import os
import re
import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import unquote, urlsplit


def show(value: Any) -> str:
    """An argument as error messages show it: short numbers and strings verbatim, others, perhaps private, by type."""
    parts = value if isinstance(value, tuple) else (value,)
    simple = all(part is None or isinstance(part, numbers.Number | str) for part in parts)
    text = (str(value) if isinstance(value, Fraction) else repr(value)) if simple else ""
    name = type(value).__name__
    return text if 0 < len(text) <= 60 else f"a{'n' * (name[0] in 'aeiou')} {name}"


def join_names(names: Iterable[str], mark: str = ",") -> str:
    """Names of columns as an option takes them; those with a comma or a space at an end are in double quotes."""
    return mark.join(
        '"{}"'.format(name.replace('"', '""')) if "," in name or name != name.strip() or name[:1] == '"' else name
        for name in names
    )


def install_hint(extra: str) -> str:
    """The sentence that says how to install an extra, with the Python that runs, and keep the installation as it is.

    An editable installation stays editable; one from a folder is installed from there again.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    python = sys.executable or "python"
    quoted = f'"{python}"' if " " in python else python
    origin, editable, facts = "matrixdp", False, {}
    source = Path(__file__).resolve().parents[2]
    if (source / "pyproject.toml").is_file():  # it runs from a clone
        origin, editable = str(source), True
    else:
        with contextlib.suppress(PackageNotFoundError, ValueError):
            facts = json.loads(distribution("matrixdp").read_text("direct_url.json") or "{}")
    place = urlsplit(facts.get("url", ""))
    if place.scheme == "file" and "dir_info" in facts:
        origin, editable = unquote(place.path), bool(facts["dir_info"].get("editable"))
    return f"Install it: {quoted} -m pip install {'-e ' * editable}'{origin}[{extra}]'"


def import_extra(module: str, purpose: str, extra: str) -> Any:
    """A module of an extra, or a `MissingExtraError` that says what it is for and how to install it."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError(f"{purpose}. {install_hint(extra)}") from None


class MatrixDPError(Exception):
    """Base of every error that this library raises on purpose.

    An uncaught one is shown without the calls inside of this package, unless ``MATRIXDP_TRACEBACK=full`` is set.
    Debuggers, and code that catches it, get all of them.
    """

    def _render_traceback_(self) -> Any:
        """The traceback in a notebook: IPython calls this where it is defined."""
        from IPython import get_ipython  # type: ignore[import-not-found]

        shown = leave_out_package(self.__traceback__)
        return get_ipython().InteractiveTB.structured_traceback(type(self), self, shown, tb_offset=1)


def leave_out_package(traceback: TracebackType | None) -> TracebackType | None:
    """A copy of a traceback without the calls inside of this package; as it is if there are no others, or on demand."""
    calls, following = [], traceback
    while following is not None and os.environ.get("MATRIXDP_TRACEBACK") != "full":
        module = str(following.tb_frame.f_globals.get("__name__"))
        if module.partition(".")[0] != "matrixdp":
            calls.append(following)
        following = following.tb_next
    found = None
    for call in reversed(calls):
        found = TracebackType(found, call.tb_frame, call.tb_lasti, call.tb_lineno)
    return found or traceback


def _show_short(show_error: Callable[..., Any], kind: Any, error: Any, traceback: Any) -> None:
    """Show an error by another exception hook; those of this library without its own calls."""
    if not isinstance(error, MatrixDPError):
        show_error(kind, error, traceback)
        return
    own = error.__traceback__  # which the interpreter's hook shows, and debuggers read afterwards
    error.__traceback__ = leave_out_package(own)
    try:
        show_error(kind, error, error.__traceback__)
    finally:
        error.__traceback__ = own


sys.excepthook = partial(_show_short, sys.excepthook)


_OPTION = re.compile("«([a-z_]+)»")


def word_options(message: str, name: Callable[[str], str] = str) -> str:
    """A message with the options that it mentions, as in ``«columns»``, written as `name` writes them."""
    return _OPTION.sub(lambda found: name(found[1]), message)


class ParameterError(MatrixDPError, ValueError):
    """A public argument is out of its range.

    Parameters
    ----------
    message : str
        Options of a request that it mentions are in guillemets, as in ``«columns»``: the command line shows them as
        ``--columns``, a page as the name of a field, Python as they are.
    parameter : str, optional
        Name of the argument, option or entry of a schema (``columns.age.lower``) that must be changed; by default the
        first option that the message mentions.

    Attributes
    ----------
    parameter : str
        Empty if there is none.
    template : str
        The message with its guillemets, for `word_options`.

    Examples
    --------
    >>> error = ParameterError("«by» must be left out for moments.")
    >>> str(error), error.parameter
    ('by must be left out for moments.', 'by')
    """

    def __init__(self, message: str = "", *, parameter: str = "") -> None:
        super().__init__(word_options(message))
        found = _OPTION.search(message)
        self.parameter = found[1] if found and not parameter else parameter.strip("«»")
        self.template = message

    def within(self, place: object) -> "ParameterError":
        """The same error, with the place of the mistake in front, such as a file."""
        return ParameterError(f"{place}: {self.template}", parameter=self.parameter)


class DataError(MatrixDPError, ValueError):
    """Records do not fit the declared domain; the message shows no private value."""


class StreamError(MatrixDPError, RuntimeError):
    """A random stream may not be used in this way."""


class MissingExtraError(MatrixDPError, ImportError):
    """An optional dependency is not installed."""


class EngineError(MatrixDPError, RuntimeError):
    """A cluster cannot be reached, or lost its workers; nothing was released."""


class MechanismError(MatrixDPError, RuntimeError):
    """A registered mechanism did not return what it was registered for; nothing was released."""


class LedgerError(MatrixDPError, RuntimeError):
    """The ledger cannot be read, written or trusted."""


class RefusedError(LedgerError):
    """The ledger refuses what it is asked: an allowance of others, or values that cannot be changed.

    The first line of the message is for everybody; a second one has commands and paths, for a terminal.
    """


class BudgetExceededError(RefusedError):
    """A release would overdraw its data set's total."""


class RequestPendingError(LedgerError):
    """A request was charged before, and its release is not stored (yet): it is in progress, or was interrupted.

    `receipt` is the `Receipt` of that charge.
    """

    receipt: Any = None


class ChargedError(MatrixDPError):
    """An error after the charge of a release; `recovery` says what was spent, and how to get the release."""

    def __init__(self, error: BaseException, recovery: str) -> None:
        super().__init__(recovery)
        self.error = error
        self.recovery = recovery
