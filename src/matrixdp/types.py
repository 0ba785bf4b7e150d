"""Array types of signatures, and classes whose arrays cannot be written to."""

import dataclasses
import functools
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

C = TypeVar("C", bound=type)

Floats: TypeAlias = NDArray[np.float64]

# One side of a linear map: a number times the identity, a diagonal of shape (n,), or a matrix of shape (n, n).
Factor: TypeAlias = float | Floats
# What an annotation of this package contains if it is, or may be, that of an array.
_ARRAYS = ("Floats", "Factor", "Array", "Any")


def is_diagonal(factor: Factor) -> bool:
    """True if a factor is a number or a diagonal."""
    return not isinstance(factor, np.ndarray) or factor.ndim == 1


def lock_arrays(cls: C) -> C:
    """Class decorator for dataclasses: let no array of an instance, of its cached properties and copies be written to.

    Privacy
    -------
    A design is checked once: what is checked must stay as it is until the noise is drawn.
    """
    given: Any = cls
    fields = {field.name: field.type for field in dataclasses.fields(given)}
    names = [name for name, kind in fields.items() if _may_be_array(cls, kind)]
    init = given.__init__
    if names:

        @functools.wraps(init)
        def locked_init(self: Any, *values: Any, **named: Any) -> None:
            init(self, *values, **named)
            for name in names:
                value = getattr(self, name)
                if isinstance(value, np.ndarray) and value.flags.writeable:  # the caller may hold it
                    object.__setattr__(self, name, _locked(value.copy()))

        given.__init__ = locked_init
    if not hasattr(cls, "__setstate__"):  # which copies and pickles use
        given.__setstate__ = lambda self, state: self.__dict__.update({key: _locked(state[key]) for key in state})
    for item in {id(item): item for base in cls.__mro__ for item in vars(base).values()}.values():
        if isinstance(item, functools.cached_property) and not hasattr(item, "locks"):
            item.locks = True  # type: ignore[attr-defined]
            if _may_be_array(cls, item.func.__annotations__.get("return")):
                read = item.func
                item.func = functools.wraps(read)(lambda self, read=read: _locked(read(self)))
    return cls


def _may_be_array(cls: type, annotation: object) -> bool:
    """Whether an annotation allows for arrays; those of other packages are not relied upon."""
    return not cls.__module__.startswith("matrixdp.") or any(name in str(annotation) for name in _ARRAYS)


def _locked(value: Any) -> Any:
    """An array, or the arrays of a tuple, after they were made read-only; any other value as it is."""
    for array in value if isinstance(value, tuple) else (value,):
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    return value
