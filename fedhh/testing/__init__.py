"""Conformance suites for plug-in oracles and protocols, and the test of exact distributions.

They need no test framework: a check is called, and raises an AssertionError that says which
property does not hold, with the value seen and the bound.

Oracles with public coins (a hash seed in the report) are enumerated given one seed. What holds only
on average over seeds is not checked here; `Check.applies` says which checks that leaves out.

A protocol is run on a small population; its checks compare that run with others that must give the
same, and with what the protocol states of itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fedhh.oracles.base import FrequencyOracle
from fedhh.protocol import DiscoveryProtocol
from fedhh.testing import (
    oracle_conduct,
    oracle_distributions,
    protocol_conduct,
    protocol_statements,
)
from fedhh.testing.checks import Check, ConformanceError
from fedhh.testing.oracle_distributions import report_distribution, tally_distribution
from fedhh.testing.protocol_trial import LETTERS, ProtocolTrial, small_population
from fedhh.testing.statistics import ALPHA, distribution_p_value, follows_distribution, rows

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

ORACLE_CASES: tuple[tuple[float, int], ...] = ((0.5, 4), (2.0, 5), (4.0, 3))
"""Epsilons and sizes of domains small enough to enumerate all reports, and even three together."""


def oracle_checks(oracle: FrequencyOracle | None = None) -> tuple[Check[FrequencyOracle], ...]:
    """Return all checks of oracles, or those that apply to one.

    To see each by its name in pytest::

        ORACLES = [MyOracle(epsilon=e, domain_size=s) for e, s in ORACLE_CASES]

        @pytest.mark.parametrize(
            ("oracle", "check"), [(o, c) for o in ORACLES for c in oracle_checks(o)], ids=str
        )
        def test_my_oracle(oracle, check):
            check(oracle)
    """
    checks = [*oracle_distributions.CHECKS, *oracle_conduct.CHECKS]
    return tuple(check for check in checks if oracle is None or check.applies(oracle))


def check_oracle(
    make_oracle: Callable[..., FrequencyOracle],
    *,
    cases: Sequence[tuple[float, int]] = ORACLE_CASES,
    seed: int = 0,
) -> None:
    """Run all checks that apply to an oracle.

    Args:
        make_oracle: The oracle's class, or a function, called with the keywords ``epsilon`` and
            ``domain_size``. Parameters that make reports few belong in here.
        cases: Epsilons and domain sizes, at least 3, for which all reports can be enumerated.
        seed: Of all randomness; a right oracle fails one of the statistical checks with a chance
            of `ALPHA` each.

    Raises:
        ConformanceError: A property does not hold. The message starts with the check's name.
    """
    for epsilon, domain_size in cases:
        oracle = make_oracle(epsilon=epsilon, domain_size=domain_size)
        for check in oracle_checks(oracle):
            check(oracle, seed=seed)


def protocol_checks(trial: ProtocolTrial | None = None) -> tuple[Check[ProtocolTrial], ...]:
    """Return all checks of protocols, or those that apply to a trial.

    To see each by its name in pytest::

        TRIAL = ProtocolTrial(MyProtocol(clients_per_layer=500))

        @pytest.mark.parametrize("check", protocol_checks(TRIAL), ids=str)
        def test_my_protocol(check):
            check(TRIAL)
    """
    checks = [*protocol_conduct.CHECKS, *protocol_statements.CHECKS]
    return tuple(check for check in checks if trial is None or check.applies(trial))


def check_protocol(protocol: DiscoveryProtocol, *, seed: int = 0, **settings: Any) -> None:
    """Run all checks that apply to a protocol; see `ProtocolTrial` for the other arguments.

    Raises:
        ConformanceError: A property does not hold. The message starts with the check's name.
    """
    trial = ProtocolTrial(protocol, **settings)
    for check in protocol_checks(trial):
        check(trial, seed=seed)
