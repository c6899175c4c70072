"""The server's half on recorded tallies: no randomness, no clients."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fedhh.questions.question import Aggregate
from fedhh.server.ldp_triehh import LdpTrieHH

GOLDEN = json.loads(Path(__file__).with_name("ldp_triehh.json").read_text())


def test_recorded_tallies_lead_to_the_recorded_words():
    protocol = LdpTrieHH(**GOLDEN["settings"])
    state = protocol.initialize()
    for recorded in GOLDEN["rounds"]:
        question = protocol.next_question(state)
        assert question is not None
        assert (question.pass_index, question.layer) == (recorded["pass"], recorded["layer"])
        ends = question.names.trie.spell(
            question.names.trie.alphabet_size * np.arange(question.names.trie.width)
        )
        assert protocol.symbols.decode(ends) == recorded["prefixes"]
        aggregate = Aggregate(
            tally=np.array(recorded["tally"]),
            num_reports=recorded["num_reports"],
            num_clients=recorded["num_clients"],
        )
        state = protocol.finish_round(state, question, aggregate)
    assert protocol.next_question(state) is None
    found = protocol.discoveries(state)
    assert list(found.words) == GOLDEN["words"]
    assert found.estimate.tolist() == pytest.approx(GOLDEN["estimates"], abs=1e-6)
    assert len(GOLDEN["words"]) > 5
