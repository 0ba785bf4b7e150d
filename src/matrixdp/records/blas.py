"""BLAS limited to one thread while tasks run on threads or processes of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

_lock = Lock()
_users = 0  # contexts that are open now
_limits: Any = None  # set by the first of them, undone by the last


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
        if _users == 0:
            _limits = threadpool_limits(1)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limits.restore_original_limits()
