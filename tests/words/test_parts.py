from __future__ import annotations

import numpy as np
import pytest

from fedhh.validation import InputError
from fedhh.words.parts import PrefixParts

PARTS = PrefixParts(alphabet_size=4, length=5, step=2, hash_seed=0)


def test_parts_are_the_keys_of_padded_prefixes():
    assert PARTS.prefix_lengths == (2, 4)
    codes = np.array([[1, 2, 3, 1, 2], [3, 0, 0, 0, 0]], dtype=np.uint16)
    names = PARTS.names
    padded = np.array([[1, 2, 0, 0, 0], [1, 2, 3, 1, 0], [3, 0, 0, 0, 0]], dtype=np.uint16)
    first, second, short = names.keys(padded).tolist()
    got = PARTS.fragments(codes, names.keys(codes))
    assert got.tolist() == [[first, second], [short, short]]
    assert len({first, second, short}) == 3
    assert PARTS.num_fragments == 4**5


@pytest.mark.parametrize("step", [5, 6])
def test_a_step_without_a_prefix_before_the_word_is_refused(step):
    with pytest.raises(InputError, match=f"step < length, .* got step={step} and length=5"):
        PrefixParts(alphabet_size=4, length=5, step=step, hash_seed=0)
