"""Snapshots of everything that can be reached from an object, to compare completely what two fits return.

An audit that looked at a part of a result would miss a leak in the rest: in a closure, a slot, an attribute that
`pickle` drops, an object that both fits change. What cannot be looked into is named, never taken as equal.
"""

from __future__ import annotations

import struct
import sys
import types
import warnings
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from hashlib import blake2b
from pathlib import PurePath
from typing import Any

import numpy as np

_PLAIN: tuple[Any, ...] = (type(None), bool, int, str, bytes, complex, range, type(Ellipsis), type(NotImplemented))
_DESCRIPTORS: tuple[type, ...] = (types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType)
_DESCRIPTORS += (types.MemberDescriptorType, types.ClassMethodDescriptorType)
_NAMED: tuple[type, ...] = (types.ModuleType, type, types.BuiltinFunctionType, *_DESCRIPTORS)  # by their names
_MEMBERS: dict[type, tuple[str, ...]] = {  # what objects of the language itself consist of
    types.FunctionType: ("__code__", "__defaults__", "__kwdefaults__", "__closure__"),
    types.CodeType: ("co_code", "co_names", "co_consts"),
    types.CellType: ("cell_contents",),
    types.MethodType: ("__func__", "__self__"),
    types.BuiltinFunctionType: ("__self__",),
    property: ("fget", "fset", "fdel"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
}
_READ = {object, list, tuple, dict, set, frozenset, deque, np.ndarray, *_PLAIN, *_MEMBERS}  # by their contents
_HEAP_TYPE = 1 << 9  # CPython's flag of classes that were made at run time


@dataclass(eq=False)
class Snapshot:
    """An object as it was: its type and value, what it consists of, and what it has stored that follows from that."""

    value: Any
    parts: dict[str, Snapshot] = field(default_factory=dict)
    derived: dict[str, Snapshot] = field(default_factory=dict)
    hidden: bool = False  # whether it has a state that cannot be read


def take_snapshot(thing: Any) -> Snapshot:
    """The snapshot of an object and of all that it refers to; later changes of the object do not change it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _look(thing, {})


def compare_snapshots(one: Snapshot, other: Snapshot) -> tuple[str, list[str]]:
    """The place of the first difference, "" if there is none, and all places that could not be compared.

    Those are objects whose state cannot be read, such as generators and open files, and values that were stored in one
    of two objects only although they follow from its fields.
    """
    skipped: list[str] = []
    known: set[tuple[int, int]] = set()

    def find(one: Snapshot, other: Snapshot, place: str) -> str:
        if (id(one), id(other)) in known:
            return ""
        known.add((id(one), id(other)))
        if one.value != other.value or list(one.parts) != list(other.parts):
            return place or "(all of it)"
        if one.hidden:
            skipped.append(place or "(all of it)")
        skipped.extend(f"{place}{name}" for name in sorted(one.derived.keys() ^ other.derived.keys()))
        pairs = [(name, one.parts[name], other.parts[name]) for name in one.parts]
        pairs += [(name, part, other.derived[name]) for name, part in one.derived.items() if name in other.derived]
        return next(filter(None, (find(mine, theirs, f"{place}{name}") for name, mine, theirs in pairs)), "")

    return find(one, other, ""), skipped


def _look(thing: Any, seen: dict[int, tuple[Snapshot, Any]]) -> Snapshot:
    """The snapshot of an object; `seen` has those of objects that were met before, and keeps these alive."""
    if id(thing) in seen:
        return seen[id(thing)][0]
    kind = type(thing)
    shot = Snapshot((kind.__module__, kind.__qualname__))
    seen[id(thing)] = shot, thing
    value = _read_value(thing)
    if value is not None:
        shot.value = (*shot.value, value)
    elif any(_is_native(base) for base in kind.__mro__):
        shot.hidden = hasattr(thing, "cache_parameters")  # of functions that remember their results
        try:
            state = thing.__reduce_ex__(4)
            items = [state] if isinstance(state, str) else state[1:]
            shot.parts["()"] = _look([list(one) if isinstance(one, Iterator) else one for one in items], seen)
        except Exception:
            shot.hidden = True
    for name, part in _list_parts(thing):
        shot.parts[name] = _look(part, seen)
    for name, part in _list_attributes(thing):
        follows = isinstance(getattr(kind, name, None), cached_property)
        (shot.derived if follows else shot.parts)[f".{name}"] = _look(part, seen)
    return shot


def _read_value(thing: Any) -> Any:
    """The value of an object that is no more than a value, or its name if it belongs to a module; otherwise None."""
    if isinstance(thing, float):
        return struct.pack("d", thing)  # NaN is equal to itself, and -0.0 is not 0.0
    for kind in _PLAIN:
        if isinstance(thing, kind):
            return kind.__repr__(thing)  # not what a subclass shows
    if isinstance(thing, Enum):
        return thing.name
    if isinstance(thing, PurePath):
        return str(thing)
    if isinstance(thing, _NAMED):
        return [getattr(thing, name, "") for name in ("__module__", "__name__", "__qualname__")]
    if isinstance(thing, np.ndarray | np.generic):
        content = b"" if thing.dtype.hasobject else np.ascontiguousarray(thing).tobytes()
        kind = f"{thing.dtype} {thing.dtype.metadata}"
        return kind, thing.shape, thing.strides, thing.flags.writeable, blake2b(content).digest()
    return None


def _is_native(kind: type) -> bool:
    """Whether objects of a class have a state in C, other than that of its base, slots and dictionary."""
    if kind in _READ or kind in _NAMED or kind.__base__ is None:
        return False
    words = 2 + len(list(_list_slots(kind)))  # of the dictionary, weak references and slots
    most = kind.__base__.__basicsize__ + words * struct.calcsize("P")
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    in_c = kind.__module__ in sys.builtin_module_names or file.endswith((".so", ".pyd"))
    return in_c or not kind.__flags__ & _HEAP_TYPE or kind.__basicsize__ > most


def _list_parts(thing: Any) -> Iterator[tuple[str, Any]]:
    """What an object contains, with names for a reader."""
    if isinstance(thing, dict | types.MappingProxyType):
        for number, (key, value) in enumerate(thing.items()):
            yield f"[key {number}]", key
            yield f"[{key!r}]" if isinstance(key, str | int) else f"[{number}]", value
    elif isinstance(thing, set | frozenset):
        yield from ((f"[{number}]", one) for number, one in enumerate(sorted(thing, key=repr)))
    elif isinstance(thing, list | tuple | deque) or (isinstance(thing, np.ndarray) and thing.dtype.hasobject):
        yield from ((f"[{number}]", one) for number, one in enumerate(thing))
    elif isinstance(thing, type) and getattr(sys.modules.get(thing.__module__), thing.__qualname__, None) is not thing:
        yield from ((f".{name}", one) for name, one in vars(thing).items())  # of a class that was made while it ran
    elif isinstance(thing, BaseException):
        yield from ((f".{name}", getattr(thing, name)) for name in ("__traceback__", "__cause__", "__context__"))
    if isinstance(thing, np.ndarray) and thing.base is not None:
        yield ".base", thing.base  # may hold more than the array shows
    for kind, names in _MEMBERS.items():
        if isinstance(thing, kind) and not isinstance(getattr(thing, "__self__", None), types.ModuleType):
            yield from ((f".{name}", getattr(thing, name, None)) for name in names)


def _list_attributes(thing: Any) -> Iterator[tuple[str, Any]]:
    """Attributes in the object's dictionary and slots, whatever the class says of its state."""
    if isinstance(thing, type | types.ModuleType | PurePath):
        return
    yield from list(getattr(thing, "__dict__", {}).items())
    for name in (name for base in type(thing).__mro__ for name in _list_slots(base)):
        if name not in ("__dict__", "__weakref__") and hasattr(thing, name):
            yield name, getattr(thing, name)


def _list_slots(kind: type) -> Iterator[str]:
    """Names of the slots of a class, as attributes of its objects."""
    slots = kind.__dict__.get("__slots__", ())
    for slot in (slots,) if isinstance(slots, str) else slots:
        yield slot if slot[:2] != "__" or slot[-2:] == "__" else f"_{kind.__name__.lstrip('_')}{slot}"
