"""Ids of people in a block of records, as keyed numbers of 64 bits.

An id is an integer or a text. Two ids are one person if they are the same after these steps, wherever they are stored:
a number is written as an integer; spaces, tabs, line ends and zero bytes (which NumPy drops) are taken from the ends of
a text; and a text of an integer without leading zeros, of any length, loses a point with zeros behind it, and the sign
of -0. So 7, 7.0, "7" and " 7.00" are one person, and "07", "+7" and "7e0" are others. Rules err on the side of one
person, because somebody with two ids would count twice. Messages show no id.

Each text is read as 32-bit words x, its length first, and hashed to ``(a_0 + sum a_i x_i mod 2^64) >> 32`` with secret
random numbers a. Two texts that are not chosen with knowledge of the key have the same 32 bits with a probability of
2^-32 (Dietzfelbinger 1996); four such numbers make 128 bits.
"""

import decimal
import hashlib
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import DataError
from matrixdp.records.tables import as_arrow, factorise, is_missing, is_text_type, library_of, pa, plain_numbers

Hashes: TypeAlias = NDArray[np.uint64]
_MOST_BYTES = 1 << 12  # of a text; longer ones are digested first
_HIGH = np.uint64(0xFFFFFFFF00000000)


def hash_texts(texts: Sequence[str], key: bytes) -> Hashes:
    """Two hashes of 64 bits for each text, of shape (2, texts)."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(one) for one in encoded], out=offsets[1:])
    return hash_bytes(np.frombuffer(b"".join(encoded), np.uint8), offsets, key)


def hash_bytes(content: NDArray[np.uint8], offsets: NDArray[np.int64], key: bytes) -> Hashes:
    """Two hashes of 64 bits for each text in UTF-8, of which text i is ``content[offsets[i]:offsets[i + 1]]``."""
    starts, lengths = offsets[:-1], np.diff(offsets)
    if len(lengths) and int(lengths.max()) > _MOST_BYTES:
        raw = content.tobytes()
        pieces = [raw[a:b] for a, b in zip(starts.tolist(), offsets[1:].tolist(), strict=True)]
        digested = [p if len(p) <= _MOST_BYTES else b"\0" + hashlib.blake2b(p, key=key).digest() for p in pieces]
        content = np.frombuffer(b"".join(digested), np.uint8)
        lengths = np.array([len(p) for p in digested], np.int64)
        starts = np.cumsum(lengths) - lengths
    words = -(-int(lengths.max()) // 4) if len(lengths) else 0
    secret = hashlib.shake_256(b"text hash" + key).digest(32 * (words + 2))  # with fewer words, the first are the same
    factors = np.frombuffer(secret, "<u8").reshape(-1, 4)
    sums = [lengths.astype(np.uint64) * factor + constant for constant, factor in factors[:2].T]
    padded = np.concatenate([content, np.zeros(4, np.uint8)])
    unaligned = np.ndarray((len(content) + 1,), "<u4", padded, strides=(1,))  # the word that begins at each byte
    rest = np.arange(len(lengths))
    for number in range(words):
        rest = rest[lengths[rest] > 4 * number]
        here = slice(None) if len(rest) == len(lengths) else rest  # several times faster than chosen places
        left = np.minimum(lengths[here] - 4 * number, 4).astype(np.uint64)
        mask = (np.uint64(1) << (np.uint64(8) * left)) - np.uint64(1)
        word = unaligned[starts[here] + 4 * number].astype(np.uint64) & mask
        for total, factor in zip(sums, factors[2 + number], strict=True):
            total[here] += word * factor
    return np.array([(one & _HIGH) | (other >> np.uint64(32)) for one, other in (sums[:2], sums[2:])])


def mix_words(words: Hashes, key: bytes) -> Hashes:
    """A keyed permutation of 64-bit numbers, applied to each."""
    odd = odd_factors(key, 4)
    mixed: Hashes = words ^ (odd[0] >> np.uint64(1))
    for factor, shift in zip(odd[1:], (32, 29, 32), strict=True):
        mixed = mix_once(mixed, factor, shift)
    return mixed


def mix_once(words: Hashes, factors: Any, shift: int = 32) -> Hashes:
    """A permutation of 64-bit numbers for each odd factor."""
    mixed: Hashes = words * factors
    mixed ^= mixed >> np.uint64(shift)
    return mixed


def sum_words(words: Hashes, key: bytes, times: Any = 1) -> Hashes:
    """Two sums of keyed hashes of the words, each taken so many `times`, modulo 2^64, of shape (2,)."""
    first = mix_words(words, b"sum" + key)
    second = mix_once(first, odd_factors(b"second" + key, 1)[0], 31)
    return np.array([(mixed * np.uint64(times)).sum() for mixed in (first, second)], np.uint64)


def odd_factors(key: bytes, count: int) -> Hashes:
    """Secret odd numbers, of shape (count,); for another count, the first ones are the same."""
    return np.frombuffer(hashlib.shake_256(b"odd" + key).digest(8 * count), np.uint64) | np.uint64(1)


_WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.0*)?")  # "007" is a text
_EXACT = 1 << 53  # floats of this size and above may have been rounded
_INT64 = 1 << 63
_DIGITS = 4000  # of a number at most; Python refuses to write a longer one as text
_SPACES = " \t\r\n\v\f\0"  # at the ends of a text; NumPy drops zeros there


@dataclass(frozen=True, eq=False)
class IdHash:
    """Keyed hashes of ids: 64 bits to find a person, and 64 more to notice where two people share them.

    Integers that fit into 64 bits are permuted, so that no two share a hash. Nobody who chooses ids can know which of
    them share one.
    """

    column: str  # for messages
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)  # from the operating system

    def __call__(self, ids: Any) -> Hashes:
        """Both hashes of each id, of shape (2, rows), or (1, rows) if all are integers; others raise a `DataError`."""
        ids = as_arrow(ids)
        numbers = plain_numbers(ids)
        if numbers is not None and numbers.dtype != np.uint64:  # which may not fit into 64 bits with a sign
            return self._integers(self._whole(numbers))
        if library_of(ids) == "pyarrow" and is_text_type(ids.type):
            return self._arrow_texts(ids)
        if getattr(ids, "ndim", 1) != 1:
            raise self._wrong_type()
        unique, places = factorise(ids)
        if places.size and places.min() < 0:
            raise self._missing()
        used = np.flatnonzero(np.bincount(places))  # a dictionary may have others
        hashes = np.zeros((2, len(unique)), np.uint64)
        hashes[:, used] = self._values(unique[i] for i in used)
        return hashes[:, places]

    def _integers(self, ids: NDArray[Any]) -> Hashes:
        return mix_words(ids.astype(np.int64, copy=False).view(np.uint64), self.key)[np.newaxis]

    def _values(self, values: Iterable[Any]) -> Hashes:
        """Hashes of Python values."""
        plain = [self._plain(value) for value in values]
        texts = {i: value for i, value in enumerate(plain) if isinstance(value, str)}
        hashes = np.zeros((2, len(plain)), np.uint64)  # the second is 0 for integers
        hashes[:1] = self._integers(np.array([0 if i in texts else value for i, value in enumerate(plain)], np.int64))
        hashes[:, list(texts)] = hash_texts(list(texts.values()), self.key)
        return hashes

    def _plain(self, value: Any) -> int | str:
        """An integer of 64 bits, or a text that is none."""
        if isinstance(value, str):
            text = value.strip(_SPACES)
            if not text:
                raise self._missing()
            whole = _WHOLE.fullmatch(text)
            if whole is None:
                return text
            return _fitting(int(whole[1])) if len(whole[1]) < _DIGITS else whole[1]
        if is_missing(value):
            raise self._missing()
        number: Any = value
        match value:
            case bool() | np.bool_():
                raise self._wrong_type()
            case decimal.Decimal():
                exact = value.is_finite() and value.adjusted() < _DIGITS and number == int(number)
            case float() | np.floating():
                exact = bool(abs(number) < _EXACT) and number == int(number)
            case _:
                exact = isinstance(value, int | np.integer) and int(number).bit_length() < 3 * _DIGITS
        if not exact:
            raise self._wrong_type()
        return _fitting(int(number))

    def _whole(self, ids: NDArray[Any]) -> NDArray[np.int64]:
        """Numbers as integers of 64 bits."""
        if ids.ndim != 1:
            raise self._wrong_type()
        if ids.dtype.kind == "f":
            if np.isnan(ids).any():
                raise self._missing()
            digits = np.finfo(ids.dtype).nmant + 1
            if not ((np.abs(ids) < 2.0 ** min(digits, 53)) & (ids == np.rint(ids))).all():
                raise self._wrong_type()
        return ids.astype(np.int64, copy=False)

    def _arrow_texts(self, ids: Any) -> Hashes:
        """Hashes of texts; those that are integers are read one by one, unless all of them are."""
        ids = ids.cast(pa.large_string())
        texts = pa.compute.utf8_trim(ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids, _SPACES)
        if texts.null_count or pa.compute.any(pa.compute.equal(texts, "")).as_py():
            raise self._missing()
        if pa.compute.all(pa.compute.match_substring_regex(texts, r"^(?:0|-?[1-9][0-9]{0,17})$")).as_py():
            return self._integers(texts.cast(pa.int64()).to_numpy())
        integers = pa.compute.match_substring_regex(texts, rf"^(?:{_WHOLE.pattern})$")
        _, offsets, content = texts.buffers()
        places = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
        hashes = hash_bytes(np.frombuffer(content or b"", np.uint8), places, self.key)
        hashes[:, np.asarray(integers)] = self._values(texts.filter(integers).to_pylist())
        return hashes

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
