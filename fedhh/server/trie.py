"""The loop of a trie, layer by layer; a protocol adds its question, keep rule and noise."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Le

from fedhh.accounting.rounds import PlannedRound
from fedhh.arrays import Floats, Ints
from fedhh.found import Found
from fedhh.protocol import Answers, Decision, Heard, RunState
from fedhh.questions.names import TrieNames
from fedhh.questions.question import Question
from fedhh.server.cohorts import Cohorts
from fedhh.server.layer_consistency import num_exceeding, shares_of
from fedhh.server.pruning import top_eta
from fedhh.settings import Layers, decided
from fedhh.words.alphabet import END
from fedhh.words.trie import Codes, PrefixTrie

MOST_PREFIXES = 10_000_000
"""Kept per layer: candidates are so many times the alphabet's size, and tallies hold them all."""

EtaMax = Annotated[int, Ge(1), Le(MOST_PREFIXES)]
"""Prefixes kept per layer."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TrieState:
    """Where the discovery of a trie stands.

    Attributes:
        pass_index: Current pass, from 0; equal to the number of passes when all is done.
        layer: Layer to be asked next, from 1.
        trie: Prefixes that it extends.
        finished: Words shorter than the candidates that wait to be voted on, see `EtaTrie`.
        excluded: Words found by earlier passes.
        shares: ``(P, 2) float64``: of each prefix that the layer extends, the share of clients that
            the layer before estimated, and its variance; ``(0, 2)`` where none are compared.
    """

    pass_index: int
    layer: int
    trie: PrefixTrie
    finished: Codes
    excluded: Codes
    shares: Floats = field(default_factory=lambda: np.zeros((0, 2)))


@dataclass(frozen=True, kw_only=True)
class Trie(Cohorts):
    """A discovery that builds a trie: each layer extends the kept prefixes by one symbol.

    Kept prefixes that end in the end symbol are discovered words, and not extended further. A pass
    ends with the last layer, or where no prefix is left to extend; the next one builds a new trie,
    without the words found.

    A protocol says what a layer asks (`question`) and which candidates it keeps (`keep`), of which
    `most_prefixes` can be extended. It may say how many clients a layer asks (`cohort_size`), and
    what it tells of a layer's decision (`decision`).

    Attributes:
        depth: D, layers per pass; the longest word has D symbols.
    """

    compares_layers: ClassVar[bool] = False
    """Whether the shares of kept prefixes are compared with their parents'."""

    depth: Layers = 15

    @property
    def longest_word(self) -> int:
        return self.depth

    @property
    def num_passes(self) -> int:
        """Tries built one after the other."""
        return 1

    @property
    def rounds_per_pass(self) -> int:
        """Layers of a pass that ask clients, at most: one for each symbol that is left."""
        trie, _ = self.initial()
        return self.depth + 1 - trie.length

    @property
    def num_cohorts(self) -> int:
        """One for every layer that asks."""
        return self.rounds_per_pass * self.num_passes

    @abstractmethod
    def question(self, names: TrieNames) -> Question:
        """Return what clients are asked about a layer's candidates."""

    @abstractmethod
    def keep(self, answers: Answers) -> tuple[Ints, int]:
        """Return which candidates a layer keeps, and the votes that keep one.

        Args:
            answers: The layer's.

        Returns:
            Ascending ``int64`` candidate numbers, and the threshold.
        """

    @abstractmethod
    def most_prefixes(self, candidates: int) -> int:
        """Return how many prefixes a layer keeps at most that the next one extends.

        The domains that a run claims its privacy for rest on this bound, and a run ends where
        `keep` exceeds it: whoever overrides `keep` to keep more overrides this, too.

        Args:
            candidates: Prefixes that the layer may choose from, without words.
        """

    def cohort_size(self, pass_index: int, layer: int) -> int:
        """Return how many clients a layer asks: N here.

        Args:
            pass_index: Which pass, from 0.
            layer: Which layer of it, from 1.
        """
        return self.cohort_clients

    def decision(self, answers: Answers, *, threshold: int, num_kept: int) -> Decision:
        """Return what a layer tells of its decision; `keep` chose by votes here."""
        return answers.decision(threshold=threshold, num_kept=num_kept)

    def initial(self) -> tuple[PrefixTrie, Codes]:
        """Return the prefixes that the first layer extends, and shorter words that it asks about.

        The first symbols here: each of them begins some word.
        """
        nothing = np.zeros((0, self.depth + 1), dtype=np.uint16)
        return PrefixTrie.all_of_length_one(self.symbols.size), nothing

    def layer_of(self, trie: PrefixTrie) -> int:
        """Return which layer extends a trie's last level."""
        return trie.length

    def domains(self) -> list[tuple[int, int, int]]:
        """Return, for each layer that asks, its fewest and its most values, the dummy included.

        The first layer's candidates are fixed. Later ones extend from one prefix to as many as the
        layer before may keep.
        """
        trie, finished = self.initial()
        alphabet, most = trie.alphabet_size, trie.width * trie.alphabet_size
        first, fixed = self.layer_of(trie), most + len(finished) + 1
        domains = [(first, fixed, fixed)]
        for layer in range(first + 1, first + self.rounds_per_pass):
            # A prefix that ends in the end symbol is not extended.
            live = most // alphabet * (alphabet - 1)
            most = self.most_prefixes(live) * alphabet
            domains.append((layer, alphabet + 1, most + 1))
        return domains

    def planned_layers(self) -> tuple[PlannedRound, ...]:
        """Return all layers of all passes."""
        domains = self.domains()
        return tuple(
            self.planned_round(
                layer,
                self.cohort_size(pass_index, layer),
                smallest,
                largest,
                pass_index=pass_index,
            )
            for pass_index in range(self.num_passes)
            for layer, smallest, largest in domains
        )

    def begin(self) -> TrieState:
        return self._start_pass(0, Found.nothing(self.longest_word + 1))

    def ask(self, planned: PlannedRound, run: RunState) -> Question | None:
        """Return the broadcast of a layer; None where the pass has ended before it."""
        own = run.own
        if (planned.pass_index, planned.layer) != (own.pass_index, own.layer):
            return None
        return self.question(TrieNames(trie=own.trie, finished=own.finished, excluded=own.excluded))

    def hear(self, run: RunState, answers: Answers) -> Heard:
        names = answers.question.names
        kept, threshold = self.keep(answers)
        words = kept[(kept >= names.num_extensions) | (kept % names.trie.alphabet_size == END)]
        found = self.words_found(answers, words).without(names.excluded)
        decision = self.decision(answers, threshold=threshold, num_kept=len(kept))
        return self.extended(run, answers, kept, found, decision)

    def words_found(self, answers: Answers, words: Ints) -> Found:
        """Return ``(w,) int64`` candidates that are whole words, with what the layer says."""
        names = answers.question.names
        is_extension = words < names.num_extensions
        codes = np.zeros((len(words), self.depth + 1), dtype=np.uint16)
        extended = names.trie.spell(words[is_extension])
        codes[: len(extended), : extended.shape[1]] = extended
        codes[len(extended) :] = names.finished[words[~is_extension] - names.num_extensions]
        how = self.post_processing
        return answers.counted(codes, answers.votes, words, post_processing=how)

    def extended(
        self,
        run: RunState,
        answers: Answers,
        kept: Ints,
        found: Found,
        decision: Decision,
        **learned: Any,
    ) -> Heard:
        """Return what follows from a layer: the next level of the trie, or the next pass.

        Args:
            run: Where the run stood when it asked.
            answers: The layer's.
            kept: ``(k,) int64``, ascending: candidates that the layer keeps, words among them.
            found: The words.
            decision: What became of the candidates.
            learned: Fields of the state that a protocol has besides.
        """
        names, own = answers.question.names, run.own
        extensions = kept[kept < names.num_extensions]
        trie = names.trie.extend(extensions)
        following: dict[str, Any] = {}
        if self.compares_layers:
            following["shares"], exceeding = _compared(answers, own, extensions)
            decision = replace(decision, num_exceeding=exceeding)
        is_over = trie.width == 0 or trie.length > self.depth
        if is_over:
            following = vars(self._start_pass(own.pass_index + 1, run.found.append(found)))
        else:
            following |= {"layer": self.layer_of(trie), "trie": trie, "finished": own.finished[:0]}
        return Heard(
            own=replace(own, **following, **learned),
            decision=decision,
            found=found,
            kept=None if is_over else trie.levels[-1],
        )

    def _start_pass(self, pass_index: int, found: Found) -> TrieState:
        trie, finished = self.initial()
        return TrieState(
            pass_index=pass_index,
            layer=self.layer_of(trie),
            trie=trie,
            finished=finished,
            excluded=found.codes,
        )


def _compared(answers: Answers, own: TrieState, extensions: Ints) -> tuple[Floats, int]:
    """Return the next state's ``shares``, and how many kept prefixes exceed their parents'.

    Args:
        answers: The layer's.
        own: The state that asked.
        extensions: ``(e,) int64``: kept candidates that extend a prefix, ascending.
    """
    trie, noise = answers.question.names.trie, answers.noise
    estimate = noise.estimate(answers.votes[extensions])
    shares = shares_of(estimate, noise.variance(estimate), answers.aggregate.num_clients)
    exceeding = 0
    if len(own.shares) == trie.width:
        exceeding = num_exceeding(shares, own.shares[extensions // trie.alphabet_size])
    return shares[extensions % trie.alphabet_size != END], exceeding


@dataclass(frozen=True, kw_only=True)
class EtaTrie(Trie):
    """A trie whose layers keep at most ``eta_max`` prefixes.

    A layer with at most so many candidates decides nothing: it would keep them all, spend its
    clients, and let every short string into the result. With ``skip_free_layers`` a pass starts
    at the first layer that decides, and the words that end before it are candidates of that layer
    too, so that none is lost and none enters unasked.

    Attributes:
        eta_max: Prefixes kept per layer.
        skip_free_layers: Begin each pass at the first layer that drops a candidate.
    """

    eta_max: EtaMax = 1_000
    skip_free_layers: bool = True

    @property
    def most_kept(self) -> int:
        """``eta_max``, once it is decided."""
        return decided(self.eta_max, "eta_max")

    def keep(self, answers: Answers) -> tuple[Ints, int]:
        """Return the ``eta_max`` candidates with the most votes, and the votes that keep one."""
        return top_eta(answers.votes, self.most_kept, ties="strict")

    def most_prefixes(self, candidates: int) -> int:
        return min(candidates, self.most_kept)

    def initial(self) -> tuple[PrefixTrie, Codes]:
        trie, finished = super().initial()
        return self.freely_extended(trie, finished) if self.skip_free_layers else (trie, finished)

    def freely_extended(self, trie: PrefixTrie, finished: Codes) -> tuple[PrefixTrie, Codes]:
        """Return prefixes with all their extensions, while a layer would keep each, and words.

        Args:
            trie: The prefixes.
            finished: ``(w, depth + 1) uint16``: words that wait to be voted on; those are returned,
                and those that end on the way.
        """
        size = trie.alphabet_size
        while trie.length < self.depth and trie.width * size + len(finished) <= self.most_kept:
            candidates = np.arange(trie.width * size)
            words = trie.spell(candidates[candidates % size == END])
            padding = np.zeros((len(words), self.depth + 1 - words.shape[1]), dtype=np.uint16)
            finished = np.concatenate([finished, np.concatenate([words, padding], axis=1)])
            trie = trie.extend(candidates)
        return trie, finished
