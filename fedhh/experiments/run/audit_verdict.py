"""An audit of a randomizer: a lower bound on its epsilon by sampling, next to what it states."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from fedhh.accounting.empirical_epsilon import AuditResult
from fedhh.accounting.guarantees import SWAP
from fedhh.accounting.guess_audit import audit_oracle, messages_to_sample
from fedhh.experiments.study.json_values import plain
from fedhh.oracles import OracleSpec, make_oracle
from fedhh.random import Stream, generator


@dataclass(frozen=True, kw_only=True)
class AuditVerdict:
    """A lower bound next to a claim; unit: an item, neighbors: swaps.

    Attributes:
        audited: What.
        found: Lower bound on its epsilon, by sampling.
        claim: The epsilon that it states.
        confidence: Of the verdict.
    """

    audited: str
    found: AuditResult
    claim: float
    confidence: float

    @property
    def refuted(self) -> bool:
        return self.found.epsilon > self.claim

    @property
    def verdict(self) -> str:
        """The word for it."""
        return "refuted" if self.refuted else "consistent"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary; an infinite number becomes the string "inf"."""
        found = asdict(self.found)
        at_least = found.pop("epsilon")
        return {
            "audited": self.audited,
            "unit": "item",
            "neighboring": SWAP,
            **plain(found),
            "confidence": self.confidence,
            "at_least": at_least,
            "claimed": plain(self.claim),
            "verdict": self.verdict,
        }


def audit_randomizer(
    oracle: str = "ss",
    *,
    local_epsilon: float,
    domain_size: int,
    num_samples: int | None = None,
    confidence: float = 0.999,
    seed: int = 0,
) -> AuditVerdict:
    """Return a lower bound on the epsilon that a randomizer really gives, next to what it states.

    Audited are single reports, read as messages. Unit: an item; neighbors swap it.

    Args:
        oracle: The randomizer's key.
        local_epsilon: Its stated privacy.
        domain_size: Its values, the dummy included.
        num_samples: Reports; chosen if None.
        confidence: Of the verdict, in (0, 1).
        seed: Of all samples.

    Raises:
        InputError: A value is out of range.
    """
    randomizer = make_oracle(OracleSpec(name=oracle, epsilon=local_epsilon), domain_size)
    found = audit_oracle(
        randomizer,
        num_samples=messages_to_sample(randomizer) if num_samples is None else num_samples,
        rng=generator(seed, Stream.RANDOMIZER),
        confidence=confidence,
    )
    return AuditVerdict(
        audited=f"one report of {oracle}", found=found, claim=local_epsilon, confidence=confidence
    )
