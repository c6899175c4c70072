"""Goals: what is asked for, as people write it, and what is refused in one line."""

from __future__ import annotations

import pytest

from fedhh.experiments.config.schema import Config
from fedhh.experiments.planner import trial
from fedhh.experiments.planner.deployment import settings_text
from fedhh.experiments.planner.goal import Goal, bytes_of, share_of
from fedhh.experiments.run.equal_privacy import OutOfReachError
from fedhh.validation import InputError
from tests.every import every


@pytest.mark.parametrize(
    ("text", "share"), [("1/10000", 1e-4), ("0.25", 0.25), (0.5, 0.5), ("3/4", 0.75), ("1", 1.0)]
)
def test_shares_are_numbers_or_fractions(text, share: float):
    assert share_of(text) == pytest.approx(share, rel=1e-15)


@every("text", ["0", "-1/10", "2", "1/0", "often", "1/2/3", "nan"])
def test_what_is_no_share_is_refused(text: str):
    with pytest.raises(InputError, match=r"Expected --held-by, a share in \(0, 1\]"):
        share_of(text)


@every(
    ("text", "size"),
    [("100kB", 100_000), ("1.5 MB", 1_500_000), ("2GB", 2 * 10**9), ("7", 7), (9, 9), ("64 B", 64)],
)
def test_sizes_are_bytes_with_decimal_units(text, size: int):
    assert bytes_of(text, "--max-bytes") == size


@every("text", ["0", "-5kB", "100KiB", "kB", "nan", "inf"])
def test_what_is_no_size_is_refused_by_its_option(text: str):
    with pytest.raises(InputError, match="Expected --max-upload, a size from 1 B"):
        bytes_of(text, "--max-upload")


@every(
    ("values", "message"),
    [
        ({}, "Expected a guarantee: a central one"),
        ({"central_epsilon": 0.0}, "0 < central_epsilon < inf, got central_epsilon=0"),
        ({"local_epsilon": -1.0}, "got local_epsilon=-1"),
        ({"local_epsilon": 1.0, "days": 0.0}, "0 < days < inf"),
        ({"local_epsilon": 1.0, "rounds_per_day": -1.0}, "0 < rounds_per_day < inf"),
        ({"local_epsilon": 1.0, "max_bytes": 0}, "max_bytes >= 1"),
        ({"local_epsilon": 1.0, "held_by": 1.5}, "0 < held_by <= 1, got held_by=1.5"),
        ({"local_epsilon": 1.0, "min_precision": 2.0}, "min_precision=2.0"),
    ],
)
def test_a_goal_that_is_none_is_refused(values, message: str):
    with pytest.raises(InputError, match=message):
        Goal(**values)


def test_words_to_find_are_held_by_at_least_the_share():
    goal = Goal(local_epsilon=1.0, held_by=share_of("1/10000"))
    # 0.0001 is no binary fraction: 1e-4 of 2,000,000 clients are 200, not 201.
    assert goal.min_clients(2_000_000) == 200
    assert goal.min_clients(2_000_001) == 201
    assert goal.min_clients(50) == 1
    assert Goal(local_epsilon=1.0).min_clients(50) is None


def test_days_follow_from_rounds_of_any_length():
    assert Goal(local_epsilon=1.0, rounds_per_day=2.0).days_of(15) == 7.5
    assert Goal(local_epsilon=1.0, rounds_per_day=0.5).days_of(15) == 30


def test_where_no_local_epsilon_gives_as_much_as_is_allowed_the_largest_is_taken(monkeypatch):
    def refuses(*_):
        raise OutOfReachError("none")

    monkeypatch.setattr(trial.Choices, "chosen", refuses)
    config = Config.model_validate({"population": {"alphabet": "lower"}})
    found = trial.with_guarantee(config, Goal(central_epsilon=20.0, unit="item"), 200_000)
    assert found.privacy.local_epsilon == 16.0
    with pytest.raises(OutOfReachError):
        trial.with_guarantee(config, Goal(central_epsilon=0.1, unit="item"), 200_000)


def test_settings_are_shown_without_the_last_digits_of_their_numbers():
    changed = {"central_epsilon": 199.9999999998, "max_items": 12_345_678, "noise": "laplace"}
    expected = "central_epsilon 200, max_items 12345678, noise laplace"
    assert (settings_text(changed), settings_text({})) == (expected, "all default")
