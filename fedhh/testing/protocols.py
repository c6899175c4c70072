"""What every discovery protocol must do: stay pure, resume, see aggregates only, say what it does.

A protocol is run on a small population; its checks compare that run with others that must give the
same, and with what the protocol states of itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedhh.clients.populations.population import StoredPopulation
from fedhh.protocol import AnyProtocol
from fedhh.testing import protocol_conduct, protocol_statements
from fedhh.testing.checks import Check
from fedhh.testing.populations import small_population
from fedhh.testing.protocol_trial import ProtocolTrial, default_bad_settings


def protocol_trial(
    protocol: AnyProtocol,
    *,
    population: StoredPopulation | None = None,
    workers: Sequence[int] = (),
    bad_settings: Sequence[tuple[str, Any]] | None = None,
) -> ProtocolTrial:
    """Return what the checks of protocols are called on.

    Args:
        protocol: The settings, small enough for the population: a check makes up to three runs.
        population: Who is asked; `small_population` if None.
        workers: Numbers of Ray workers with which a run has to give the same bits.
        bad_settings: Fields with values that must be refused; if None, -1 for every integer, NaN
            for every float and an unknown word for every string.
    """
    return ProtocolTrial(
        protocol=protocol,
        population=population or small_population(),
        workers=tuple(workers),
        bad_settings=(
            default_bad_settings(protocol) if bad_settings is None else tuple(bad_settings)
        ),
    )


def protocol_checks(trial: ProtocolTrial | None = None) -> tuple[Check[ProtocolTrial], ...]:
    """Return all checks of protocols, or those that apply to a trial.

    To see each by its name in pytest::

        TRIAL = protocol_trial(MyProtocol(clients_per_layer=500))

        @pytest.mark.parametrize("check", protocol_checks(TRIAL), ids=str)
        def test_my_protocol(check):
            check(TRIAL)
    """
    checks = [*protocol_conduct.CHECKS, *protocol_statements.CHECKS]
    return tuple(check for check in checks if trial is None or check.applies(trial))


def check_protocol(
    protocol: AnyProtocol,
    *,
    population: StoredPopulation | None = None,
    workers: Sequence[int] = (),
    bad_settings: Sequence[tuple[str, Any]] | None = None,
    seed: int = 0,
) -> None:
    """Run all checks that apply to a protocol; see `protocol_trial` for the arguments.

    Raises:
        ConformanceError: A property does not hold. The message starts with the check's name.
    """
    trial = protocol_trial(
        protocol, population=population, workers=workers, bad_settings=bad_settings
    )
    for check in protocol_checks(trial):
        check(trial, seed=seed)
