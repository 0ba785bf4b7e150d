"""Hashes of texts: each text on its own, whatever the others are, and different texts differ."""

import numpy as np
import pyarrow as pa

from matrixdp.records.ids import IdHash, hash_texts

KEY = b"k" * 32


def make_texts():
    rng = np.random.default_rng(0)
    words = ["".join(map(chr, rng.integers(97, 123, int(size)))) for size in rng.integers(1, 30, 500)]
    long = ["x" * size for size in range(4090, 4105)]
    return [*words, *("é" * size for size in range(1, 9)), *long, "a", "a\0", "a\0\0", "12x"]


def test_a_text_has_the_same_hash_alone_and_among_others():
    texts = make_texts()
    first, second = hash_texts(texts, KEY)
    for text, one, other in zip(texts, first, second, strict=True):
        assert [int(found[0]) for found in hash_texts([text], KEY)] == [one, other]


def test_different_texts_have_different_hashes_that_depend_on_the_key():
    texts = sorted(set(make_texts()))
    first, second = hash_texts(texts, KEY)
    assert len(set(first.tolist())) == len(set(second.tolist())) == len(texts)
    assert not np.isin(first, np.concatenate([second, *hash_texts(texts, b"other")])).any()


def test_arrow_and_lists_agree():
    texts = [*make_texts(), "12", " 5 ", "7.0", "007", "9" * 20]
    hashing = IdHash("id", KEY)
    expected = hashing(texts)
    for ids in (
        pa.array(texts),
        pa.array(texts, pa.large_string()),
        pa.array(texts, pa.string_view()),
        pa.array(["first", *texts]).slice(1),
        pa.chunked_array([texts[:50], texts[50:]]),
        pa.array(texts).dictionary_encode(),
    ):
        assert all(np.array_equal(found, wanted) for found, wanted in zip(hashing(ids), expected, strict=True))
    assert np.array_equal(hashing(pa.array(["12", "-7"]))[0], hashing([12, -7])[0])
