"""All oracles compared: noise, size of a report, what reports add up to, and which to use."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fedhh.oracles.base import FrequencyOracle
from fedhh.oracles.local_hashing import LocalHashing
from fedhh.oracles.registry import OracleSpec, make_oracle, oracle_names
from fedhh.validation import InputError, require_at_least, require_between

_EPSILONS = (0.01, 30.0)
_CHEAP_BITS = 8192
"""A report that costs no device anything: a kilobyte, less than what carries it."""

_AS_GOOD = 1.05


@dataclass(frozen=True, kw_only=True)
class OracleFacts:
    """What one oracle costs, with its default settings.

    Attributes:
        name: As a configuration names it.
        variance: V0, the variance that a report adds to the estimate of a value that no client
            holds.
        report_bits: Bits of a report.
        aggregate_size: Numbers that reports add up to; None if the server keeps every report.
        is_sketch: Whether that number does not depend on the domain.
    """

    name: str
    variance: float
    report_bits: float
    aggregate_size: int | None
    is_sketch: bool


@dataclass(frozen=True, kw_only=True)
class OracleComparison:
    """Every oracle that fits a case, why others do not, and which to use.

    Attributes:
        epsilon: Local privacy of one report.
        domain_size: s.
        facts: By name, least noise first.
        refused: Why an oracle does not fit, by name.
        recommended: Name of the one to use.
        reason: Why, in one sentence.
    """

    epsilon: float
    domain_size: int
    facts: Mapping[str, OracleFacts]
    refused: Mapping[str, str]
    recommended: str
    reason: str

    def relative_to_oue(self, name: str) -> float:
        """Return an oracle's V0 as a multiple of optimized unary encoding's."""
        return self.facts[name].variance / self.facts["oue"].variance

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary."""
        return {
            "unit": "report",
            "epsilon": self.epsilon,
            "domain_size": self.domain_size,
            "recommended": self.recommended,
            "reason": self.reason,
            "oracles": [
                {**asdict(facts), "relative_to_oue": self.relative_to_oue(name)}
                for name, facts in self.facts.items()
            ],
            "refused": dict(self.refused),
        }


def noise_of(name: str, *, epsilon: float, domain_size: int) -> float:
    """Return an oracle's V0; NaN if it does not fit."""
    try:
        oracle = make_oracle(OracleSpec(name=name, epsilon=epsilon), domain_size)
    except InputError:
        return math.nan
    return float(oracle.variance(0, 1))


def compare_oracles(*, epsilon: float, domain_size: int) -> OracleComparison:
    """Return what all oracles but the null mechanism cost, and which to use.

    For a local epsilon from 0.01 to 30 and at least 2 values.
    """
    require_between(*_EPSILONS, epsilon=epsilon)
    require_at_least(2, domain_size=domain_size)
    facts, refused = {}, {}
    for name in compared_names():
        try:
            oracle = make_oracle(OracleSpec(name=name, epsilon=epsilon), domain_size)
            facts[name] = _facts(name, oracle)
        except InputError as error:
            refused[name] = str(error)
    recommended, reason = _recommend(facts, epsilon, domain_size)
    return OracleComparison(
        epsilon=epsilon,
        domain_size=domain_size,
        facts=dict(sorted(facts.items(), key=lambda item: item[1].variance)),
        refused=refused,
        recommended=recommended,
        reason=reason,
    )


def compared_names() -> list[str]:
    """Return the names of all oracles that protect anything."""
    return [name for name in oracle_names() if name != "none"]


def _facts(name: str, oracle: FrequencyOracle) -> OracleFacts:
    return OracleFacts(
        name=name,
        variance=float(oracle.variance(0, 1)),
        report_bits=oracle.report_bits,
        aggregate_size=None if isinstance(oracle, LocalHashing) else oracle.aggregate_size,
        is_sketch=oracle.is_sketch,
    )


def _aside(facts: Mapping[str, OracleFacts]) -> str:
    """Return what Subset Selection would gain over randomized response, if it does."""
    ours, subsets = facts["grr"], facts.get("ss")
    if subsets is None or subsets.variance > ours.variance / _AS_GOOD:
        return ""
    share = 1 - subsets.variance / ours.variance
    return f" (ss would have {share:.0%} less, in {subsets.report_bits:,.0f} bits)"


def _recommend(
    facts: Mapping[str, OracleFacts], epsilon: float, domain_size: int
) -> tuple[str, str]:
    """Return an oracle and why: Wang et al. (2017), section 5, with what came after it.

    Their rule is randomized response if s < 3 e**epsilon + 2, otherwise unary encoding or local
    hashing by what a report may cost. Subset Selection then has less noise than these, and
    projective geometry the same in a short report.
    """
    edge = 3 * math.exp(epsilon) + 2
    if domain_size < edge:
        return "grr", (
            f"{domain_size:,} values are fewer than 3 e^epsilon + 2 = {edge:,.0f}, where reports "
            f"of {facts['grr'].report_bits:.0f} bits have less noise than local hashing and unary "
            f"encoding{_aside(facts)}."
        )
    start = f"{domain_size:,} values are at least 3 e^epsilon + 2 = {edge:,.0f}, "
    subsets = facts.get("ss")
    if subsets and subsets.report_bits <= _CHEAP_BITS:
        return "ss", (
            f"{start}too many for grr, and no oracle's noise is more than {_AS_GOOD - 1:.0%} below "
            f"Subset Selection's, in {subsets.report_bits:,.0f} bits."
        )
    points = facts.get("pgr")
    if subsets and points and points.variance <= _AS_GOOD * subsets.variance:
        return "pgr", (
            f"{start}too many for grr, a report of Subset Selection would be "
            f"{subsets.report_bits:,.0f} bits, and projective geometry has its noise within "
            f"{_AS_GOOD - 1:.0%} in {points.report_bits:.0f} bits."
        )
    if "olh" not in facts:
        cheap = [each for each in facts.values() if each.report_bits <= _CHEAP_BITS]
        best = min(cheap, key=lambda each: each.variance)
        return best.name, (
            f"{start}where neither Subset Selection nor local hashing fits; of all reports of at "
            f"most {_CHEAP_BITS:,} bits, those of {best.name} have the least noise, in "
            f"{best.report_bits:.0f} bits."
        )
    return "olh", (
        f"{start}too many for grr, and local hashing has the noise of unary encoding in "
        f"{facts['olh'].report_bits:.0f} bits instead of {domain_size:,}."
    )
