"""All oracles compared: noise, size of a report, the server's work, and which to use."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from fedhh.oracles.base import FrequencyOracle
from fedhh.oracles.count_mean_sketch import CountMeanSketch
from fedhh.oracles.d_bit_flip import DBitFlip
from fedhh.oracles.hadamard_response import HadamardResponse
from fedhh.oracles.hadamard_sketches import HadamardSketch
from fedhh.oracles.hashed_response import HashedResponseOracle
from fedhh.oracles.histogram_encoding import HistogramEncoding
from fedhh.oracles.local_hashing import LocalHashing
from fedhh.oracles.projective_geometry_response import ProjectiveGeometryResponse
from fedhh.oracles.randomized_response import GeneralizedRandomizedResponse, Identity
from fedhh.oracles.registry import OracleSpec, make_oracle, oracle_names
from fedhh.oracles.subset_selection import SubsetSelection
from fedhh.oracles.unary_encoding import UnaryEncoding
from fedhh.validation import InputError, require_at_least, require_between

_EPSILONS = (0.01, 30.0)
_CHEAP_BITS = 8192
"""A report that costs no device anything: a kilobyte, less than what carries it."""

_AS_GOOD = 1.05


class ServerWork(NamedTuple):
    """What a server does, in numbers that it adds up or looks at.

    Where all values are decoded together, a candidate's is its share of that.

    Attributes:
        report: Order of the work on a report, such as "d".
        per_report: Its number.
        candidate: Order of the work on a candidate, once all n reports are in.
        per_candidate: Its number, but for what each report adds to it.
        per_candidate_and_report: What a candidate needs for each report again; 0 where reports add
            up.
    """

    report: str
    per_report: float
    candidate: str
    per_candidate: float
    per_candidate_and_report: float = 0.0


def server_work(oracle: FrequencyOracle) -> ServerWork | None:  # noqa: PLR0911 - one a family
    """Return what an oracle costs the server; None for plug-ins."""
    s = oracle.domain_size
    match oracle:
        case GeneralizedRandomizedResponse() | Identity():
            return ServerWork("1", 1, "1", 1)
        case UnaryEncoding() | HistogramEncoding():
            return ServerWork("s", s, "1", 1)
        case SubsetSelection() | DBitFlip():
            return ServerWork("d", oracle.d, "1", 1)
        case LocalHashing():
            # A report is kept; a candidate is hashed by the function of each.
            return ServerWork("1", 1, "n", 0, 1)
        case HadamardResponse():
            # A candidate is its share of transforming the blocks.
            transform = oracle.aggregate_size * math.log2(oracle.block_size)
            return ServerWork("1", 1, "K log b / s", transform / s)
        case ProjectiveGeometryResponse() if oracle.transforms(s):
            vectors = oracle.field_size**oracle.num_coordinates
            return ServerWork("1", 1, "r**t log K / s", vectors * oracle.report_bits / s)
        case ProjectiveGeometryResponse():
            return ServerWork("1", 1, "c", oracle.num_supporting)
        case HashedResponseOracle():
            return ServerWork("1", 1, "k", oracle.num_hashes)
        case CountMeanSketch():
            return ServerWork("m", oracle.num_cells, "k", oracle.num_hashes)
        case HadamardSketch():
            # A candidate is a cell of each row, and its share of transforming the rows.
            transform = oracle.num_hashes * oracle.num_cells * math.log2(max(oracle.num_cells, 2))
            return ServerWork("1", 1, "k + k m log m / s", oracle.num_hashes + transform / s)
    return None


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
        work: What adding up and decoding cost the server; None if the oracle does not say.
    """

    name: str
    variance: float
    report_bits: float
    aggregate_size: int | None
    is_sketch: bool
    work: ServerWork | None


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
                {
                    "name": name,
                    "variance": facts.variance,
                    "relative_to_oue": self.relative_to_oue(name),
                    "report_bits": facts.report_bits,
                    "aggregate_size": facts.aggregate_size,
                    "is_sketch": facts.is_sketch,
                    "server_work": facts.work._asdict() if facts.work else None,
                }
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
    work = server_work(oracle)
    adds_up = work is None or not work.per_candidate_and_report
    return OracleFacts(
        name=name,
        variance=float(oracle.variance(0, 1)),
        report_bits=oracle.report_bits,
        aggregate_size=oracle.aggregate_size if adds_up else None,
        is_sketch=oracle.aggregate_form == "sketch",
        work=work,
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
    return "olh", (
        f"{start}too many for grr, and local hashing has the noise of unary encoding in "
        f"{facts['olh'].report_bits:.0f} bits instead of {domain_size:,}."
    )
