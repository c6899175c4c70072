"""Who is fake, where they stand, and what they are about."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fedhh.adversary import Adversary, FakePositions, random_targets
from fedhh.validation import InputError
from fedhh.words.alphabet import Alphabet
from tests.every import every


@every(
    ("settings", "complaint"),
    [
        ({}, "Expected one of adversary.clients"),
        ({"clients": 3, "share": 0.1}, "Expected one of adversary.clients"),
        ({"clients": 0}, "clients"),
        ({"share": 1.0}, "share"),
        ({"clients": 3, "goal": "steal"}, "goal"),
        ({"clients": 3, "goal": "collude", "targets": ("a",)}, "Expected no adversary.targets"),
        (
            {"clients": (1, 2), "num_targets": 2, "goal": "collude"},
            "one number as adversary.clients",
        ),
        (
            {"clients": (1, 2), "num_targets": 2, "goal": "demote"},
            "one number as adversary.clients",
        ),
        (
            {"clients": (1, 2), "targets": ("a",)},
            "got 1 in all; set adversary.num_targets to a mult",
        ),
        ({"clients": ()}, "as many targets for each"),
        ({"clients": (1, -2), "num_targets": 2}, "clients"),
        ({"clients": 3, "targets": ("a", "a")}, "distinct words"),
        ({"clients": 3, "targets": ("",)}, "without empty words"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings, complaint):
    with pytest.raises(InputError, match=complaint):
        Adversary(**settings)


def test_a_share_is_of_all_clients_with_the_fake_ones():
    (fakes,) = Adversary(share=0.2).fakes(8_000)
    assert fakes == 2_000
    assert fakes / (8_000 + fakes) == 0.2
    assert Adversary(share=1e-9).fakes(10) == (1,)
    assert Adversary(clients=(1, 4), num_targets=2).fakes(10) == (1, 4)
    for too_many in (Adversary(share=0.9999999), Adversary(clients=100_000_001)):
        with pytest.raises(InputError, match="Expected at most 100,000,000 fake clients, got"):
            too_many.fakes(100_000)


def test_colluders_are_among_the_clients_and_lie_to_nobody():
    colluding = Adversary(share=0.25, goal="collude")
    assert not colluding.lies
    assert (colluding.fakes(1_000), colluding.num_colluding(1_000)) == ((), 250)
    assert Adversary(clients=30).num_colluding(1_000) == 30
    with pytest.raises(InputError, match=r"adversary\.clients < 40 with goal 'collude'"):
        Adversary(clients=40, goal="collude").num_colluding(40)


def test_random_targets_are_distinct_strings_of_letters_that_nobody_holds():
    alphabet = Alphabet(symbols="ab-1")
    words = random_targets(6, length=3, alphabet=alphabet, held=frozenset({"aaa", "bbb"}), seed=4)
    assert sorted(words) == ["aab", "aba", "abb", "baa", "bab", "bba"]
    again = random_targets(6, length=3, alphabet=alphabet, held=frozenset({"aaa", "bbb"}), seed=4)
    assert words == again
    with pytest.raises(InputError, match=r"adversary\.num_targets <= 8, the strings of 3 symbols"):
        random_targets(9, length=3, alphabet=alphabet, held=frozenset(), seed=4)
    digits = Alphabet(symbols="01")
    assert random_targets(1, length=2, alphabet=digits, held=frozenset({"00", "01", "10"}), seed=0)


def test_fake_clients_of_a_cohort_are_a_hypergeometric_number():
    groups = (4, 8)
    rng = np.random.default_rng(5)
    draws = 4_000
    seen = np.zeros((draws, 2), dtype=np.int64)
    for row in seen:
        positions = FakePositions.draw(groups, 18, rng=rng)
        assert len(np.unique(positions.positions)) == 12
        row[:] = positions.numbers(10, 20, 2)
        assert row.sum() == positions.before(20) - positions.before(10)
    for group, size in enumerate(groups):
        counts = np.bincount(seen[:, group], minlength=size + 1)
        expected = draws * stats.hypergeom.pmf(np.arange(size + 1), 30, size, 10)
        full = expected > 5
        pooled = [np.append(each[full], each[~full].sum()) for each in (counts, expected)]
        keep = pooled[1] > 0
        assert stats.chisquare(pooled[0][keep], pooled[1][keep]).pvalue > 1e-9
        # The negative control: clients that stand one place further apart are another law.
        wrong = draws * stats.hypergeom.pmf(np.arange(size + 1), 30, size, 12)
        pooled[1] = np.append(wrong[full], wrong[~full].sum())
        assert stats.chisquare(pooled[0][keep], pooled[1][keep]).pvalue < 1e-9
