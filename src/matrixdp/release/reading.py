"""Releases from JSON text, whichever kind they are."""

import json
import os
from pathlib import Path

from matrixdp.errors import ParameterError
from matrixdp.release.adaptive_release import AdaptiveRelease
from matrixdp.release.dataset import MANIFEST, DatasetRelease
from matrixdp.release.registered import MechanismRelease
from matrixdp.release.released import reading
from matrixdp.release.result import Release
from matrixdp.release.stream import FORMAT, PublishedStream

_LARGEST = 1 << 31  # bytes of a file


def load(
    path: str | os.PathLike[str],
) -> Release | MechanismRelease | AdaptiveRelease | DatasetRelease | PublishedStream:
    """A release of any kind from its file, or from the folder that ``matrixdp release`` or `release_dataset` wrote.

    The public file of a stream gives a `PublishedStream`.

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
    wanted = f"{file} must be a release.json, or the folder of one"
    try:
        if file.stat().st_size > _LARGEST:
            raise ParameterError("a release must be at most 2 GiB.")
        text = file.read_text(encoding="utf-8")
        if not text.startswith("{"):
            raise ParameterError("a release must be JSON, as matrixdp wrote it.")
        return PublishedStream.from_json(text) if text.startswith(f'{{"format": "{FORMAT}"') else from_json(text)
    except ParameterError as error:
        raise error.within(file) from None
    except UnicodeDecodeError:
        raise ParameterError(f"{wanted}; it is not text.") from None
    except OSError as error:
        raise ParameterError(f"{wanted}: it cannot be read: {error.strerror or type(error).__name__}.") from None


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
    with reading("text must be whole JSON, as the to_json of a release wrote it; matrixdp.load reads files."):
        form = str(json.loads(text)["format"])
    kinds: list[type[Release | MechanismRelease | AdaptiveRelease]] = [MechanismRelease, AdaptiveRelease]
    return next((kind for kind in kinds if form == kind.FORMAT), Release).from_json(text)
