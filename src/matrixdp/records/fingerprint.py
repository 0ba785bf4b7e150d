"""Fingerprint of the code that tasks run, so that workers with other code are detected."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from matrixdp.errors import EngineError
from matrixdp.version import __version__

# Packages whose code tasks run on workers; a contract test traces them. Others, such as reports, change no result.
RUN_BY_WORKERS = frozenset(
    {
        "adaptive",
        "checks",
        "design",
        "device",
        "domain",
        "noise",
        "queries",
        "records",
        "release",
        "sensitivity",
        "types",
    }
)


@lru_cache(maxsize=1)
def code_fingerprint() -> str:
    """Version of the package and a digest of the modules in `RUN_BY_WORKERS`, as in ``1.0.0 (1f2e3d4c5b6a)``."""
    folder = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder)
        if name.parts[0].removesuffix(".py") in RUN_BY_WORKERS:
            digest.update(name.as_posix().encode() + b"\0" + path.read_bytes())
    return f"{__version__} ({digest.hexdigest()[:12]})"


def require_same_code(code: str) -> None:
    """Raise an `EngineError` unless `code` is the fingerprint of this process."""
    if code != code_fingerprint():
        raise EngineError(
            f"workers must run matrixdp {code_fingerprint()}, like this process, got {code} instead. "
            "Install the same version on the workers."
        )
