"""Ids of people in a block of records, as keyed numbers of 64 bits.

An id is an integer or a text. Ids are equal if their texts are: 7, 7.0 and "7" are one person, as are "a" and " a ".
Rules err on that side, because somebody with two ids would count twice. Messages show no id.

Each text is read as 32-bit words x, its length first, and hashed to ``(a_0 + sum a_i x_i mod 2^64) >> 32`` with secret
random numbers a. Two texts that are not chosen with knowledge of the key have the same 32 bits with a probability of
2^-32 (Dietzfelbinger 1996); four such numbers make 128 bits.
"""

from __future__ import annotations

import decimal
import hashlib
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from matrixdp.device import is_device_block
from matrixdp.errors import DataError, ParameterError
from matrixdp.records.records import IdentifiedBlock
from matrixdp.records.tables import column_names, is_columnar, is_text_type, library_of

_MOST_BYTES = 1 << 12  # of a text; longer ones are digested first
_HIGH = np.uint64(0xFFFFFFFF00000000)


def hash_texts(texts: Sequence[str], key: bytes) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Two hashes of 64 bits for each text, of shape (texts,)."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(one) for one in encoded], out=offsets[1:])
    return hash_bytes(np.frombuffer(b"".join(encoded), np.uint8), offsets, key)


def hash_bytes(
    content: NDArray[np.uint8], offsets: NDArray[np.int64], key: bytes
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Two hashes of 64 bits for each of some texts in UTF-8, of which text i is ``content[offsets[i]:offsets[i + 1]]``.

    Parameters
    ----------
    content : uint8 array
    offsets : int64 array of shape (texts + 1,)
    key : bytes
    """
    starts, lengths = offsets[:-1], np.diff(offsets)
    if len(lengths) and int(lengths.max()) > _MOST_BYTES:
        raw = content.tobytes()
        pieces = [raw[a:b] for a, b in zip(starts.tolist(), offsets[1:].tolist(), strict=True)]
        digested = [p if len(p) <= _MOST_BYTES else b"\0" + hashlib.blake2b(p, key=key).digest() for p in pieces]
        content = np.frombuffer(b"".join(digested), np.uint8)
        lengths = np.array([len(p) for p in digested], np.int64)
        starts = np.cumsum(lengths) - lengths
    words = -(-int(lengths.max()) // 4) if len(lengths) else 0
    factors = _factors(key, words + 2)
    sums = [lengths.astype(np.uint64) * factor + constant for constant, factor in factors[:2].T]
    padded = np.concatenate([content, np.zeros(4, np.uint8)])
    unaligned = np.ndarray((len(content) + 1,), "<u4", padded, strides=(1,))  # the word that begins at each byte
    rest = np.arange(len(lengths))
    for number in range(words):
        rest = rest[lengths[rest] > 4 * number]
        every = len(rest) == len(lengths)
        left = np.minimum(lengths[rest] - 4 * number, 4).astype(np.uint64)
        mask = (np.uint64(1) << (np.uint64(8) * left)) - np.uint64(1)
        word = unaligned[starts[rest] + 4 * number].astype(np.uint64) & mask
        for total, factor in zip(sums, factors[2 + number], strict=True):
            if every:
                total += word * factor  # several times faster than at chosen places
            else:
                total[rest] += word * factor
    first, second = ((one & _HIGH) | (other >> np.uint64(32)) for one, other in (sums[:2], sums[2:]))
    return first, second


def _factors(key: bytes, count: int) -> NDArray[np.uint64]:
    """Secret numbers of shape (count, 4); for another count, the first ones are the same."""
    content = hashlib.shake_256(b"text hash" + key).digest(32 * count)
    return np.frombuffer(content, "<u8").reshape(count, 4)


Hashes: TypeAlias = NDArray[np.uint64]
_WHOLE = re.compile(r"(0|-?[1-9][0-9]{0,18})(\.0*)?")  # "007" is a text
_EXACT = 1 << 53  # floats of this size and above may have been rounded
_INT64 = 1 << 63
_DIGITS = 4000  # of a number at most; Python refuses to write a longer one as text
_SPACES = " \t\r\n\v\f"


def split_ids(block: Any, column: str) -> tuple[Any, Any]:
    """The ids of a block, and the block without them where they are given apart."""
    if is_device_block(block):
        raise ParameterError(
            "person: data on a GPU must be moved to the memory of the host to count the rows of people."
        )
    if isinstance(block, IdentifiedBlock):
        return block.ids, block.data
    names = list(block) if isinstance(block, Mapping) else column_names(block)
    if names is None:
        raise DataError(
            f"person: the data must have a column {column!r}, and these have no names of columns. Give a table, or "
            "with_ids(data, ids)."
        )
    if names.count(column) != 1:
        raise DataError(f"person: the data must have one column {column!r} of ids.")
    return (block.column(column) if is_columnar(block) else block[column]), block


@dataclass(frozen=True, eq=False)
class IdHash:
    """Keyed hashes of ids: 64 bits to find a person, and 64 more to notice where two people share them.

    Integers that fit into 64 bits are permuted, so that no two share a hash.

    Parameters
    ----------
    column : str
        For messages.
    key : bytes
        32 bytes from the operating system; nobody who chooses ids can know which of them share a hash.
    """

    column: str
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def __call__(self, ids: Any) -> tuple[Hashes, Hashes | None]:
        """Both hashes of each id, of shape (rows,); the second is None if all ids are integers.

        Raises
        ------
        DataError
            If an id is missing, or neither an integer nor a text.
        """
        match library_of(ids):
            case "pyarrow":
                return self._arrow(ids)
            case "pandas":
                return self._pandas(ids)
            case "polars":
                return self._polars(ids)
        if isinstance(ids, np.ndarray) and not isinstance(ids, np.ma.MaskedArray):
            return self._array(ids)
        return self._values(ids.tolist() if hasattr(ids, "tolist") else ids)

    def _integers(self, ids: NDArray[Any]) -> Hashes:
        """A permutation of 64-bit numbers."""
        odd = np.frombuffer(hashlib.sha512(self.key).digest(), np.uint64) | np.uint64(1)
        mixed = ids.astype(np.int64, copy=False).view(np.uint64) ^ (odd[0] >> np.uint64(1))
        for factor, shift in zip(odd[1:4], (32, 29, 32), strict=True):
            mixed *= factor
            mixed ^= mixed >> np.uint64(shift)
        return np.asarray(mixed, np.uint64)

    def _values(self, values: Iterable[Any]) -> tuple[Hashes, Hashes | None]:
        """Hashes of Python values."""
        plain = [self._plain(value) for value in values]
        places = [i for i, value in enumerate(plain) if isinstance(value, str)]
        first = self._integers(np.array([0 if isinstance(value, str) else value for value in plain], np.int64))
        if not places:
            return first, None
        second = np.zeros(len(plain), np.uint64)
        first[places], second[places] = hash_texts([str(plain[i]) for i in places], self.key)
        return first, second

    def _plain(self, value: Any) -> int | str:
        """An integer of 64 bits, or a text that is none."""
        if isinstance(value, str):
            text = value.strip(_SPACES)
            if not text:
                raise self._missing()
            whole = _WHOLE.fullmatch(text)
            return _fitting(int(whole[1])) if whole else text
        if value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType"):
            raise self._missing()
        if isinstance(value, float | np.floating | decimal.Decimal):
            number: Any = value
            decimals = isinstance(value, decimal.Decimal)
            if number.is_nan() if decimals else number != number:
                raise self._missing()
            if decimals and (number.is_infinite() or number.adjusted() > _DIGITS):
                raise self._wrong_type()
            if not (decimals or abs(number) < _EXACT) or number != int(number):
                raise self._wrong_type()
        elif isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
            raise self._wrong_type()
        whole_number = int(value)
        if whole_number.bit_length() > 3 * _DIGITS:
            raise self._wrong_type()
        return _fitting(whole_number)

    def _array(self, ids: NDArray[Any]) -> tuple[Hashes, Hashes | None]:
        if ids.ndim != 1:
            raise self._wrong_type()
        if ids.dtype.kind == "i" or (ids.dtype.kind == "u" and (ids.dtype.itemsize < 8 or not ids.size)):
            return self._integers(ids), None
        if ids.dtype.kind == "f":
            digits = np.finfo(ids.dtype).nmant + 1
            if np.isnan(ids).any():
                raise self._missing()
            if not ((np.abs(ids) < 2.0 ** min(digits, 53)) & (ids == np.rint(ids))).all():
                raise self._wrong_type()
            return self._integers(ids.astype(np.int64)), None
        if ids.dtype.kind in "OSVMmcb":
            return self._values(ids.tolist())
        unique, places = np.unique(ids, return_inverse=True)
        return self._taken(unique.tolist(), places)

    def _taken(self, unique: Iterable[Any], places: NDArray[Any]) -> tuple[Hashes, Hashes | None]:
        first, second = self._values(unique)
        return first[places], None if second is None else second[places]

    def _arrow(self, ids: Any) -> tuple[Hashes, Hashes | None]:
        import pyarrow as pa

        if ids.null_count:
            raise self._missing()
        if isinstance(ids, pa.ChunkedArray):
            ids = ids.combine_chunks() if ids.num_chunks != 1 else ids.chunk(0)
        kind = ids.type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            return self._array(np.asarray(ids.to_numpy(zero_copy_only=False)))
        if pa.types.is_nested(kind) or pa.types.is_temporal(kind) or pa.types.is_boolean(kind):
            raise self._wrong_type()
        if is_text_type(kind):
            return self._arrow_texts(ids)
        if not pa.types.is_dictionary(kind):
            ids = ids.dictionary_encode()
        used, places = np.unique(ids.indices.to_numpy(), return_inverse=True)
        unique = ids.dictionary.take(pa.array(used))
        if unique.null_count:
            raise self._missing()
        if not is_text_type(unique.type):
            return self._taken(unique.to_pylist(), places)
        first, second = self._arrow_texts(unique)
        return first[places], None if second is None else second[places]

    def _arrow_texts(self, ids: Any) -> tuple[Hashes, Hashes | None]:
        """Hashes of texts; those that are integers are read one by one, unless all of them are."""
        import pyarrow as pa
        from pyarrow import compute

        texts = compute.utf8_trim(ids.cast(pa.large_string()), _SPACES)
        if compute.any(compute.equal(texts, "")).as_py():
            raise self._missing()
        integers = compute.match_substring_regex(texts, rf"^(?:{_WHOLE.pattern})$")
        if compute.all(compute.match_substring_regex(texts, r"^(?:0|-?[1-9][0-9]{0,17})$")).as_py():
            return self._integers(texts.cast(pa.int64()).to_numpy()), None
        _, offsets, content = texts.buffers()
        places = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
        first, second = hash_bytes(np.frombuffer(content or b"", np.uint8), places, self.key)
        some = np.flatnonzero(integers.to_numpy(zero_copy_only=False))
        if some.size:
            values, others = self._values(texts.take(pa.array(some)).to_pylist())
            first[some], second[some] = values, 0 if others is None else others
        return first, second

    def _pandas(self, ids: Any) -> tuple[Hashes, Hashes | None]:
        import pandas as pd

        if ids.isna().any():
            raise self._missing()
        if ids.dtype.kind in "iuf":
            return self._array(ids.to_numpy(np.dtype(f"{ids.dtype.kind}8") if ids.dtype.kind != "f" else None))
        if ids.dtype.kind in "bMm":
            raise self._wrong_type()
        try:
            places, unique = pd.factorize(ids)
        except TypeError:  # a value that cannot be hashed
            raise self._wrong_type() from None
        return self._taken(unique.tolist(), places)

    def _polars(self, ids: Any) -> tuple[Hashes, Hashes | None]:
        if ids.null_count():
            raise self._missing()
        if ids.dtype.is_integer() or ids.dtype.is_float():
            return self._array(ids.to_numpy())
        return self._values(ids.to_list())

    def _missing(self) -> DataError:
        return DataError(f"column {self.column!r} must say whose row it is, and an id is missing. Drop such rows.")

    def _wrong_type(self) -> DataError:
        return DataError(
            f"column {self.column!r} must hold ids that are integers or texts. Convert dates, numbers with decimals, "
            "and floats of 2^53 and more, which are rounded."
        )


def _fitting(value: int) -> int | str:
    """An integer, as text if it has more than 64 bits."""
    return value if -_INT64 <= value < _INT64 else str(value)
