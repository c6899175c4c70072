"""A plan: the best settings of each protocol, the Pareto front, and the configuration to run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fedhh.accounting.plan import Plan
from fedhh.accounting.terms import PrivacyTerms
from fedhh.clients.population import Population
from fedhh.experiments.config.protocol import settle
from fedhh.experiments.config.schema import Config
from fedhh.experiments.config.section import section_class
from fedhh.experiments.planner.front import costs, front
from fedhh.experiments.planner.goal import Goal
from fedhh.experiments.planner.prediction import CONFIRMATIONS, Prediction
from fedhh.experiments.planner.trial import Trial, found_text
from fedhh.experiments.run.preflight_facts import epsilon_text, epsilons_text, or_none
from fedhh.experiments.study.parts import Line, Part
from fedhh.experiments.study.text_table import TextTable
from fedhh.system.files import write_text
from fedhh.validation import InputError, shown

_NOTE = (
    f"Coverage: mean of {CONFIRMATIONS} runs by other seeds than those that chose the settings, "
    "and a 95% interval for one more run; a protocol that was not searched to the end has one run "
    "and no interval. Epsilons hold before the run, for neighbors that replace one item or all "
    "items of one user; central ones against readers of the results, local ones against the "
    "server. N: clients of a round."
)
_COSTS_NOTE = (
    "User local: against whoever links a device's messages. Collections: a user's central epsilon "
    "after so many by the same plan, which may build on each other. Trusted: for central epsilons."
)
_EPSILONS = ("item central", "item local", "user central", "user local")
COLLECTIONS = (1, 4, 13, 52)
"""Of the same clients, for which costs are stated."""
_FRONT_NOTE = (
    "Settings of which no others find as much in as few days, with as few bytes and as small an "
    "epsilon; one run each."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class DeploymentPlan:
    """What meets a goal.

    Attributes:
        goal: The goal.
        base: The configuration that was planned for.
        population: The planning clients.
        predictions: The best settings of each protocol, the best protocol first.
        trials: All settings that were run and meet the goal.
        left_out: Why a protocol has no part in it, by its name.
        runs: Runs of the search.
    """

    goal: Goal
    base: Config
    population: Population
    predictions: tuple[Prediction, ...]
    trials: tuple[Trial, ...]
    left_out: dict[str, str]
    runs: int

    @property
    def best(self) -> Prediction:
        """The best that was run by other seeds; the best of all if none was."""
        return next((each for each in self.predictions if each.runs > 1), self.predictions[0])

    @cached_property
    def epsilons(self) -> tuple[dict[str, float], ...]:
        """What each of `predictions` claims of an item and of a user before the run."""
        return tuple(plan.epsilons_before_run(self._privacy_terms) for plan in self._plans)

    @property
    def _privacy_terms(self) -> PrivacyTerms:
        clients = self.population.num_clients
        return PrivacyTerms(num_clients=clients, delta=self.base.privacy.delta)

    @cached_property
    def _plans(self) -> list[Plan]:
        clients, words = self.population.num_clients, self.population.lexicon.words
        return [settle(each.trial.settled, clients, words)[1].plan for each in self.predictions]

    @property
    def front(self) -> list[Trial]:
        """The Pareto front over what is found, days, bytes and epsilon."""
        return front(self.trials, self.goal, list(costs(self.goal).values()))

    def config_of(self, trial: Trial) -> Config:
        """Return the configuration of a run of some settings, by the seed that was configured.

        Its metrics are about the words to find.
        """
        base, goal = self.base, self.goal
        metrics = base.metrics
        if (least := goal.min_clients(self.population.num_clients)) is not None:
            metrics = metrics.model_copy(update={"min_clients": least})
        privacy = base.privacy.model_copy(
            update={"local_epsilon": trial.config.privacy.local_epsilon}
        )
        changed = {
            "protocol": trial.config.protocol,
            "baseline": None,
            "privacy": privacy,
            "metrics": metrics,
        }
        population = self.population
        return settle(
            base.model_copy(update=changed), population.num_clients, population.lexicon.words
        )[0]

    def to_toml(self) -> str:
        """Return the best settings as a configuration that `fedhh run` takes."""
        lines = [f"# fedhh plan: {self.sentence}", *(f"# {each}" for each in self.best_lines)]
        return "\n".join([*lines, "", self.config_of(self.best.trial).to_toml()])

    def write(self, path: str | Path) -> None:
        """Write `to_toml` to a file, whose name ends in .toml."""
        check_plan_file(path)
        write_text(Path(path), self.to_toml())

    @property
    def sentence(self) -> str:
        """The goal in a line."""
        goal, clients = self.goal, self.population.num_clients
        words = ["most coverage"]
        if goal.held_by is not None:
            words = [f"words held by {goal.held_by:g} of {clients:,} clients"]
        delta = self.base.privacy.delta
        if goal.central_epsilon is not None:
            words.append(f"{goal.unit} central epsilon {goal.central_epsilon:g} at delta {delta:g}")
        if goal.local_epsilon is not None:
            words.append(f"local epsilon {goal.local_epsilon:g}")
        if goal.days is not None:
            words.append(f"{goal.days:g} days (rounds per day: {goal.rounds_per_day:g})")
        for name, text in (
            ("max_upload", "upload"),
            ("max_download", "download"),
            ("max_bytes", "upload and download"),
        ):
            if (size := getattr(goal, name)) is not None:
                words.append(f"{text} of at most {size:,} B")
        return ", ".join(words)

    @property
    def best_lines(self) -> tuple[str, str]:
        """What the best settings are predicted to find, and what they claim before the run."""
        best, coverage = self.best, self.best.coverage
        assert best.trial.outcome is not None
        wanted = best.trial.outcome.wanted
        found = found_text(self.goal, wanted, recall=best.recall, coverage=coverage.mean)
        if coverage.low is not None and coverage.high is not None:
            found += f" ({_share(coverage.low)} to {_share(coverage.high)})"
        epsilons = self.epsilons[self.predictions.index(best)]
        return (
            f"Predicted of {best.trial.terms.title}: {found}.",
            "Central and local epsilon before the run (delta "
            f"{self.base.privacy.delta:g}): {epsilons_text(epsilons)}.",
        )

    @property
    def parts(self) -> Iterator[Part]:
        """What is shown of it."""
        yield Line(f"Plan for {self.population.name}: {self.sentence}")
        yield from map(Line, self.best_lines)
        yield self.best_table
        yield self.costs_table
        yield self.settings_table
        yield self.front_table
        reasons: dict[str, list[str]] = {}
        for name, reason in self.left_out.items():
            reasons.setdefault(reason, []).append(name)
        for reason, names in reasons.items():
            yield Line(f"Left out: {', '.join(names)}: {reason}")

    @property
    def best_table(self) -> TextTable:
        """The best settings of each protocol, with what is predicted."""
        records = self._best_records
        rows = list(map(self._row, self.predictions, self.epsilons))
        return TextTable(
            title="best settings of each protocol",
            columns=tuple(rows[0]),
            rows=tuple(tuple(row.values()) for row in rows),
            note=_NOTE,
            records=tuple({k: v for k, v in r.items() if k != "settings"} for r in records),
        )

    @property
    def costs_table(self) -> TextTable:
        """What the best settings of each protocol cost a user, what it reveals first."""
        rows = []
        for each, claimed, plan in zip(self.predictions, self.epsilons, self._plans, strict=True):
            terms = each.trial.terms
            rows.append({
                "protocol": terms.title,
                "user local": epsilon_text(claimed["local_epsilon_user"]),
                "rounds served": f"{plan.most_rounds_per_client} of {terms.num_rounds}",
                "upload": f"{each.upload:,} B",
                "download": f"{each.download:,} B",
                "days": _number(self.goal.days_of(terms.rounds)),
                **{f"{x} collections": self._after(plan, x) for x in COLLECTIONS},
                "trusted": _trusted(plan),
            })  # fmt: skip
        return TextTable(
            title="costs of a user",
            columns=tuple(rows[0]),
            rows=tuple(tuple(row.values()) for row in rows),
            note=_COSTS_NOTE,
        )

    def _after(self, plan: Plan, collections: int) -> str:
        """Return a user's central epsilon after collections, where it is known to compose."""
        after = plan.in_collections(collections)
        if after is None:
            return "-"
        return epsilon_text(after.central_epsilon("user", self._privacy_terms))

    @property
    def settings_table(self) -> TextTable:
        """The settings that are not the defaults."""
        return TextTable(
            title="their settings, where not the default",
            columns=("protocol", "settings"),
            rows=tuple(
                (each.trial.terms.title, settings_text(self._changed(each.trial)))
                for each in self.predictions
            ),
            note="",
            labels=2,
        )

    @property
    def front_table(self) -> TextTable:
        """The Pareto front."""
        by = costs(self.goal)
        rows = []
        for trial in self.front:
            assert trial.outcome is not None
            cells = {
                "protocol": trial.terms.title,
                **self._found(trial.outcome.recall, _share(trial.outcome.coverage)),
                "days": _number(by["days"](trial)),
                "bytes": f"{trial.bytes:,}",
                **{
                    name: epsilon_text(cost(trial))
                    for name, cost in by.items()
                    if name not in ("days", "bytes")
                },
                "settings": settings_text(self._changed(trial)),
            }
            rows.append(cells)
        return TextTable(
            title="Pareto front",
            columns=tuple(rows[0]),
            rows=tuple(tuple(row.values()) for row in rows),
            note=_FRONT_NOTE,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return {
            "goal": self.goal.to_dict(),
            "delta": self.base.privacy.delta,
            "population": self.population.name,
            "clients": self.population.num_clients,
            "runs": self.runs,
            "best": self._best_records,
            "front": [self._trial_record(each) for each in self.front],
            "trials": [self._trial_record(each) for each in self.trials],
            "left_out": self.left_out,
        }

    def _found(self, recall: float, coverage: str) -> dict[str, str]:
        found = {} if self.goal.held_by is None else {"recall": _share(recall)}
        return {**found, "coverage": coverage}

    def _row(self, each: Prediction, epsilons: Mapping[str, float]) -> dict[str, str]:
        trial, goal = each.trial, self.goal
        terms, coverage = trial.terms, each.coverage
        text = _share(coverage.mean)
        if coverage.low is not None and coverage.high is not None:
            text += f" ({_share(coverage.low)} to {_share(coverage.high)})"
        low, high = terms.smallest_cohort, terms.largest_cohort
        return {
            "protocol": terms.title,
            "trust model": terms.trust_model,
            **self._found(each.recall, text),
            "precision": _share(each.precision),
            "days": _number(goal.days_of(terms.rounds)),
            **dict(zip(_EPSILONS, map(epsilon_text, epsilons.values()), strict=True)),
            "B": str(getattr(trial.settled.protocol, "max_items", "-")),
            "N": f"{low:,}" if low == high else f"{low:,} to {high:,}",
            "upload": f"{each.upload:,} B",
            "download": f"{each.download:,} B",
            "runs": str(each.runs),
        }

    @property
    def _best_records(self) -> list[dict[str, Any]]:
        return list(map(self._record, self.predictions, self.epsilons))

    def _record(self, each: Prediction, epsilons: Mapping[str, float]) -> dict[str, Any]:
        return {
            **self._trial_record(each.trial),
            **{name: or_none(epsilon) for name, epsilon in epsilons.items()},
            "coverage": each.coverage.mean,
            "coverage_low": each.coverage.low,
            "coverage_high": each.coverage.high,
            "recall": None if self.goal.held_by is None else each.recall,
            "precision": each.precision,
            "upload_bytes": each.upload,
            "download_bytes": each.download,
            "runs": each.runs,
        }

    def _trial_record(self, trial: Trial) -> dict[str, Any]:
        terms, outcome = trial.terms, trial.outcome
        assert outcome is not None
        return {
            "protocol": trial.config.protocol.name,
            "title": terms.title,
            "trust_model": terms.trust_model,
            "coverage": outcome.coverage,
            "words_to_find": None if self.goal.held_by is None else outcome.wanted,
            "recall": None if self.goal.held_by is None else outcome.recall,
            "precision": outcome.precision,
            "days": self.goal.days_of(terms.rounds),
            "rounds": terms.num_rounds,
            "local_epsilon": or_none(terms.local_epsilon),
            "central_epsilon": or_none(terms.central_epsilon),
            "smallest_cohort": terms.smallest_cohort,
            "largest_cohort": terms.largest_cohort,
            "upload_bytes": outcome.upload,
            "download_bytes": outcome.download,
            "settings": self._changed(trial),
        }

    def _changed(self, trial: Trial) -> dict[str, Any]:
        """Return a protocol's settings that are not the defaults, "auto" ones as they are."""
        section = trial.config.protocol
        own = section.model_dump(mode="json")
        defaults = section_class(section.name)(name=section.name).model_dump(mode="json")
        return {key: value for key, value in own.items() if defaults.get(key) != value}


def _trusted(plan: Plan) -> str:
    """Return whom the central guarantee of a plan rests on."""
    if plan.trusted:
        return plan.trusted
    curator = ", and a curator by those who opted in" if plan.who_trust else ""
    order = "; who answered in which round stays secret" if plan.hides_epochs else ""
    return f"a shuffler{curator}{order}"


def check_plan_file(path: str | Path) -> None:
    """Raise InputError unless a plan can be written under this name; looks only."""
    if Path(path).suffix != ".toml":
        raise InputError(
            f"Expected --out FILE.toml, which fedhh run takes, got {shown(str(path))}."
        )
    if Path(path).is_dir():
        raise InputError(f"{path} is a directory; give --out the name of a file.")


def _share(value: float) -> str:
    return f"{value:.1%}"


def _number(value: float) -> str:
    return f"{value:,.4g}"


def settings_text(changed: dict[str, Any]) -> str:
    """Return settings for a table: `DeploymentPlan.to_dict` has all digits of their numbers."""
    text = ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in changed.items()
    )
    return text or "all default"
