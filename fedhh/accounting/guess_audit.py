"""Audits by guesses: a rule is learned and chosen on some reports, and tested on others.

A sixteenth of all reports teaches scores (`fedhh.accounting.report_scores`), three sixteenths
choose a set of values, a score, and which lists to make of it; the rest tests that one rule, with
values drawn from its set alone. The bound is thus of one test, however many rules were tried: an
honest randomizer is refuted with a chance of at most 1 - confidence, by construction. That guesses
audit local randomizers well: Arcolezi, Gambs (2024), "Revealing the true cost of locally
differentially private protocols: an auditing perspective", PoPETs.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from fedhh.accounting.empirical_epsilon import AuditResult, check_levels
from fedhh.accounting.report_scores import (
    Given,
    NaiveBayes,
    ReportScore,
    ShownReports,
    WholeReports,
)
from fedhh.accounting.value_guesses import (
    RULES,
    RULES_OF_PAIRS,
    Guesses,
    Lists,
    Rule,
    candidates,
)
from fedhh.validation import InputError, require_at_least

if TYPE_CHECKING:
    from fedhh.oracles.base import FrequencyOracle

Numbers = npt.NDArray[np.int64]
_Form = tuple[tuple[int, ...], np.dtype[Any]]

_AT_ONCE = 50_000
_CHOOSING_ERROR = 1e-6
FEWEST_REPORTS = 32
_MESSAGES, _FEWEST_MESSAGES = 1_000_000, 2_000
_LARGEST_SAMPLE_BITS = 2e9
_FEWEST_ALONE, _MOST_ALONE = 2, 64
"""Reports of each value that are drawn alone."""
_MOST_FORMS = 20_000
_MOST_VALUES = 32
_FEW_VALUES = 4
_REPORTS_AT_ONCE = 20_000
_BYTES_AT_ONCE = 2**27


class ShowsReports(Protocol):
    """Draws fresh reports about values."""

    def __call__(
        self, held: Numbers, among: Sequence[int], *, rng: np.random.Generator
    ) -> ShownReports:
        """Return what reports show.

        Args:
            held: ``(n,) int64`` values, a report each.
            among: m values whose scores are given.
            rng: Source of the reports' coins.
        """


@dataclass(frozen=True, kw_only=True, eq=False)
class _GuessRule:
    """A rule to guess by.

    Attributes:
        among: Values whose scores are made.
        drawn: Which of them are held and guessed, by number.
        score: Of the reports.
        lists: What is made of it.
    """

    among: Sequence[int]
    drawn: tuple[int, ...]
    score: ReportScore
    lists: Lists

    def __str__(self) -> str:
        values = [self.among[each] for each in self.drawn]
        which = (
            f"values {', '.join(map(str, values))}" if len(values) <= 4 else f"{len(values)} values"
        )
        return (
            f"{which} guessed by the {self.score.name}: {self.lists.rule}, from a log-ratio of "
            f"{self.lists.least_gain:.4g}"
        )


def audit_guesses(
    shows: ShowsReports,
    value_sets: Sequence[Sequence[int]],
    *,
    given: str,
    num_reports: int,
    rng: np.random.Generator,
    confidence: float,
) -> AuditResult:
    """Return a lower bound on the local epsilon of reports, by guesses of what they are about.

    Args:
        shows: Draws reports, independently of each other.
        value_sets: Sets of at least 2 values; all pairs of the last set are tried alone, too.
        given: What `ShownReports.given` is.
        num_reports: In all, at least 32.
        rng: Source of values and of the reports' coins.
        confidence: In (0, 1).
    """
    check_levels(0.0, confidence)
    require_at_least(FEWEST_REPORTS, num_samples=num_reports)
    for values in value_sets:
        if len(set(values)) < max(2, len(values)):
            raise InputError(f"Expected at least two different values, got {list(values)}.")
    teachers = num_reports // (16 * len(value_sets))
    choosers = 3 * num_reports // (16 * len(value_sets))
    best: tuple[float, _GuessRule] | None = None
    for place, values in enumerate(value_sets):
        pairs = place == len(value_sets) - 1
        found = _best_rule(
            shows, values, Given(given), teachers=teachers, choosers=choosers, pairs=pairs, rng=rng
        )
        if best is None or found[0] > best[0]:
            best = found
    assert best is not None
    rule = best[1]
    tested = _tested(shows, rule, num_reports - (teachers + choosers) * len(value_sets), rng=rng)
    error = 1 - confidence
    return AuditResult(
        epsilon=tested.lower_bound(error=error),
        estimate=tested.estimate,
        delta=0.0,
        confidence=confidence,
        event=str(rule),
        num_samples=tested.num_made,
        largest_detectable=tested.largest_bound(error=error),
    )


def _best_rule(
    shows: ShowsReports,
    values: Sequence[int],
    given: Given,
    *,
    teachers: int,
    choosers: int,
    pairs: bool,
    rng: np.random.Generator,
) -> tuple[float, _GuessRule]:
    everything = tuple(range(len(values)))
    held = rng.integers(len(values), size=teachers)
    shown = _drawn(shows, values, held, rng=rng)
    scores: list[ReportScore] = [given]
    scores += [kind.learned(shown, held, len(values)) for kind in (NaiveBayes, WholeReports)]
    held = rng.integers(len(values), size=choosers)
    shown = _drawn(shows, values, held, rng=rng)
    best = (
        -1.0,
        _GuessRule(among=values, drawn=everything, score=scores[0], lists=Lists(rule=RULES[0])),
    )

    tries: list[tuple[tuple[int, ...], tuple[Rule, ...]]] = []
    if len(values) > 2:
        tries.append((everything, RULES))
    if pairs:
        tries += [(pair, RULES_OF_PAIRS) for pair in itertools.combinations(everything, 2)]
    for score, (drawn, rules) in itertools.product(scores, tries):
        of_drawn = np.isin(held, drawn)
        own = np.searchsorted(drawn, held[of_drawn])
        some = score.of(shown)[of_drawn][:, drawn]
        for rule in rules:
            for lists, guesses in candidates(some, own, rule):
                bound = guesses.lower_bound(error=_CHOOSING_ERROR)
                if bound > best[0]:
                    best = bound, _GuessRule(among=values, drawn=drawn, score=score, lists=lists)
    return best


def _tested(
    shows: ShowsReports, rule: _GuessRule, num_reports: int, *, rng: np.random.Generator
) -> Guesses:
    total = Guesses(made=np.zeros(len(rule.drawn) - 1, dtype=np.int64), right=0)
    for start in range(0, num_reports, _AT_ONCE):
        own = rng.integers(len(rule.drawn), size=min(_AT_ONCE, num_reports - start))
        shown = _drawn(shows, rule.among, np.array(rule.drawn)[own], rng=rng)
        total += rule.lists.guesses(rule.score.of(shown)[:, rule.drawn], own)
    return total


def _drawn(
    shows: ShowsReports, values: Sequence[int], held: Numbers, *, rng: np.random.Generator
) -> ShownReports:
    return shows(np.asarray(values, dtype=np.int64)[held], values, rng=rng)


def audit_oracle(
    oracle: FrequencyOracle,
    *,
    num_samples: int,
    rng: np.random.Generator,
    values: Sequence[int] | None = None,
    confidence: float = 0.999,
) -> AuditResult:
    """Return a lower bound on the local epsilon that an oracle's `privatize` really gives.

    Values are guessed from reports by the log-likelihood that the oracle states (`log_prob`), by
    how often each whole report was seen, and by frequencies of the report's numbers: see
    this module. The stated distribution only suggests guesses: where the code departs
    from it, the bound holds all the same.

    Reports are drawn many at once, and some of each value alone: arrays of many have one size,
    whatever a device sends. Where one alone has another size or type than that of value 0,
    values are guessed by that, from reports that are all drawn alone.

    Args:
        oracle: Any oracle.
        num_samples: Reports in all, at least 32; a quarter of them teaches and chooses.
        rng: Source of values and of the reports' coins.
        values: Which values are held, at least two; if None, at most 32 of the domain, evenly
            spread, and of them four in pairs.
        confidence: In (0, 1): an honest oracle's bound is above its epsilon with at most the rest.

    Raises:
        InputError: An argument is out of range, or reports have another size or type than stated,
            by which no more can be guessed than the stated epsilon allows.
    """
    sets = value_sets(oracle.domain_size) if values is None else [list(values)]
    for value in itertools.chain.from_iterable(sets):
        if not 0 <= value < oracle.domain_size:
            raise InputError(
                f"Expected 0 <= value < domain_size={oracle.domain_size}, got value={value!r}."
            )

    each = max(_FEWEST_ALONE, min(_MOST_ALONE, num_samples // 256))
    held = np.repeat(np.unique(np.concatenate(sets)), each)
    # By a copy, so that what follows has the same coins.
    coins = copy.deepcopy(rng)
    form = _form(oracle.privatize(np.zeros(1, dtype=np.int64), rng=coins))
    other = _other_form(oracle, form, held, rng=coins)
    if other is not None:
        few = min(num_samples, _MOST_FORMS)
        return _audit_forms(oracle, sets, other, few, rng=rng, confidence=confidence)

    def shows(held: Numbers, among: Sequence[int], *, rng: np.random.Generator) -> ShownReports:
        parts = []
        at_once, start = 16, 0
        while start < len(held):
            reports = oracle.privatize(held[start : start + at_once], rng=rng)
            if _form(reports) != form:
                raise InputError(
                    f"Expected {_form_text(oracle, form, reports)} of {len(reports)} values."
                )
            stated = np.stack([oracle.log_prob(reports, value) for value in among], axis=1)
            parts.append(ShownReports.of(stated, reports))
            start += len(reports)
            # The first reports say how large they are.
            most = _BYTES_AT_ONCE // max(1, reports.nbytes // len(reports))
            at_once = max(16, min(_REPORTS_AT_ONCE, most))
        return ShownReports.together(parts)

    return audit_guesses(
        shows,
        sets,
        given="stated likelihood",
        num_reports=num_samples,
        rng=rng,
        confidence=confidence,
    )


def _form(reports: npt.NDArray[Any]) -> _Form:
    """Return what every report of an oracle has in common, whatever it says: size and type."""
    return reports.shape[1:], reports.dtype


def _other_form(
    oracle: FrequencyOracle, form: _Form, held: Numbers, *, rng: np.random.Generator
) -> str | None:
    """Return what is wrong with a report of a value alone, if it has another form."""
    for value in held:
        report = oracle.privatize(np.array([value]), rng=rng)
        if _form(report) != form:
            return f"Expected {_form_text(oracle, form, report)} of value {value} alone."
    return None


def _form_text(oracle: FrequencyOracle, form: _Form, reports: npt.NDArray[Any]) -> str:
    shape, dtype = form
    return (
        f"reports of {type(oracle).__name__} of shape {shape} and type {dtype}, as that of value 0 "
        f"alone, got shape {reports.shape[1:]} and type {reports.dtype}"
    )


def _audit_forms(
    oracle: FrequencyOracle,
    sets: Sequence[Sequence[int]],
    other: str,
    num_samples: int,
    *,
    rng: np.random.Generator,
    confidence: float,
) -> AuditResult:
    """Return a lower bound by guesses that know sizes and types of reports drawn alone.

    Raises:
        InputError: With what is wrong, where the bound is not above what the oracle states.
    """

    def shows(held: Numbers, among: Sequence[int], *, rng: np.random.Generator) -> ShownReports:
        forms = []
        for value in held:
            report = oracle.privatize(np.array([value]), rng=rng)
            forms.append((report.size, report.ndim, report.dtype.num))
        return ShownReports.of(np.zeros((len(held), len(among))), np.array(forms, dtype=np.int64))

    found = audit_guesses(
        shows,
        sets,
        given="nothing",
        num_reports=num_samples,
        rng=rng,
        confidence=confidence,
    )
    if found.epsilon <= oracle.epsilon:
        raise InputError(other)
    return replace(found, event=f"size and type of a report alone: {found.event}")


def messages_to_sample(oracle: FrequencyOracle) -> int:
    """Return how many reports an audit draws: 1,000,000, or of long ones fewer.

    So many see every randomizer whose epsilon is a tenth above what it states, up to 4.
    """
    return max(_FEWEST_MESSAGES, min(_MESSAGES, int(_LARGEST_SAMPLE_BITS / oracle.report_bits)))


def value_sets(domain_size: int) -> list[list[int]]:
    """Return up to 32 values of a domain, evenly spread, and of larger ones four again."""
    most = min(domain_size, _MOST_VALUES)
    spread = np.linspace(0, domain_size - 1, most).round().astype(int).tolist()
    few = sorted({0, 1, domain_size // 2, domain_size - 1})
    return [spread] if domain_size <= _FEW_VALUES else [spread, few]
