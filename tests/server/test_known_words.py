"""Known words are public: no word that a device keeps to itself is found."""

from dataclasses import replace

import numpy as np
import pytest

from fedhh.clients.worker import ClientWorker
from fedhh.found import Found
from fedhh.server.adaptive.adaptive_triehh import AdaptiveTrieHH
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.pem import Pem
from fedhh.simulation.executor import InProcessExecutor
from fedhh.testing import LETTERS, small_population
from fedhh.testing.protocol_trial import run_rounds
from fedhh.words.known_words import KnownWords
from tests.thinned import thinned


def found(protocol, words):
    codes = np.zeros((len(words), protocol.longest_word + 1), dtype=np.uint16)
    for row, word in zip(codes, words, strict=True):
        row[: len(word)] = [protocol.symbols.symbols.index(symbol) + 1 for symbol in word]
    base = Found.nothing(codes.shape[1])
    columns = {
        name: np.arange(len(words)).astype(getattr(base, name).dtype)
        for name in Found.__dataclass_fields__
    }
    return Found(**{**columns, "codes": codes})


def test_known_words_are_left_out_and_the_others_keep_their_numbers():
    known = KnownWords(name="mine", words=frozenset({"dog"}))
    protocol = LdpTrieHH(known_words=known)
    left = protocol.unknown_of(found(protocol, ["dog", "dgo", "doge"])).discoveries(
        protocol.symbols
    )
    assert list(left.words) == ["dgo", "doge"]
    assert left.pass_index.tolist() == [1, 2]


def test_an_empty_list_leaves_nothing_out():
    protocol = LdpTrieHH(known_words=KnownWords(name="none", words=frozenset()))
    words = found(protocol, ["dog", "doge"])
    assert protocol.unknown_of(words) is words


FIELDS = {"local_epsilon": 8.0, "max_items": 2, "alphabet": LETTERS, "false_discovery_rate": 0.05}
PROTOCOLS = {
    "ldp-triehh": LdpTrieHH(**FIELDS, depth=6, passes=1, eta_max=50),
    "adaptive-triehh": AdaptiveTrieHH(**FIELDS, depth=6, eta_max=50, least_cohort=1),
    "pem": Pem(**FIELDS, length=6, keep=40),
}


@pytest.mark.parametrize("name", thinned(PROTOCOLS))
def test_a_word_that_is_known_is_no_candidate_and_the_others_are_found(name):
    clients = small_population(60_000, num_words=60, words_per_client=2)
    first, second, *_ = np.argsort(-clients.word_counts().holders)
    (frequent, other) = (clients.lexicon.words[word] for word in (first, second))

    def run(*known):
        told = KnownWords(name="mine", words=frozenset(known))
        protocol = replace(PROTOCOLS[name], known_words=told)
        settled = protocol.settle(num_clients=clients.num_clients, seed=0)
        done = list(run_rounds(settled, InProcessExecutor(ClientWorker(clients, seed=0))))
        validated = settled.symbols.decode(done[-1].question.names.finished)
        for each in done[:-1]:
            evidence = getattr(each.after.own, "evidence", None)
            if evidence is not None:
                assert len(evidence.votes) == len(each.after.found.codes)
        return set(settled.discoveries(done[-1].after).words), set(validated)

    found, validated = run()
    assert {frequent, other} <= found & validated
    found, validated = run(frequent)
    assert frequent not in found | validated
    assert other in found
