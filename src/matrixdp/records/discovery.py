"""Search for the files of a data set: a path, a folder or a pattern."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from matrixdp.errors import DataError

_RELEASES = ("_release.json", "release.json")  # written into the output folder of a release


def find_files(place: Path, endings: Sequence[str]) -> tuple[Path, list[Path]]:
    """Return the folder that was searched, and the files found, sorted by path.

    Names that begin with a dot or an underscore are skipped, as other readers of data sets do. Links are followed. If
    a pattern matches a folder, all files in it are found. A file with another ending is an error, because it might
    belong to the records; so is the output folder of a release, because it does not.

    Parameters
    ----------
    place : Path
        A file, a folder or a pattern.
    endings : sequence of str
        Endings of the file names that can be read, such as ``.csv``.
    """
    if place.is_file():
        _check_ending(place, endings, alone=True)
        return place.parent, [place]
    root = place if place.is_dir() else _fixed_folder(place)
    matched = [place] if place.is_dir() else [Path(path) for path in glob.glob(str(place), recursive=True)]
    if not matched:
        pattern = glob.has_magic(str(place))
        raise DataError(
            f"no file matches {place}." if pattern else f"there is no file or folder {place}. Check the path."
        )
    paths = [file for path in matched for file in (_walk(path) if path.is_dir() else [path])]
    for path in paths:
        if path.name in _RELEASES:
            raise DataError(f"{path.parent} is the output folder of a release, not records. Move it elsewhere.")
    found = sorted({path for path in paths if not _is_skipped(path.relative_to(root), root)})
    if not found:
        raise DataError(f"{place} contains no files that end in {', '.join(endings)}.")
    for path in found:
        _check_ending(path, endings, alone=False)
    return root, found


def is_npy_path(data: Any) -> bool:
    """Return whether `data` is the path of a NPY file, which contains an array, not a table."""
    return isinstance(data, str | os.PathLike) and Path(data).suffix.lower() == ".npy"


def find_ending(path: Path) -> str:
    """Return the ending of a file name in lower case, that of a compressed file with the one before it.

    Examples
    --------
    >>> find_ending(Path("2020.CSV")), find_ending(Path("a.b.csv.gz"))
    ('.csv', '.csv.gz')
    """
    return "".join(path.suffixes[-2 if path.suffix.lower() in (".gz", ".zst") else -1 :]).lower()


def _check_ending(path: Path, endings: Sequence[str], *, alone: bool) -> None:
    ending = find_ending(path)
    if ending in endings:
        return
    remedy = "" if alone else " Remove it, or give a pattern that matches only the others."
    if path.suffix.lower() in (".gz", ".zip", ".bz2", ".zst", ".xz"):
        remedy = " Decompress it first."
    elif ending == ".npy":
        remedy = " A NPY file can be read from Python only, and only a single one."
    raise DataError(f"{path} must end in {', '.join(endings)}, which determines the format.{remedy}")


def _walk(folder: Path) -> Iterator[Path]:
    seen = set()
    for place, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        if real in seen:  # a link to a folder that contains it
            folders.clear()
            continue
        seen.add(real)
        yield from (Path(place, name) for name in names)


def _fixed_folder(pattern: Path) -> Path:
    """Return the folder of a pattern before its first wildcard."""
    parts = pattern.parts
    wild = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    return Path(*parts[:wild]) if wild else Path()


def _is_skipped(path: Path, root: Path) -> bool:
    """Return whether a name in the path is hidden, or a link in it leads to a folder that contains the link."""
    folders = [os.path.realpath(root / folder) for folder in path.parents]
    return len(set(folders)) < len(folders) or any(part.startswith((".", "_")) for part in path.parts)
