"""A first answer to nobody: it loads what answers take, in a process that waits for its clients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedhh.clients.clients import Clients
from fedhh.clients.worker import ClientWorker
from fedhh.oracles import OracleSpec
from fedhh.questions.choice import SampleB
from fedhh.questions.cohort import Cohort
from fedhh.questions.names import TrieNames
from fedhh.questions.question import Question
from fedhh.questions.reports import Reports
from fedhh.simulation.executor import Broadcast
from fedhh.words.alphabet import Alphabet
from fedhh.words.lexicon import Lexicon
from fedhh.words.trie import PrefixTrie


def warm_up() -> None:
    """Answer a question about prefixes, of the kind that most runs ask, for one client.

    Modules and compiled kernels that this loads need no loading later; nothing else stays.
    """
    symbols = Alphabet.named("lower")
    names = TrieNames(
        trie=PrefixTrie.all_of_length_one(symbols.size),
        finished=np.zeros((1, 3), dtype=np.uint16),
        excluded=np.zeros((0, 3), dtype=np.uint16),
    )
    question = Question(
        pass_index=0,
        layer=1,
        cohort=Cohort(start=0, size=1),
        alphabet=symbols,
        max_items=1,
        names=names,
        choice=SampleB(sampler="random"),
        channel=Reports.on(names, OracleSpec(name="ss", epsilon=1.0)),
    )
    population = Clients(
        name="warm-up",
        lexicon=Lexicon(words=["a"]),
        offsets=np.array([0, 1]),
        word_ids=np.array([0]),
        counts=np.array([1]),
    )
    worker = ClientWorker(population, seed=0)
    for asked in (question, replace(question, counts_only=True)):
        worker.answer(Broadcast.to_all(asked), [0])
