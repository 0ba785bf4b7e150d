"""Results: the folders of finished releases, which are public."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from matrixdp.errors import show
from matrixdp.studio.refusals import NotFoundError
from matrixdp.studio.requests import FullRequest, Request, RequestBook, Status
from matrixdp.studio.roles import Role, Viewer

if TYPE_CHECKING:
    from matrixdp.release import CovarianceRelease
    from matrixdp.release import MechanismRelease, Release

_ANYBODY = Viewer("", frozenset({Role.CURATOR}))  # releases are public: everybody who is signed in sees all of them


class Results:
    """Reads the folders of finished releases, as ``matrixdp release`` writes them."""

    def __init__(self, folder: Path, requests: RequestBook) -> None:
        self._folder, self._requests = folder, requests

    def list_all(self, viewer: Viewer) -> list[Request]:
        """All requests that are released, by anybody, the latest first."""
        return self._requests.list_all(_ANYBODY, Status.RELEASED)

    def get(self, viewer: Viewer, request_id: str) -> FullRequest:
        """The request of a finished release, or a `NotFoundError`."""
        found = self._requests.get(viewer, request_id)
        if found.status is not Status.RELEASED:
            raise NotFoundError("this request is not released yet.")
        return found

    def files(self, viewer: Viewer, request_id: str) -> list[str]:
        """The names of a release's files: ``report.html``, ``release.json``, ``matrix.csv`` and others."""
        folder = self._find_folder(viewer, request_id)
        return sorted(path.name for path in folder.iterdir() if path.is_file() and not path.is_symlink())

    def path(self, viewer: Viewer, request_id: str, name: str) -> Path:
        """The path of one of a release's files, or a `NotFoundError`; never one outside of its folder."""
        if name not in self.files(viewer, request_id):
            raise NotFoundError(f"this release has no file {show(name)}.")
        return self._find_folder(viewer, request_id) / name

    def load(self, viewer: Viewer, request_id: str) -> Release | MechanismRelease | CovarianceRelease:
        """The release, from its ``release.json``, for post-processing, which costs nothing."""
        from matrixdp.release import read_release

        return read_release(self.path(viewer, request_id, "release.json").read_text(encoding="utf-8"))

    def _find_folder(self, viewer: Viewer, request_id: str) -> Path:
        folder = self._folder / self.get(viewer, request_id).id
        if not folder.is_dir():
            raise NotFoundError("the folder of this release is gone. The ledger has the release: restart the studio.")
        return folder
