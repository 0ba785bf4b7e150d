"""A hook for audits: within a `with` block, a function answers releases in place of fresh noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from numpy.typing import NDArray

from matrixdp.design.design import Design
from matrixdp.errors import ParameterError
from matrixdp.types import Floats

# From the design and what `prepare` returned to the noisy answer.
Answer = Callable[[Design, NDArray[Any]], Floats]

_ANSWER: ContextVar[Answer | None] = ContextVar("matrixdp_release_answer", default=None)


@contextmanager
def intercept_releases(answer: Answer) -> Iterator[None]:
    """Context manager in which `answer` replaces the noise of every release of this thread.

    Privacy
    -------
    Releases within the block are marked as simulations and cannot be charged. The hook ends with the block, also after
    an error, and other threads never see it. Blocks cannot be nested.
    """
    if _ANSWER.get() is not None:
        raise ParameterError("releases are intercepted already; end the other audit first.")
    token = _ANSWER.set(answer)
    try:
        yield
    finally:
        _ANSWER.reset(token)


def current_answer() -> Answer | None:
    """The function that answers releases, or None outside of an audit."""
    return _ANSWER.get()
