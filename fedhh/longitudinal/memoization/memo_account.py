"""What all reports of a device say after some days, memoized and with fresh noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fedhh.longitudinal.memoization.bits import MemoizedBits
from fedhh.longitudinal.memoization.histories import (
    Answer,
    DeviceFound,
    ObservedDays,
    find_device,
    observed_after,
)
from fedhh.longitudinal.memoization.kinds import dbitflip, one_bit_mean, rappor
from fedhh.oracles import OracleSpec, make_oracle
from fedhh.oracles.bloom import BitResponse, BloomFilters
from fedhh.random import Stream, generator
from fedhh.validation import InputError, require_at_least, require_choice, require_epsilon

ANSWERS: Mapping[str, Mapping[str, Any]] = {
    "rappor": {"bits": 128, "hashes": 2, "p": 0.5, "q": 0.75},
    "one-bit-mean": {"gamma": 0.0},
    "dbitflip": {"buckets": 32, "drawn": 4, "gamma": 0.0},
    "fresh": {"oracle": "grr", "domain_size": 10},
}
"""Settings of each answer by name, with defaults; "fresh" is any oracle's noise, drawn every day.

* rappor: bits of a filter, hash functions, probability of a 1 for a permanent 0 and for a 1
* one-bit-mean: probability gamma that a permanent bit is flipped every day
* dbitflip: buckets of the domain, buckets that a device draws, gamma
* fresh: an oracle's key, its values
"""
PATTERN_WIDTHS = (1, 2, 3)
"""How many distinct values a device has, in histories that repeat on the same days."""

_LONGEST = 1000
_LARGEST_CROWD = 10_000
_TRIALS = 200
_MOST_BITS = 4096
_MOST_BITS_OF_CROWD = 2**22
_SHOWN_DAYS = (1, 2, 3, 7, 14, 30, 60, 90, 180, 365, 730)


@dataclass(frozen=True, kw_only=True)
class MemoAccount:
    """What an observer of all reports of one device learns, linked; delta is 0.

    Neighbors: always one value, always another.

    Attributes:
        name: Of the answer, one of `ANSWERS`.
        settings: Of the answer.
        answer: The randomizer; an oracle with "fresh".
        changes: How often a value that changes does.
        rows: After some numbers of days, ascending.
        found: How often the device is found again among others, simulated; None if not asked for.
    """

    name: str
    settings: Mapping[str, Any]
    answer: Answer
    changes: int
    rows: tuple[ObservedDays, ...]
    found: DeviceFound | None

    @property
    def title(self) -> str:
        return f"{self.name} ({', '.join(f'{key} {each}' for key, each in self.settings.items())})"

    @property
    def epsilon_first(self) -> float:
        """Of one report."""
        answer = self.answer
        return answer.epsilon_first if isinstance(answer, MemoizedBits) else answer.epsilon

    @property
    def epsilon_forever(self) -> float:
        """Of all reports about one value; math.inf if nothing bounds that."""
        answer = self.answer
        return answer.epsilon_forever if isinstance(answer, MemoizedBits) else math.inf

    @property
    def epsilons_of_patterns(self) -> dict[int, float]:
        """Of two histories that repeat and differ on the same days, by their distinct values."""
        answer = self.answer
        if not isinstance(answer, MemoizedBits):
            return dict.fromkeys(PATTERN_WIDTHS, math.inf)
        return {width: answer.epsilon_of_same_pattern(width) for width in PATTERN_WIDTHS}

    @property
    def change_shows(self) -> float | None:
        """Probability that a change between the two values changes the permanent response.

        None for fresh noise.
        """
        return self.answer.change_shows if isinstance(self.answer, MemoizedBits) else None

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary; None for an epsilon that nothing bounds."""
        remembers = isinstance(self.answer, MemoizedBits)
        public_bits = self.answer.public_bits if isinstance(self.answer, MemoizedBits) else 0.0
        return {
            "answer": self.name,
            "settings": dict(self.settings),
            "unit": "user: all reports of a device, linked",
            "delta": 0.0,
            "theorem": "enumeration of a bit's reports by their counts, summed over independent "
            "bits"
            if remembers
            else "basic composition over the days that differ",
            "epsilon_first": self.epsilon_first,
            "epsilon_forever": _finite(self.epsilon_forever),
            "epsilon_same_pattern": {
                str(width): _finite(each) for width, each in self.epsilons_of_patterns.items()
            },
            "public_bits": public_bits,
            "permanent_response_changes": self.change_shows,
            "changes": self.changes,
            "days": [_finite(asdict(row)) for row in self.rows],
            "found_in_crowd": None if self.found is None else asdict(self.found),
        }


def make_answer(name: str, *, local_epsilon: float, **settings: Any) -> Answer:
    """Return a memoized answer, or fresh noise, by name.

    Args:
        name: One of `ANSWERS`.
        local_epsilon: Of all reports about one value, however many; of "fresh", of one report.
        settings: Of the answer, by their names in `ANSWERS`.

    Raises:
        InputError: A value is out of range, or a setting is of another answer.
    """
    settings = settings_of_answer(name, settings)
    require_epsilon(local_epsilon=local_epsilon)
    if name == "fresh":
        spec = OracleSpec(name=settings["oracle"], epsilon=local_epsilon)
        return make_oracle(spec, settings["domain_size"])
    if name == "rappor":
        hashes = settings["hashes"]
        answer = rappor(
            BloomFilters(num_bits=settings["bits"], num_hashes=hashes, num_cohorts=1, hash_seed=0),
            BitResponse.of_all_reports(
                local_epsilon, num_hashes=hashes, p=settings["p"], q=settings["q"]
            ),
        )
    elif name == "one-bit-mean":
        answer = one_bit_mean(epsilon=local_epsilon, maximum=1.0, gamma=settings["gamma"])
    else:
        answer = dbitflip(
            epsilon=local_epsilon,
            num_buckets=settings["buckets"],
            num_drawn=settings["drawn"],
            gamma=settings["gamma"],
        )
    if answer.num_bits > _MOST_BITS:
        raise InputError(f"Expected reports of at most {_MOST_BITS} bits, got {answer.num_bits}.")
    return answer


def settings_of_answer(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings of an answer, given ones or defaults.

    Raises:
        InputError: No answer has this name, or a setting is of another one.
    """
    require_choice(ANSWERS, answer=name)
    for setting in given:
        if setting not in ANSWERS[name]:
            raise InputError(
                f"Expected no {setting} with answer={name!r}, which takes "
                f"{', '.join(ANSWERS[name])}."
            )
    return {**ANSWERS[name], **given}


def account_memo(
    answer: str,
    *,
    local_epsilon: float,
    days: int,
    changes: int = 1,
    crowd: int | None = None,
    seed: int = 0,
    **settings: Any,
) -> MemoAccount:
    """Return what an observer of all reports of one device learns, memoized and with fresh noise.

    Unit: all reports of one device, linked; delta 0. The two values are those that are easiest to
    distinguish; see `fedhh.longitudinal.memoization.observe`.

    Args:
        answer: One of `ANSWERS`.
        local_epsilon: Of all reports about one value, however many; of "fresh", of one report.
        days: A report on each, 1 to 1000.
        changes: How often a value that changes does, at least 1.
        crowd: Devices among which the device is looked for, by simulation, at least 2; None not to.
        seed: Of the simulation.
        settings: Of the answer, by their names in `ANSWERS`.

    Raises:
        InputError: A value is out of range, or a setting is of another answer.
    """
    settings = settings_of_answer(answer, settings)
    require_at_least(1, days=days, changes=changes)
    if days > _LONGEST:
        raise InputError(f"Expected days <= {_LONGEST}, got days={days}.")
    require_at_least(0, seed=seed)
    made = make_answer(answer, local_epsilon=local_epsilon, **settings)
    if crowd is not None:
        _check_crowd(made, crowd)
    shown = sorted({each for each in _SHOWN_DAYS if each < days} | {days})
    found = None
    if crowd is not None and isinstance(made, MemoizedBits):
        found = find_device(
            made,
            days=days,
            num_devices=crowd,
            num_trials=_TRIALS,
            rng=generator(seed, Stream.MEMOIZATION),
        )
    return MemoAccount(
        name=answer,
        settings=settings,
        answer=made,
        changes=changes,
        rows=tuple(observed_after(made, each, changes=changes) for each in shown),
        found=found,
    )


def _check_crowd(answer: Answer, crowd: int) -> None:
    if not isinstance(answer, MemoizedBits):
        raise InputError("Expected no crowd with fresh noise: nothing links a device's reports.")
    largest = min(_LARGEST_CROWD, _MOST_BITS_OF_CROWD // answer.num_bits)
    if not 2 <= crowd <= largest:
        raise InputError(
            f"Expected 2 <= crowd <= {largest}, with reports of {answer.num_bits} bits, got "
            f"crowd={crowd}."
        )


def _finite(value: Any) -> Any:
    """Return a value with None for what is infinite, also within dictionaries."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    return None if value == math.inf else value
