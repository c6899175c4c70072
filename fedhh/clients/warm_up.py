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


def warm_up() -> None:
    """Answer a question about a word for one client, by the sampler and the oracle of most runs.

    Modules and compiled kernels that this loads need no loading later; nothing else stays.
    """
    symbols = Alphabet.named("lower")
    names = TrieNames.of_words(symbols.encode(["a"], width=2), symbols)
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
    lexicon, first = Lexicon(words=["a"]), np.array([0])
    population = Clients.from_rows(
        name="warm-up", lexicon=lexicon, clients=first, word_ids=first, num_clients=1
    )
    worker = ClientWorker(population, seed=0)
    for asked in (question, replace(question, counts_only=True)):
        worker.answer(Broadcast.to_all(asked), [0])
