"""The ceiling: what one round finds that knows every held word, and runs' shares of it."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from fedhh.clients import drawn
from fedhh.clients.clients import Clients
from fedhh.clients.worker import ClientWorker
from fedhh.experiments.report.run_tables import summary_rows
from fedhh.experiments.run import ceiling as module
from fedhh.experiments.run.ceiling import Ceiling, ceiling
from fedhh.experiments.run.result import MetricSettings
from fedhh.experiments.run.run import simulate
from fedhh.experiments.run.truth import Truth
from fedhh.oracles import OracleSpec, make_pure_oracle
from fedhh.questions.answer import Answer
from fedhh.questions.question import Aggregate, Question
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.pem import Pem
from fedhh.server.sfp import Sfp
from fedhh.server.triehh import TrieHH
from fedhh.simulation.executor import Executor, InProcessExecutor
from fedhh.simulation.fidelity import PER_REPORT, Fidelity
from fedhh.testing import LETTERS, small_population
from fedhh.words.lexicon import Lexicon

WORDS = ["ab", "b", "aaab", "a?", "unheld"]
HOLDERS = {"ab": 40, "b": 20, "aaab": 5, "a?": 10}
REPORTS = 200
TRIE = LdpTrieHH(alphabet="ab", depth=3, passes=1, eta_max=3, max_items=2)


EXACT = Fidelity()
FRESH = itertools.count(1_000)
"""Seeds of which no ceiling is known yet."""


def by_hand() -> Clients:
    """100 clients; holders of a word are the first ones, who typed it once, twice, ..."""
    held = [
        (client, WORDS.index(word), 1 + WORDS.index(word))
        for word, holders in HOLDERS.items()
        for client in range(holders)
    ]
    clients, words, counts = np.array(held).T
    return Clients.from_rows(
        name="by hand",
        lexicon=Lexicon(words=WORDS),
        clients=clients,
        word_ids=words,
        counts=counts,
        num_clients=100,
    )


class Stub(Executor):
    """Answers with given votes, the last ones for all further values; remembers the questions."""

    def __init__(self, *votes: int) -> None:
        self._votes = votes
        self.questions: list[Question] = []

    def answer(self, broadcast, progress=None):
        question = broadcast.question
        self.questions.append(question)
        tally = np.resize(self._votes, question.tally_size)
        return Answer(aggregate=Aggregate(tally=tally, num_reports=REPORTS, num_clients=100))


def ceiling_of(
    protocol, population, executor=None, *, seed: int | None = None, fidelity=EXACT
) -> Ceiling | None:
    seed = next(FRESH) if seed is None else seed
    protocol = protocol.settle(num_clients=population.num_clients, seed=seed)
    truth = Truth(population, protocol.symbols, protocol.longest_word)
    if executor is None:
        executor = InProcessExecutor(ClientWorker(population, seed=seed))
    return ceiling(protocol, population, truth, executor, seed=seed, fidelity=fidelity)


def test_without_noise_it_is_every_word_that_can_be_spelled():
    # Of 40 + 2 * 20 + 3 * 5 + 4 * 10 contributions, the third word is too long, the fourth foreign.
    expected = Ceiling(coverage=80 / 135, words=2, candidates=2)
    assert ceiling_of(replace(TRIE, local_epsilon=40.0), by_hand()) == expected
    deeper = replace(TRIE, local_epsilon=40.0, depth=4, max_items=3)
    assert ceiling_of(deeper, by_hand()) == Ceiling(coverage=95 / 135, words=3, candidates=3)


def test_with_nothing_but_noise_it_is_nothing():
    found = [
        ceiling_of(
            LdpTrieHH(alphabet=LETTERS, local_epsilon=0.01), small_population(500), seed=seed
        )
        for seed in range(5)
    ]
    assert sorted(each.words for each in found)[2] == 0
    assert max(each.coverage for each in found) < 0.05


def test_everybody_is_asked_about_the_held_words_alone():
    stub = Stub(90, 80)
    ceiling_of(replace(TRIE, clients_per_layer=7), by_hand(), stub)
    (question,) = stub.questions
    assert question.alphabet.decode(question.names.finished) == ["ab", "b"]
    assert (question.names.num_extensions, question.domain_size) == (0, 3)
    assert (question.cohort.start, question.cohort.size) == (0, 100)
    assert (question.max_items, question.choice.sampler, question.pad) == (2, "random", True)
    assert question.channel.oracle.name == "ss"
    assert question.channel.oracle.params == {"subset_size": "optimal"}
    assert question.local_epsilon == TRIE.local_epsilon


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_rule_is_benjamini_and_hochbergs_on_exact_tails(epsilon: float):
    protocol = replace(TRIE, local_epsilon=epsilon)
    spec = OracleSpec(name="ss", epsilon=epsilon, params={"subset_size": "optimal"})
    q = make_pure_oracle(spec, 3).q
    seen = set()
    population = by_hand()
    for first in range(0, REPORTS, 8):
        for second in (0, int(REPORTS * q), 120):
            found = ceiling_of(protocol, population, Stub(first, second))
            tails = binom.sf(np.array([first, second]) - 1, REPORTS, q)
            # Written out for two hypotheses: both, if both are below 5 %; one alone, below half.
            both = max(tails) <= 0.05
            kept = [both or tail <= 0.025 for tail in tails]
            assert found.words == sum(kept)
            assert found.coverage == pytest.approx((40 * kept[0] + 40 * kept[1]) / 135)
            seen.add(found.words)
    assert seen == {0, 1, 2}


def test_it_is_the_same_whoever_answers():
    population = small_population(3_000)
    protocol = LdpTrieHH(alphabet=LETTERS, local_epsilon=4.0, max_items=2)

    class Two(Executor):
        def answer(self, broadcast, progress=None):
            last, first = (
                ClientWorker(population, seed=3).answer(
                    broadcast, range(first, broadcast.cohort.num_blocks, 2)
                )
                for first in (1, 0)
            )
            return last.merge(first)

    one = ceiling_of(
        protocol, population, InProcessExecutor(ClientWorker(population, seed=3)), seed=3
    )
    again = ceiling_of(protocol, population, Two(), seed=3, fidelity=Fidelity(name=PER_REPORT))
    assert again == one
    assert 0 < one.words < one.candidates


def test_its_coins_are_not_the_runs():
    plain = simulate(TRIE, by_hand(), seed=1, settings=MetricSettings())
    measured = simulate(TRIE, by_hand(), seed=1, settings=MetricSettings(ceiling=True))
    pd.testing.assert_frame_equal(measured.discoveries, plain.discoveries)
    pd.testing.assert_frame_equal(measured.layers, plain.layers)
    assert plain.metrics.ceiling_coverage is None
    assert plain.metrics.share_of_ceiling is None
    metrics = measured.metrics
    assert metrics.share_of_ceiling == metrics.coverage / metrics.ceiling_coverage
    stub = Stub(90, 80)
    ceiling_of(TRIE, by_hand(), stub)
    asked = set(zip(measured.layers["pass"] - 1, measured.layers["layer"], strict=True))
    assert (stub.questions[0].pass_index, stub.questions[0].layer) not in asked


def test_protocols_that_share_what_decides_it_ask_once():
    population, stub = by_hand(), Stub(90, 80)
    one = ceiling_of(TRIE, population, stub, seed=3)
    alike = (
        replace(TRIE, passes=2, eta_max=5, clients_per_layer=9),
        Pem(alphabet="ab", length=3, step=1, max_items=2),
    )
    for protocol in alike:
        assert ceiling_of(protocol, by_hand(), stub, seed=3) is one
    assert len(stub.questions) == 1
    changes = (
        {"local_epsilon": 7.0}, {"max_items": 1}, {"sampler": "greedy"}, {"pad": False},
        {"depth": 2}, {"alphabet": "ba"},
    )  # fmt: skip
    for number, change in enumerate(changes):
        ceiling_of(replace(TRIE, **change), population, stub, seed=3)
        assert len(stub.questions) == 2 + number
    ceiling_of(TRIE, population, stub, seed=4)
    ceiling_of(TRIE, population.keep_words(np.arange(5) != 2), stub, seed=3)
    assert len(stub.questions) == 3 + len(changes)


def test_an_epsilon_that_a_protocol_divides_is_spent_whole():
    stub = Stub(90, 80)
    ceiling_of(Sfp(alphabet="ab", length=4, fragment_length=2, local_epsilon=6.0), by_hand(), stub)
    assert stub.questions[0].local_epsilon == pytest.approx(6.0)


@pytest.mark.parametrize(
    "protocol",
    [TrieHH(alphabet="ab", clients_per_layer=50, threshold=5), replace(TRIE, oracle="none")],
    ids=["central", "no randomizer"],
)
def test_without_local_privacy_there_is_none(protocol):
    assert ceiling_of(protocol, by_hand(), Stub()) is None
    measured = simulate(protocol, by_hand(), seed=1, settings=MetricSettings(ceiling=True))
    assert measured.metrics.ceiling_coverage is None
    assert measured.metrics.share_of_ceiling is None
    assert "ceiling" not in [row[0] for row in summary_rows(measured)]


def test_where_no_word_can_be_spelled_nobody_is_asked():
    stub = Stub()
    protocol = replace(TRIE, alphabet="xyz")
    assert ceiling_of(protocol, by_hand(), stub) == Ceiling(coverage=0.0, words=0, candidates=0)
    assert not stub.questions
    measured = simulate(protocol, by_hand(), seed=1, settings=MetricSettings(ceiling=True))
    assert (measured.metrics.ceiling_coverage, measured.metrics.share_of_ceiling) == (0, None)
    assert ("ceiling", "0.0%") in [row[:2] for row in summary_rows(measured)]


@pytest.mark.slow("::test_everybody_is_asked_about_the_held_words_alone")
def test_clients_that_are_drawn_when_asked_have_one_too(monkeypatch):
    # Fewer words than it has: the others, of three syllables, are then outside the lexicon.
    monkeypatch.setattr(drawn, "LEXICON_RANKS", drawn.NAMED_RANKS)
    population = drawn.DrawnClients("chat", 2_000, seed=5)
    protocol = LdpTrieHH(depth=8, passes=1, eta_max=50, max_items=3, local_epsilon=10.0)
    metrics = simulate(protocol, population, seed=4, settings=MetricSettings(ceiling=True)).metrics
    assert population.word_counts().typed[-population.lexicon.num_stubs :].sum() > 0
    assert 0 < metrics.ceiling_words < metrics.target_words
    assert 0 < metrics.ceiling_coverage < metrics.reachable_mass


COMPARISON = f"""
population = {{ source = "words.csv", known = "none", alphabet = "{LETTERS}" }}
protocol = {{ depth = 6, max_items = 1, passes = 1 }}
privacy = {{ delta = 0.01 }}
metrics = {{ top_k = [] }}
execution = {{ workers = 0 }}

[sweep.protocols]
few = {{ eta_max = 4 }}
many = {{ eta_max = 30 }}
central = {{ name = "triehh", central_epsilon = 20 }}
"""


@pytest.mark.slow("::test_protocols_that_share_what_decides_it_ask_once")
def test_a_comparison_asks_once_and_says_each_protocols_share(tmp_path, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    asked, rule = [], module.benjamini_hochberg
    monkeypatch.setattr(
        module, "benjamini_hochberg", lambda p, rate: asked.append(p) or rule(p, rate)
    )
    monkeypatch.setattr("fedhh.experiments.report.sweep_figures.plot_sweep", lambda directory: None)
    words = ("ab", "cafe", "bee", "fed")
    rows = [f"{i},{word},1" for i in range(2_000) for word in words if i % len(word) == 0]
    (tmp_path / "words.csv").write_text("\n".join(["user,word,count", *rows]) + "\n")
    (tmp_path / "mine.toml").write_text(COMPARISON)
    done = command("compare", "--config", "mine.toml", "--ceiling", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(asked) == 1
    table = pd.read_csv(tmp_path / "out" / "comparison.csv").set_index("protocol")
    assert table["ceiling_coverage_mean"].tolist()[:2] == [1, 1]
    assert table["share_of_ceiling_mean"].tolist()[:2] == table["coverage_mean"].tolist()[:2]
    assert table.loc["central", ["ceiling_coverage_mean", "share_of_ceiling_mean"]].isna().all()
    markdown = (tmp_path / "out" / "comparison.md").read_text()
    assert re.search(r"\| ceiling of coverage +\| 100\.0% +\| 100\.0% +\| - +\|", markdown)
    assert "| share of the ceiling " in markdown
    assert "asks all clients about the held words alone" in markdown
    assert re.search(r"share of\b.*\n.*\bceiling", done.stdout)
