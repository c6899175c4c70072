from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedhh.clients.clients import Clients
from fedhh.experiments.run.metrics import discoveries_table, measure
from fedhh.experiments.run.truth import Truth
from fedhh.protocol import Discoveries
from fedhh.words.alphabet import Alphabet
from fedhh.words.lexicon import Lexicon

# Four clients; words: aa held by 4 (10 contributions), ab by 2 (6), bb by 1 (3), zz by 1 (1; the
# alphabet lacks z).
WORDS = ["aa", "ab", "bb", "zz"]


@pytest.fixture
def truth() -> Truth:
    population = Clients.from_rows(
        name="tiny",
        lexicon=Lexicon(words=WORDS),
        clients=np.array([0, 1, 2, 3, 0, 1, 2, 3]),
        word_ids=np.array([0, 0, 0, 0, 1, 1, 2, 3]),
        counts=np.array([1, 2, 3, 4, 2, 4, 3, 1]),
        num_clients=4,
    )
    return Truth(population, Alphabet(symbols="ab"), depth=3)


def found(words: list[str], estimates: list[float], noise: float = 0.5) -> Discoveries:
    n = len(words)
    return Discoveries(
        words=words,
        pass_index=np.zeros(n, dtype=np.int64),
        layer=np.full(n, 2),
        estimate=np.array(estimates, dtype=np.float64),
        z=np.array(estimates) / noise,
        num_clients=np.full(n, 2),
        variance=np.full(n, noise**2),
    )


def test_metrics_of_a_run_worked_out_by_hand(truth: Truth):
    table = discoveries_table(found(["aa", "bb", "ba"], [2.0, 0.4, 0.6]), truth, significance_z=1.5)
    metrics = measure(table, truth, top_k=(1, 2), min_clients=2)
    assert metrics.coverage == pytest.approx(13 / 20)
    assert metrics.reachable_mass == pytest.approx(19 / 20)
    assert metrics.precision == pytest.approx(2 / 3)
    assert metrics.recall == pytest.approx(1 / 2)
    assert metrics.f1 == pytest.approx(2 * (2 / 3) * (1 / 2) / (2 / 3 + 1 / 2))
    assert metrics.item_coverage == pytest.approx(2 / 4)
    assert metrics.discovered_false == 1
    # Only "aa" exceeds 1.5 standard deviations of the noise.
    assert metrics.significant == 1
    assert metrics.coverage_significant == pytest.approx(10 / 20)
    assert metrics.precision_significant == 1
    first, second = metrics.top
    assert first.precision == first.recall == 1
    # The two largest estimates are aa and ba; the two most held words are aa and ab.
    assert second.precision == second.recall == second.f1 == second.found == 0.5
    assert metrics.to_dict()["found_top_2"] == 0.5


@pytest.mark.parametrize(("min_clients", "recall"), [(1, 2 / 4), (2, 1), (3, 1), (4, 1)])
def test_a_word_with_exactly_as_many_holders_is_one_to_find(truth: Truth, min_clients, recall):
    # aa has four holders and ab two; bb and zz, with one each, are not found.
    table = discoveries_table(found(["aa", "ab"], [2.0, 1.0]), truth, significance_z=0.5)
    metrics = measure(table, truth, top_k=(), min_clients=min_clients)
    assert metrics.recall == metrics.recall_significant == recall


def test_a_word_at_the_significance_itself_is_not_significant(truth: Truth):
    # 1.5 deviations of the noise, and a bit more.
    table = discoveries_table(found(["aa", "bb"], [0.75, 0.7501]), truth, significance_z=1.5)
    assert table.set_index("word")["is_significant"].to_dict() == {"aa": False, "bb": True}


def test_estimates_are_scaled_from_the_cohort_to_the_population(truth: Truth):
    table = discoveries_table(found(["aa", "bb"], [2.0, 0.5]), truth, significance_z=4)
    row = table[table["word"] == "bb"].iloc[0]
    assert row["estimated_clients"] == pytest.approx(1.0)
    # Noise variance 0.25, and drawing 2 of 4 clients of whom a quarter holds the word:
    # 2 * 1/4 * 3/4 * (1 - 2/4) = 0.1875; both times the scale 2.
    assert row["std_error"] == pytest.approx(2 * np.sqrt(0.25 + 0.1875))
    assert row["z"] == pytest.approx(1.0)
    assert (row["true_clients"], row["true_count"]) == (1, 3)
    assert table["word"].tolist() == ["aa", "bb"]


def test_a_word_cut_short_is_false_and_said_to_be_a_beginning():
    population = Clients.from_rows(
        name="long",
        lexicon=Lexicon(words=["aabb", "ab", "bbaa", "ba"]),
        clients=np.array([0, 1, 2, 3]),
        word_ids=np.array([0, 1, 2, 1]),
        counts=np.ones(4, dtype=np.int64),
        num_clients=4,
    )
    truth = Truth(population, Alphabet(symbols="ab"), depth=2)
    words = found(["aa", "ab", "bb", "ba"], [1.0, 2.0, 3.0, 4.0])
    table = discoveries_table(words, truth, significance_z=1.5, truncated_at=2)
    assert dict(zip(table["word"], table["is_truncated"], strict=True)) == {
        "aa": True, "ab": False, "bb": True, "ba": False,
    }  # fmt: skip
    metrics = measure(table, truth, top_k=(), min_clients=1)
    assert (metrics.discovered_false, metrics.discovered_truncated) == (3, 2)
    whole = discoveries_table(words, truth, significance_z=1.5)
    assert "is_truncated" not in whole
    assert measure(whole, truth, top_k=(), min_clients=1).discovered_truncated == 0


def test_count_errors_are_over_real_discoveries(truth: Truth):
    table = discoveries_table(found(["aa", "ab", "b"], [1.5, 1.0, 9.0]), truth, significance_z=4)
    metrics = measure(table, truth, top_k=(), min_clients=1)
    # Estimates 3 and 2 of true 4 and 2.
    assert metrics.count_error_mean == pytest.approx(0.5)
    assert metrics.count_error_relative == pytest.approx(0.125)
    assert metrics.within_two_std == 1.0


def test_an_interval_is_held_against_contributors_and_its_lower_end_against_holders(truth: Truth):
    words = replace(found(["aa", "ab", "ba"], [1.0, 0.75, 2.0]), interval_z=np.full(3, 1.0))
    # Of aa, ab, and of ba, which no client holds.
    contributing = np.array([2.5, 1.0, 0.0])
    table = discoveries_table(words, truth, significance_z=4, contributing=contributing)
    by_word = table.set_index("word")
    # Noise variance 0.25, and 2 clients that contribute with chance 1/2 each; scaled by 2.
    assert by_word["std_error"]["aa"] == pytest.approx(2 * np.sqrt(0.25 + 2 * 0.5 * 0.5))
    assert by_word["contributing_clients"].to_dict() == {"aa": 2.5, "ab": 1.0, "ba": 0.0}
    metrics = measure(table, truth, top_k=(), min_clients=1)
    # 2 +- 1.73, 1.5 +- 1.69, and 4 +- 1.
    assert by_word["clients_low"].to_dict() == pytest.approx(
        {"aa": 2 - np.sqrt(3), "ab": 0, "ba": 3}
    )
    assert metrics.interval_coverage == metrics.lower_bound_coverage == pytest.approx(2 / 3)
    unknown = contributing * [np.nan, 1, 1]
    table = discoveries_table(words, truth, significance_z=4, contributing=unknown)
    assert measure(table, truth, top_k=(), min_clients=1).interval_coverage == 0.5


def test_nothing_found_is_measured_as_zeros_not_as_an_error(truth: Truth):
    table = discoveries_table(found([], []), truth, significance_z=4)
    metrics = measure(table, truth, top_k=(2, 50), min_clients=2)
    assert metrics.coverage == metrics.recall == metrics.f1 == 0
    assert metrics.precision is None
    assert metrics.count_error_mean is None
    assert [top.k for top in metrics.top] == [2]  # there are only four words


def test_the_true_top_is_by_holders_not_by_typing():
    # "a" has two holders who type it once each, "b" one who types it nine times.
    population = Clients.from_rows(
        name="tiny",
        lexicon=Lexicon(words=["a", "b"]),
        clients=np.array([0, 1, 2]),
        word_ids=np.array([0, 0, 1]),
        counts=np.array([1, 1, 9]),
        num_clients=3,
    )
    truth = Truth(population, Alphabet(symbols="ab"), depth=3)
    table = discoveries_table(found(["a"], [2.0]), truth, significance_z=1)
    metrics = measure(table, truth, top_k=(1,), min_clients=1)
    assert metrics.top[0].found == metrics.top[0].precision == 1
