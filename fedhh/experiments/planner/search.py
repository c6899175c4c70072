"""Looks for each protocol's best settings: one group of them after the other, fewer protocols each.

A group's setting climbs along its ladder as long as a run finds more. After the first runs, and
after a step in the first group, the better half of the protocols of each trust model goes on. What
is tried depends on results alone, so the same seed makes the same plan on any machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from fedhh.experiments.config.protocol import settle
from fedhh.experiments.config.schema import Config
from fedhh.experiments.config.section import ProtocolSection
from fedhh.experiments.planner.goal import SIZE_LIMITS, Goal
from fedhh.experiments.planner.ladders import CONTRIBUTIONS, ORDER, SIZES, fine_values, ladder
from fedhh.experiments.planner.runner import Runner
from fedhh.experiments.planner.trial import Trial, with_guarantee
from fedhh.validation import InputError

FEWEST_LEFT = 2
"""Protocols of a trust model that always go on."""

_FINE = "fine sizes"
_HALVED_BEFORE = (0, 1)
"""Places of `ORDER` before which half of the protocols stop."""

_MOST_STEPS = 100
"""More than a ladder has."""

_Asked = list[ProtocolSection]
_Climb = Generator[_Asked, list[Trial | None], None]


@dataclass(kw_only=True, eq=False)
class Entrant:
    """A protocol in the search.

    Attributes:
        name: Its name.
        base: The configuration that it starts from.
        tried: Trials by their settings; None for settings that are refused.
        best: The best of them.
        reason: Why no settings of it can be tried.
    """

    name: str
    base: Config
    tried: dict[str, Trial | None] = field(default_factory=dict)
    best: Trial | None = None
    reason: str = ""

    @property
    def trials(self) -> list[Trial]:
        """What was run, in its order."""
        return [each for each in self.tried.values() if each is not None]

    def add(self, section: ProtocolSection, trial: Trial | None, goal: Goal) -> None:
        """Take a trial, or a refusal, of settings."""
        self.tried[_key(section)] = trial
        if trial is not None and (self.best is None or trial.rank(goal) > self.best.rank(goal)):
            self.best = trial


class Search:
    """Searches for one goal on one population.

    Attributes:
        entrants: All protocols, by name.
        finalists: Those that were searched to the end.
        runs_left: Of the budget.
    """

    def __init__(
        self,
        bases: Sequence[Config],
        goal: Goal,
        runner: Runner,
        *,
        num_clients: int,
        words: Sequence[str],
        runs: int,
    ) -> None:
        """Search from these configurations, one for each protocol.

        Args:
            bases: Where each starts.
            goal: What is asked for.
            runner: The way to trials.
            num_clients: Clients of the population.
            words: Their words.
            runs: The budget.
        """
        self._goal, self._runner = goal, runner
        self._num_clients, self._words = num_clients, words
        self.runs_left = runs
        self.entrants = {
            each.protocol.name: Entrant(name=each.protocol.name, base=each) for each in bases
        }
        self.finalists: list[Entrant] = []

    def run(self) -> None:
        """Use up the budget, or find nothing better any more."""
        entrants = list(self.entrants.values())
        starts: list[tuple[Entrant, ProtocolSection]] = []
        for each in entrants:
            try:
                starts += [(each, section) for section in self._starts(each)]
            except InputError as refusal:
                each.reason = str(refusal)
        self._try(starts)
        live = [each for each in entrants if each.best is not None]
        self._advance(live, partial(_within_limits, goal=self._goal))
        for place, group in enumerate((*ORDER, _FINE)):
            if place in _HALVED_BEFORE:
                live = self._better_half(live)
            steps = 1 if place < max(_HALVED_BEFORE) else _MOST_STEPS
            self._advance(live, partial(_steps, group=group, goal=self._goal, most=steps))
        self.finalists = sorted(live, key=self._rank, reverse=True)

    def _rank(self, entrant: Entrant) -> tuple[float, ...]:
        assert entrant.best is not None
        return entrant.best.rank(self._goal)

    def _better_half(self, live: list[Entrant]) -> list[Entrant]:
        models: dict[str, list[Entrant]] = {}
        for each in live:
            assert each.best is not None
            models.setdefault(each.best.terms.trust_model, []).append(each)
        kept: list[Entrant] = []
        for group in models.values():
            number = max(FEWEST_LEFT, (len(group) + 1) // 2)
            kept += sorted(group, key=self._rank, reverse=True)[:number]
        return [each for each in live if each in kept]

    def _starts(self, entrant: Entrant) -> list[ProtocolSection]:
        """Return settings to start from: the configured ones, as deep as days allow.

        Several passes of a shallow trie compete with one pass of a deep one.

        Raises:
            InputError: The protocol cannot give the guarantee.
        """
        config = with_guarantee(entrant.base, self._goal, self._num_clients)
        section = entrant.base.protocol
        most = self._goal.days
        if most is None:
            return [section]
        fields = type(section).model_fields
        passes = getattr(section, "passes", 1)
        depth = getattr(section, "depth", 1)
        several = sorted({passes, 1}, reverse=True) if "passes" in fields else [passes]
        depths = range(depth, 0, -1) if "depth" in fields else [depth]
        starts = []
        for each in several:
            for symbols in depths:
                changed = section.changed({"passes": each, "depth": symbols})
                try:
                    protocol = settle(
                        config.model_copy(update={"protocol": changed}),
                        self._num_clients,
                        self._words,
                    )[1]
                except InputError:
                    continue
                if self._goal.days_of(protocol.rounds_in_turn) <= most:
                    starts.append(changed)
                    break
        return starts or [section]

    def _advance(self, live: Iterable[Entrant], steps: Callable[[Entrant], _Climb]) -> None:
        """Try what each protocol's steps ask for, all protocols at a time."""
        climbs = [(each, steps(each)) for each in live]
        asked = [(entrant, climb, next(climb, None)) for entrant, climb in climbs]
        while wanted := [(e, c, sections) for e, c, sections in asked if sections is not None]:
            if not self._try([(e, section) for e, _, sections in wanted for section in sections]):
                return
            asked = [
                (e, c, _sent(c, [e.tried[_key(s)] for s in sections])) for e, c, sections in wanted
            ]

    def _try(self, wanted: Sequence[tuple[Entrant, ProtocolSection]]) -> bool:
        """Try settings that were not tried before, and return whether the budget was enough."""
        new = [(e, section) for e, section in wanted if _key(section) not in e.tried]
        cut = new[: self.runs_left]
        self.runs_left -= len(cut)
        configs = [e.base.model_copy(update={"protocol": section}) for e, section in cut]
        for (entrant, section), found in zip(cut, self._runner.trials(configs), strict=True):
            if isinstance(found, InputError):
                entrant.reason = entrant.reason or str(found)
                entrant.add(section, None, self._goal)
            else:
                entrant.add(section, found, self._goal)
        return len(cut) == len(new)


def _within_limits(entrant: Entrant, goal: Goal) -> _Climb:
    """Ask for smaller sizes as long as too many bytes are moved, or too many words invented.

    Bytes are about proportional to sizes, and what is invented is mostly what is kept beyond the
    held words. Without sizes, fewer contributions are fewer bytes.
    """
    trial = entrant.best
    while trial is not None:
        shares = trial.shares_of_limits(goal)
        section, settled = trial.asked, trial.settled.protocol
        name, values = ladder(section, settled, SIZES)
        limits = (*SIZE_LIMITS, "min_precision") if name else SIZE_LIMITS
        excess = max((share for limit, share in shares.items() if limit in limits), default=0.0)
        if not name:
            name, values = ladder(section, settled, CONTRIBUTIONS)
        if excess <= 1 or not name:
            return
        most = getattr(settled, name) / excess
        fitting = [each for each in values if not isinstance(each, str) and each <= most]
        value = fitting[-1] if fitting else values[0]
        if value == getattr(section, name):
            return
        changed = {name: value}
        (trial,) = yield [section.changed(changed)]
        if trial is not None and trial.outcome is None and "depth" in type(section).model_fields:
            # With fewer prefixes, one more round decides.
            changed["depth"] = settled.model_dump()["depth"] - 1
            (trial,) = yield [section.changed(changed)]


def _steps(entrant: Entrant, group: str, goal: Goal, most: int) -> _Climb:
    """Ask for the neighbors of the best value of a group's setting, until none is better."""
    best = entrant.best
    assert best is not None
    section, settled = best.asked, best.settled.protocol
    name, values = (
        fine_values(section, settled) if group == _FINE else ladder(section, settled, group)
    )
    if not name:
        return
    place = values.index(getattr(section, name))
    for _ in range(most):
        near = [i for i in (place - 1, place + 1) if 0 <= i < len(values)]
        results = yield [section.changed({name: values[i]}) for i in near]
        better = [
            (result.rank(goal), -abs(i - place), i)
            for i, result in zip(near, results, strict=True)
            if result is not None and result.rank(goal) > best.rank(goal)
        ]
        if not better:
            return
        *_, found = max(better)
        best = next(r for i, r in zip(near, results, strict=True) if i == found and r is not None)
        place = found


def _sent(climb: _Climb, results: list[Trial | None]) -> _Asked | None:
    try:
        return climb.send(results)
    except StopIteration:
        return None


def _key(section: ProtocolSection) -> str:
    return json.dumps(section.model_dump(mode="json"), sort_keys=True)
