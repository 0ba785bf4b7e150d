"""The public options of a release by name, which the ledger keeps with a request id and compares when it is repeated.

They are fixed before the data are read, and contain nothing that was computed from private values.
"""

from __future__ import annotations

from typing import Any

from matrixdp.design.design import Design
from matrixdp.ledger.request import changed_request_error, find_differences
from matrixdp.records import Records
from matrixdp.release.charging import Account
from matrixdp.release.result import Guaranteed
from matrixdp.serialise import to_json_content


def list_options(design: Design, data: Any, *, clip: bool, missing: str) -> dict[str, Any]:
    """All public options of the release of a design: its inputs, and how records are read."""
    return {
        "method": "plain",
        "query": to_json_content(design.query),
        "epsilon": design.privacy.epsilon,
        "delta": design.privacy.delta,
        "share": design.share,
        "calibration": design.calibration,
        "allocation": to_json_content(design.allocation),
        "directions": to_json_content(design.given_directions),
        "structured": design.structure is not None,
        "clip": bool(clip),
        "missing": missing,
        "reading": list_read_options(data),
    }


def list_read_options(data: Any) -> dict[str, Any]:
    """How the values in files are read, where it is not the default."""
    return dict(data.read_options) if isinstance(data, Records) else {}


def require_same_release(released: Guaranteed, design: Design, missing: str, account: Account) -> None:
    """Raise a `LedgerError` if a stored release has other options; ledgers of earlier versions did not keep them."""
    old = {"missing": released.missing, "structured": released.design.structure is not None}
    new = {"missing": missing, "structured": design.structure is not None}
    if differences := find_differences(old, new):
        raise changed_request_error(account.dataset, account.request, "", differences)
