"""The outcome of every candidate of a run: kept round by round, held against the truth in the end.

What survived is recorded whole, and of the rest what a reader asks about: the candidates next to
the threshold, those on the way to words that were missed, and a uniform sample. How many votes all
candidates had is recorded as counts by ranges of votes, so that no sampling blurs it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from fedhh.arrays import Floats, Ints
from fedhh.experiments.run.round_record import RoundRecord
from fedhh.experiments.run.truth import Truth
from fedhh.random import scatter

NEAREST, SAMPLED, MISSED = 1_000, 1_000, 2_000
"""Of a round's dropped candidates: those with the most votes, and uniformly sampled ones; of the
words that were missed, those with the most holders."""

KEPT, WORD, DROPPED = "kept", "word", "dropped"
FATES = (KEPT, WORD, DROPPED)
"""The outcome of a candidate: extended, or would be but for the pass's end; found; neither."""

LONGER, FOREIGN, LOST = "longer than the depth", "symbol outside the alphabet", "dropped"
"""Why a word was missed."""

FAKE_VOTES, BY_FAKES = "fake_votes", "by_fakes"
"""Columns of candidates that only runs with fake clients have."""
OF_FAKES = ("kept_fake", "dropped_fake")
"""Such columns of ranges of votes."""

_LINEAR = np.arange(-6.0, 10.01, 0.25)
"""Bounds of ranges of votes, in standard deviations of noise; beyond them, they grow."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CandidateRecord:
    """Tables of candidates.

    Attributes:
        candidates: One row for each recorded candidate, see `candidate_rows`.
        votes: One row for each range of votes that some candidate of a round has, see
            `vote_ranges`.
        missed: One row for each of the 2,000 words with the most clients that the run did not
            return, see `MissedWords.table`.
    """

    candidates: pd.DataFrame
    votes: pd.DataFrame
    missed: pd.DataFrame


def record(rounds: list[RoundRecord], truth: Truth, discovered: Ints) -> CandidateRecord:
    """Return the tables of a finished run."""
    missed = MissedWords(truth, discovered)
    candidates, votes = [], []
    for round_record in rounds:
        values = values_of(round_record, truth)
        missed.drop(round_record, values)
        real = real_holders(round_record, truth, values)
        candidates.append(
            candidate_rows(round_record, real, keep=missed.candidates(round_record, values))
        )
        votes.append(vote_ranges(round_record, real))
    rows = pd.concat(candidates, ignore_index=True) if candidates else pd.DataFrame()
    if FAKE_VOTES in rows:
        # A round may have no fake client where others have some.
        rows[FAKE_VOTES] = rows[FAKE_VOTES].fillna(0).astype(np.int64)
        rows[BY_FAKES] = rows[BY_FAKES].fillna(False).astype(np.bool_)
    ranges = pd.concat(votes, ignore_index=True) if votes else pd.DataFrame()
    for name in OF_FAKES:
        if name in ranges:
            ranges[name] = ranges[name].fillna(0).astype(np.int64)
    return CandidateRecord(
        candidates=rows,
        votes=ranges,
        missed=missed.table(),
    )


def values_of(round_record: RoundRecord, truth: Truth) -> Ints:
    """Return ``(V,) int64``: the candidate of each of the population's words, -1 for none."""
    if round_record.prefix_length:
        return truth.prefix_values(round_record.names.finished, round_record.prefix_length)
    return truth.candidate_values(round_record.names)


def real_holders(round_record: RoundRecord, truth: Truth, values: Ints) -> Ints:
    """Return ``(num_candidates,) int64``: clients that hold a word with each candidate's prefix."""
    # The last place is for words without a candidate, -1.
    holders = np.zeros(round_record.num_candidates + 1, dtype=np.int64)
    np.add.at(holders, values, truth.clients)
    return holders[:-1]


def candidate_rows(
    round_record: RoundRecord, real: Ints, *, keep: Ints | None = None
) -> pd.DataFrame:
    """Return a round's rows of `CandidateRecord.candidates`.

    Columns:
        pass: Which pass, from 1.
        layer: Which layer, from 1.
        prefix: The candidate's symbols, the end symbol left out.
        is_word: Whether it ends there.
        votes: Reports that support it.
        threshold: Votes of the last candidate that the round kept.
        z: How far the votes lie above the noise, as for discoveries.
        estimate: Unbiased estimate of the contributions for it among the cohort's reports.
        std_error: Standard error of the estimate by the oracle's formula.
        posterior: Posterior probability that enough clients hold the candidate, where the layer
            keeps candidates by that; NaN elsewhere, and for prefixes too unlikely for the server to
            compute it.
        true_clients: Pairs of a client and a word of its that begins with the prefix; of a word,
            its clients. Words that an earlier pass found do not count: clients leave them
            out.
        fate: "kept", found as a "word", or "dropped".
        stands_for: Candidates that the row stands for: 1, or more in a sample.
        fake_votes: Only of runs with fake clients: how many of the votes are theirs.
        by_fakes: Likewise whether fake clients pushed it: nobody holds it, it stands out of the
            noise, and at least half of its votes beyond the noise are theirs.
    """
    fate = np.full(round_record.num_candidates, FATES.index(DROPPED), dtype=np.int8)
    fate[round_record.kept] = FATES.index(KEPT)
    fate[round_record.words] = FATES.index(WORD)
    rest = np.flatnonzero(fate[: round_record.num_fresh] == FATES.index(DROPPED))
    near = _most(rest, round_record.votes, NEAREST)
    certain = np.unique(
        np.concatenate([round_record.kept, round_record.words, near, *_given(keep)])
    )
    rest = np.setdiff1d(rest, certain, assume_unique=True)
    sample = rest
    if len(rest) > SAMPLED:
        # A fixed order without visible order: distinct numbers, so no ties.
        order = scatter(rest.astype(np.uint64))
        sample = rest[order < np.partition(order, SAMPLED)[SAMPLED]]
    chosen = np.concatenate([certain, sample])
    weights = np.ones(len(chosen))
    weights[len(certain) :] = len(rest) / max(len(sample), 1)
    return _rows(round_record, chosen, fate=fate[chosen], real=real[chosen], stands_for=weights)


def survivors(round_record: RoundRecord, most: int) -> pd.DataFrame:
    """Return rows as of `candidate_rows` for what survived, those with the most votes alone.

    Nobody has counted who holds them. It takes little time, as a run that is watched goes on.
    """
    kept = np.concatenate([round_record.kept, round_record.words])
    chosen = np.sort(_most(kept, round_record.votes, most))
    fate = np.where(np.isin(chosen, round_record.words), FATES.index(WORD), FATES.index(KEPT))
    unknown = np.full(len(chosen), -1)
    return _rows(
        round_record,
        chosen,
        fate=fate.astype(np.int8),
        real=unknown,
        stands_for=np.ones(len(chosen)),
    )


def _rows(
    round_record: RoundRecord,
    chosen: Ints,
    *,
    fate: npt.NDArray[np.int8],
    real: Ints,
    stands_for: Floats,
) -> pd.DataFrame:
    votes = round_record.votes[chosen].astype(np.int64)
    prefixes, is_word = round_record.spelled(chosen)
    of_fakes = {}
    if round_record.fake_votes is not None:
        everything = np.ones(round_record.num_candidates, dtype=np.int64)
        everything[chosen] = real
        of_fakes = {
            FAKE_VOTES: round_record.fake_votes[chosen],
            BY_FAKES: round_record.by_fakes(everything)[chosen],
        }
    return pd.DataFrame(
        {
            "pass": round_record.summary.pass_index + 1,
            "layer": round_record.summary.layer,
            "prefix": prefixes,
            "is_word": is_word,
            "votes": votes,
            "threshold": round_record.summary.threshold,
            **round_record.statistics.columns(votes),
            "posterior": round_record.posterior_of(chosen),
            "true_clients": real,
            "fate": pd.Categorical.from_codes(fate, categories=pd.Index(FATES)),
            "stands_for": stands_for,
            **of_fakes,
        }
    ).astype({"pass": "int16", "layer": "int16"})


def vote_ranges(round_record: RoundRecord, real: Ints | None) -> pd.DataFrame:
    """Return a round's rows of `CandidateRecord.votes`; without truth, all count as real.

    Columns:
        pass: Which pass, from 1.
        layer: Which layer, from 1.
        votes_from: The range's fewest votes.
        votes_to: Its most.
        kept_real: Kept candidates in it that some client holds.
        kept_noise: Kept ones that no client holds.
        dropped_real: Dropped ones that some client holds.
        dropped_noise: Dropped ones that no client holds.
        kept_fake: Only of runs with fake clients: kept ones that these pushed, as ``by_fakes`` says
            of candidates; they are not among ``kept_noise``.
        dropped_fake: Likewise dropped ones.
    """
    statistics = round_record.statistics
    bounds = _bounds(round_record)

    def counted(votes: Ints, weights: Ints | None = None) -> Ints:
        place = np.searchsorted(bounds, votes, side="right") - 1
        return np.bincount(place, weights=weights, minlength=len(bounds)).astype(np.int64)

    # Nothing here goes through all candidates, which may be a million.
    everything = counted(statistics.votes, statistics.counts) - counted(
        round_record.votes[round_record.num_fresh :]
    )
    kept = np.concatenate([round_record.kept, round_record.words])
    kept = kept[kept < round_record.num_fresh]
    survived = counted(round_record.votes[kept])
    kept_real, held = survived, everything
    if real is not None:
        kept_real = counted(round_record.votes[kept[real[kept] > 0]])
        held = counted(round_record.votes[np.flatnonzero(real[: round_record.num_fresh])])
    columns = {
        "kept_real": kept_real,
        "kept_noise": survived - kept_real,
        "dropped_real": held - kept_real,
        "dropped_noise": everything - survived - (held - kept_real),
    }
    if real is not None and round_record.fake_votes is not None:
        fake = np.flatnonzero(round_record.by_fakes(real)[: round_record.num_fresh])
        survivors = np.isin(fake, kept)
        for name, numbers in (("kept", fake[survivors]), ("dropped", fake[~survivors])):
            columns[f"{name}_fake"] = counted(round_record.votes[numbers])
            columns[f"{name}_noise"] -= columns[f"{name}_fake"]
    ranges = pd.DataFrame(
        {
            "pass": round_record.summary.pass_index + 1,
            "layer": round_record.summary.layer,
            "votes_from": bounds,
            "votes_to": np.append(bounds[1:] - 1, statistics.votes[-1:]),
            **columns,
        }
    )
    filled: pd.DataFrame = ranges[ranges[list(columns)].sum(axis=1) > 0]
    return filled.astype({"pass": "int16", "layer": "int16"})


def _bounds(round_record: RoundRecord) -> Ints:
    """Return where ranges of votes begin, ascending, the first at or below all votes."""
    lowest, highest = int(round_record.statistics.votes[0]), int(round_record.statistics.votes[-1])
    steps = np.zeros(0)
    if round_record.noise.votes_std > 0:
        steps = round_record.noise.votes_mean + round_record.noise.votes_std * _LINEAR
    end = max(float(steps[-1]) if len(steps) else 1.0, 1.0)
    growing = end * 1.15 ** np.arange(1, 200)
    inner = np.ceil(np.concatenate([steps, growing[growing <= highest]]))
    bounds = np.unique(inner[(inner > lowest) & (inner <= highest)].astype(np.int64))
    return np.concatenate([[lowest], bounds])


def _most(numbers: Ints, votes: npt.NDArray[np.integer], most: int) -> Ints:
    """Return the candidates with the most votes; of equal ones, the first."""
    if len(numbers) <= most:
        return numbers
    own = votes[numbers]
    least = np.partition(own, len(own) - most)[len(own) - most]
    above = np.flatnonzero(own > least)
    equal = np.flatnonzero(own == least)[: most - len(above)]
    return np.asarray(numbers[np.sort(np.concatenate([above, equal]))])


def _given(numbers: Ints | None) -> list[Ints]:
    return [] if numbers is None else [numbers]


class MissedWords:
    """The words that were missed, and where."""

    def __init__(self, truth: Truth, discovered: Ints) -> None:
        missed = truth.clients > 0
        missed[discovered[discovered >= 0]] = False
        ids = np.flatnonzero(missed)
        self._truth = truth
        self._ids = _most(ids, truth.clients, MISSED)
        self._ids = self._ids[np.argsort(-truth.clients[self._ids], kind="stable")]
        none = np.zeros(len(self._ids), dtype=np.int64)
        names = ("pass", "layer", "prefix_length", "votes", "threshold")
        self._at = {name: none.copy() for name in names}
        self._posterior = np.full(len(self._ids), np.nan, dtype=np.float32)

    def candidates(self, round_record: RoundRecord, values: Ints) -> Ints:
        """Return the dropped candidates of missed words."""
        own = values[self._ids]
        asked = (own >= 0) & (own < round_record.num_fresh)
        return np.setdiff1d(own[asked], np.concatenate([round_record.kept, round_record.words]))

    def drop(self, round_record: RoundRecord, values: Ints) -> None:
        """Note which words a round dropped."""
        own = values[self._ids]
        kept = np.zeros(round_record.num_candidates + 1, dtype=np.bool_)
        kept[round_record.kept] = kept[round_record.words] = True
        lost = np.flatnonzero((own >= 0) & (own < round_record.num_fresh) & ~kept[own])
        for name, value in (
            ("pass", round_record.summary.pass_index + 1),
            ("layer", round_record.summary.layer),
            ("threshold", round_record.summary.threshold),
        ):
            self._at[name][lost] = value
        self._at["votes"][lost] = round_record.votes[own[lost]]
        self._at["prefix_length"][lost] = round_record.lengths(own[lost])
        self._posterior[lost] = round_record.posterior_of(own[lost])

    def table(self) -> pd.DataFrame:
        """Return the words, those with the most clients first.

        Columns:
            word: The word.
            true_clients: Clients that hold it.
            true_count: How often it was typed.
            why: "dropped", "longer than the depth" or "symbol outside the alphabet".
            pass: Pass of the round that dropped it last; 0 for none.
            layer: Layer of that round.
            prefix_length: Symbols of its prefix there, the end symbol included.
            votes: Votes of that prefix.
            threshold: Votes of the last candidate that the round kept.
            posterior: Posterior probability that enough clients hold that prefix, as of the
                candidates.
        """
        truth = self._truth
        words = [truth.words[i] for i in self._ids]
        why = np.full(len(words), LOST, dtype=object)
        for i in np.flatnonzero(~truth.reachable[self._ids]):
            why[i] = FOREIGN if truth.alphabet.foreign(words[i]) else LONGER
        return pd.DataFrame(
            {
                "word": words,
                "true_clients": truth.clients[self._ids],
                "true_count": truth.counts[self._ids],
                "why": why,
                **self._at,
                "posterior": self._posterior,
            }
        )
