"""Where two runs ended: the same, to the last bit."""

from __future__ import annotations

import numpy as np

from fedhh.server.trie import TrieState


def assert_same(state: TrieState, reference: TrieState) -> None:
    assert np.array_equal(state.found.codes, reference.found.codes)
    assert np.array_equal(state.found.estimate, reference.found.estimate)
    assert state.history == reference.history
