"""The budget manager of macOS 10.12 as it was audited: balances and reports.

A deterministic state machine; time is an argument, in seconds, and chance an rng. Sections are of
Tang, Korolova, Bai, Wang, Wang (2017). What they leave open is chosen so, and said in
`Configuration.notes` or here:

* Each task first runs one interval after opt-in.
* Of tasks due at the same moment, balances rise first, then a report is made, then old records are
  deleted: the order in which most is sent.
* A balance rises for whole sessions; the rest of a session counts towards the next one, so that
  tasks that run late, as after a sleep, cost no budget.
* What the device keeps of sent records (StorageCulling, ReportFilesMaintenance) is left out: it
  decides nothing about what is sent.
* At most 40 of SessionAmount count in a report (section 4.2.1); balances rise by all of it. Section
  5.2 may be read otherwise, and no configuration that was shipped has more than 40.
* Among candidates, a lower SubmissionPriority goes first, and equal ones in random order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fedhh.arrays import Ints
from fedhh.longitudinal.ledger.macos_presets import DAY, NEVER_SENT, Configuration
from fedhh.validation import InputError, require_at_least

HOUR = 3_600
BUDGETS, REPORTS, STORAGE = "PrivacyBudgetMaintenance", "ReportGenerator", "StorageMaintenance"
INTERVALS: Mapping[str, int] = {
    BUDGETS: 24 * HOUR,  # Section 4.2.2.
    REPORTS: 18 * HOUR,  # Section 4.2.1.
    STORAGE: 12 * HOUR,  # Section 5.1.
}
"""Periodic tasks (Figure 10), in the order in which those due together run."""
RECORD_DAYS = 14
"""Records older than two weeks are deleted (section 5.1)."""


@dataclass(frozen=True, kw_only=True)
class StoredRecord:
    """A privatized event in the device's database.

    Attributes:
        key_name: What it is about.
        budget: BudgetKeyName that pays for it.
        epsilon: With which it was privatized.
        priority: SubmissionPriority.
        created: When, in seconds.
    """

    key_name: str
    budget: str
    epsilon: float
    priority: int
    created: int


@dataclass(frozen=True, kw_only=True)
class Report:
    """A report file: what the device sends at once, at a time in seconds."""

    at: int
    records: tuple[StoredRecord, ...]

    @property
    def loss(self) -> float:
        return sum(record.epsilon for record in self.records)


class MacosDevice:
    """A device under the budget manager, from opt-in on.

    `add` stores events now, `advance` lets time pass.

    Attributes:
        configuration: Of its system.
        now: Seconds; opt-in is at the first.
        balances: Records that each budget still pays for.
        waiting: Records in the database that were not sent.
        reports: All reports sent, in order of time.
    """

    def __init__(self, configuration: Configuration) -> None:
        """Opt in: every balance starts with its SessionAmount (section 4.2.2)."""
        self.configuration = configuration
        self.now = 0
        self.balances = {
            name: budget.session_amount for name, budget in configuration.budgets.items()
        }
        self.waiting: list[StoredRecord] = []
        self.reports: list[Report] = []
        self._updated = dict.fromkeys(self.balances, 0)
        self._due = dict(INTERVALS)

    def add(self, key_name: str, number: int = 1) -> None:
        """Store privatized records of events that happen now.

        Raises:
            InputError: No such KeyName, or number < 0.
        """
        require_at_least(0, number=number)
        properties = self.configuration.properties_of(key_name)
        record = StoredRecord(
            key_name=key_name,
            budget=properties.budget,
            epsilon=properties.epsilon,
            priority=properties.priority,
            created=self.now,
        )
        self.waiting += [record] * number

    def advance(self, until: int, *, rng: np.random.Generator) -> None:
        """Let time pass until some seconds; what is due until then, inclusive, runs."""
        if until < self.now:
            raise InputError(f"Expected a time >= {self.now}, got {until}; time goes forward.")
        order = list(INTERVALS)
        while True:
            task = min(order, key=lambda name: (max(self._due[name], self.now), order.index(name)))
            if self._due[task] > until:
                break
            self.now = max(self._due[task], self.now)
            self._run(task, rng)
            self._due[task] = self.now + INTERVALS[task]
        self.now = until

    def _run(self, task: str, rng: np.random.Generator) -> None:
        if task == BUDGETS:
            self._raise_balances()
        elif task == REPORTS:
            self._make_report(rng)
        else:
            oldest = self.now - RECORD_DAYS * DAY
            self.waiting = [each for each in self.waiting if each.created >= oldest]

    def _raise_balances(self) -> None:
        """Add SessionAmount for every whole session since the last time (section 4.2.2)."""
        for name, budget in self.configuration.budgets.items():
            if not budget.is_renewed:
                continue
            sessions = (self.now - self._updated[name]) // budget.session_seconds
            self.balances[name] += sessions * budget.session_amount
            self._updated[name] += sessions * budget.session_seconds

    def _make_report(self, rng: np.random.Generator) -> None:
        """Send records within every limit, and pay (section 4.2.1)."""
        chosen: set[int] = set()
        of_budget: dict[str, list[int]] = {name: [] for name in self.configuration.budgets}
        for index, record in enumerate(self.waiting):
            if record.priority < NEVER_SENT:
                of_budget[record.budget].append(index)
        for name, budget in self.configuration.budgets.items():
            candidates = of_budget[name]
            if not candidates or self.balances[name] < 1:
                continue
            shuffled = [candidates[each] for each in rng.permutation(len(candidates))]
            shuffled.sort(key=lambda index: self.waiting[index].priority)
            of_key: Counter[str] = Counter()
            for index in shuffled:
                key_name = self.waiting[index].key_name
                if self.balances[name] and of_key[key_name] < budget.most_per_key:
                    chosen.add(index)
                    of_key[key_name] += 1
                    self.balances[name] -= 1
        if not chosen:
            return
        records = tuple(self.waiting[index] for index in sorted(chosen))
        self.waiting = [each for index, each in enumerate(self.waiting) if index not in chosen]
        self.reports.append(Report(at=self.now, records=records))


def most_within(reports: Sequence[Report], seconds: int) -> float:
    """Return the largest sum of epsilons of reports made within any half-open window of seconds."""
    require_at_least(1, seconds=seconds)
    largest, total, first = 0.0, 0.0, 0
    for report in reports:
        total += report.loss
        while reports[first].at <= report.at - seconds:
            total -= reports[first].loss
            first += 1
        largest = max(largest, total)
    return largest


def loss_by_day(reports: Sequence[Report], num_days: int, *, start: int = 0) -> list[float]:
    """Return the sums of epsilons of reports made on each day of 86,400 seconds from ``start``."""
    losses = [0.0] * num_days
    for report in reports:
        day = (report.at - start) // DAY
        if 0 <= day < num_days:
            losses[day] += report.loss
    return losses


def simulate(
    configuration: Configuration,
    *,
    num_days: int,
    idle_days: int = 0,
    busy_days: int | None = None,
    events_per_day: int,
    key_names: int = 1,
    rng: np.random.Generator,
) -> MacosDevice:
    """Return a device after some days, the same things happening on each.

    Args:
        configuration: Of its system.
        num_days: Days from opt-in, at least 1.
        idle_days: First days on which nothing happens, at most ``num_days``.
        busy_days: Days after them on which something does; all that are left if None.
        events_per_day: Events of each KeyName, in the first second of each busy day.
        key_names: KeyNames (languages) of each budget, at least 1; they are numbered.
        rng: Chooses among records.
    """
    require_at_least(1, num_days=num_days, key_names=key_names)
    require_at_least(0, idle_days=idle_days, events_per_day=events_per_day)
    if idle_days > num_days:
        raise InputError(f"Expected idle_days <= num_days={num_days}, got idle_days={idle_days}.")
    last = num_days if busy_days is None else idle_days + busy_days
    if not idle_days <= last <= num_days:
        raise InputError(
            f"Expected 0 <= busy_days <= {num_days - idle_days}, the days that are left, got "
            f"busy_days={busy_days}."
        )
    device = MacosDevice(configuration)
    first_of: dict[str, str] = {}
    for beginning, name in configuration.key_names.items():
        first_of.setdefault(configuration.key_properties[name].budget, beginning)
    names = [f"{each}{number}" for each in first_of.values() for number in range(key_names)]
    for day in range(idle_days, last):
        # What is due at midnight belongs to the new day, and comes before its events.
        device.advance(day * DAY, rng=rng)
        for name in names:
            device.add(name, events_per_day)
    device.advance(num_days * DAY - 1, rng=rng)
    return device


def records_by_day(reports: Sequence[Report], budgets: Sequence[str], num_days: int) -> Ints:
    """Return how many records were sent each day out of each budget, ``(days, budgets) int64``."""
    counts = np.zeros((num_days, len(budgets)), dtype=np.int64)
    for report in reports:
        for record in report.records:
            counts[report.at // DAY, budgets.index(record.budget)] += 1
    return counts
