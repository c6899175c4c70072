"""A poll with a runoff: some clients vote on a public list, the others on what is left of it."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from fedhh import InputError
from fedhh.oracles import OracleSpec
from fedhh.plans.base import PlannedRound
from fedhh.plans.local_reports import LocalReports
from fedhh.protocol import DiscoveryProtocol
from fedhh.questions.choice import SampleB
from fedhh.questions.names import TrieNames
from fedhh.questions.question import Question
from fedhh.questions.reports import Reports, VoteQuestion
from fedhh.server.judged import judged
from fedhh.server.noise import Noise, counted
from fedhh.settings import Count, CountOrAuto, FromConfig, Items, PrivacyBudget, check_settings
from fedhh.words.alphabet import Alphabet
from fedhh.words.trie import PrefixTrie


@dataclass(frozen=True, kw_only=True)
class Runoff(DiscoveryProtocol[np.ndarray, VoteQuestion]):
    """Half of the clients vote on all words, the other half on the ``keep`` best of them.

    Attributes:
        local_epsilon: Privacy of one vote.
        alphabet: As a run's.
        words: The public list, separated by spaces.
        keep: Words of the runoff, and of the result.
        clients_per_layer: Clients of each round; "auto" for half of all.
        max_items: Votes of a client.
    """

    name: ClassVar[str] = "runoff"
    title: ClassVar[str] = "Poll with a runoff"

    local_epsilon: Annotated[PrivacyBudget, FromConfig("privacy.local_epsilon")] = 8.0
    alphabet: Annotated[str, FromConfig("population.alphabet")] = "lower"
    words: str = "lol brb omg"
    keep: Count = 2
    clients_per_layer: CountOrAuto = "auto"
    max_items: Items = 1

    def __post_init__(self):
        check_settings(self)
        if not self.listed or set("".join(self.listed)) - set(self.symbols.symbols):
            raise InputError(f"Expected words of the alphabet's symbols, got words={self.words!r}.")

    is_auto = property(lambda self: self.clients_per_layer == "auto")
    listed = property(lambda self: sorted(set(self.words.split())))
    symbols = property(lambda self: Alphabet.named(self.alphabet))
    longest_word = property(lambda self: max(map(len, self.listed)))
    oracle = property(lambda self: OracleSpec(name="ss", epsilon=self.local_epsilon))

    @property
    def plan(self):
        """Two rounds, whose domains are the words and the dummy."""
        size, sizes = self.clients_per_layer, (len(self.listed), min(self.keep, len(self.listed)))
        return LocalReports(
            layers=tuple(
                PlannedRound(
                    layer=layer,
                    num_clients=size,
                    smallest_domain=words + 1,
                    largest_domain=words + 1,
                    max_items=self.max_items,
                    local_epsilon=self.local_epsilon,
                )
                for layer, words in enumerate(sizes, start=1)
            ),
            randomizers=(self.oracle,),
        )

    def settle(self, *, num_clients, seed):
        """Return the settings for a population: nothing is "auto"."""
        half = max(1, num_clients // 2)
        settled = replace(self, clients_per_layer=half) if self.is_auto else self
        settled.check_population(num_clients)
        return settled

    def begin(self):
        """Return which words are left, as places in the list: all."""
        return np.arange(len(self.listed))

    def ask(self, planned, run):
        """Return the broadcast of the words that are left."""
        codes = self.symbols.encode(self.listed, width=self.longest_word + 1)[run.own]
        names = TrieNames(
            trie=PrefixTrie.empty(self.symbols.size), finished=codes, excluded=codes[:0]
        )
        return Question(
            names=names,
            choice=SampleB(sampler="random"),
            channel=Reports.on(names, self.oracle),
        )

    def hear(self, planned, run, question, aggregate):
        """Return the words with the most votes; of the runoff, as words found."""
        votes, noise = question.votes(aggregate), Noise.of_votes(question, aggregate)
        best = np.argsort(-votes, kind="stable")[: self.keep]
        found = counted(
            question, aggregate, noise, codes=question.names.finished[best], support=votes[best]
        )
        return judged(
            run.own[best],
            noise,
            threshold=int(votes[best].min()),
            num_candidates=len(votes),
            num_kept=len(best),
            found=found if planned.layer == 2 else None,
        )
