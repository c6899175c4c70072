from __future__ import annotations

import numpy as np

from fedhh.kernels.lookup import copy_entries, make_slots
from tests.every import every


@every("num_keys", [0, 1, 2, 3, 64, 5_000])
def test_entries_are_those_of_a_dictionary(num_keys):
    rng = np.random.default_rng(num_keys)
    # Among small numbers many hashes collide; large ones use all bits.
    keys = np.concatenate([np.arange(num_keys), 2**62 + rng.permutation(num_keys)])[::2].copy()
    table = rng.integers(100, size=(len(keys), 3))
    asked = np.concatenate([keys, rng.integers(-3, 2**62, size=300), np.arange(300)])
    columns = rng.integers(3, size=len(asked))
    rows = {key: row for row, key in enumerate(keys.tolist())}
    expected = [
        int(table[rows[key], column]) if key in rows else -7
        for key, column in zip(asked.tolist(), columns.tolist(), strict=True)
    ]
    found = np.full(len(asked), -7)
    copy_entries(make_slots(keys), table, asked, columns, found)
    assert found.tolist() == expected
