"""Samples of an oracle's reports: guesses of which value each is about.

A value is drawn uniformly from some, a report is made of it, and whoever reads the report names the
likeliest value: by the distribution that the oracle states, by how often each whole report was
seen, or by the frequencies of its numbers. These scores only suggest guesses: where the code
departs from what it states, the bound of `fedhh.audit.audit.audit` holds all the same. That
guesses audit local randomizers well: Arcolezi, Gambs (2024), "Revealing the true cost of locally
differentially private protocols: an auditing perspective", PoPETs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fedhh.arrays import Floats, Ints, UInts
from fedhh.audit.audit import Finding, audit, choose
from fedhh.audit.claim import Claim, EpsilonDelta
from fedhh.random import GOLDEN, scatter
from fedhh.validation import InputError, require_at_least, require_inside

if TYPE_CHECKING:
    from fedhh.oracles.base import FrequencyOracle

Reports = npt.NDArray[Any]
Draw = Callable[..., tuple[Reports, Floats]]
"""Returns reports about values, and ``(n, m)`` scores of m values that need not be learned."""
Score = Callable[[Reports, Floats], dict[str, Floats]]

STATED, LEARNED, WHOLE = "stated likelihood", "learned likelihood", "whole report"
FEWEST_REPORTS = 64
_MESSAGES, _FEWEST_MESSAGES = 1_000_000, 2_000
_LARGEST_SAMPLE_BITS = 2e9
_FEWEST_ALONE, _MOST_ALONE = 2, 64
_MOST_FORMS = 20_000
_MOST_VALUES = 32, 8
_REPORTS_AT_ONCE, _BYTES_AT_ONCE = 20_000, 2**27
_PILOT = 8
"""One report in so many is of a pilot, which learns scores and chooses values."""
_MOST_COLUMNS, _LONGEST_HASHED = 64, 4096
_BINS, _LAST_BITS, _MOST_WHOLE = 32, 7, 4096
_PILOT_ERROR = 1e-6
"""Of the pilot's bounds: a larger one prefers values that few reports speak of, by chance."""
_PRIOR = 0.5
"""Reports added to each count, so that a place that was seen by chance says little."""
_FARTHEST = 1e6


def audit_oracle(
    oracle: FrequencyOracle,
    *,
    num_samples: int,
    rng: np.random.Generator,
    values: Sequence[int] | None = None,
    confidence: float = 0.999,
) -> Finding:
    """Return a lower bound on the local epsilon that an oracle's `privatize` really gives.

    Reports are drawn many at once, and some of each value alone: arrays of many have one size,
    whatever a device sends. Where one alone has another size or type than that of value 0,
    values are guessed by that, from reports that are all drawn alone.

    Args:
        oracle: Any oracle.
        num_samples: Reports in all, at least 64; an eighth of them is of a pilot.
        rng: Source of values and of the reports' coins.
        values: Which values are held, at least two; if None, 32 of the domain at most, or eight,
            evenly spread, or four, or two of these, whichever show most in the pilot.
        confidence: In (0, 1): an honest oracle is refuted with at most the rest.

    Raises:
        InputError: An argument is out of range, or reports have another size or type than stated,
            by which no more can be guessed than the stated epsilon allows.
    """
    require_inside(0, 1, confidence=confidence)
    require_at_least(FEWEST_REPORTS, num_samples=num_samples)
    sets = value_sets(oracle.domain_size) if values is None else [list(values)]
    for value in itertools.chain.from_iterable(sets):
        if not 0 <= value < oracle.domain_size:
            raise InputError(
                f"Expected 0 <= value < domain_size={oracle.domain_size}, got value={value!r}."
            )
    claim = EpsilonDelta(epsilon=oracle.epsilon)
    form_rng, rng = rng.spawn(2)
    each = max(_FEWEST_ALONE, min(_MOST_ALONE, num_samples // 256))
    flaw = _flaw_alone(oracle, np.repeat(np.unique(np.concatenate(sets)), each), rng=form_rng)
    if flaw is None:
        draw = partial(messages, oracle)
        return audit_guesses(
            draw, sets, claim, num_reports=num_samples, rng=rng, confidence=confidence
        )
    few = min(num_samples, _MOST_FORMS)
    found = audit_guesses(
        partial(forms_alone, oracle), sets, claim, num_reports=few, rng=rng, confidence=confidence
    )
    if not found.refuted:
        raise InputError(flaw)
    return replace(found, event=f"size and type of a report alone: {found.event}")


def audit_guesses(
    draw: Draw,
    value_sets: Sequence[Sequence[int]],
    claim: Claim,
    *,
    num_reports: int,
    rng: np.random.Generator,
    confidence: float,
) -> Finding:
    """Return what guesses of the values of reports show, next to what is claimed of a report.

    Args:
        draw: Draws independent reports: of ``held`` values, with scores of the values ``among``.
        value_sets: Sets of at least 2 values; all pairs of the last set are tried alone, too.
        claim: Of one report.
        num_reports: In all, at least 64.
        rng: Source of values and of the reports' coins.
        confidence: In (0, 1).
    """
    for values in value_sets:
        if len(set(values)) < max(2, len(values)):
            raise InputError(f"Expected at least two different values, got {list(values)}.")
    pilot = num_reports // _PILOT // len(value_sets)
    best: tuple[float, Sequence[int], tuple[int, ...], Score] | None = None
    for values in value_sets:
        teachers = _drawn(draw, values, range(len(values)), pilot // 3, rng=rng)
        score = _learned(*teachers, len(values))
        held, *shown = _drawn(draw, values, range(len(values)), pilot - pilot // 3, rng=rng)
        of_values = score(*shown)
        tries = [tuple(range(len(values)))]
        if values is value_sets[-1] and len(values) > 2:
            tries += itertools.combinations(tries[0], 2)
        for some in tries:
            right, wrong = _guesses(of_values, held, some)
            pairs = {name: (right[name], wrong[name]) for name in right}
            _, level = choose(pairs, claim, confidence=1 - _PILOT_ERROR, values=len(some))
            if best is None or level > best[0]:
                best = level, values, some, score
    assert best is not None
    _, values, some, score = best
    parts = []
    left = num_reports - pilot * len(value_sets)
    for start in range(0, left, _REPORTS_AT_ONCE):
        held, *shown = _drawn(draw, values, some, min(_REPORTS_AT_ONCE, left - start), rng=rng)
        parts.append(_guesses(score(*shown), held, some))
    right, wrong = (
        {name: np.concatenate([part[side][name] for part in parts]) for name in parts[0][side]}
        for side in (0, 1)
    )
    found = audit(right, wrong, claim, confidence=confidence, values=len(some))
    guessed = [values[place] for place in some]
    which = f"values {', '.join(map(str, guessed))}" if len(some) <= 4 else f"{len(some)} values"
    return replace(found, event=f"{which} guessed by the {found.event}")


def messages(
    oracle: FrequencyOracle, held: Ints, among: Sequence[int], *, rng: np.random.Generator
) -> tuple[Reports, Floats]:
    """Return an oracle's reports about values, and what it states of how likely they are."""
    first = oracle.privatize(np.zeros(1, dtype=np.int64), rng=np.random.default_rng(0))
    size = max(1, first.nbytes)
    reports, stated = [], []
    for part in np.array_split(held, -(-len(held) * size // _BYTES_AT_ONCE)):
        made = oracle.privatize(part, rng=rng)
        if _form(made) != _form(first):
            text = _form_text(oracle, first, made)
            raise InputError(f"Expected {text} of {len(made)} values.")
        stated.append(oracle.log_probs(made, np.asarray(among, dtype=np.int64)))
        reports.append(_looked_at(made))
    return np.concatenate(reports), np.concatenate(stated)


def forms_alone(
    oracle: FrequencyOracle, held: Ints, among: Sequence[int], *, rng: np.random.Generator
) -> tuple[Reports, Floats]:
    """Return sizes and types of reports that are drawn alone; nothing is stated of them."""
    made = [oracle.privatize(np.array([value]), rng=rng) for value in held]
    forms = np.array([(each.size, each.ndim, each.dtype.num) for each in made], dtype=np.int64)
    return forms, np.zeros((len(held), len(among)))


def messages_to_sample(oracle: FrequencyOracle) -> int:
    """Return how many reports an audit draws: 1,000,000, or of long ones fewer."""
    return max(_FEWEST_MESSAGES, min(_MESSAGES, int(_LARGEST_SAMPLE_BITS / oracle.report_bits)))


def value_sets(domain_size: int) -> list[list[int]]:
    """Return up to 32 values of a domain, evenly spread, of larger ones eight, and four again.

    A report that names a value speaks of one among all; a set of values, if it holds one of them.
    """
    few = sorted({0, 1, domain_size // 2, domain_size - 1})
    spread = [
        np.linspace(0, domain_size - 1, size).round().astype(int).tolist()
        for size in sorted({min(domain_size, most) for most in _MOST_VALUES}, reverse=True)
    ]
    return [*(each for each in spread if len(each) > len(few)), few]


def _learned(held: Ints, reports: Reports, stated: Floats, num_values: int) -> Score:
    """Return how to score reports by what ``(n,)`` others show, given the numbers of their values.

    Scores are log-likelihoods up to a constant of each report: as stated; by the frequencies of
    each column, as if columns were independent; by that of the whole report, rare ones together.
    """
    columns = _columns(reports, stated)
    hashed = _hashed(reports)
    known, counts = np.unique(hashed, return_counts=True)
    often = np.sort(known[np.argsort(-counts, kind="stable")[:_MOST_WHOLE]])
    bins = [*map(_ends_of_bins, columns), often]
    tables = []
    for column, ends in zip([*columns, hashed], bins, strict=True):
        # The last bin goes on for ever.
        places = np.searchsorted(ends, column) * num_values + held
        seen = np.bincount(places, minlength=(len(ends) + 1) * num_values) + _PRIOR
        seen = seen.reshape(-1, num_values)
        tables.append(np.log(seen / seen.sum(axis=0)))

    def score(reports: Reports, stated: Floats) -> dict[str, Floats]:
        """Return ``(n, m)`` finite scores by their names."""
        *by_column, whole = (
            table[np.searchsorted(ends, column)]
            for table, ends, column in zip(
                tables, bins, [*_columns(reports, stated), _hashed(reports)], strict=True
            )
        )
        return {STATED: _relative(stated), LEARNED: np.sum(by_column, axis=0), WHOLE: whole}

    return score


def _drawn(
    draw: Draw,
    values: Sequence[int],
    some: Sequence[int],
    size: int,
    *,
    rng: np.random.Generator,
) -> tuple[Ints, Reports, Floats]:
    """Return which of some values each report is about, the reports, and their stated scores."""
    held = np.asarray(some, dtype=np.int64)[rng.integers(len(some), size=size)]
    return held, *draw(np.asarray(values, dtype=np.int64)[held], values, rng=rng)


def _guesses(
    scores: Mapping[str, Floats], held: Ints, some: Sequence[int]
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Return how much likelier right guesses are than other values, and wrong ones; NaN if not.

    Guessed is the likeliest of some values, of reports about one of these.
    """
    right, wrong = {}, {}
    chosen = np.isin(held, some)
    own = np.searchsorted(some, held[chosen])
    for name, score in scores.items():
        of_some = score[chosen][:, some]
        relative = np.exp(np.maximum(of_some - of_some.max(axis=1, keepdims=True), -700.0))
        others = np.maximum(relative.sum(axis=1) - 1, 1e-300) / (len(some) - 1)
        gain = np.round(-np.log(others), 9)
        is_right = of_some.argmax(axis=1) == own
        right[name], wrong[name] = (np.where(each, gain, np.nan) for each in (is_right, ~is_right))
    return right, wrong


def _relative(log_likelihoods: Floats) -> Floats:
    """Return finite log-likelihoods relative to each report's largest, rounded to 1e-9.

    Rounding keeps equal ones equal. A report that is impossible under all values says nothing.
    """
    largest = log_likelihoods.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        relative = np.where(np.isneginf(largest), 0.0, log_likelihoods - largest)
    return np.asarray(np.round(np.maximum(relative, -_FARTHEST), 9))


def _looked_at(reports: Reports) -> Reports:
    """Return what is looked at of reports, ``(n, c)``: all of their numbers, or some of many."""
    rows = reports.reshape(len(reports), -1)
    places = np.linspace(0, rows.shape[1] - 1, min(rows.shape[1], _LONGEST_HASHED))
    return np.ascontiguousarray(rows[:, places.astype(np.intp)])


def _columns(reports: Reports, stated: Floats) -> list[npt.NDArray[Any]]:
    """Return numbers of reports, their last bits, which bins hide, their sums, what is stated."""
    places = np.linspace(0, reports.shape[1] - 1, min(reports.shape[1], _MOST_COLUMNS))
    numbers = list(reports[:, places.astype(np.intp)].T)
    wide = reports.dtype.kind in "iu" and reports.dtype.itemsize > 1
    bits = [each & _LAST_BITS for each in numbers] if wide else []
    return [*numbers, *bits, reports.sum(axis=1, dtype=np.float64), *_relative(stated).T]


def _ends_of_bins(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    values = np.unique(column)
    if len(values) <= _BINS:
        return values[:-1]
    return np.asarray(np.quantile(column, np.arange(1, _BINS) / _BINS, method="lower"))


def _hashed(rows: Reports) -> UInts:
    """Return a word for each row, equal where rows are."""
    words = rows.astype(np.int64) if rows.dtype.kind in "iub" else rows.astype(np.float64)
    places = np.arange(1, rows.shape[1] + 1, dtype=np.uint64) * GOLDEN
    mixed = scatter(words.view(np.uint64) ^ scatter(places))
    return np.asarray(mixed.sum(axis=1, dtype=np.uint64))


def _form(reports: Reports) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return what every report of an oracle has in common, whatever it says: size and type."""
    return reports.shape[1:], reports.dtype


def _flaw_alone(oracle: FrequencyOracle, held: Ints, *, rng: np.random.Generator) -> str | None:
    """Return what is wrong with a report of a value alone, if its form is not that of value 0."""
    first = oracle.privatize(np.zeros(1, dtype=np.int64), rng=rng)
    for value in held:
        report = oracle.privatize(np.array([value]), rng=rng)
        if _form(report) != _form(first):
            return f"Expected {_form_text(oracle, first, report)} of value {value} alone."
    return None


def _form_text(oracle: FrequencyOracle, first: Reports, reports: Reports) -> str:
    (shape, dtype), (other_shape, other_dtype) = _form(first), _form(reports)
    return (
        f"reports of {type(oracle).__name__} of shape {shape} and type {dtype}, as that of value 0 "
        f"alone, got shape {other_shape} and type {other_dtype}"
    )
