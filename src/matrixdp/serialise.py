"""Frozen dataclasses as JSON content and back, bit by bit.

Classes of the package are stored under their bare names. Classes of other packages are stored under their qualified
names (`register`), which contain a dot, so that none can be mistaken for one of ours.
"""

import dataclasses
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import ParameterError
from matrixdp.types import lock_arrays

C = TypeVar("C", bound=type)
_KIND_OF: dict[type, str] = {}
_READERS: dict[str, Callable[..., Any]] = {}
_MOST_REPEATS = 1 << 16  # so that a short text cannot use much memory
_MOST_RECORDS = 1 << 50


def builtin_kind(cls: C) -> C:
    """Class decorator for classes of this package: store instances under the bare name of the class."""
    return register_family(cls, cls.__name__, cls)


def register(cls: C) -> C:
    """Class decorator for a query, sensitivity set or allocation of your own: let JSON hold its instances.

    Without it a design that uses the class can neither be charged nor stored.

    Parameters
    ----------
    cls : type
        A frozen dataclass whose fields are numbers, strings, arrays, tuples and other registered classes. JSON names
        it by module and qualified name: import that module before reading releases back.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @register
    ... @dataclass(frozen=True)
    ... class Annulus:
    ...     inner: float
    ...     outer: float
    >>> to_json_content(Annulus(1.0, 2.0)) == {"kind": f"{__name__}.Annulus", "inner": 1.0, "outer": 2.0}
    True
    """
    if not isinstance(cls, type) or not dataclasses.is_dataclass(cls) or not cls.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        name = getattr(cls, "__name__", type(cls).__name__)
        raise ParameterError(f"only a frozen dataclass can be registered: put @dataclass(frozen=True) on {name}.")
    return register_family(cls, f"{cls.__module__}.{cls.__qualname__}", cls)


def register_family(cls: C, kind: str, read: Callable[..., Any]) -> C:
    """Register a class under a kind, which several may share: `read` rebuilds an instance from its fields in JSON."""
    lock_arrays(cls)
    _KIND_OF[cls] = kind
    _READERS[kind] = read  # a notebook may define the same class again
    return cls


def to_json_content(value: Any) -> Any:
    """`value` as dicts, lists, numbers and strings; floats keep every bit."""
    if value is None or (isinstance(value, bool | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, np.ndarray):
        if value.ndim == 1 and value.size > 1 and value.strides == (0,):
            return {"repeat": float(value[0]), "times": value.size}
        return {"array": value.tolist()}
    if isinstance(value, tuple | list):
        return [to_json_content(item) for item in value]
    kind = _KIND_OF.get(type(value))
    if kind is None:
        raise ParameterError(
            f"{type(value).__name__} cannot be written as JSON. Put @matrixdp.serialise.register on the class, above "
            "its @dataclass(frozen=True)."
        )
    return {"kind": kind, **{name: to_json_content(field) for name, field in _fields(value).items()}}


def _fields(value: Any) -> Mapping[str, Any]:
    """The part of an instance that is stored: the fields of its constructor, or what `to_fields` returns."""
    if hasattr(value, "to_fields"):
        return dict(value.to_fields())
    found = {}
    for field in dataclasses.fields(value):
        item, marks = getattr(value, field.name), field.metadata
        omitted = (marks.get("omit_none") and item is None) or ("absent" in marks and item == marks["absent"])
        if field.init and not omitted:
            found[field.name] = marks["to_json"](item) if "to_json" in marks else item
    return found


def from_json_content(value: Any) -> Any:
    """Inverse of `to_json_content`; lists are returned as tuples."""
    if isinstance(value, list):
        return tuple(from_json_content(item) for item in value)
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return np.array(value["array"], np.float64)
    if "repeat" in value:
        return _repeat(value, _MOST_REPEATS)
    kind = value.get("kind", "no kind given")
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read is None and isinstance(kind, str) and "." in kind:
        raise ParameterError(f"{kind!r} is not registered. Import the module that registers it, and read again.")
    fields = {name: _read_field(kind, name, item) for name, item in value.items() if name != "kind"}
    # Fields that earlier versions did not have: where a text lacks one, it means ``absent``.
    known = dataclasses.fields(read) if dataclasses.is_dataclass(read) else ()
    absent = {field.name: field.metadata["absent"] for field in known if "absent" in field.metadata}
    try:
        return read(**{**absent, **fields})  # type: ignore[misc]  # None is a TypeError, too
    except ParameterError:
        raise
    except (KeyError, TypeError, ValueError):
        raise ParameterError(f"this version of matrixdp cannot read an object of kind {kind!r}.") from None


def _read_field(kind: Any, name: str, value: Any) -> Any:
    if (kind, name) == ("Covariance", "variances") and isinstance(value, dict) and "repeat" in value:
        return _repeat(value, _MOST_RECORDS)  # a covariance stores one number, however large it is
    return from_json_content(value)


def _repeat(value: dict[str, Any], most: int) -> NDArray[np.float64]:
    number, times = value["repeat"], value["times"]
    if type(number) not in (int, float) or type(times) is not int or not 1 < times <= most:
        raise ParameterError(f"a repeated number must be repeated 2 to {most} times; the text was altered.")
    return np.broadcast_to(np.array([number], np.float64), (times,))
