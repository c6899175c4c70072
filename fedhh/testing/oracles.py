"""What every frequency oracle must do: laws by enumeration, the code against them, its conduct.

Oracles with public coins (a hash seed in the report) are enumerated given one seed. What holds only
on average over seeds is not checked here; `Check.applies` says which checks that leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fedhh.oracles.base import FrequencyOracle
from fedhh.testing import oracle_conduct, oracle_laws
from fedhh.testing.checks import Check

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
    checks = [*oracle_laws.CHECKS, *oracle_conduct.CHECKS]
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
