"""What a run says that it asks of clients, where one may answer in many rounds."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest

from fedhh.experiments.report.run_tables import summary_rows
from fedhh.experiments.run import follow
from fedhh.experiments.run.run import simulate
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.triehh import TrieHH
from fedhh.testing import LETTERS, small_population
from fedhh.words.alphabet import Alphabet
from fedhh.words.trie import PrefixTrie
from tests import questions_of_each_kind as ask
from tests.thinned import thinned

POPULATION = small_population(1_500)
ONCE = LdpTrieHH(
    alphabet=LETTERS,
    clients_per_layer=200,
    depth=6,
    passes=1,
    eta_max=20,
    max_items=3,
    local_epsilon=8.0,
)
AGAIN = dataclasses.replace(ONCE, participation="every-round", clients_per_layer=1_000)
CENTRAL = TrieHH(alphabet=LETTERS, clients_per_layer=1_000, depth=6, threshold=5)


def costs(protocol):
    """A run's cost, and the bits of each of its rounds: up per client, and down."""
    result = simulate(protocol, POPULATION, seed=0)
    items = protocol.plan.max_items
    layers = result.layers
    assert len(layers) > 2
    up = (layers["report_bits"] * items).tolist()
    return result.cost, up, layers["download_bits"].tolist()


def test_a_client_of_one_round_pays_for_the_dearest_one():
    cost, up, down = costs(ONCE)
    assert cost["upload_bits_per_client_max"] == max(up) < sum(up)
    assert cost["download_bits_per_client_max"] == max(down) < sum(down)


@pytest.mark.parametrize("protocol", thinned([CENTRAL, AGAIN]))
def test_a_client_that_may_serve_in_every_round_pays_for_all(protocol):
    cost, up, down = costs(protocol)
    assert cost["upload_bits_per_client_max"] == pytest.approx(sum(up))
    assert cost["download_bits_per_client_max"] == pytest.approx(sum(down))


def test_the_summary_counts_answers_where_clients_are_reused():
    rows = {row[0]: row[1:] for row in summary_rows(simulate(AGAIN, POPULATION, seed=0)) if row[0]}
    assert "clients" not in rows
    assert rows["answers"][0] == "6,000"
    assert rows["answers"][1].startswith("of 1,500 clients, drawn anew in each layer; a client is")
    assert rows["reports"][1] == "at most 3 per client and layer"
    rows = {row[0]: row[1:] for row in summary_rows(simulate(ONCE, POPULATION, seed=0)) if row[0]}
    assert rows["clients"][0] == "1,200"
    assert rows["clients"][1].startswith("asked, of 1,500; a client is")
    assert rows["reports"][1] == "at most 3 per client"


@pytest.mark.parametrize(
    ("bits", "text"),
    [(379.5, "48 B"), (384.0, "48 B"), (20_730.0, "2,592 B"), (80_001.0, "10.1 kB")],
)
def test_the_summary_never_rounds_what_is_at_most_down(bits: float, text: str):
    result = simulate(ONCE, POPULATION, seed=0)
    cost = {**result.cost, "upload_bits_per_client_max": bits, "download_bits_per_client_max": bits}
    rows = {row[0]: row[1:] for row in summary_rows(dataclasses.replace(result, cost=cost))}
    assert rows["cost per client"] == (f"{text} up", f"{text} down, at most")


def test_a_runs_time_is_divided_among_its_phases(monkeypatch):
    clock = iter([100.0, 101.0, 104.0, 110.0, 121.0, 143.0])
    monkeypatch.setattr(follow, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    timings = simulate(ONCE, POPULATION, seed=0).timings
    phases = ("prepare", "rounds", "measure", "candidates", "account")
    assert [timings[phase] for phase in phases] == [1, 3, 6, 11, 22]


def test_a_broadcast_is_counted_prefix_by_prefix_by_hand():
    # a, b; then aa, ab, ba; then abb. Three symbols, as a word may end.
    trie = PrefixTrie.all_of_length_one(3).extend(np.array([1, 2, 4])).extend(np.array([5]))
    words = np.ones((3, 4), dtype=np.uint16)
    question = ask.votes(
        alphabet=Alphabet.named("ab"), trie=trie, finished=words[:2], excluded=words[:1]
    )
    symbol = math.log2(3)
    # A parent of two, or a sole one, takes a bit; one of three takes as much as a symbol.
    levels = 2 * (1 + symbol) + 3 * (1 + symbol) + 1 * (symbol + symbol)
    assert question.download_bits == pytest.approx(levels + 3 * 4 * symbol)
