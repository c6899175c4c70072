"""A round as the server saw it: its candidates, their votes, and which of them it kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.arrays import Bools, Ints
from fedhh.protocol import Discoveries, RoundSummary
from fedhh.questions.names import TrieNames
from fedhh.questions.noise import AnyNoise
from fedhh.questions.question import Aggregate
from fedhh.simulation.engine import Round
from fedhh.words.alphabet import END, Alphabet
from fedhh.words.trie import ABSENT, match_rows

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

    votes: Ints
    counts: Ints
    z: _Floats
    estimate: _Floats
    std_error: _Floats

    @classmethod
    def of(cls, noise: AnyNoise, votes: Ints) -> VoteStatistics:
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

    def columns(self, votes: Ints) -> dict[str, _Floats]:
        """Return "z", "estimate" and "std_error" of some of the votes."""
        place = np.searchsorted(self.votes, votes)
        return {name: getattr(self, name)[place] for name in ("z", "estimate", "std_error")}


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundRecord:
    """What a server knows of a round's candidates.

    Attributes:
        summary: Of the round.
        alphabet: Of the words.
        names: Which word has which candidate.
        prefix_length: 0; or, where the candidates are prefixes that the server listed itself, their
            symbols: they are the finished words of the names, filled up with the end symbol.
        num_fresh: Candidates without those that were found before, and are only asked about again.
        votes: ``(num_candidates,)``, of the smallest type that holds them.
        noise: What chance does to them.
        kept: ``int64``, ascending: candidates that the round kept to be extended.
        words: Likewise those that it found as words.
        posterior: ``(p,) float32``: posterior probability that enough clients hold each of the
            first p candidates; NaN where the server has none. None for another rule.
        fake_votes: ``(num_candidates,) int64``: how many of the votes are those of fake clients;
            None where there are none.
    """

    summary: RoundSummary
    alphabet: Alphabet
    names: TrieNames
    prefix_length: int
    num_fresh: int
    votes: npt.NDArray[Any]
    noise: AnyNoise
    kept: Ints
    words: Ints
    posterior: _Floats | None
    fake_votes: Ints | None

    @property
    def num_candidates(self) -> int:
        """Candidates, the dummy not counted."""
        return len(self.votes)

    @cached_property
    def statistics(self) -> VoteStatistics:
        """What the votes say."""
        return VoteStatistics.of(self.noise, self.votes.astype(np.int64))

    def spelled(self, candidates: Ints) -> tuple[list[str], Bools]:
        """Return candidates as text, without the end symbol, and whether each is a word."""
        trie, finished = self.names.trie, self.names.finished
        codes = np.zeros(
            (len(candidates), max(trie.length + 1, finished.shape[1])), dtype=np.uint16
        )
        extends = candidates < self.names.num_extensions
        extended = trie.spell(candidates[extends])
        codes[extends, : extended.shape[1]] = extended
        rest = finished[candidates[~extends] - self.names.num_extensions]
        codes[~extends, : rest.shape[1]] = rest
        is_word = ~extends | (candidates % trie.alphabet_size == END)
        if self.prefix_length:
            is_word = (rest[:, : self.prefix_length] == END).any(axis=1)
            is_word |= np.isin(candidates, self.words)
        return self.alphabet.decode(codes), is_word

    def posterior_of(self, candidates: Ints) -> _Floats:
        """Return the candidates' `posterior`, NaN where there is none."""
        posterior = np.full(len(candidates), np.nan, dtype=np.float32)
        if self.posterior is not None:
            known = candidates < len(self.posterior)
            posterior[known] = self.posterior[candidates[known]]
        return posterior

    def by_fakes(self, real: Ints) -> Bools:
        """Return ``(num_candidates,) bool``: which candidates fake clients pushed.

        Those that nobody holds and that stand out of the noise by two of its standard deviations,
        where fake clients have at least half of the votes beyond the noise's mean.

        Args:
            real: ``(num_candidates,) int64``: clients that hold each.
        """
        assert self.fake_votes is not None
        beyond = self.votes - self.noise.votes_mean
        stands_out = beyond >= max(2 * self.noise.votes_std, 1.0)
        return np.asarray((real == 0) & stands_out & (2 * self.fake_votes >= beyond))

    def lengths(self, candidates: Ints) -> Ints:
        """Return how many symbols candidates have, the end symbol included."""
        lengths = np.full(len(candidates), self.names.trie.length + 1, dtype=np.int64)
        in_finished = candidates >= self.names.num_extensions
        rest = self.names.finished[candidates[in_finished] - self.names.num_extensions]
        lengths[in_finished] = (rest != END).sum(axis=1) + 1
        return lengths


def record_of(finished: Round, *, before: Sequence[str], after: Discoveries) -> RoundRecord | None:
    """Return the outcome of a round's candidates; None if the question is about no prefixes.

    Of a sketch, candidates are what the server kept, as words or prefixes of a length: those that
    it dropped were never listed, and are only counted in the summary.

    Args:
        finished: The round.
        before: Words found before it.
        after: Words found, those of the round included.
    """
    question, aggregate, state = finished.question, finished.aggregate, finished.state
    nothing = np.zeros(0, dtype=np.int64)
    kept = nothing if state.kept is None else state.kept
    keys: Ints | None = None
    fields: dict[str, Any]
    if question.names.extended is not None:
        names = question.names
        is_new = (after.pass_index == question.pass_index) & (after.layer == question.layer)
        # The validation round returns words that others found.
        here = np.flatnonzero(is_new | (names.num_extensions == 0))
        words = _candidates_of(names, question.alphabet, [after.words[i] for i in here.tolist()])
        fields = {
            "prefix_length": 0,
            "num_fresh": _num_fresh(names, question.alphabet, before),
            "kept": kept,
            "words": words,
        }
    elif kept.ndim == 2:
        keys = question.names.keys_of(kept)
        is_last = question.names.length == question.names.longest_word
        names = TrieNames.of_words(kept.astype(np.uint16, copy=False), question.alphabet)
        everything = np.arange(len(kept))
        fields = {
            "prefix_length": question.names.length,
            "num_fresh": len(kept),
            "kept": nothing if is_last else everything,
            "words": everything if is_last else nothing,
        }
    else:
        return None

    def votes_in(answers: Aggregate) -> Ints:
        if keys is None:
            return question.votes(answers)
        votes: Ints = question.channel.support(question, answers, keys)
        return votes

    fakes = finished.diagnostics.fakes
    return RoundRecord(
        summary=state.history[-1],
        alphabet=question.alphabet,
        names=names,
        votes=_smallest(votes_in(aggregate)),
        noise=question.channel.noise_of(question, aggregate),
        posterior=state.posterior,
        fake_votes=None if fakes is None else votes_in(fakes),
        **fields,
    )


def _num_fresh(names: TrieNames, alphabet: Alphabet, before: Sequence[str]) -> int:
    """Return how many candidates are not words that were found before; those stand last."""
    if names.num_extensions and len(names.finished):
        known = alphabet.encode(list(before), width=names.finished.shape[1])
        repeated = match_rows(names.finished, known) >= 0
        if repeated.any():
            return names.num_extensions + int(np.argmax(repeated))
    return names.num_candidates


def _smallest(votes: Ints) -> npt.NDArray[Any]:
    """Return votes in the smallest type that holds them."""
    lowest, highest = int(votes.min(initial=0)), int(votes.max(initial=0))
    for kind in (np.uint16, np.uint32, np.int32):
        if np.iinfo(kind).min <= lowest and highest <= np.iinfo(kind).max:
            return votes.astype(kind)
    return votes


def _candidates_of(names: TrieNames, alphabet: Alphabet, texts: Sequence[str]) -> Ints:
    """Return the ascending candidates that are some words."""
    width = max(names.finished.shape[1], names.trie.length + 1)
    codes = alphabet.encode(list(texts), width=width)
    length = names.trie.length
    numbers = np.full(len(texts), ABSENT, dtype=np.int64)
    if names.num_extensions:
        nodes = names.trie.walk(codes)
        ends = (nodes != ABSENT) & (codes[:, length] == END)
        if length:
            ends &= codes[:, length - 1] != END
        numbers[ends] = nodes[ends].astype(np.int64) * names.trie.alphabet_size + END
    if len(names.finished):
        in_finished = match_rows(codes[:, : names.finished.shape[1]], names.finished)
        numbers[in_finished >= 0] = names.num_extensions + in_finished[in_finished >= 0]
    return np.unique(numbers[numbers != ABSENT])
