"""A round as the server saw it: its candidates, their votes, and which of them it kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.protocol import Discoveries, RoundSummary
from fedhh.questions.answer import FakeReports
from fedhh.questions.names import TrieNames
from fedhh.questions.noise import AnyNoise, Noise
from fedhh.questions.question import Aggregate, AnyQuestion
from fedhh.questions.reports import StringQuestion
from fedhh.words.alphabet import END, Alphabet
from fedhh.words.rows import match_rows
from fedhh.words.trie import ABSENT, Codes, PrefixTrie

_Indices = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, eq=False)
class VoteStatistics:
    """What numbers of votes say in a round, one entry for each number that occurs.

    Attributes:
        votes: ``int64``, ascending.
        counts: ``int64``; candidates with so many.
        z: ``float32``, see `fedhh.questions.noise.Noise.z`.
        estimate: ``float32``; unbiased estimate of the contributions.
        std_error: ``float32``; its standard error by the oracle's formula.
    """

    votes: _Indices
    counts: _Indices
    z: _Floats
    estimate: _Floats
    std_error: _Floats

    @classmethod
    def of(cls, noise: AnyNoise, votes: _Indices) -> VoteStatistics:
        lowest = int(votes.min(initial=0))
        if int(votes.max(initial=0)) - lowest < 16 * len(votes) + 1024:
            # Far cheaper than sorting a million of them.
            counts = np.bincount(votes - lowest)
            distinct = np.flatnonzero(counts)
            counts = counts[distinct]
            distinct += lowest
        else:
            distinct, counts = np.unique(votes, return_counts=True)
        estimate = noise.estimate(distinct)
        return cls(
            votes=distinct,
            counts=counts,
            z=noise.z(distinct).astype(np.float32),
            estimate=estimate.astype(np.float32),
            std_error=np.sqrt(noise.variance(estimate)).astype(np.float32),
        )

    def columns(self, votes: _Indices) -> dict[str, _Floats]:
        """Return "z", "estimate" and "std_error" of some of the votes."""
        place = np.searchsorted(self.votes, votes)
        return {name: getattr(self, name)[place] for name in ("z", "estimate", "std_error")}


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundRecord:
    """What a server knows of a round's candidates.

    Candidates are numbered as in `fedhh.questions.names.TrieNames`.

    Attributes:
        pass_index: Which pass, from 0.
        layer: Which layer, from 1.
        symbols: The alphabet's.
        trie: What the candidates extend.
        finished: ``(f, width)``: candidates besides the extensions. They are words, or, where
            ``prefix_length`` is not 0, prefixes of that length, filled up with the end symbol.
        prefix_length: See above.
        excluded: ``(x, width)``: words that clients leave out.
        num_fresh: Candidates without those that were found before, and are only asked about again.
        votes: ``(num_candidates,)``, of the smallest type that holds them.
        said: What they say.
        kept: ``int64``, ascending: candidates that the round kept to be extended.
        words: Likewise those that it found as words.
        threshold: Votes of the last candidate kept.
        votes_mean: Expected votes of a candidate that no client holds.
        votes_std: Their standard deviation.
        posterior: ``(p,) float32``: posterior probability that enough clients hold each of the
            first p candidates; NaN, or not there, where the server has none.
        fake_votes: ``(num_candidates,) int64``: how many of the votes are those of fake clients;
            empty where there are none.
    """

    pass_index: int
    layer: int
    symbols: str
    trie: PrefixTrie
    finished: Codes
    prefix_length: int
    excluded: Codes
    num_fresh: int
    votes: npt.NDArray[Any]
    statistics: VoteStatistics
    kept: _Indices
    words: _Indices
    threshold: int
    votes_mean: float
    votes_std: float
    posterior: _Floats = field(default_factory=lambda: np.zeros(0, np.float32))
    fake_votes: _Indices = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def num_candidates(self) -> int:
        """Candidates, the dummy not counted."""
        return len(self.votes)

    @property
    def num_extensions(self) -> int:
        """Candidates that extend a prefix."""
        return self.num_candidates - len(self.finished)

    @cached_property
    def alphabet(self) -> Alphabet:
        return Alphabet(symbols=self.symbols)

    @cached_property
    def names(self) -> TrieNames:
        """Which word has which candidate."""
        return TrieNames(trie=self.trie, finished=self.finished, excluded=self.excluded)

    def spelled(self, candidates: _Indices) -> tuple[list[str], npt.NDArray[np.bool_]]:
        """Return candidates as text, without the end symbol, and whether each is a word."""
        longest = max(self.trie.length + 1, self.finished.shape[1])
        codes = np.zeros((len(candidates), longest), dtype=np.uint16)
        extends = candidates < self.num_extensions
        extended = self.trie.spell(candidates[extends])
        codes[extends, : extended.shape[1]] = extended
        rest = self.finished[candidates[~extends] - self.num_extensions]
        codes[~extends, : rest.shape[1]] = rest
        is_word = ~extends | (candidates % self.trie.alphabet_size == END)
        if self.prefix_length:
            is_word = (rest[:, : self.prefix_length] == END).any(axis=1)
            is_word |= np.isin(candidates, self.words)
        return self.alphabet.decode(codes), is_word

    def posterior_of(self, candidates: _Indices) -> _Floats:
        """Return the candidates' `posterior`, NaN where there is none."""
        known = candidates < len(self.posterior)
        posterior = np.full(len(candidates), np.nan, dtype=np.float32)
        posterior[known] = self.posterior[candidates[known]]
        return posterior

    def by_fakes(self, real: _Indices) -> npt.NDArray[np.bool_]:
        """Return ``(num_candidates,) bool``: which candidates fake clients pushed.

        Those that nobody holds and that stand out of the noise by two of its standard deviations,
        where fake clients have at least half of the votes beyond the noise's mean.

        Args:
            real: ``(num_candidates,) int64``: clients that hold each.
        """
        beyond = self.votes - self.votes_mean
        stands_out = beyond >= max(2 * self.votes_std, 1.0)
        return np.asarray((real == 0) & stands_out & (2 * self.fake_votes >= beyond))

    def lengths(self, candidates: _Indices) -> _Indices:
        """Return how many symbols candidates have, the end symbol included."""
        lengths = np.full(len(candidates), self.trie.length + 1, dtype=np.int64)
        in_finished = candidates >= self.num_extensions
        rest = self.finished[candidates[in_finished] - self.num_extensions]
        lengths[in_finished] = (rest != END).sum(axis=1) + 1
        return lengths


def record_of(
    question: AnyQuestion,
    aggregate: Aggregate,
    summary: RoundSummary,
    *,
    kept: npt.NDArray[Any] | None,
    posterior: _Floats | None,
    before: Sequence[str],
    after: Discoveries,
    fakes: FakeReports | None = None,
) -> RoundRecord | None:
    """Return the outcome of a round's candidates; None if the question is about no prefixes.

    Args:
        question: What was broadcast.
        aggregate: What came back.
        summary: The server's summary of the round.
        kept: What the round kept, see `fedhh.protocol.Heard`.
        posterior: What it kept them by, see there.
        before: Words found before the round.
        after: Words found, those of the round included.
        fakes: What fake clients sent; None without any.
    """
    if question.names.extended is not None:
        round_record = _of_votes(question, aggregate, summary, kept, before=before, after=after)
        if fakes is not None:
            sent = replace(aggregate, tally=fakes.tally, num_reports=fakes.reports)
            round_record = replace(round_record, fake_votes=question.votes(sent))
        return round_record if posterior is None else replace(round_record, posterior=posterior)
    if kept is not None and kept.ndim == 2:
        round_record = _of_sketch(question, aggregate, summary, kept)
        if fakes is not None:
            sent = replace(aggregate, tally=fakes.tally, num_reports=fakes.reports)
            votes = question.channel.support(question, sent, question.names.keys_of(kept))
            round_record = replace(round_record, fake_votes=votes)
        return round_record
    return None


def _of_votes(
    question: AnyQuestion,
    aggregate: Aggregate,
    summary: RoundSummary,
    kept: npt.NDArray[Any] | None,
    *,
    before: Sequence[str],
    after: Discoveries,
) -> RoundRecord:
    names, votes = question.names, question.votes(aggregate)
    noise = question.channel.noise_of(question, aggregate)
    width = max(names.finished.shape[1], names.trie.length + 1)
    is_validation = not names.num_extensions
    texts = list(after.words)
    if not is_validation:
        here = (after.pass_index == question.pass_index) & (after.layer == question.layer)
        texts = [texts[i] for i in np.flatnonzero(here)]
    words = _candidates_of(names, question.alphabet, texts, width)
    num_fresh = question.num_candidates
    if not is_validation and len(names.finished):
        known = question.alphabet.encode(list(before), width=names.finished.shape[1])
        repeated = match_rows(names.finished, known) >= 0
        if repeated.any():
            # They stand last: what is asked about again follows what is new.
            num_fresh = names.num_extensions + int(np.argmax(repeated))
    return _record(
        question,
        summary,
        noise,
        votes,
        trie=names.trie,
        finished=names.finished,
        excluded=names.excluded,
        num_fresh=num_fresh,
        kept=np.zeros(0, dtype=np.int64) if kept is None else kept,
        words=words,
    )


def _record(
    question: AnyQuestion,
    summary: RoundSummary,
    noise: AnyNoise,
    votes: _Indices,
    **rest: Any,
) -> RoundRecord:
    return RoundRecord(
        pass_index=question.pass_index,
        layer=question.layer,
        symbols=question.alphabet.symbols,
        votes=_smallest(votes),
        statistics=VoteStatistics.of(noise, votes),
        threshold=summary.threshold,
        votes_mean=noise.votes_mean,
        votes_std=noise.votes_std,
        **{"prefix_length": 0, **rest},
    )


def _of_sketch(
    question: StringQuestion, aggregate: Aggregate, summary: RoundSummary, kept: Codes
) -> RoundRecord:
    """Return a round whose server asked a sketch: what it kept, as words or prefixes of a length.

    The candidates that it dropped were never listed; they are only counted in the summary.
    """
    votes = question.channel.support(question, aggregate, question.names.keys_of(kept))
    width = kept.shape[1]
    everything = np.arange(len(kept))
    is_last = question.names.length == question.names.longest_word
    none = np.zeros(0, dtype=np.int64)
    return _record(
        question,
        summary,
        Noise.of_aggregate(question.channel.pure, aggregate.num_reports, aggregate.tally),
        votes,
        trie=PrefixTrie.empty(question.alphabet.size),
        finished=kept,
        prefix_length=question.names.length,
        excluded=np.zeros((0, width), dtype=np.uint16),
        num_fresh=len(kept),
        kept=none if is_last else everything,
        words=everything if is_last else none,
    )


def _smallest(votes: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Return votes in the smallest type that holds them."""
    lowest, highest = int(votes.min(initial=0)), int(votes.max(initial=0))
    for kind in (np.uint16, np.uint32, np.int32):
        if np.iinfo(kind).min <= lowest and highest <= np.iinfo(kind).max:
            return votes.astype(kind)
    return votes


def _candidates_of(
    names: TrieNames, alphabet: Alphabet, texts: Sequence[str], width: int
) -> _Indices:
    """Return the ascending candidates that are some words."""
    codes = alphabet.encode(list(texts), width=width)
    length = names.trie.length
    numbers = np.full(len(texts), ABSENT, dtype=np.int64)
    if names.num_extensions:
        nodes = names.trie.walk(codes)
        ends = (nodes != ABSENT) & (codes[:, length] == END)
        if length:
            ends &= codes[:, length - 1] != END
        numbers[ends] = nodes[ends] * names.trie.alphabet_size + END
    if len(names.finished):
        in_finished = match_rows(codes[:, : names.finished.shape[1]], names.finished)
        numbers[in_finished >= 0] = names.num_extensions + in_finished[in_finished >= 0]
    return np.unique(numbers[numbers != ABSENT])
