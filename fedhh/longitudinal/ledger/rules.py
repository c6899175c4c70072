"""Rules: charges and caps together, as published, as audited, or of a run that is repeated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedhh.accounting.guarantees import Unit
from fedhh.accounting.plan import Plan
from fedhh.accounting.sources import APPLE_CMS, APPLE_HCMS, APPLE_SFP
from fedhh.longitudinal.ledger.cap import DEFINITION, Cap, Charge
from fedhh.longitudinal.ledger.ledger import Ledger
from fedhh.longitudinal.ledger.macos import HOUR, INTERVALS, REPORTS
from fedhh.longitudinal.ledger.macos_presets import Configuration
from fedhh.longitudinal.ledger.statements import LedgerReport, report_of
from fedhh.validation import InputError, did_you_mean, require_at_least

_DAY_HOURS = 24
_REPORT_HOURS = INTERVALS[REPORTS] // HOUR


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Charges and caps of a system.

    Attributes:
        charges: One for each use case.
        caps: By use case.
        notes: What a reader of the numbers has to know.
    """

    charges: tuple[Charge, ...]
    caps: Mapping[str, Cap]
    notes: tuple[str, ...] = ()

    def without(self, use_cases: tuple[str, ...]) -> Rules:
        """Return the rules of a device that never sends of some use cases."""
        names = [charge.use_case for charge in self.charges]
        for name in use_cases:
            if name not in names:
                raise InputError(f"Unknown use case {name!r}{did_you_mean(name, names)}")
        kept = tuple(charge for charge in self.charges if charge.use_case not in use_cases)
        if not kept:
            raise InputError("Expected at least one use case to be left, got none.")
        caps = {charge.use_case: self.caps[charge.use_case] for charge in kept}
        return Rules(charges=kept, caps=caps, notes=self.notes)


APPLE = Rules(
    charges=(
        Charge(use_case="quicktype", epsilon=8, reports=(2, 6), theorem=APPLE_SFP),
        Charge(use_case="emoji", epsilon=4, theorem=APPLE_CMS),
        Charge(use_case="lookup-hints", epsilon=4),
        Charge(use_case="health", epsilon=2, theorem=APPLE_CMS),
        Charge(use_case="safari-energy-crash", epsilon=4, theorem=APPLE_HCMS),
        Charge(use_case="safari-autoplay", epsilon=8, theorem=APPLE_CMS),
    ),
    caps={
        "quicktype": Cap(amount=2),
        "emoji": Cap(amount=1),
        "lookup-hints": Cap(amount=2),
        "health": Cap(amount=1),
        "safari-energy-crash": Cap(amount=2),
        "safari-autoplay": Cap(amount=2),
    },
    notes=(
        "Epsilons and records per day: Apple, 'Differential Privacy' (technical overview), section "
        "Privacy budget. Which algorithm, and that QuickType's 8 are 2 + 6: Apple (2017), sections "
        "6.1 to 6.5; neither says how lookup hints are randomized.",
        "'For Safari, Apple limits user contributions to 2 donations per day': taken as 2 for "
        "energy and crashes, which share a budget, and 2 for autoplay; if it means 2 in all, the "
        "day's sum is less by 8.",
        "The overview says nothing of unused contributions: no rollover is assumed.",
    ),
)
"""Apple's published caps of its technical overview."""


def rules_of_configuration(configuration: Configuration) -> Rules:
    """Return the charges and caps of an audited configuration, a use case for each budget.

    Of several PropertiesNames with one budget, the largest epsilon counts. Caps are balances alone.
    """
    charges, caps = [], {}
    for name in configuration.paid_budgets:
        properties = configuration.key_properties.values()
        sources = dict.fromkeys(each.source for each in properties if each.budget == name)
        theorem = f"{DEFINITION}; PrivacyParameter, Tang et al. (2017), {'; '.join(sources)}"
        epsilon = configuration.epsilon_of(name)
        charges.append(Charge(use_case=name, epsilon=epsilon, theorem=theorem))
        caps[name] = configuration.budgets[name].cap
    return Rules(charges=tuple(charges), caps=caps, notes=tuple(configuration.notes))


def before_under_reports(
    configuration: Configuration, ledger: Ledger, *, key_names: int
) -> LedgerReport:
    """Return `Ledger.before` for balances and for what reports have room for.

    A report comes at least 18 hours after the one before, and holds at most min(SessionAmount, 40)
    records of a KeyName. In any half-open window of h hours there are at most ceil(h / 18): 2 in a
    day or any 24 hours. A device uses at most ``key_names`` KeyNames of a budget.
    """
    days, singles = ledger.num_days, [1] * len(ledger.charges)
    units: dict[Unit, list[int]] = {
        "item": singles,
        "event": singles,
        "day": _most(configuration, ledger, key_names, hours=_DAY_HOURS, window=1, days=days),
        "24 hours": _most(configuration, ledger, key_names, hours=_DAY_HOURS, window=2, days=days),
        "user": most_under_reports(configuration, ledger, key_names=key_names, num_days=days),
    }
    note = (
        "One day and 24 hours have room for 2 reports, at least 18 hours apart: a device that "
        f"saved up, with {key_names} KeyName{'s' * (key_names > 1)} of each budget, fills both."
    )
    return report_of(ledger.charges, units, num_days=days, delta=ledger.delta, note=note)


def most_under_reports(
    configuration: Configuration, ledger: Ledger, *, key_names: int, num_days: int
) -> list[int]:
    """Return the most records of each use case in some days; see `before_under_reports`."""
    hours = num_days * _DAY_HOURS
    return _most(configuration, ledger, key_names, hours=hours, window=num_days, days=num_days)


def _most(
    configuration: Configuration,
    ledger: Ledger,
    key_names: int,
    *,
    hours: int,
    window: int,
    days: int,
) -> list[int]:
    """Return the most records in any so many hours, which lie in a window of whole days."""
    require_at_least(1, key_names=key_names)
    reports = -(-hours // _REPORT_HOURS)
    most = []
    for name in ledger.use_cases:
        budget = configuration.budgets[name]
        paid = budget.cap.most_in_any(min(window, days), of_days=days)
        most.append(min(paid, reports * key_names * budget.most_per_key))
    return most


def rules_of_run(plan: Plan, *, every: int, name: str) -> Rules:
    """Return the charge and the cap of a run's clients, when it starts anew every so many days.

    A client sends at most B reports in a round, and takes part in one round of a run, or in each
    where clients are reused; that is the cap of a session as long as the pause between runs. An
    item that stays on the device may be reported in every run, by a record each.

    Args:
        plan: Of the run's protocol.
        every: Days from one run's start to the next, at least 1.
        name: Of the use case.

    Raises:
        InputError: The protocol has no local privacy, or every < 1.
    """
    require_at_least(1, every=every)
    local = plan.who_randomize
    if not math.isfinite(local.local_epsilon):
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
    if plan.who_trust:
        notes.append(plan.who_trust)
    if local.is_of_whole_set:
        notes.append("A record is about one value drawn from all that a client holds.")
    charge = Charge(
        use_case=name,
        epsilon=local.local_epsilon,
        reports=reports if len(reports) > 1 else (),
        records_per_event=rounds,
        theorem=local.item_theorem,
    )
    cap = Cap(amount=local.max_items * rounds, session_days=every)
    return Rules(charges=(charge,), caps={name: cap}, notes=tuple(notes))


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
        population = build_population(config.population, seed=config.seed)
        protocol = check_config(config, population)[1]
    rules = rules_of_run(protocol.plan, every=every, name=config.protocol.name)
    return rules, f"{protocol.title} every {every} days"
