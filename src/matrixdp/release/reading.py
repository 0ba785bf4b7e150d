"""Releases from JSON text, whichever kind they are."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from matrixdp.adaptive.budget import Step
from matrixdp.adaptive.method import MethodChoice
from matrixdp.adaptive.moment import PrivateMoment
from matrixdp.adaptive.postprocess import Fitted
from matrixdp.adaptive.settings import settings_for
from matrixdp.domain.bounds import Bounds
from matrixdp.domain.person import Person
from matrixdp.errors import ParameterError
from matrixdp.noise.covariance import check_orthonormal
from matrixdp.privacy import Neighbours, Privacy, Unit
from matrixdp.queries import TableMoments
from matrixdp.queries.base import parse_records
from matrixdp.release import adaptive_release
from matrixdp.release.adaptive_release import AdaptiveRelease, check_adaptive, digest_content, find_recipe
from matrixdp.release.dataset import MANIFEST, DatasetRelease
from matrixdp.release.mechanism_release import MechanismRelease
from matrixdp.release.result import Release, reading
from matrixdp.serialise import from_json_content

_PLAIN = "matrixdp plain covariance 1"
_LARGEST = 1 << 31  # bytes of a file
_ALTERED = "text must be a release as its to_json wrote it, of this or an earlier version."


def load(path: str | os.PathLike[str]) -> Release | MechanismRelease | AdaptiveRelease | DatasetRelease:
    """A release of any kind from its file, or from the folder that ``matrixdp release`` or `release_dataset` wrote.

    Examples
    --------
    >>> import tempfile
    >>> from matrixdp import release_table
    >>> released = release_table([[0.0], [1.0]] * 50, ([0], [1]), epsilon=1, delta=1e-6, question="means")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     released.save(Path(folder) / "release.json")
    ...     bool((load(folder).matrix == released.matrix).all())
    True
    """
    place = Path(path)
    if (place / MANIFEST).is_file():
        return DatasetRelease.open(place)
    file = place / "release.json" if place.is_dir() else place
    try:
        return from_json(read_text(file))
    except ParameterError as error:
        raise error.within(file) from None


def read_text(file: Path) -> str:
    """The text of a file of a release."""
    try:
        if file.stat().st_size > _LARGEST:
            raise ParameterError("a release must be at most 2 GiB.")
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ParameterError("path must be a release.json, or the folder of one; it is not text.") from None
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise ParameterError(f"path must be a release.json, or the folder of one: it cannot be read: {why}.") from None


def from_json(text: str) -> Release | MechanismRelease | AdaptiveRelease:
    """A release of any kind, from the JSON text that its `to_json` wrote, such as the file ``release.json``.

    Raises a `ParameterError` if the parts of the text do not fit together.

    Examples
    --------
    >>> from matrixdp import Bounds, Moments, Privacy, make_design
    >>> design = make_design(Moments(Bounds([0], [1]), records=2), Privacy(1, 1e-6))
    >>> type(from_json(design.release([[0], [1]]).to_json())).__name__
    'Release'
    """
    with reading("text must be JSON, as the to_json of a release wrote it; for a file, pass its content."):
        content = json.loads(text)
        form = str(content["format"])
    readers: dict[str, Callable[[Any], Release | AdaptiveRelease]] = {
        adaptive_release.FORMAT: _read_adaptive,
        _PLAIN: _read_plain,
    }
    if form in readers:
        with reading(_ALTERED):
            return readers[form](content)
    if form.startswith("matrixdp mechanism release"):
        return MechanismRelease.from_json(text)
    return Release.from_json(text)


def _read_choice(content: Any, method: str) -> MethodChoice:
    find_recipe(content["aim"])
    if content["method"] != method or not isinstance(content["reason"], str) or not content["reason"].isprintable():
        raise ParameterError(f"method must be {method!r}, with a reason in words; the text was altered.")
    return MethodChoice(method, content["reason"])


def _read_plain(content: Any) -> Release:
    """A plain covariance, as earlier versions wrote it."""
    release = Release.from_json(json.dumps(content["release"]))
    if not isinstance(release.design.query, TableMoments):
        raise ParameterError("a plain covariance must follow from the moments of a table; the text was altered.")
    return replace(release, aim=content["aim"], reason=_read_choice(content, "plain").reason)


def _read_person(unit: Unit, rows: int | None) -> Person | None:
    if unit.kind == "person" and unit.column is not None:
        return Person(unit.column, rows)
    if unit.kind != "record" or rows is not None:
        raise ParameterError(_ALTERED)
    return None


def _read_adaptive(content: Any) -> AdaptiveRelease:
    if content["digest"] != digest_content(content):
        raise ParameterError("the digest of the text does not match its content; the text was altered.")
    privacy, bounds, fitted = (from_json_content(content[name]) for name in ("privacy", "bounds", "fitted"))
    steps = from_json_content(content["steps"])
    kinds = isinstance(privacy, Privacy) and isinstance(bounds, Bounds) and isinstance(fitted, Fitted)
    if not kinds or not all(isinstance(step, Step) for step in steps):
        raise ParameterError(_ALTERED)
    if not isinstance(content["simulation"], bool) or not isinstance(content["version"], str):
        raise ParameterError(_ALTERED)
    moment = PrivateMoment(
        fitted=fitted,
        bounds=bounds,
        privacy=privacy,
        neighbours=Neighbours.parse(content["neighbours"]),
        mu=float(content["mu"]),
        steps=steps,
        simulation=content["simulation"],
        records=parse_records(content["records"]),
        aim=content["settings"],
        basis=None if content["basis"] is None else check_orthonormal(content["basis"], bounds.size),
        person=_read_person(Unit.parse(content["unit"]), content.get("rows_per_person")),
    )
    settings_for(moment.aim)
    release = AdaptiveRelease(moment, _read_choice(content, "adaptive"), content["aim"], content["version"])
    check_adaptive(release)
    return release
