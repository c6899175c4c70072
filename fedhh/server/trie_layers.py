"""The layers of a trie: where a pass starts, how large its domains are, which words it found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from fedhh.questions.names import TrieNames
from fedhh.server.layer_consistency import num_exceeding
from fedhh.words.alphabet import END
from fedhh.words.trie import Codes, PrefixTrie

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class TrieState:
    """Where the discovery of a trie stands.

    Attributes:
        pass_index: Current pass, from 0; equal to the number of passes when all is done.
        layer: Layer to be asked next, from 1.
        trie: Prefixes of length ``layer``.
        finished: Words shorter than the candidates that wait to be voted on, see `initial_trie`.
        excluded: Words found by earlier passes.
        shares: ``(P, 2) float64``: of each prefix of length ``layer``, the share of clients that
            the layer before estimated, and its variance; ``(0, 2)`` where no layer asked about it.
    """

    pass_index: int
    layer: int
    trie: PrefixTrie
    finished: Codes
    excluded: Codes
    shares: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 2)))


def initial_trie(
    alphabet_size: int, *, depth: int, most_kept: int, skip_free_layers: bool
) -> tuple[PrefixTrie, Codes]:
    """Return the prefixes that the first asked layer extends, and the shorter words.

    Args:
        alphabet_size: Symbols, the end symbol included.
        depth: Layers of a pass.
        most_kept: Prefixes kept per layer; a layer with no more candidates decides nothing.
        skip_free_layers: Whether to begin at the first layer that decides.
    """
    trie = PrefixTrie.all_of_length_one(alphabet_size)
    finished = np.zeros((0, depth + 1), dtype=np.uint16)
    if not skip_free_layers:
        return trie, finished
    while trie.length < depth and trie.width * alphabet_size + len(finished) <= most_kept:
        candidates = np.arange(trie.width * alphabet_size)
        words = trie.spell(candidates[candidates % alphabet_size == END])
        padding = np.zeros((len(words), depth + 1 - words.shape[1]), dtype=np.uint16)
        finished = np.concatenate([finished, np.concatenate([words, padding], axis=1)])
        trie = trie.extend(candidates)
    return trie, finished


def domains_of(
    trie: PrefixTrie, num_finished: int, *, depth: int, most_prefixes: Callable[[int], int]
) -> list[tuple[int, int, int]]:
    """Return, for each layer that asks, its fewest and its most values, the dummy included.

    The first layer's candidates are fixed. Later ones extend from one prefix to as many as the
    layer before may keep.

    Args:
        trie: What the first layer extends.
        num_finished: Shorter words that it asks about, too.
        depth: The last layer.
        most_prefixes: How many of so many candidates, which are no words, a layer keeps at most.
    """
    alphabet = trie.alphabet_size
    most = trie.width * alphabet
    domains = [(trie.length, most + num_finished + 1, most + num_finished + 1)]
    for layer in range(trie.length + 1, depth + 1):
        # A prefix that ends in the end symbol is not extended.
        live = most // alphabet * (alphabet - 1)
        most = most_prefixes(live) * alphabet
        domains.append((layer, alphabet + 1, most + 1))
    return domains


def next_layer(
    own: TrieState, layer: int, names: TrieNames, extensions: Indices, *, depth: int
) -> TrieState | None:
    """Return the state that asks about what extends the kept prefixes; None if the pass is over.

    Args:
        own: The state that asked.
        layer: Which layer asked.
        names: What it listed.
        extensions: Kept candidates that extend a prefix, ascending.
        depth: The last layer.
    """
    trie = names.trie.extend(extensions)
    if layer == depth or trie.width == 0:
        return None
    return replace(
        own,
        layer=layer + 1,
        trie=trie,
        finished=own.finished[:0],
        shares=own.shares[:0],
    )


def shares_after(
    own: TrieState, names: TrieNames, shares: npt.NDArray[np.float64], extensions: Indices
) -> tuple[npt.NDArray[np.float64], int]:
    """Return the next state's ``shares``, and how many kept prefixes exceed their parents'.

    Args:
        own: The state that asked.
        names: What it listed.
        shares: ``(e, 2) float64``, see `layer_consistency.shares_of`: of the kept extensions.
        extensions: ``(e,) int64``: kept candidates that extend a prefix, ascending.
    """
    size = names.trie.alphabet_size
    exceeding = 0
    if len(own.shares) == names.trie.width:
        exceeding = num_exceeding(shares, own.shares[extensions // size])
    return shares[extensions % size != END], exceeding


def split_kept(names: TrieNames, kept: Indices) -> tuple[Indices, Indices]:
    """Return which kept candidates are extensions of a prefix, and which are whole words."""
    extensions = kept[kept < names.num_extensions]
    words = kept[(kept >= names.num_extensions) | (kept % names.trie.alphabet_size == END)]
    return extensions, words


def word_codes(names: TrieNames, words: Indices, depth: int) -> Codes:
    """Return the ``(w, depth + 1) uint16`` codes of candidates that are whole words."""
    extended = names.trie.spell(words[words < names.num_extensions])
    codes = np.zeros((len(words), depth + 1), dtype=np.uint16)
    codes[: len(extended), : extended.shape[1]] = extended
    codes[len(extended) :] = names.finished[
        words[words >= names.num_extensions] - names.num_extensions
    ]
    return codes
