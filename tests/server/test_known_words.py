"""Known words are public: no word that a device keeps to itself is found."""

import numpy as np

from fedhh.found import Found
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.words.known_words import KnownWords


def found(protocol, words):
    codes = np.zeros((len(words), protocol.longest_word + 1), dtype=np.uint16)
    for row, word in zip(codes, words, strict=True):
        row[: len(word)] = [protocol.symbols.symbols.index(symbol) + 1 for symbol in word]
    base = Found.nothing(codes.shape[1])
    columns = {
        name: np.arange(len(words)).astype(getattr(base, name).dtype)
        for name in Found.__dataclass_fields__
    }
    return Found(**{**columns, "codes": codes})


def test_known_words_are_left_out_and_the_others_keep_their_numbers():
    known = KnownWords(name="mine", words=frozenset({"dog"}))
    protocol = LdpTrieHH(known_words=known)
    left = protocol.unknown_of(found(protocol, ["dog", "dgo", "doge"])).discoveries(
        protocol.symbols
    )
    assert list(left.words) == ["dgo", "doge"]
    assert left.pass_index.tolist() == [1, 2]


def test_an_empty_list_leaves_nothing_out():
    protocol = LdpTrieHH(known_words=KnownWords(name="none", words=frozenset()))
    words = found(protocol, ["dog", "doge"])
    assert protocol.unknown_of(words) is words
