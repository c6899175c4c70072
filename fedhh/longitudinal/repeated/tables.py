"""The tables of a repeated collection."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from fedhh.accounting.guarantees import NotApplicable, PrivacyReport
from fedhh.longitudinal.ledger import Charge, Ledger
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.longitudinal.repeated.config import YEAR, Arm
from fedhh.longitudinal.repeated.run import Outcome
from fedhh.longitudinal.repeated.survival import survival

_LIFETIME = "user"
"""The ledger's unit of all that a device sends."""


def periods_table(outcome: Outcome) -> pd.DataFrame:
    """Return one row for each arm and period.

    Columns:
        protocol: Label of the protocol.
        yearly_loss: For which the cap was made; NaN where it was given as a cap.
        period: From 0.
        first_day: From 0; the run is at the end of the period.
        devices: Devices that are there.
        with_budget: Those whose cap leaves them enough rounds.
        wanted: How many the run would ask.
        asked: How many it asked; each is charged, whether or not its turn came.
        answers: Devices that answered.
        status: "run", "too few devices" or "refused".
        reason: Why there was no run.
        published: Words that the run published.
        false: Those of them that no device typed in this period.
        published_so_far: Of all runs.
        false_so_far: Likewise.
        coverage: Share of all contributions of the period that fall on words published so far.
    """
    rows = []
    for place, arm in enumerate(outcome.plan.arms):
        published = false = 0
        for period in outcome.periods:
            of_arm = period.arms[place]
            new = len(of_arm["words"])
            wrong = sum(clients == 0 for clients in of_arm["true_clients"])
            published, false = published + new, false + wrong
            rows.append(
                {
                    **_of(arm),
                    "period": period.number,
                    "first_day": period.first_day,
                    "devices": period.devices,
                    **{key: of_arm[key] for key in ("with_budget", "wanted", "asked", "answers")},
                    "status": of_arm["status"],
                    "reason": of_arm["reason"],
                    "published": new,
                    "false": wrong,
                    "published_so_far": published,
                    "false_so_far": false,
                    "coverage": of_arm["coverage"],
                }
            )
    return pd.DataFrame(rows)


def published_table(outcome: Outcome) -> pd.DataFrame:
    """Return one row for each arm and word that it published.

    Columns:
        protocol: Label of the protocol.
        yearly_loss: For which the cap was made.
        word: The word.
        period: In which it was found.
        found_day: The day after that period.
        estimated_clients: Of the devices asked, how many contribute it, by the estimate; holders
            with more than B candidates may leave it unsaid.
        true_clients: Of all devices that are there, how many typed it in that period.
        true_per_1000: The same of 1,000 devices.
        is_false: Whether none did.
    """
    columns = ("word", "period", "found_day", "estimated_clients", "true_clients", "true_per_1000")
    rows = []
    for place, arm in enumerate(outcome.plan.arms):
        for period in outcome.periods:
            of_arm = period.arms[place]
            found = zip(
                of_arm["words"], of_arm["estimated_clients"], of_arm["true_clients"], strict=True
            )
            for word, estimate, clients in found:
                share = 1000 * clients / period.devices
                day = period.first_day + outcome.every_days
                values = (word, period.number, day, estimate, clients, share)
                row = dict(zip(columns, values, strict=True))
                rows.append({**_of(arm), **row, "is_false": clients == 0})
    return pd.DataFrame(rows, columns=["protocol", "yearly_loss", *columns, "is_false"])


def words_table(outcome: Outcome) -> pd.DataFrame:
    """Return one row for each arm and word that enough people use to be in a class.

    Columns:
        protocol: Label of the protocol.
        yearly_loss: For which the cap was made.
        word: The word.
        per_1000_at_least: Lower bound of its class, by its best period.
        best_per_1000: Of 1,000 devices, how many typed it in its best period.
        is_new: Whether it was not there from the start.
        born_day: On which day it was new, NaN if it was there from the start. Of a file: of its
            first row.
        start_day: First day of the first period in which it was frequent enough for any class.
        found_day: The day after the period in which it was found; NaN if it was not.
        days: From ``start_day`` to ``found_day``, 0 if it was found before; to the last day if it
            was not found (censored).
        is_found: Whether it was.
    """
    truth = _class_words(outcome)
    tables = []
    for place, arm in enumerate(outcome.plan.arms):
        found = {
            word: period.first_day + outcome.every_days
            for period in outcome.periods
            for word in period.arms[place]["words"]
        }
        table = truth.copy()
        table["found_day"] = table["word"].map(found).astype(float)
        table["is_found"] = table["found_day"].notna()
        until = table["found_day"].fillna(outcome.days) - table["start_day"]
        table["days"] = until.clip(lower=0)
        for column, value in reversed(_of(arm).items()):
            table.insert(0, column, value)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def classes_table(outcome: Outcome, words: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each arm and class: days until its words were found.

    Times are estimated after Kaplan and Meier, with those not found as censored. Intervals are of
    95 %, after Brookmeyer and Crowley; they take words for independent.

    Columns:
        protocol: Label of the protocol.
        yearly_loss: For which the cap was made.
        is_new: Of words that were not there from the start, or of those that were.
        per_1000_at_least: Lower bound of the class: people in 1,000 in a word's best period.
        words: Words of the class.
        found: How many of them were found.
        median_days: Until half of them were found, infinite if that was not seen; and its interval.
        median_days_low: See ``median_days``.
        median_days_high: See ``median_days``.
    """
    rows = []
    for arm in outcome.plan.arms:
        own = rows_of(words, arm.label, arm.asked_loss)
        for is_new in (True, False):
            for bound in outcome.plan.section.classes:
                chosen = own[(own["is_new"] == is_new) & (own["per_1000_at_least"] == bound)]
                median, low, high = (math.nan,) * 3
                if len(chosen):
                    times = chosen["days"].to_numpy(dtype=float)
                    estimate = survival(times, chosen["is_found"].to_numpy(dtype=bool))
                    median, low, high = estimate.quantile(0.5)
                rows.append(
                    {
                        **_of(arm),
                        "is_new": is_new,
                        "per_1000_at_least": bound,
                        "words": len(chosen),
                        "found": int(chosen["is_found"].sum()),
                        "median_days": median,
                        "median_days_low": low,
                        "median_days_high": high,
                    }
                )
    return pd.DataFrame(rows)


def losses_table(outcome: Outcome) -> pd.DataFrame:
    """Return one row for each arm: what a device loses, local, of a user under replace-one.

    Columns:
        protocol: Label of the protocol.
        yearly_loss: For which the cap was made.
        run_epsilon: Of one run, of a device that is asked.
        most_runs: Runs that any device was asked in.
        mean_runs: The mean over devices that were ever there.
        spent_basic: Epsilon of all that the device asked most sent, by the sum, delta 0.
        spent_pld: The same by optimal composition, at ``delta``; NaN where that is none.
        year_runs: Runs that the cap allows in a device's first 365 days, at most.
        year_basic: Epsilon of those, by the sum.
        year_pld: The same by optimal composition, at ``delta``.
        any_year_basic: By the sum, of any 365 days in a row of a collection that goes on.
        delta: Of optimal composition.
    """
    rows = []
    for place, arm in enumerate(outcome.plan.arms):
        delta = arm.config.privacy.delta
        charge = Charge(use_case=arm.label, epsilon=math.fsum(arm.reports), reports=arm.reports)
        spent = Ledger(charges=(charge,), num_days=outcome.days, delta=delta).spent(
            _sent(outcome, place, arm.cost), opt_in=outcome.arrivals * outcome.every_days
        )
        cap = _effective(arm, outcome.every_days)
        year = Ledger(charges=(charge,), num_days=YEAR, delta=delta).before([cap])
        runs = spent.records[0] // arm.cost
        years = 3 * YEAR
        any_year = arm.most_runs(YEAR, of_days=years, every_days=outcome.every_days)
        rows.append(
            {
                **_of(arm),
                "run_epsilon": arm.run_loss,
                "most_runs": int(runs.max()),
                "mean_runs": float(runs.mean()),
                "spent_basic": _epsilon(spent.report.together, "basic"),
                "spent_pld": _epsilon(spent.report.together, "PLD"),
                "year_runs": cap.most_in(0, YEAR) // arm.cost,
                "year_basic": _epsilon(year.together, "basic"),
                "year_pld": _epsilon(year.together, "PLD"),
                "any_year_basic": any_year * arm.run_loss,
                "delta": delta,
            }
        )
    return pd.DataFrame(rows)


def _class_words(outcome: Outcome) -> pd.DataFrame:
    """Return the words that are in a class, and when they were first frequent enough for one."""
    classes = outcome.plan.section.classes
    shares: dict[str, list[tuple[int, float]]] = {}
    born: dict[str, float] = {}
    for period in outcome.periods:
        triples = zip(period.words, period.clients, period.born_days, strict=True)
        for word, clients, day in triples:
            shares.setdefault(word, []).append((period.first_day, 1000 * clients / period.devices))
            born.setdefault(word, math.nan if day is None else day)
    rows = []
    for word, seen in shares.items():
        best = max(share for _, share in seen)
        bound = max(bound for bound in classes if bound <= best)
        rows.append(
            {
                "word": word,
                "per_1000_at_least": bound,
                "best_per_1000": best,
                "is_new": not math.isnan(born[word]),
                "born_day": born[word],
                "start_day": seen[0][0],
            }
        )
    columns = ["word", "per_1000_at_least", "best_per_1000", "is_new", "born_day", "start_day"]
    table = pd.DataFrame(rows, columns=columns)
    return table.sort_values(["best_per_1000", "word"], ascending=[False, True], ignore_index=True)


def _sent(outcome: Outcome, place: int, cost: int) -> Iterator[np.ndarray]:
    """Yield day by day the rounds that each device answered; a run asks on a period's first day."""
    nothing = np.zeros((1, len(outcome.arrivals)), dtype=np.int64)
    for asked in outcome.asked[place]:
        today = nothing.copy()
        today[0, asked] = cost
        yield today
        for _ in range(outcome.every_days - 1):
            yield nothing


def _effective(arm: Arm, every_days: int) -> Cap:
    """Return the cap, or what of it runs can use where they are rarer."""
    cap = arm.cap
    most = -(-cap.session_days // every_days) * arm.cost
    return Cap(
        amount=min(cap.amount, most),
        session_days=cap.session_days,
        rollover=cap.rollover,
        lifetime=cap.lifetime,
    )


def _epsilon(report: PrivacyReport, method: str) -> float:
    """Return the epsilon of all days by a method; of a single record, the randomizer's."""
    of_lifetime = [each for each in report.guarantees if each.unit == _LIFETIME]
    chosen = next((each for each in of_lifetime if each.method == method), of_lifetime[0])
    return math.nan if isinstance(chosen.epsilon, NotApplicable) else chosen.epsilon


def _of(arm: Arm) -> dict[str, str | float]:
    return {
        "protocol": arm.label,
        "yearly_loss": math.nan if arm.asked_loss is None else arm.asked_loss,
    }


def rows_of(table: pd.DataFrame, label: str, loss: float | None) -> pd.DataFrame:
    """Return the rows of a protocol, and of a yearly loss where one was asked for."""
    own = table[table["protocol"] == label]
    return own if loss is None else own[own["yearly_loss"] == loss]


def all_tables(outcome: Outcome) -> dict[str, pd.DataFrame]:
    """Return the tables by the stem of their files."""
    words = words_table(outcome)
    return {
        "periods": periods_table(outcome),
        "published": published_table(outcome),
        "words": words,
        "classes": classes_table(outcome, words),
        "losses": losses_table(outcome),
    }
