"""The one place where private data and noise meet.

The answer is whitened, rounded to integers, and exact Gaussian integers are added; all that follows is post-processing.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.account import open_account
from matrixdp.bounds import Rescaling
from matrixdp.design.design import Design
from matrixdp.design.grid import column_factors, column_limits, monotone
from matrixdp.errors import ParameterError, StreamError, show
from matrixdp.ledger import Ledger
from matrixdp.noise import Stream, apply_factors, draw_gaussian
from matrixdp.noise.covariance import Floats
from matrixdp.plain import from_plain, to_plain
from matrixdp.postprocess import Estimate, correlation, covariance, mean, nearest_psd
from matrixdp.privacy import Neighbours, Privacy
from matrixdp.queries import Identity
from matrixdp.version import __version__

_BLOCK = 1 << 18  # entries of a data set that are released at a time


@dataclass(frozen=True, eq=False)
class Release:
    """A noisy matrix and all that is needed to read it. Nothing in it is private.

    Attributes
    ----------
    matrix : float64 array of the query's shape
    design : Design
    version : str
        Of the software that made it.
    simulation : bool
        Whether the noise can be repeated by whoever knows the seed: then nothing is protected.
    """

    matrix: Floats
    design: Design
    version: str = __version__
    simulation: bool = False

    @property
    def std(self) -> Floats:
        """Standard deviation of the noise in each entry."""
        return self.design.std

    @property
    def privacy(self) -> Privacy:
        """The guarantee."""
        return self.design.privacy

    @property
    def mu(self) -> float:
        """What was spent, as Gaussian differential privacy."""
        return self.design.distance

    @property
    def neighbours(self) -> Neighbours:
        """The neighbours that the guarantee is for."""
        return self.design.neighbours

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The matrix."""
        return np.array(self.matrix, dtype=dtype, copy=True if copy is None else copy)

    def __str__(self) -> str:
        design = self.design
        guarantee = f"({self.privacy.epsilon:g}, {self.privacy.delta:.3g})-DP, {self.neighbours} neighbours"
        spent = f"mu {self.mu:.6g}, epsilon {design.epsilon:.4g} at delta {self.privacy.delta:.3g}"
        mark = ", A SIMULATION THAT PROTECTS NOTHING" if self.simulation else ""
        kind = f"{type(design.query).__name__} of shape {design.query.shape[0]} x {design.query.shape[1]}"
        return f"{kind}, {guarantee}, spent {spent}{mark}\n{self.matrix}"

    def possible(self) -> Floats:
        """The matrix with each entry moved into the range that it can have. Costs nothing."""
        return np.clip(self.matrix, *self.design.query.possible)

    def nearest_psd(self) -> Floats:
        """The nearest positive semidefinite matrix. Costs nothing."""
        return nearest_psd(self.matrix)

    def mean(self) -> Estimate:
        """Mean of each feature, from moments, with error bars."""
        return mean(self.matrix, self.design)

    def covariance(self) -> Estimate:
        """Covariance about the mean, from moments, with error bars."""
        return covariance(self.matrix, self.design)

    def correlation(self) -> Estimate:
        """Correlation, from moments, with error bars."""
        return correlation(self.matrix, self.design)

    def to_json(self) -> str:
        """The release as JSON text; `from_json` gives it back bit by bit."""
        content = {
            "format": "matrixdp release 1",
            "version": self.version,
            "simulation": self.simulation,
            "neighbours": str(self.neighbours),
            "mu": self.mu,
            "matrix": self.matrix.tolist(),
            "design": to_plain(self.design),
        }
        return json.dumps(content, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Release:
        """The release that `to_json` wrote."""
        try:
            content = json.loads(text)
        except (TypeError, ValueError):
            raise ParameterError("text must be JSON of Release.to_json; of a file give its content.") from None
        try:
            if content["format"] != "matrixdp release 1":
                raise KeyError(content["format"])
            matrix = np.array(content["matrix"], np.float64)
            released = cls(matrix, from_plain(content["design"]), str(content["version"]), bool(content["simulation"]))
            if not isinstance(released.design, Design) or matrix.shape != released.design.query.shape:
                raise KeyError("design")
            if (content["mu"], content["neighbours"]) != (released.mu, released.neighbours):
                raise ParameterError("mu and neighbours of the text do not match its design; it was altered.")
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, ParameterError):
                raise
            raise ParameterError(
                "text must be a release as written by Release.to_json of this or an earlier version."
            ) from None
        released.design.check()
        return released


def release(
    design: Design,
    data: Any,
    *,
    clip: bool = True,
    missing: str = "error",
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    request: str | None = None,
    stream: Stream | None = None,
    simulation: bool = False,
) -> Release:
    """Release the answer of a design's query on private data.

    Parameters
    ----------
    design : Design
    data : array, pandas, polars or Arrow table of shape (records, features), or what the query takes
    clip : bool
        Move records into their bounds; otherwise one outside is an error.
    missing : 'error' or 'midpoint'
        What NaN and infinities are.
    ledger : Ledger or path, optional
        Where the release is charged, before its first random bit is drawn.
    dataset : str, optional
        Name of the data set in the ledger.
    request : str, optional
        An id. Asked for again under the same id, the stored release is given back and nothing is spent. The data are
        not looked at then: after a correction of the data use a new id.
    stream : Stream, optional
        For simulations only. A release that protects anything draws from a new stream, keyed from the operating system.
    simulation : bool
        Must be said when a stream is given; the release carries the mark for ever.

    Privacy
    -------
    `design.distance`-GDP for `design.neighbours`, under the assumption that AES-256 in counter mode cannot be told
    from random bits. An error in the data comes before anything is charged or drawn. Without a ledger nobody adds up
    what is spent.
    """
    check_stream(stream, simulation=simulation)
    if not isinstance(clip, bool):
        raise ParameterError(f"clip must be True or False, got {show(clip)} instead.")
    account = open_account(design, ledger, dataset, request, simulation=simulation)
    if account is not None and (stored := account.stored()) is not None:
        return Release.from_json(stored)
    with np.errstate(all="ignore"):  # a warning would speak of private data
        prepared = _prepare(design, data, clip=clip, missing=missing)
    receipt = account.charge() if account is not None else None
    stream = Stream() if stream is None else stream
    if isinstance(prepared, _Rows):
        with np.errstate(all="ignore"):
            matrix = prepared.noisy(design, stream)
    else:
        matrix = _unwhiten(design, prepared + draw_gaussian(stream, design.grid.bits, shape=prepared.shape))
    released = Release(design.query.finish(matrix), design, simulation=simulation)
    if account is not None and receipt is not None:
        account.complete(receipt, released.to_json)
    return released


def check_stream(stream: Stream | None, *, simulation: bool) -> None:
    """An error for a stream given from outside, unless what it makes is marked as a simulation."""
    if stream is not None and not isinstance(stream, Stream):
        raise ParameterError(f"stream must be a Stream, such as Stream(seed=1), got {show(stream)} instead.")
    if stream is not None and not simulation:
        raise StreamError(
            "a stream that others may know or use again must not protect data. "
            "Leave it out, or say simulation=True and the release is marked as a simulation."
        )


@dataclass(frozen=True, eq=False)
class _Rows:
    """Records of a monotone query, to be rounded block by block."""

    records: NDArray[np.generic]

    def noisy(self, design: Design, stream: Stream) -> Floats:
        """Noisy records less the midpoint, of shape (records, features)."""
        query, noise, bits = design.query, design.noise, design.grid.bits
        assert isinstance(query, Identity)
        factors = column_factors(noise, bits)
        to_grid = Rescaling(query.bounds.midpoint, factors)
        limits = np.array(column_limits(query, noise, bits), np.float64)
        rows, columns = query.shape
        out = np.empty((rows, columns))
        step = max(1, _BLOCK // columns)
        integers = np.empty((min(step, rows), columns), np.int64)
        for start in range(0, rows, step):
            block, noisy = out[start : start + step], integers[: min(step, rows - start)]
            to_grid(self.records[start : start + step], block)
            np.rint(block, out=block)
            np.clip(block, -limits, limits, out=block)
            draw_gaussian(stream, bits, out=noisy)
            noisy += block.astype(np.int64)
            np.add(noisy, 0.5, out=block)
            block /= factors
        return out


def _prepare(design: Design, data: Any, *, clip: bool, missing: str) -> _Rows | NDArray[np.int64]:
    """The private answer, ready for noise; every error of the data comes from here."""
    query = design.query
    if monotone(query, design.noise):
        assert isinstance(query, Identity)
        return _Rows(query.bounds.checked(query.checked(data), clip=clip, missing=missing))
    answer = query.evaluate(data, clip=clip, missing=missing)
    if design.flat:
        answer = answer.reshape(-1, 1)
    whitened = design.noise.whiten(answer)
    if query.symmetric and not design.flat:
        whitened = whitened[np.tril_indices(len(whitened))]
        whitened *= _triangle_scale(design.query.shape[0])
    steps = np.rint(whitened * 2.0**design.grid.bits)
    return np.clip(steps, -design.grid.limit, design.grid.limit).astype(np.int64)


def _unwhiten(design: Design, integers: NDArray[np.int64]) -> Floats:
    """Noisy integers back in the answer's units; post-processing."""
    noisy: Floats = (integers.astype(np.float64) + 0.5) * 2.0**-design.grid.bits
    left, right = design.noise.factors()
    if design.flat:
        matrix = apply_factors(left, noisy, right).reshape(design.query.shape)
    elif design.query.symmetric:
        m = design.query.shape[0]
        full = np.zeros((m, m))
        full[np.tril_indices(m)] = noisy / _triangle_scale(m)
        full += np.tril(full, -1).T
        matrix = apply_factors(left, full, right)
    else:
        return apply_factors(left, noisy, right)
    return (matrix + matrix.T) / 2 if design.query.symmetric else matrix


def _triangle_scale(m: int) -> Floats:
    """One on the diagonal, sqrt(2) below it: coordinates of Frobenius' norm, in which the noise has unit variance."""
    rows, columns = np.tril_indices(m)
    return np.where(rows == columns, 1.0, np.sqrt(2.0))
