"""Raw files from the archive, turned into canonical tables and checked."""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request

from matrixdp.datasets.catalogue import ARCHIVE, Source
from matrixdp.errors import MatrixDPError

_LARGEST = 1 << 25
_SECONDS = 20.0


class DatasetError(MatrixDPError, OSError):
    """A data set cannot be obtained, or is not the one that was published."""


def archive_url() -> str:
    """Address of the raw files: ``MATRIXDP_DATA_URL`` if it is set, else the UCI archive; empty for no downloads."""
    return os.environ.get("MATRIXDP_DATA_URL", ARCHIVE).rstrip("/")


def download(source: Source, *, base: str | None = None) -> bytes:
    """The canonical table of a data set, from the archive.

    Parameters
    ----------
    source : Source
    base : str, optional
        Address under which the archive's paths are; `archive_url()` by default.
    """
    base = archive_url() if base is None else base.rstrip("/")
    if not base.startswith(("https://", "http://")):
        raise DatasetError(f"MATRIXDP_DATA_URL must be an http address to download from, got {base!r} instead.")
    url = f"{base}/{source.path}"
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as answer:  # noqa: S310 - http only, see above
            raw = answer.read(_LARGEST + 1)
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        raise DatasetError(f"{url} cannot be downloaded: {error}.") from None
    if len(raw) > _LARGEST:
        raise DatasetError(f"{url} must be at most {_LARGEST} bytes.")
    try:
        table = source.canonical(source.parse(raw))
    except (ValueError, KeyError) as error:
        raise DatasetError(f"{url} is not the file that was published: {error}") from None
    return check(source, table, url)


def check(source: Source, table: bytes, where: str) -> bytes:
    """`table`, if its SHA-256 is the one in the catalogue."""
    found = hashlib.sha256(table).hexdigest()
    if found != source.sha256:
        raise DatasetError(
            f"{where} must have the SHA-256 {source.sha256} as {source.name}.csv, got {found} instead. "
            "Remove it, or get the original."
        )
    return table
