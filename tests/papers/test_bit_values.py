from __future__ import annotations

import numpy as np
import pytest

from papers.bit_values import bit_population, bit_strings, interpolated_counts
from papers.reproduction import published


@pytest.fixture(scope="module")
def counts():
    stated = published()["pem"]
    anchors = {int(rank): count for rank, count in stated["counts"].items()}
    return interpolated_counts(anchors, total=stated["users"], distinct=stated["distinct"])


def test_interpolated_counts_have_every_published_number(counts):
    assert (len(counts), counts.sum()) == (120_978, 657_427)
    assert [counts[r - 1] for r in (1, 2, 3, 32, 64)] == [18_720, 12_292, 6_132, 1_243, 865]
    assert (np.diff(counts) <= 0).all()
    assert counts.min() == 1


def test_between_anchors_counts_are_powers_of_the_rank(counts):
    slope = np.log(1_243 / 6_132) / np.log(32 / 3)
    expected = [6_132 * (r / 3) ** slope for r in range(3, 33)]
    assert np.abs(counts[2:32] - expected).max() <= 0.5


@pytest.mark.parametrize("kind", ["random", "text"])
def test_values_are_distinct_bits(kind):
    values = bit_strings(5_000, kind)
    assert len(set(values)) == 5_000
    assert {len(value) for value in values} == {48}
    assert set("".join(values)) == {"0", "1"}


def test_text_is_the_first_six_bytes_of_words():
    first, second = bit_strings(2, "text")
    assert [int(value, 2).to_bytes(6, "big") for value in (first, second)] == [b"the   ", b"to    "]


def test_clients_hold_the_values_in_the_order_of_counts():
    population = bit_population(np.array([5, 3, 1]), "random")
    assert population.num_clients == 9
    assert population.word_clients.tolist() == [5, 3, 1]
    assert list(population.lexicon.words) == list(bit_strings(3, "random"))
