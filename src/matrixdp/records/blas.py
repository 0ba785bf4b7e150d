"""BLAS limited to one thread while tasks run on threads or processes of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

_lock = RLock()  # reentrant: a context may end in the garbage collector while its thread is inside
_users = 0  # contexts that are open now
_limits: Any = None  # of the first of them, undone by the last


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread in this process, until the last of several overlapping contexts ends.

    Does nothing where threadpoolctl is not installed.
    """
    global _users, _limits
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield
        return
    with _lock:
        limits = threadpool_limits(1)  # by each context: the limits may have been changed since the first
        if _users == 0:
            _limits = limits
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limits.restore_original_limits()
