from __future__ import annotations

import gzip

import numpy as np
import pytest

from fedhh.validation import InputError
from papers.bit_values import (
    LOG_SOURCE,
    bit_population,
    bit_strings,
    holders_of_bits,
    interpolated_counts,
    read_log,
)
from papers.reproduction import published
from tests.thinned import thinned


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


@pytest.mark.parametrize("kind", thinned(["random", "text"]))
def test_values_are_distinct_bits(kind):
    values = bit_strings(5_000, kind)
    assert len(set(values)) == 5_000
    assert {len(value) for value in values} == {48}
    assert set("".join(values)) == {"0", "1"}


@pytest.mark.slow("::test_a_log_is_read_highest_bit_first")
def test_text_is_the_first_six_bytes_of_words():
    first, second = bit_strings(2, "text")
    assert [int(value, 2).to_bytes(6, "big") for value in (first, second)] == [b"the   ", b"to    "]


def test_clients_hold_the_values_in_the_order_of_counts():
    population = bit_population(np.array([5, 3, 1]), "random")
    assert population.num_clients == 9
    assert population.word_clients.tolist() == [5, 3, 1]
    assert list(population.lexicon.words) == list(bit_strings(3, "random"))


TOTALS = {"total": 12, "distinct": 3, "ranks": {1: 6, 3: 2}}


def test_a_log_is_read_highest_bit_first(tmp_path):
    path = tmp_path / "log.txt.gz"
    path.write_bytes(gzip.compress(b"b\xff\t   \t4\na     \t6\nab    \t2\n"))
    values, counts = read_log(path, **TOTALS)
    assert counts.tolist() == [6, 4, 2]
    assert [int(value, 2).to_bytes(6, "big") for value in values] == [
        b"a     ", b"b\xff\t   ", b"ab    ",
    ]  # fmt: skip
    # "a" is 0x61, and values that begin with the same letter share its eight bits.
    assert values[0][:8] == values[2][:8] == "01100001"
    population = holders_of_bits(values, counts, name="log")
    assert population.word_clients.tolist() == [6, 4, 2]
    assert "a     " not in population.name


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a     \t6\nb     \t4\nab    \t3\n", "got 3 and 13 in"),
        (b"a     \t6\nb     \t6\n", "got 2 and 12 in"),
        (b"a     \t5\nb     \t5\nab    \t2\n", "the published counts"),
        (b"a     \t6\nb     \t4\na     \t2\n", "got 2 and 12 in"),
        (b"a     \t6\nb\t4\n", "on line 2"),
        (b"a     \t6\nb     \t-4\n", "on line 2"),
        (b"a     \t99999999999999999999\n", "on line 1"),
        (b"", "got 0 and 0 in"),
    ],
)
def test_another_log_is_refused_in_a_line_that_shows_nothing_of_it(tmp_path, content, message):
    path = tmp_path / "log.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        read_log(path, **TOTALS)
    assert LOG_SOURCE in str(error.value)
    assert "\n" not in str(error.value)


def test_a_log_that_cannot_be_read_is_refused(tmp_path):
    broken = tmp_path / "log.txt.gz"
    broken.write_bytes(gzip.compress(b"a     \t6\n" * 1_000)[:-20])
    for path in (broken, tmp_path / "missing", tmp_path):
        with pytest.raises(InputError):
            read_log(path, **TOTALS)
