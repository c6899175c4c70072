"""How many fake clients get a word into the result that no client holds: `fedhh attack`.

One run tries many numbers of fake clients at once: each target has its own fake clients, as many
as its dose says, and whether it is found is one trial of that dose. Targets are few next to what
the protocol keeps, so that they hardly compete; together they are never more than a share of all
clients. A first run goes through powers of two, further ones through what lies between always
failing and always succeeding.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedhh.adversary import Adversary, Strategy
from fedhh.clients.population import Population
from fedhh.experiments.attack.dose_response import (
    CHANCES,
    Dose,
    DoseResponse,
    Needed,
    merged,
    next_doses,
)
from fedhh.experiments.config.client_file import KeptFile
from fedhh.experiments.config.labels import protocol_labels
from fedhh.experiments.config.load import change_config
from fedhh.experiments.config.population import build_population
from fedhh.experiments.config.protocol import with_protocols
from fedhh.experiments.config.schema import Config
from fedhh.experiments.config.section import section_of
from fedhh.experiments.run.arguments import require_population
from fedhh.experiments.run.equal_privacy import with_chosen_epsilons
from fedhh.experiments.run.run import check_config, run_config
from fedhh.experiments.study.callbacks import Callbacks, Several, Work
from fedhh.experiments.study.request import Request
from fedhh.experiments.study.text_table import TextTable
from fedhh.server.registry import protocol_class
from fedhh.validation import InputError, require_at_least, require_choice

DEFAULT_RUNS = 4
"""Runs after those that find the range."""

STRATEGIES = ("output", "input")
"""Those that push targets."""

_TARGETS = 48
_FIRST_TARGETS = 3
_DOSES = 12
_LARGEST_SHARE = 0.1
"""Of fake clients in one run, all doses together."""
_FIRST_LADDER = 256
_LADDER_STEP = 32


@dataclass(frozen=True, kw_only=True, eq=False)
class Resistance:
    """What a protocol's settings withstand.

    Attributes:
        label: The protocol's title, with its participation where another one has the same.
        settings: What varies, by path, with its value.
        num_clients: Honest clients.
        config: The settled configuration.
        strategy: How fake clients go about it.
        num_targets: Words that they push together; all of them have to be found.
        doses: All doses that were tried, merged.
        most: The largest dose that was allowed.
        coverage: Of the last run, honest words.
    """

    label: str
    settings: dict[str, Any]
    num_clients: int
    config: Config
    strategy: Strategy
    num_targets: int
    doses: tuple[Dose, ...]
    most: int
    coverage: float

    @property
    def response(self) -> DoseResponse | None:
        """The response to doses; None if no target was found at all."""
        return DoseResponse.of(self.doses) if any(dose.found for dose in self.doses) else None

    def needed(self, chance: float) -> Needed | None:
        """Return how many fake clients a target takes; None if more than any that was tried."""
        response = self.response
        needed = None if response is None else response.needed(chance)
        return None if needed is None or needed.clients > self.most else needed

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values.

        Columns:
            protocol: Its name.
            label: Its title, with its participation where another one has the same.
            settings: What varies, by path.
            clients: Honest clients.
            strategy: How fake clients go about it.
            num_targets: Words that they push together.
            needed: By chance, the number of fake clients with the ends of its 95% interval;
                null if it is more than ``most``.
            most: The largest number that was tried or allowed.
            coverage: Of honest words in the last run.
            doses: Fake clients, targets, and how many of these were found.
        """
        return {
            "protocol": self.config.protocol.name,
            "label": self.label,
            "settings": self.settings,
            "clients": self.num_clients,
            "strategy": self.strategy,
            "num_targets": self.num_targets,
            "needed": {
                f"{chance:g}": None if (found := self.needed(chance)) is None else found._asdict()
                for chance in CHANCES
            },
            "most": self.most,
            "coverage": self.coverage,
            "doses": [dose._asdict() for dose in self.doses],
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class AttackResult:
    """What several settings withstand.

    Attributes:
        population: Whose clients are honest.
        each: The settings.
    """

    population: str
    each: tuple[Resistance, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {"population": self.population, "attacks": [one.to_dict() for one in self.each]}

    def table(self) -> TextTable:
        """Return a row for each of the settings."""
        paths = list(dict.fromkeys(path for one in self.each for path in one.settings))
        rows = []
        for one in self.each:
            total = one.num_clients
            cells = [_needed_text(one, chance) for chance in CHANCES]
            first = one.needed(CHANCES[0])
            share = "-" if first is None else f"{first.clients / (total + first.clients):.2g}"
            varied = (str(one.settings.get(path, "")) for path in paths)
            rows.append((one.label, *varied, f"{total:,}", *cells, share, f"{one.coverage:.1%}"))
        heads = [path.rsplit(".", 1)[-1].replace("_", " ") for path in paths]
        return TextTable(
            title=f"fake clients that get a word into the result, on {self.population}",
            columns=(
                "protocol",
                *heads,
                "clients",
                *(f"found with chance {chance:g}" for chance in CHANCES),
                "share of all",
                "coverage",
            ),
            rows=tuple(rows),
            note=(
                f"Fake clients in all rounds together that push {_words(self.each)}, "
                "with the central 95% of the posterior of a probit in their logarithm. "
                f"Strategy: {', '.join(dict.fromkeys(one.strategy for one in self.each))}."
            ),
            labels=1 + len(paths),
        )


def attack(
    source: str | Path | None = None,
    *,
    settings: Sequence[str] = (),
    data: Path | None = None,
    protocols: Sequence[str] = (),
    strategy: Strategy = "output",
    targets: int = 1,
    vary: Sequence[str] = (),
    runs: int = DEFAULT_RUNS,
    callbacks: Sequence[Callbacks] = (),
) -> AttackResult:
    """Return how many fake clients get a word into the result, as `fedhh attack` does.

    Args:
        source: A run's preset or TOML file; "default" if None.
        settings: ``section.key=value`` each.
        data: A file of clients, in place of the configured ones.
        protocols: Names of protocols; the configuration's own if empty, "all" for that and each
            of its baselines, also of one name.
        strategy: "output" or "input", see `fedhh.Adversary`.
        targets: Words that the same fake clients push, which all have to be found.
        vary: ``section.key=V1,V2`` each: every value, with every value of the others.
        runs: Runs after those that find the range.
        callbacks: Hear how it goes on.

    Raises:
        InputError: A value is wrong.
    """
    require_at_least(1, runs=runs, targets=targets)
    require_choice(STRATEGIES, strategy=strategy)
    request = Request(source=source, settings=settings, data=data)
    request.search_modules()
    base = request.run_config()
    if base.adversary is not None:
        raise InputError(
            "Expected no table adversary, got one: fedhh attack tries numbers of fake clients "
            "by itself; remove the table, or run it with fedhh run."
        )
    cells = list(_cells(base, protocols, vary))
    listener = Several(callbacks)
    listener.start(Work(title="attack", noun="settings", total=len(cells)))
    read = KeptFile().read
    found, drawn, key = [], None, None
    for config, varied, label in cells:
        if drawn is None or key != (config.population, config.seed):
            listener.phase("drawing clients")
            key = (config.population, config.seed)
            drawn = build_population(config.population, seed=config.seed, read=read)
            require_population(drawn)
        name = ", ".join([label, *map(str, varied.values())])
        listener.begin(name)
        found.append(
            _resistance(config, varied, label, drawn, strategy=strategy, targets=targets, runs=runs)
        )
        listener.finish(name, found[-1])
    assert drawn is not None
    return AttackResult(population=drawn.name, each=tuple(found))


def _cells(
    base: Config, protocols: Sequence[str], vary: Sequence[str]
) -> Iterator[tuple[Config, dict[str, Any], str]]:
    """Yield each configuration to attack, what varies in it, and its label."""
    axes = []
    for each in vary:
        path, equals, listed = each.partition("=")
        if not equals or not path or not listed:
            raise InputError(f"Expected --vary section.key=V1,V2, got {each!r}.")
        axes.append((path, listed.split(",")))
    of_source = (base.protocol, *(base.baseline or ()))
    chosen = [one for each in protocols for one in (of_source if each == "all" else (each,))]
    # Its own protocol alone keeps its cohorts, too.
    own = base.model_copy(update={"baseline": None})
    configs = with_protocols(base, chosen) if chosen else [own]
    choices = [
        dict(zip((path for path, _ in axes), values, strict=True))
        for values in itertools.product(*(values for _, values in axes))
    ]
    labelled = [list(_labelled(configs, varied)) for varied in choices]
    for of_protocol in zip(*labelled, strict=True):
        for varied, (config, label) in zip(choices, of_protocol, strict=True):
            yield config, varied, label


def _labelled(configs: Sequence[Config], varied: dict[str, Any]) -> Iterator[tuple[Config, str]]:
    """Yield configurations with some settings changed, as a run of them calls its protocols."""
    changes = [f"{path}={value}" for path, value in varied.items()]
    changed = [change_config(each, changes, "attack") if changes else each for each in configs]
    sections = [config.protocol for config in changed]
    labels = protocol_labels(
        [protocol_class(each.name).title for each in sections],
        [getattr(each, "participation", "one-round") for each in sections],
    )
    yield from zip(changed, labels, strict=True)


def _resistance(
    config: Config,
    varied: dict[str, Any],
    label: str,
    population: Population,
    *,
    strategy: Strategy,
    targets: int,
    runs: int,
) -> Resistance:
    """Return what one configuration withstands."""
    config = with_chosen_epsilons(config, population.num_clients)
    settled = check_config(config, population)[0]
    most = max(1, int(_LARGEST_SHARE * population.num_clients / 2))
    doses: tuple[Dose, ...] = ()
    coverage, number = 0.0, 0

    def run(ladder: list[int], each: int) -> None:
        nonlocal doses, coverage, number
        sizes = tuple(clients for clients in ladder for _ in range(each))
        fakes = section_of(Adversary).model_validate(
            {"clients": sizes, "num_targets": targets * len(sizes), "strategy": strategy}
        )
        attacked = config.model_copy(
            update={"adversary": fakes, "seed": config.seed + number, "baseline": None}
        )
        result = run_config(attacked, population)[1]
        assert result.adversary is not None
        found = np.array([target.found for target in result.adversary.targets])
        together = np.all(found.reshape(-1, targets), axis=1)
        tried = zip(sizes, together, strict=True)
        doses = merged([*doses, *(Dose(clients, 1, int(is_found)) for clients, is_found in tried)])
        coverage, number = result.metrics.coverage, number + 1

    smallest, largest = 1, min(_FIRST_LADDER, most)
    while True:
        ladder = _powers(smallest, largest)
        run(ladder, _within(ladder, _FIRST_TARGETS, population))
        if doses[-1].found == doses[-1].targets or largest == most:
            break
        smallest, largest = largest * 2, min(largest * _LADDER_STEP, most)
        if smallest > most:
            break
    for _ in range(runs if any(dose.found for dose in doses) else 0):
        ladder = next_doses(doses, _DOSES)
        run(ladder, _within(ladder, max(_TARGETS // (len(ladder) * targets), 1), population))
    return Resistance(
        label=label,
        settings=varied,
        num_clients=population.num_clients,
        config=settled,
        strategy=strategy,
        num_targets=targets,
        doses=doses,
        most=most,
        coverage=coverage,
    )


def _words(each: Sequence[Resistance]) -> str:
    """Return what is pushed, in words."""
    number = each[0].num_targets
    if number == 1:
        return "one word which no client holds"
    return f"{number} words which no client holds, and which all have to be found"


def _powers(smallest: int, largest: int) -> list[int]:
    ladder = [smallest]
    while ladder[-1] * 2 <= largest:
        ladder.append(ladder[-1] * 2)
    return ladder


def _within(ladder: Sequence[int], each: int, population: Population) -> int:
    """Return how many targets a dose has, so that all fake clients are few enough."""
    return max(1, min(each, int(_LARGEST_SHARE * population.num_clients / sum(ladder))))


def _needed_text(one: Resistance, chance: float) -> str:
    needed = one.needed(chance)
    if needed is None:
        return f"above {one.most:,}"
    return f"{needed.clients:,} [{needed.low:,.3g}, {needed.high:,.3g}]"
