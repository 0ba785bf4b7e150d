"""Which files a path, a folder or a pattern means."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from matrixdp.errors import DataError

_RELEASES = ("_release.json", "release.json")  # what a folder that was released holds


def find_files(place: Path, endings: Sequence[str]) -> tuple[Path, list[Path]]:
    """The folder that was searched, and the files found, in the order of their paths.

    Names that begin with a dot or an underscore are passed over, as by other readers of data sets; links are followed;
    a folder that a pattern matches stands for the files in it. A file of another kind is an error, since it may be a
    part of the records, and so is a folder that was released, since it is none.
    """
    if place.is_file():
        _check_kind(place, endings, alone=True)
        return place.parent, [place]
    root = place if place.is_dir() else _fixed(place)
    matched = [place] if place.is_dir() else [Path(path) for path in glob.glob(str(place), recursive=True)]
    if not matched:
        pattern = glob.has_magic(str(place))
        raise DataError(
            f"no file matches {place}." if pattern else f"there is no file or folder {place}. Check the path."
        )
    paths = [file for path in matched for file in (_walk(path) if path.is_dir() else [path])]
    for path in paths:
        if path.name in _RELEASES:
            raise DataError(f"{path.parent} was released by matrixdp, and holds no records. Move it elsewhere.")
    shown = sorted({path for path in paths if not _passed_over(path.relative_to(root), root)})
    if not shown:
        raise DataError(f"{place} holds no files that end in {', '.join(endings)}.")
    for path in shown:
        _check_kind(path, endings, alone=False)
    return root, shown


def _check_kind(path: Path, endings: Sequence[str], *, alone: bool) -> None:
    ending = path.suffix.lower()
    if ending in endings:
        return
    remedy = "" if alone else " Take it away, or give a pattern for the others."
    if ending in (".gz", ".zip", ".bz2", ".zst", ".xz"):
        remedy = " Unpack it first."
    elif ending == ".npy":
        remedy = " In Python a NPY file will do, by itself."
    raise DataError(f"{path} must end in {', '.join(endings)}, which says how to read it.{remedy}")


def _walk(folder: Path) -> Iterator[Path]:
    seen = set()
    for place, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        if real in seen:  # a link that leads back
            folders.clear()
            continue
        seen.add(real)
        yield from (Path(place, name) for name in names)


def _fixed(pattern: Path) -> Path:
    """The folders of a pattern before its first wild card."""
    parts = pattern.parts
    wild = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    return Path(*parts[:wild]) if wild else Path()


def _passed_over(path: Path, root: Path) -> bool:
    """Whether a name on the way is hidden, or a link leads back to a folder on it."""
    folders = [os.path.realpath(root / folder) for folder in path.parents]
    return len(set(folders)) < len(folders) or any(part.startswith((".", "_")) for part in path.parts)
