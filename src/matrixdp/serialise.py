"""Values as plain JSON and back: frozen dataclasses of numbers, strings, arrays and each other."""

from __future__ import annotations

import dataclasses
from enum import Enum
from typing import Any, TypeVar

import numpy as np

from matrixdp.errors import ParameterError

T = TypeVar("T")
_KINDS: dict[str, type] = {}


def plain(cls: type[T]) -> type[T]:
    """Class decorator: let `to_plain` and `from_plain` carry this frozen dataclass."""
    _KINDS[cls.__name__] = cls
    return cls


def to_plain(value: Any) -> Any:
    """`value` as dicts, lists, numbers and strings; floats keep every bit.

    Examples
    --------
    >>> to_plain(np.array([1.0, 2.5]))
    {'array': [1.0, 2.5]}
    """
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
        return [to_plain(item) for item in value]
    if type(value).__name__ in _KINDS:
        fields = {
            field.name: to_plain(field.metadata.get("plain", _same)(getattr(value, field.name)))
            for field in dataclasses.fields(value)
            if field.init
        }
        return {"kind": type(value).__name__, **fields}
    raise ParameterError(f"{type(value).__name__} cannot be written as JSON.")


def _same(value: Any) -> Any:
    return value


def from_plain(value: Any) -> Any:
    """What `to_plain` was given.

    Examples
    --------
    >>> from_plain({'array': [1.0, 2.5]})
    array([1. , 2.5])
    """
    if isinstance(value, list):
        return tuple(from_plain(item) for item in value)
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return np.array(value["array"], np.float64)
    if "repeat" in value:
        return np.broadcast_to(np.array([value["repeat"]]), (int(value["times"]),))
    fields = {name: from_plain(item) for name, item in value.items() if name != "kind"}
    try:
        return _KINDS[value["kind"]](**fields)
    except (KeyError, TypeError, ValueError):
        raise ParameterError(
            f"not a record that this version can read: {value.get('kind', 'no kind given')!r}."
        ) from None
