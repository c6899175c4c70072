"""A small question of each kind, about words over six letters, from what tests change of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fedhh.oracles import OracleSpec
from fedhh.oracles.bloom import BitResponse, BloomFilters, BloomReports
from fedhh.questions.blooms import Blooms, Ngrams
from fedhh.questions.choice import Attack, OneTyped, PaddedMember, SampleB, SetSize
from fedhh.questions.clients import Sent
from fedhh.questions.cohort import Cohort
from fedhh.questions.matching import WordMatcher
from fedhh.questions.names import ItemSets, StringNames, TrieNames, UploadNames
from fedhh.questions.noise_shares import DiscreteLaplace
from fedhh.questions.plain import PlainVotes, PlainWords
from fedhh.questions.question import Question
from fedhh.questions.records import Records
from fedhh.questions.reports import Reports
from fedhh.questions.sums import OpenedVotes, SecureVotes, UploadVotes
from fedhh.words.alphabet import Alphabet
from fedhh.words.lexicon import Lexicon
from fedhh.words.puzzle import FragmentPuzzle
from fedhh.words.trie import PrefixTrie

ALPHABET = Alphabet(symbols="abcdef")
LONGEST = 6

SKETCH = OracleSpec(name="cms", epsilon=4.0, params={"num_hashes": 8, "num_cells": 64})
PUZZLE = FragmentPuzzle(
    alphabet_size=ALPHABET.size, length=LONGEST, fragment_length=2, num_puzzles=4, hash_seed=1
)
NOISE = DiscreteLaplace(std=4.0)


def asked(*, names: Any, choice: Any, channel: Any, **address: Any) -> Question:
    """Return a question of 500 clients for three contributions each, unless told."""
    whom = {
        "pass_index": 0,
        "layer": 1,
        "cohort": Cohort(start=0, size=500),
        "alphabet": ALPHABET,
        "max_items": 3,
    }
    return Question(**{**whom, **address}, names=names, choice=choice, channel=channel)


def trie_names(
    *, trie: Any = None, finished: Any = None, excluded: Any = None, kind: Any = TrieNames
) -> Any:
    """Return what lists all prefixes of two symbols, unless told."""
    nothing = np.zeros((0, LONGEST + 1), dtype=np.uint16)
    return kind(
        trie=PrefixTrie.all_of_length_one(ALPHABET.size) if trie is None else trie,
        finished=nothing if finished is None else finished,
        excluded=nothing if excluded is None else excluded,
    )


_NAMES = ("trie", "finished", "excluded")


def _of_trie(changes: dict[str, Any], kind: Any = TrieNames) -> Any:
    return trie_names(**{k: changes.pop(k) for k in _NAMES if k in changes}, kind=kind)


def votes(
    *,
    oracle: OracleSpec | None = None,
    sampler: str = "random",
    votes_per_client: Any = "all",
    **changes: Any,
) -> Any:
    """Return a question for votes through a randomizer."""
    names = _of_trie(changes)
    oracle = OracleSpec(name="ss", epsilon=2.0) if oracle is None else oracle
    channel = Reports.on(names, oracle, votes_per_client=votes_per_client)
    return asked(names=names, choice=SampleB(sampler=sampler), channel=channel, **changes)


def word_votes(**changes: Any) -> Any:
    """Return a question for one plain vote of each client."""
    names = _of_trie(changes)
    channel = PlainVotes.on(names, OracleSpec(name="none", epsilon=math.inf))
    return asked(names=names, choice=OneTyped(), channel=channel, **changes)


def secure_sums(
    *,
    noise: Any = NOISE,
    modulus: int = 1 << 20,
    dropout: float = 0.0,
    sampler: str = "random",
    **changes: Any,
) -> Any:
    """Return a question for a secure sum."""
    names = _of_trie(changes)
    channel = SecureVotes(
        num_candidates=names.num_candidates, noise=noise, modulus=modulus, dropout=dropout
    )
    return asked(names=names, choice=SampleB(sampler=sampler), channel=channel, **changes)


def opened(*, noise: Any = NOISE, sampler: str = "random", **changes: Any) -> Any:
    """Return a question whose votes two servers open."""
    names = _of_trie(changes)
    channel = OpenedVotes(num_candidates=names.num_candidates, noise=noise)
    return asked(names=names, choice=SampleB(sampler=sampler), channel=channel, **changes)


def uploads(*, noise: Any = NOISE, sampler: str = "random", **changes: Any) -> Any:
    """Return a question to two servers about what was uploaded once."""
    names = _of_trie(changes, UploadNames)
    channel = UploadVotes(num_candidates=names.num_candidates, noise=noise)
    choice = SampleB(sampler=sampler, layer=0)
    return asked(names=names, choice=choice, channel=channel, **changes)


def plain_words(
    *,
    sampler: str = "random",
    longest_word: int = LONGEST,
    hash_seed: int = 1,
    excluded: Any = None,
    by_size: bool = False,
    inclusion: float = 1.0,
    **changes: Any,
) -> Any:
    """Return a question for plain words."""
    names = StringNames.draw(
        changes.get("alphabet", ALPHABET),
        length=longest_word,
        longest_word=longest_word,
        seed=hash_seed,
        excluded=excluded,
    )
    channel = PlainWords(num_keys=names.num_keys, by_size=by_size, inclusion=inclusion)
    return asked(names=names, choice=SampleB(sampler=sampler), channel=channel, **changes)


def records(
    *,
    puzzle: Any = PUZZLE,
    word_oracle: OracleSpec = SKETCH,
    fragment_oracle: OracleSpec | None = None,
    sampler: str = "random",
    **changes: Any,
) -> Any:
    """Return a question for records of whole strings and their parts."""
    fragments = OracleSpec(name="oue", epsilon=2.0) if fragment_oracle is None else fragment_oracle
    channel: Any = Records(puzzle=puzzle, word_oracle=word_oracle, fragment_oracle=fragments)
    return asked(names=channel.names, choice=SampleB(sampler=sampler), channel=channel, **changes)


def strings(
    *,
    prefix_length: int = 3,
    longest_word: int = LONGEST,
    oracle: OracleSpec = SKETCH,
    hash_seed: int = 1,
    sampler: str = "random",
    **changes: Any,
) -> Any:
    """Return a question for prefixes, whatever they are."""
    names = StringNames.draw(
        changes.get("alphabet", ALPHABET),
        length=prefix_length,
        longest_word=longest_word,
        seed=hash_seed,
    )
    channel = Reports(oracle=oracle, num_values=names.num_keys, lists_values=False)
    return asked(names=names, choice=SampleB(sampler=sampler), channel=channel, **changes)


def bloom_reports(bits: int, hashes: int, cohorts: int, epsilon: float) -> BloomReports:
    """Return reports of filters of this size."""
    return BloomReports(
        filters=BloomFilters(num_bits=bits, num_hashes=hashes, num_cohorts=cohorts, hash_seed=3),
        response=BitResponse.of_one_report(epsilon, num_hashes=hashes),
    )


FILTERS = bloom_reports(bits=32, hashes=2, cohorts=4, epsilon=2.0)


def blooms(
    *,
    longest_word: int = LONGEST,
    reports: BloomReports = FILTERS,
    name_seed: int = 2,
    sampler: str = "random",
    **changes: Any,
) -> Any:
    """Return a question for Bloom filters."""
    names = StringNames.draw(
        changes.get("alphabet", ALPHABET),
        length=longest_word,
        longest_word=longest_word,
        seed=name_seed,
    )
    channel = Blooms(reports=reports)
    return asked(names=names, choice=SampleB(sampler=sampler), channel=channel, **changes)


def ngrams(
    *,
    puzzle: Any = None,
    words: BloomReports = FILTERS,
    ngrams: BloomReports | None = None,
    sampler: str = "random",
    **changes: Any,
) -> Any:
    """Return a question for records of whole strings and pairs of n-grams."""
    channel = Ngrams(
        puzzle=replace(PUZZLE, num_puzzles=1) if puzzle is None else puzzle,
        words=words,
        ngrams=ngrams or bloom_reports(bits=4, hashes=1, cohorts=3, epsilon=2.0),
    )
    return asked(names=channel.names, choice=SampleB(sampler=sampler), channel=channel, **changes)


def _sets(changes: dict[str, Any]) -> ItemSets:
    words = changes.pop("words", None)
    if words is None:
        words = ALPHABET.encode(["abc", "abd", "fee", "dada"], width=LONGEST + 1)
    itemsets = changes.pop("itemsets", None)
    singles = ItemSets.singletons(words)
    return singles if itemsets is None else ItemSets(words=words, itemsets=itemsets)


def members(
    *, padded_size: int = 3, epsilon: float = 2.0, oracle_name: str = "oue", **changes: Any
) -> Any:
    """Return a question for one member of a padded set."""
    names = _sets(changes)
    params = changes.pop("oracle_params", {})
    oracle = OracleSpec(name=oracle_name, epsilon=epsilon, params=params)
    channel = Reports.padded(names, oracle, padded_size=padded_size)
    choice = PaddedMember(padded_size=padded_size)
    return asked(names=names, choice=choice, channel=channel, **changes)


def sizes(
    *,
    largest: int | None = None,
    epsilon: float = 2.0,
    oracle_name: str = "oue",
    **changes: Any,
) -> Any:
    """Return a question for the size of a set."""
    names, choice = _sets(changes), SetSize(largest=largest)
    spec = OracleSpec(
        name=oracle_name, epsilon=epsilon, params=changes.pop("oracle_params", None) or {}
    )
    channel = Reports(oracle=spec, num_values=choice.largest_size(names) + 1)
    return asked(names=names, choice=choice, channel=channel, **changes)


KINDS: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        votes,
        word_votes,
        secure_sums,
        opened,
        uploads,
        plain_words,
        records,
        strings,
        blooms,
        ngrams,
        members,
        sizes,
    )
}
"""By name."""


class Fakes:
    """Fake clients that send answers to a question, about some words."""

    def __init__(self, question: Any, words: list[str]) -> None:
        self._question, self._words = question, WordMatcher(Lexicon(words=words))

    def add(self, targets: Any, num_clients: int, *, goal: Any, **rest: Any) -> Sent:
        """Add what supports or opposes words, by their numbers."""
        attack = Attack(
            question=self._question,
            words=self._words,
            targets=np.asarray(targets, dtype=np.int64),
            sign={"promote": 1, "demote": -1, "random": 0}[goal],
            num_clients=num_clients,
            **rest,
        )
        sent: Sent = self._question.channel.craft(attack)
        return sent

    def add_random_reports(self, num_clients: int, **rest: Any) -> Sent:
        """Add uniform reports."""
        return self.add((), num_clients, goal="random", **rest)


def sending(question: Any, **changes: Any) -> Any:
    """Return a question with some of its channel's fields changed."""
    return replace(question, channel=replace(question.channel, **changes))
