"""Who writes an entry, why, and with which version."""

from __future__ import annotations

import getpass
import os
import socket
from dataclasses import dataclass, field

from matrixdp.errors import ParameterError, show
from matrixdp.version import __version__


def default_actor() -> str:
    """The user and the host of this process, as ``user@host``."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a user id without a name, as in containers
        user = f"uid{os.getuid()}" if hasattr(os, "getuid") else "unknown"
    return "".join(part if part.isprintable() else "?" for part in f"{user}@{socket.gethostname()}")


def make_author(actor: str | None, purpose: str | None) -> Author:
    """The author that optional arguments name."""
    return Author(purpose=purpose) if actor is None else Author(actor, purpose)


@dataclass(frozen=True)
class Author:
    """Who writes an entry, and why.

    Parameters
    ----------
    actor : str
        A person or a service; by default the user and the host of this process.
    purpose : str, optional
        What the release is for.
    """

    actor: str = field(default_factory=default_actor)
    purpose: str | None = None

    def __post_init__(self) -> None:
        for name, value in (("actor", self.actor), ("purpose", "-" if self.purpose is None else self.purpose)):
            if not isinstance(value, str) or not value or not value.isprintable():
                raise ParameterError(f"{name} must be a printable, non-empty text, got {show(value)} instead.")

    def to_json(self) -> dict[str, str]:
        """What every entry contains about its author."""
        purpose = {} if self.purpose is None else {"purpose": self.purpose}
        return {"actor": self.actor, "version": __version__, **purpose}
