"""Uniform random bits from AES-256 in counter mode.

By default the key comes from the operating system; a seed must be given explicitly. No two streams share a key and a
counter: each has its own key and starting counter, children are derived from the parent's secret by HMAC, a forked
process gets a new key, and a stream can be neither copied nor pickled.

Privacy
-------
With AES the guarantee is computational: delta grows by ``1 + e^epsilon`` times an adversary's advantage against
AES-256-CTR. A key is used for at most 2^32 blocks, which keeps the distance of a permutation from a random function
below 2^-65. Sampling is not constant-time: the time that a draw takes reveals how many candidates were rejected.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import threading
from typing import NoReturn

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from matrixdp.checks import check_integer
from matrixdp.errors import StreamError

_CHUNK = 1 << 17  # words enciphered at a time
_ZEROS = memoryview(bytes(8 * _CHUNK))
_WORDS_PER_KEY = 1 << 33  # 2^32 blocks of 16 bytes

_generation = 0  # number of forks between the process that imported the module and this one
_renewal = threading.Lock()  # held while a stream gets a new key after a fork


def _after_fork() -> None:
    global _generation, _renewal
    _generation += 1
    _renewal = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


class Stream:
    """Random 64-bit words, cryptographically strong.

    Parameters
    ----------
    seed : int, optional
        Makes the stream reproducible, for tests and experiments only: anyone who knows the seed can subtract the
        noise. A release raises an error for a seeded stream unless it is marked as a simulation. By default the key
        comes from the operating system.

    Examples
    --------
    >>> import numpy as np
    >>> Stream().words(3).dtype
    dtype('uint64')
    >>> bool((Stream(seed=7).words(4) == Stream(seed=7).words(4)).all())
    True
    """

    def __init__(self, seed: int | None = None) -> None:
        if seed is None:
            secret = os.urandom(32)
        else:
            seed = check_integer(seed, "seed", at_least=0, rule="a non-negative integer or None")
            secret = hashlib.sha256(b"matrixdp seed %d" % seed).digest()
        self._start(secret, seeded=seed is not None)

    @property
    def seeded(self) -> bool:
        """True if the stream is reproducible, so that it must not be used to protect data."""
        return self._seeded

    def words(self, size: int, out: NDArray[np.uint64] | None = None) -> NDArray[np.uint64]:
        """Return `size` uniform 64-bit words, in the contiguous uint64 array `out` if it is given."""
        out = np.empty(size, np.uint64) if out is None else out
        view = out.data.cast("B")
        with self._ready():
            for start in range(0, 8 * size, 8 * _CHUNK):
                piece = view[start : start + 8 * _CHUNK]
                self._left -= len(piece) // 8
                if self._left < 0:
                    self._rekey()
                    self._left -= len(piece) // 8
                self._cipher.update_into(_ZEROS[: len(piece)], piece)
        return out

    def bits(self, count: int) -> int:
        """Return a uniform integer of `count` bits."""
        words = -(-count // 64)
        return int.from_bytes(self.words(words).tobytes(), "little") >> (64 * words - count)

    def child(self, index: int) -> Stream:
        """Return the child stream with this index: the same index gives the same stream, others are independent.

        For blocks of one release that are drawn separately, in any order, possibly more than once. Two releases from
        the same child would have the same noise.
        """
        index = check_integer(index, "index", at_least=0)
        with self._ready():
            secret = _derive(self._secret, b"child %d" % index)
        child = object.__new__(Stream)
        child._start(secret, seeded=self._seeded)
        return child

    def _start(self, secret: bytes, *, seeded: bool) -> None:
        self._secret = secret
        self._seeded = seeded
        self._lock = threading.Lock()
        self._epoch = 0
        self._rekey()
        self._generation = _generation  # set last, so that no other thread uses the old key

    def _rekey(self) -> None:
        material = _derive(self._secret, b"key %d" % self._epoch) + _derive(self._secret, b"start %d" % self._epoch)
        self._epoch += 1
        self._left = _WORDS_PER_KEY
        self._cipher: CipherContext = Cipher(algorithms.AES256(material[:32]), modes.CTR(material[32:48])).encryptor()

    def _ready(self) -> threading.Lock:
        """Return the lock, after giving the stream a new key if the process was forked."""
        if self._generation != _generation:
            if self._seeded:
                raise StreamError(
                    "a seeded stream crossed a fork and would repeat its parent's bits. "
                    "Make one in each process instead: Stream(seed=...).child(number_of_the_process)."
                )
            with _renewal:
                if self._generation != _generation:
                    self._start(os.urandom(32), seeded=False)
        return self._lock

    def __reduce__(self) -> NoReturn:
        raise StreamError(
            "a stream cannot be copied or pickled, because the copy would repeat its bits. Make a new one: Stream()."
        )

    def __repr__(self) -> str:
        return "Stream(seeded, for simulation only)" if self._seeded else "Stream()"


class BlockKey:
    """A secret from which the streams of the blocks of one release are derived; unlike a stream, it can be pickled.

    Privacy
    -------
    Anyone who knows the key can subtract the noise of the whole release. Two data sets must not use the same key.
    """

    def __init__(self, stream: Stream) -> None:
        self._secret = stream.words(4).tobytes()
        self.seeded = stream.seeded

    @classmethod
    def from_secret(cls, secret: bytes, *, seeded: bool = False) -> BlockKey:
        """The key with this secret of 32 bytes, which must come from the operating system unless it is `seeded`."""
        found = object.__new__(cls)
        found._secret, found.seeded = secret, seeded
        return found

    def stream(self, block: int, content: bytes = b"") -> Stream:
        """Return the stream of one block, the same each time; of another one for another `content`."""
        found = object.__new__(Stream)
        found._start(_derive(self._secret, b"block %d" % block + content), seeded=self.seeded)
        return found

    def __repr__(self) -> str:
        return "BlockKey(secret)"


def _derive(secret: bytes, label: bytes) -> bytes:
    return hmac.digest(secret, b"matrixdp " + label, "sha256")
