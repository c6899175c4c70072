"""Conformance suites for plug-in oracles and protocols, and the test of exact distributions.

They need no test framework: a check is called, and raises an AssertionError that says which
property does not hold, with the value seen and the bound.
"""

from fedhh.testing.checks import Check, ConformanceError
from fedhh.testing.oracle_distributions import report_distribution, tally_distribution
from fedhh.testing.protocol_trial import LETTERS, ProtocolTrial, small_population
from fedhh.testing.statistics import ALPHA, distribution_p_value, follows_distribution, rows
from fedhh.testing.suites import (
    ORACLE_CASES,
    check_oracle,
    check_protocol,
    oracle_checks,
    protocol_checks,
)

__all__ = [
    "ALPHA",
    "LETTERS",
    "ORACLE_CASES",
    "Check",
    "ConformanceError",
    "ProtocolTrial",
    "check_oracle",
    "check_protocol",
    "distribution_p_value",
    "follows_distribution",
    "oracle_checks",
    "protocol_checks",
    "report_distribution",
    "rows",
    "small_population",
    "tally_distribution",
]
