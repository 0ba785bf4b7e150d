"""An output folder that one process claims, and that appears only when it is complete."""

import ctypes
import errno
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

from matrixdp.errors import ParameterError

try:
    import fcntl

    _HAS_LOCKS = True
except ImportError:  # Windows; there, the workspace of a killed process must be removed by hand
    _HAS_LOCKS = False

_REPORTS = {"release.json": "report.html", "_release.json": "_report.html", "audit.json": "report.html"}
_LINK = re.compile(r'href="([^"/#:]+)"')
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CURRENT_FOLDER = -100  # AT_FDCWD of Linux
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux


class OutputFolder:
    """Context manager for an output folder that one process claims, and that appears only when it is complete.

    On entry, the hidden folder `workspace` is created and locked beside the final path; another process that asks for
    the same path is refused. The workspace is readable by its owner only. It contains the folder `path` to write to,
    and the folder `drafts` for unfinished files. `finish` writes all files through to the disk and moves `path` to its
    final place. On exit the workspace is removed. If the process is killed, the next one that claims the place removes
    what it left; an old folder is in its place, or is put back there.

    A `ParameterError` is raised if `place` exists, unless it is an empty folder or `force` is given, and if another
    process is writing to it. With `force`, a folder that holds a release and nothing else is replaced, at `finish`.
    """

    def __init__(self, place: str | os.PathLike[str], *, force: bool = False) -> None:
        given = Path(place).absolute()
        self.place = given if given.name not in ("", "..") else Path(os.path.realpath(given))
        self.force = force
        self.workspace = self.place.parent / f".{self.place.name}.matrixdp"
        # A name of its own: a worker that outlives a killed process must not write into the next one's folder.
        run = self.workspace / uuid.uuid4().hex
        self.path = run / "new"
        self.drafts = run / "drafts"
        self._old = self.workspace / "old"
        self._lock: int | None = None

    def __enter__(self) -> Self:
        try:
            if self.place.is_symlink() or (self.place.exists() and not self.place.is_dir()):
                raise ParameterError(f"out must be a folder, but {self.place} is not. Choose another path.")
            self.place.parent.mkdir(parents=True, exist_ok=True)
            self._lock = self._claim()
            try:
                self._recover()
                self._require_replaceable()
                self.path.mkdir(parents=True)
                self.drafts.mkdir()
            except BaseException:
                self._release()
                raise
        except OSError as error:
            raise ParameterError(
                f"out cannot be written: {error.strerror or error} at {self.place.parent}. "
                "Choose another path, or make it writable."
            ) from None
        return self

    def finish(self) -> None:
        """Write all files to the disk and move the folder to its final path.

        A kill at any moment leaves the old folder or the new one: they are exchanged in one step or, on systems that
        cannot do this, the next process that claims the place restores the old one.
        """
        _synchronise(self.path)
        self._require_replaceable()  # something may have been put there since
        if not self.force or not self.place.exists():
            os.rename(self.path, self.place)  # fails if the place has files now
        elif not _exchange(self.path, self.place):
            os.rename(self.place, self._old)
            try:
                os.rename(self.path, self.place)
            except OSError:
                os.rename(self._old, self.place)
                raise
        synchronise_folder(self.place.parent)

    def _claim(self) -> int | None:
        """Create and lock the workspace; the workspace of a killed process is taken over."""
        while True:
            try:
                self.workspace.mkdir(mode=0o700)
                created = True
            except FileExistsError:
                created = False
            if not _HAS_LOCKS:
                if created:
                    return None
                raise self._taken_error()
            with suppress(FileNotFoundError), ExitStack() as opened:  # its process may just have finished
                lock = os.open(self.workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                opened.callback(os.close, lock)
                if not _try_lock(lock, created=created):
                    raise self._taken_error()
                if os.path.samestat(os.fstat(lock), self.workspace.lstat()):  # not one that was removed before
                    os.fchmod(lock, 0o700)
                    opened.pop_all()
                    return lock

    def _taken_error(self) -> ParameterError:
        return ParameterError(
            f"out is in use: another process is writing to {self.place}. Wait for it, or choose another path. "
            f"(If there is none, remove {self.workspace}.)"
        )

    def _recover(self) -> None:
        """Put back an old folder that a killed process was replacing, and remove everything else that it left."""
        if self._old.exists() and not (self.place.exists() and any(self.place.iterdir())):
            os.rename(self._old, self.place)
        for entry in self.workspace.iterdir():
            shutil.rmtree(entry)

    def _require_replaceable(self) -> None:
        if not self.place.name:
            raise ParameterError("out must be a folder below the root of the file system. Choose another path.")
        if not self.place.exists() or not any(self.place.iterdir()):
            return
        if not self.force:
            raise ParameterError(
                f"«out» must be a new or empty folder, but {self.place} contains files. Choose another path, or "
                "replace it with «force»."
            )
        if (foreign := find_foreign_file(self.place)) is not None:
            raise ParameterError(
                f"«out»: {foreign} is in the way: «force» replaces only a folder that holds a release and nothing "
                "else. Move it away, or choose another path."
            )

    def _release(self) -> None:
        """Remove the workspace and then unlock it, so that no other process sees an unlocked one that is in use."""
        shutil.rmtree(self.workspace, ignore_errors=True)
        if self._lock is not None:
            with suppress(OSError):
                fcntl.flock(self._lock, fcntl.LOCK_UN)  # also for processes that were forked while it was held
            os.close(self._lock)
            self._lock = None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._release()
        if isinstance(error, OSError) and error.errno in _FULL:  # without a path
            raise ParameterError(f"out: {self.place} cannot be written: {error.strerror}.") from None


def find_foreign_file(place: Path) -> Path | None:
    """Something in a folder that is not a file of one release, data set or audit; None if there is nothing else.

    A file of another's making that has the name of one of its files is taken for it.
    """
    written = next((names for mark in _REPORTS if (names := _list_written(place / mark))), set())
    for entry in sorted(place.iterdir(), key=lambda entry: (entry.name not in _REPORTS, entry.name)):
        if entry.name not in written or entry.is_symlink() or not entry.is_file():
            return entry
    return None


def _list_written(mark: Path) -> set[str]:
    """Names of the files of a release, a data set or an audit, as the file `mark` or the report beside it has them."""
    report = mark.with_name(_REPORTS[mark.name])
    try:
        with mark.open("rb") as file:
            if b'"format": "matrixdp ' not in file.read(100):
                return set()
        names = {mark.name, report.name}
        if mark.name == "_release.json":
            return names | {"_provenance.json"} | set(json.loads(mark.read_bytes())["files"])
        linked = _LINK.findall(report.read_text(encoding="utf-8", errors="replace")) if report.exists() else []
        return names | set(linked) | ({"tradeoff.svg"} if mark.name == "audit.json" else set())
    except (OSError, ValueError, LookupError, TypeError):
        return set()


def refuse_inside(out: str | os.PathLike[str], paths: Iterable[object]) -> None:
    """Raise a `ParameterError` if one of the files that a command needs is inside of its output folder."""
    place = Path(os.path.realpath(out))
    for path in paths:
        if isinstance(path, Path) and Path(os.path.realpath(path)).is_relative_to(place):
            raise ParameterError(f"out: {path} is inside of {out}, which is written as a whole. Choose another folder.")


def _try_lock(lock: int, *, created: bool) -> bool:
    """Lock an open folder without waiting; where locks are not supported, only a folder that was `created` is taken."""
    if os.fstat(lock).st_uid != os.geteuid():
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return created and error.errno not in (errno.EWOULDBLOCK, errno.EACCES)
    return True


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two folders in one step; returns whether the system can."""
    rename: Any = getattr(ctypes.CDLL(None), "renameat2", None) if os.name == "posix" else None
    if rename is None:
        return False
    paths = os.fsencode(first), os.fsencode(second)
    return bool(rename(_CURRENT_FOLDER, paths[0], _CURRENT_FOLDER, paths[1], _EXCHANGE) == 0)


def _synchronise(folder: Path) -> None:
    """Write a folder and everything in it through to the disk."""
    for place, _, names in os.walk(folder, topdown=False):
        for name in names:
            with open(Path(place, name), "rb") as file:
                os.fsync(file.fileno())
        synchronise_folder(Path(place))


def synchronise_folder(folder: Path) -> None:
    """Make the names of the files in a folder durable."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows cannot open folders
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network file systems cannot synchronise folders
            raise
    finally:
        os.close(handle)


def refuse_existing(paths: Iterable[Path], option: str) -> None:
    """Raise a `ParameterError` if there is a file at one of the paths that an option of the command line named."""
    for path in paths:
        if path.exists():
            raise ParameterError(f"--{option}: {path} already exists. Choose another name, or add --force.")


def write_file(path: Path, content: str | bytes, *, option: str = "", overwrite: bool = True) -> None:
    """Write a file, text as UTF-8, completely or not at all; `option` of the command line named it, for messages."""
    name = f"--{option}" if option else "path"
    if not overwrite:
        refuse_existing([path], option)
    temporary = path.with_name(f".{uuid.uuid4().hex}")  # short: the name itself may be as long as names can be
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise ParameterError(f"{name}: {path} cannot be written: {error.strerror or error}.") from None
