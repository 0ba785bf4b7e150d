"""Where a data set is looked for."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

from matrixdp.datasets.catalogue import CATALOGUE, Source
from matrixdp.datasets.download import DatasetError, archive_url, check, download
from matrixdp.datasets.simulated import simulate_table
from matrixdp.datasets.table import Table
from matrixdp.errors import MissingExtraError, ParameterError

__all__ = ["DatasetError", "cache_folder", "load_table"]


def load_table(name: str, *, fetch: bool = True, simulate: bool = False) -> Table:
    """A data set by name: 'liver', 'movement' or 'ctg'.

    Looked for in the folder that ``MATRIXDP_DATA`` names, then in the user's cache, then in the UCI archive (or where
    ``MATRIXDP_DATA_URL`` says; empty for no downloads). Whatever is found must have the published table's SHA-256.

    Parameters
    ----------
    name : str
    fetch : bool
        Whether to download.
    simulate : bool
        Whether a simulated stand-in, marked as such, will do when there is no other way.

    Examples
    --------
    >>> load_table("liver", fetch=False, simulate=True).take("drinks").shape
    (345, 1)
    """
    if name not in CATALOGUE:
        raise ParameterError(f"name must be one of {', '.join(CATALOGUE)}, got {name!r} instead.")
    source = CATALOGUE[name]
    for folder, origin in ((os.environ.get("MATRIXDP_DATA"), "file"), (cache_folder(), "cache")):
        path = Path(folder) / f"{name}.csv" if folder else None
        if path is not None and path.is_file():
            return _table(source, check(source, path.read_bytes(), str(path)), origin)
    try:
        return _downloaded(source, fetch=fetch)
    except (DatasetError, MissingExtraError) as error:
        if simulate:
            return simulate_table(name)
        raise DatasetError(
            f"{name}.csv is neither in MATRIXDP_DATA nor in the cache, and it was not downloaded: {error} "
            "Set MATRIXDP_DATA to a folder that has it, or take the simulated stand-in."
        ) from None


def cache_folder() -> Path:
    """The user's cache of data sets."""
    if sys.platform == "win32":
        home = os.environ.get("LOCALAPPDATA")
    else:
        home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "matrixdp" / "datasets"


def _downloaded(source: Source, *, fetch: bool) -> Table:
    if not fetch or not archive_url():
        raise DatasetError("downloads are switched off.")
    content = download(source)
    _store(source, content)
    return _table(source, content, "download")


def _store(source: Source, content: bytes) -> None:
    """Keep a table for the next time, if the cache can be written."""
    folder = cache_folder()
    part = folder / f"{source.name}.csv.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
        part.replace(folder / f"{source.name}.csv")
    except OSError:
        part.unlink(missing_ok=True)


def _table(source: Source, content: bytes, origin: str) -> Table:
    lines = content.decode().splitlines()
    values = np.array([line.split(",") for line in lines[1:]], np.float64)
    return Table(source.name, source.columns, values, origin)
