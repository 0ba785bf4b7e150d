"""Release of a noisy data set that need not fit into memory, as a folder of Parquet files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from matrixdp.checks import check_flag
from matrixdp.design.design import Design, check_design
from matrixdp.display import format_number, render_note, render_table
from matrixdp.errors import DataError, ParameterError, RequestPendingError, show
from matrixdp.ledger import Ledger, Receipt
from matrixdp.mechanisms.dataset_rows import ALTERED, CheckTask, FoundPart, WriteTask, name_columns, writing
from matrixdp.mechanisms.mechanism import check_rowwise, current_answer
from matrixdp.noise import BlockKey, Stream
from matrixdp.queries.base import check_count
from matrixdp.records import Records, open_records, require_public_order, require_rereadable
from matrixdp.release.charging import Account, Paid, Price, describe_design, design_price, make_once, open_account
from matrixdp.release.output_folder import OutputFolder
from matrixdp.release.released import reading, require
from matrixdp.release.result import Guaranteed, read_design
from matrixdp.types import Floats
from matrixdp.version import __version__

MANIFEST = "_release.json"  # readers of data sets skip names that begin with an underscore


@dataclass(frozen=True, eq=False)
class DatasetRelease(Guaranteed):
    """A released noisy data set in a folder of Parquet files. Nothing in it is private.

    Attributes
    ----------
    path : Path
        The folder, with ``part-*.parquet`` in the order of the records and ``_release.json``, which is written last.
    design : Design
    files : tuple of str
        Names of the Parquet files.
    version, simulation, missing
        As for `Release`.
    request, charge : str or None
        The request id under which the release was charged, and the hash of that charge in the ledger, which tells the
        folder of this release from others.
    """

    FORMAT = "matrixdp data set 1"

    path: Path
    design: Design
    files: tuple[str, ...]
    version: str = __version__
    simulation: bool = False
    missing: str = "error"
    request: str | None = None
    charge: str | None = None

    @property
    def std(self) -> Floats:
        """Standard deviation of the noise in each column, of shape (features,)."""
        return np.asarray(self.design.std[0])

    def __str__(self) -> str:
        rows, columns = self.query.shape
        place = f"{rows:,} noisy records of {columns} columns in {self.path}, {len(self.files):,} files"
        return f"{place}; {self._guarantee()}"

    def __repr__(self) -> str:
        return f"<DatasetRelease: {self}>"

    def _show(self) -> tuple[str, list[tuple[str, str]], list[str]]:
        """Where the data set is, and the noise of each column beside its largest value."""
        query = self.query
        largest = np.broadcast_to(query.scale, query.shape)[0]
        rows = [
            (name, format_number(std), format_number(float(most), 6))
            for name, std, most in zip(name_columns(query), self.std.tolist(), largest, strict=True)
        ]
        table = render_table(("column", "std of the noise", "largest value possible"), rows)
        note = render_note("the noise of each row hides that row: use averages over many rows")
        files = f"{len(self.files):,} in Parquet, with the records in their order"
        title = f"Noisy data set, {' × '.join(f'{size:,}' for size in query.shape)}"
        return title, [("folder", str(self.path)), ("files", files)], [table, note]

    def _content(self) -> dict[str, Any]:
        paid = {"request": self.request, "charge": self.charge}
        paid = {name: value for name, value in paid.items() if value is not None}
        return {**super()._content(), "std": self.std.tolist(), "files": list(self.files), **paid}

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> DatasetRelease:
        """Open a folder that `release_dataset` wrote; raise a `ParameterError` if it is incomplete."""
        place = Path(path)
        try:
            text = (place / MANIFEST).read_bytes()
        except OSError:
            raise ParameterError(f"path must be a complete data set, but {place} has no {MANIFEST}.") from None
        with reading(f"{place / MANIFEST} must be a file that matrixdp wrote, but it was altered."):
            content = json.loads(text.decode("utf-8"))
            files, request, charge = tuple(content["files"]), content.get("request"), content.get("charge")
            if content["format"] != cls.FORMAT or any(Path(name).name != name for name in files):
                raise KeyError("format")
            if not isinstance(request, str | None) or not isinstance(charge, str | None):
                raise KeyError("request")
            found = cls(path=place, files=files, request=request, charge=charge, **read_design(content))
            found.check_facts(content)
            check_rowwise(found.design)
            same = np.allclose(content["std"], found.std, rtol=1e-9, atol=0)
            require(same, "std must be that of the design")
            lost = [name for name in files if not (place / name).is_file()]
        if lost:
            raise ParameterError(f"path must be a complete data set, but {place / lost[0]} does not exist.")
        return found


def release_dataset(
    design: Design,
    data: Any,
    out: str | os.PathLike[str],
    *,
    clip: bool = True,
    missing: str = "error",
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    request: str | None = None,
    allowance: str | None = None,
    workers: Any = None,
    force: bool = False,
    stream: Stream | None = None,
    simulation: bool = False,
) -> DatasetRelease:
    """Release a noisy copy of the records as a folder of Parquet files, in parts that fit into memory.

    The records are read twice: first to find errors, before anything is charged, and then to add noise. The workers
    that read a part also write it. Each file is moved into the folder when it is complete, and the folder appears when
    all files are complete.

    Parameters
    ----------
    design : Design
        Design for an `Identity` query.
    data : path, iterator of blocks, dask collection, ...
        As for `open_records`, but readable more than once.
    out : path
        A new or empty folder; with a cluster, all workers must see it under this path.
    clip, missing, ledger, dataset, allowance, stream, simulation
        As for `matrixdp.Design.release`.
    request : str, optional
        A request id that was used before, with the same options, returns the data set in `out`, without a charge, if it
        is the one that was released under this id; also if the first process was killed after the folder was complete.
    workers : int, str or distributed.Client, optional
        As for `open_records`.
    force : bool
        Replace an existing folder.

    Privacy
    -------
    `design.distance`-GDP for replace-one neighbours. The noise of a record depends on its position only, so a part that
    is processed again gets the same noise. This is safe only if its records are the same, which their SHA-256 ensures
    before anything is written: a file that was altered between the passes raises a `DataError`. The key of the noise is
    sent to the workers, so their connections must be as secure as those that carry the data. After an error the folder
    does not exist; if the release was charged already, the ledger shows the charge as not released.
    """
    check_design(design)
    check_flag(clip, "clip")
    check_flag(force, "force")
    account = open_account(ledger, dataset, request, allowance, stream=stream, simulation=simulation)
    options: dict[str, Any] = {"clip": clip, "missing": missing, "workers": workers, "force": force}
    released: DatasetRelease
    released, _ = write_dataset(design, data, account, out, stream=stream, simulation=simulation, **options)
    return released


def write_dataset(
    design: Design,
    data: Any,
    account: Account | None,
    out: str | os.PathLike[str],
    *,
    clip: bool = True,
    missing: str = "error",
    workers: Any = None,
    force: bool = False,
    ready: Callable[[], object] | None = None,
    stream: Stream | None = None,
    simulation: bool = False,
) -> Paid:
    """`release_dataset` for an account; `ready` is called before the charge."""
    query = check_rowwise(design)
    check = CheckTask(query, clip, missing)
    if current_answer() is not None:
        raise ParameterError("release_dataset cannot be replayed in an audit; use release, in memory.")
    request = None if account is None else account.request

    def find_price() -> Price:
        price = design_price(design, data, clip=clip, missing=missing, request=request)
        files = {} if request is None else {"output": "files"}  # which are not the release of a matrix in memory
        return replace(price, description={**price.description, **files})

    def prepare() -> tuple[OutputFolder, Records, list[FoundPart]]:
        everything = require_rereadable(open_records(data, workers=workers))
        require_public_order(everything)
        everything.check_output(out)
        folder = claimed.enter_context(OutputFolder(out, force=force))
        records = query.check_people(everything).select(query.names)
        checked = sorted(records.map(check, whole=True))
        check_count(sum(part.rows for part in checked), query.shape[0])
        return folder, records, checked

    def make(prepared: tuple[OutputFolder, Records, list[FoundPart]], receipt: Receipt | None) -> DatasetRelease:
        folder, records, checked = prepared
        key = BlockKey(Stream() if stream is None else stream)
        task = WriteTask(check, design, key, tuple(checked), folder.path, folder.drafts)
        found = dict(records.map(task, whole=True))
        if len(found) != len(checked):
            raise DataError(ALTERED)
        files = tuple(name for _, name in sorted(found.items()) if name is not None)
        facts: dict[str, Any] = {"simulation": simulation, "missing": missing, "request": request}
        charge = receipt.hash if receipt is not None and request is not None else None
        released = DatasetRelease(folder.place, design, files, **facts, charge=charge)
        with writing(folder.place):
            (folder.path / MANIFEST).write_text(released.to_json(), encoding="utf-8")
            folder.finish()
        return released

    def read(stored: str) -> DatasetRelease:
        if _read_manifest(out) != stored:
            raise ParameterError(
                f"the data set of the request {show(request)} was released before, and is not in {Path(out)}. "
                "Give the folder that it was written to, or use a new request id, which is charged again."
            )
        return DatasetRelease.open(out)

    if account is not None and request is not None:
        _complete_request(out, account, find_price())
    with ExitStack() as claimed:
        return make_once(account, find_price, read=read, prepare=prepare, make=make, ready=ready)


def _complete_request(out: str | os.PathLike[str], account: Account, price: Price) -> None:
    """Complete a pending request if its data set is in `out`: a folder that names its charge, with all its files.

    The folder appears in one step, with all files, after their noise was drawn for the charge whose hash it contains,
    so it is the release that was paid for. Where its process is still alive, both store the same text.
    """
    try:
        account.stored(price, wait=False)
    except RequestPendingError as pending:
        with suppress(ParameterError):
            found, text = DatasetRelease.open(out), _read_manifest(out)
            described = describe_design(found.design).items() <= price.description.items()
            paid = (found.request, found.charge) == (account.request, pending.receipt.hash)
            if text is not None and described and paid:
                account.ledger.complete(pending.receipt, text)
                with OutputFolder(out, force=True):
                    pass  # removes what the process left beside the folder; one that is alive keeps it


def _read_manifest(out: str | os.PathLike[str]) -> str | None:
    try:
        return Path(out, MANIFEST).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
