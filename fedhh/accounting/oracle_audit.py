"""Audits of randomizers: what their reports, read as messages, give away at least."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fedhh.accounting.empirical_epsilon import AuditResult
from fedhh.accounting.guess_audit import audit_guesses
from fedhh.accounting.report_scores import ShownReports
from fedhh.validation import InputError

if TYPE_CHECKING:
    from fedhh.oracles.base import FrequencyOracle

Numbers = npt.NDArray[np.int64]

_MESSAGES, _FEWEST_MESSAGES = 1_000_000, 2_000
_LARGEST_SAMPLE_BITS = 2e9
_MOST_VALUES = 32
_FEW_VALUES = 4
_REPORTS_AT_ONCE = 20_000
_BYTES_AT_ONCE = 2**27


def audit_oracle(
    oracle: FrequencyOracle,
    *,
    num_samples: int,
    rng: np.random.Generator,
    values: Sequence[int] | None = None,
    confidence: float = 0.999,
) -> AuditResult:
    """Return a lower bound on the local epsilon that an oracle's `privatize` really gives.

    Values are guessed from reports by the log-likelihood that the oracle states (`log_prob`), by
    how often each whole report was seen, and by frequencies of the report's numbers: see
    `fedhh.accounting.guess_audit`. The stated law only suggests guesses: where the code departs
    from it, the bound holds all the same.

    Args:
        oracle: Any oracle.
        num_samples: Reports in all, at least 32; a quarter of them teaches and chooses.
        rng: Source of values and of the reports' coins.
        values: Which values are held, at least two; if None, at most 32 of the domain, evenly
            spread, and of them four in pairs.
        confidence: In (0, 1): an honest oracle's bound is above its epsilon with at most the rest.

    Raises:
        InputError: An argument is out of range.
    """
    sets = value_sets(oracle.domain_size) if values is None else [list(values)]
    for value in itertools.chain.from_iterable(sets):
        if not 0 <= value < oracle.domain_size:
            raise InputError(
                f"Expected 0 <= value < domain_size={oracle.domain_size}, got value={value!r}."
            )

    def shows(held: Numbers, among: Sequence[int], *, rng: np.random.Generator) -> ShownReports:
        parts = []
        at_once, start = 16, 0
        while start < len(held):
            reports = oracle.privatize(held[start : start + at_once], rng=rng)
            stated = np.stack([oracle.log_prob(reports, value) for value in among], axis=1)
            parts.append(ShownReports.of(stated, reports))
            start += len(reports)
            # The first reports say how large they are.
            most = _BYTES_AT_ONCE // max(1, reports.nbytes // len(reports))
            at_once = max(16, min(_REPORTS_AT_ONCE, most))
        return ShownReports.together(parts)

    return audit_guesses(
        shows,
        sets,
        given="stated likelihood",
        num_reports=num_samples,
        rng=rng,
        confidence=confidence,
    )


def messages_to_sample(oracle: FrequencyOracle) -> int:
    """Return how many reports an audit draws: 1,000,000, or of long ones fewer.

    So many see every randomizer whose epsilon is a tenth above what it states, up to 4.
    """
    return max(_FEWEST_MESSAGES, min(_MESSAGES, int(_LARGEST_SAMPLE_BITS / oracle.report_bits)))


def value_sets(domain_size: int) -> list[list[int]]:
    """Return up to 32 values of a domain, evenly spread, and of larger ones four again."""
    most = min(domain_size, _MOST_VALUES)
    spread = np.linspace(0, domain_size - 1, most).round().astype(int).tolist()
    few = sorted({0, 1, domain_size // 2, domain_size - 1})
    return [spread] if domain_size <= _FEW_VALUES else [spread, few]
