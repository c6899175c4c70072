"""The ledger of a discovery run that is repeated: what its clients lose over a year of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from fedhh.accounting.local import item_theorem
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.longitudinal.ledger.charge import Charge
from fedhh.longitudinal.ledger.presets import Rules
from fedhh.mechanisms.base import Mechanism
from fedhh.mechanisms.local_reports import LocalReports
from fedhh.mechanisms.opt_in import OptInBlend
from fedhh.validation import InputError, require_at_least


def rules_of_run(mechanism: Mechanism, *, every: int, name: str) -> Rules:
    """Return the charge and the cap of a run's clients, when it starts anew every so many days.

    A client sends at most B reports in a round, and takes part in one round of a run, or in each
    where clients are reused; that is the cap of a session as long as the pause between runs. An
    item that stays on the device may be reported in every run, by a record each.

    Args:
        mechanism: Of the run's protocol.
        every: Days from one run's start to the next, at least 1.
        name: Of the use case.

    Raises:
        InputError: The protocol has no local privacy, or every < 1.
    """
    require_at_least(1, every=every)
    local = mechanism.local if isinstance(mechanism, OptInBlend) else mechanism
    if not isinstance(local, LocalReports) or not math.isfinite(local.local_epsilon):
        raise InputError(
            f"Expected a protocol with local privacy, got {name!r}; a ledger adds up what each "
            "record tells, and this one's records are not randomized on the device."
        )
    reports = local.epsilons_of_contribution
    rounds = local.most_rounds_per_client
    notes = [
        f"A run every {every} days; a client takes part in {rounds} of its rounds at most, with "
        f"up to {local.max_items} records in each.",
        "An item that stays on a device may enter a record of every run.",
    ]
    if isinstance(mechanism, OptInBlend):
        notes.append(
            "For clients who did not opt in: those who did trust a curator, with "
            f"epsilon {mechanism.opt_in_epsilon:g} at delta {mechanism.opt_in_delta:g} each run."
        )
    if local.is_of_whole_set:
        notes.append("A record is about one value drawn from all that a client holds.")
    return Rules(
        charges=(
            Charge(
                use_case=name,
                epsilon=local.local_epsilon,
                reports=reports if len(reports) > 1 else (),
                records_per_event=rounds,
                theorem=item_theorem(local),
            ),
        ),
        caps={name: Cap(amount=local.max_items * rounds, session_days=every)},
        notes=tuple(notes),
    )


def rules_of_source(
    source: str | Path, *, every: int = 7, settings: Sequence[str] = ()
) -> tuple[Rules, str]:
    """Return the rules of a run that starts anew every so many days, and their title.

    Args:
        source: A preset, a run's TOML file, or the directory of a finished run.
        every: Days from one run's start to the next, at least 1.
        settings: Changes as "KEY=VALUE"; not of a finished run.

    Raises:
        InputError: The run has no local privacy, cannot be read, or a value is out of range.
    """
    from fedhh.experiments.config.built_in import preset_names
    from fedhh.experiments.config.load import load_config
    from fedhh.experiments.config.population import build_population
    from fedhh.experiments.run.run import check_config
    from fedhh.experiments.run.stored_result import read_protocol

    require_at_least(1, every=every)
    preset = str(source) if str(source) in preset_names() else None
    path = Path(source)
    if preset is None and path.suffix != ".toml" and not path.is_file():
        if settings:
            raise InputError(
                f"Expected no --set with the directory of a finished run, {path}; give the "
                "file config.toml in it to ask about other settings."
            )
        config, protocol = read_protocol(path)
    else:
        file = path if preset is None else None
        config = load_config(preset=preset, file=file, settings=settings)
        population, _ = build_population(config.population, seed=config.seed)
        protocol = check_config(config, population)[1]
    rules = rules_of_run(protocol.mechanism, every=every, name=config.protocol.name)
    return rules, f"{protocol.title} every {every} days"
