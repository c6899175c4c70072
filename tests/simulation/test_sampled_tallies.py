from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from fedhh.clients.population import client_order
from fedhh.clients.worker import ClientWorker
from fedhh.oracles import make_oracle
from fedhh.protocol import DiscoveryProtocol
from fedhh.questions.cohort import Cohort
from fedhh.questions.question import Aggregate
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.pem import Pem
from fedhh.server.sfp import Sfp
from fedhh.simulation import engine
from fedhh.simulation.executor import InProcessExecutor
from fedhh.simulation.fidelity import EXACT_TALLY, PER_REPORT, Fidelity
from fedhh.simulation.roster import Roster
from fedhh.testing import LETTERS, small_population
from fedhh.validation import InputError
from tests import questions_of_each_kind as ask
from tests.asked_clients import answered
from tests.thinned import thinned

ALPHA = 1e-9
SFP = Sfp(
    alphabet=LETTERS,
    clients_per_layer=600,
    max_items=2,
    local_epsilon=4.0,
    length=4,
    word_hashes=4,
    word_cells=16,
    fragment_hashes=2,
    fragment_cells=16,
    hash_seed=5,
)
PEM = Pem(
    alphabet=LETTERS,
    clients_per_layer=600,
    max_items=2,
    local_epsilon=4.0,
    length=4,
    oracle="cms",
    num_hashes=2,
    hash_seed=5,
)
PROTOCOL = LdpTrieHH(
    alphabet="abcdef",
    clients_per_layer=500,
    depth=4,
    passes=1,
    eta_max=25,
    max_items=2,
    local_epsilon=3.0,
    skip_free_layers=False,
)


AT_ONCE = Fidelity(name=EXACT_TALLY)
BY_REPORT = Fidelity(name=PER_REPORT)


def first_round(population, seed, fidelity, protocol=PROTOCOL, *, progress=None, executor=None):
    """Return the first round of a protocol."""
    return next(
        engine.rounds(
            protocol,
            executor or InProcessExecutor(ClientWorker(population, seed=seed)),
            roster=Roster(client_order(population, seed=seed)),
            fidelity=fidelity,
            progress=progress,
        )
    )


def true_counts(population, seed):
    protocol = LdpTrieHH(**{**vars(PROTOCOL), "oracle": "none"})
    return first_round(population, seed, BY_REPORT, protocol).aggregate.tally


def support_p_values(tallies, counts, num_reports, oracle):
    """Chi-square p-values of some values' supports over many runs, exact distributions."""
    for value in (int(np.argmax(counts)), 1, 3, int(np.argmin(counts))):
        distribution = np.convolve(
            stats.binom.pmf(np.arange(counts[value] + 1), counts[value], oracle.p),
            stats.binom.pmf(
                np.arange(num_reports - counts[value] + 1), num_reports - counts[value], oracle.q
            ),
        )
        edges = np.searchsorted(np.cumsum(distribution), np.linspace(0, 1, 11)[1:-1])
        cells = np.unique(edges)
        expected = np.diff(np.r_[0, np.cumsum(distribution)[cells], 1]) * len(tallies)
        observed = np.bincount(np.searchsorted(cells, tallies[:, value]), minlength=len(expected))
        statistic = ((observed - expected) ** 2 / expected).sum()
        yield stats.chi2.sf(statistic, len(expected) - 1)


@pytest.mark.parametrize("kind", [BY_REPORT, AT_ONCE])
def test_supports_have_their_exact_distribution_with_and_without_reports(population, kind):
    # One choice of contributions, many draws of the randomizer: only its stream's seed changes.
    counts = true_counts(population, 0)
    question = first_round(population, 0, kind).question
    oracle = make_oracle(question.channel.oracle, question.domain_size)
    num_reports = int(counts.sum())
    rng = np.random.default_rng(1)
    if kind is BY_REPORT:
        values = np.repeat(np.arange(len(counts)), counts)
        tallies = [oracle.aggregate(values=values, rng=rng) for _ in range(1500)]
    else:
        tallies = [oracle.sample_aggregate(counts, rng=rng) for _ in range(1500)]
    tallies = np.array(tallies)
    assert min(support_p_values(tallies, counts, num_reports, oracle)) > ALPHA
    off = num_reports // 20
    for wrong in (num_reports - off, num_reports + off):
        assert min(support_p_values(tallies, counts, wrong, oracle)) < ALPHA
    assert (tallies.sum(axis=1) == num_reports * oracle.d).all()


def test_true_counts_are_those_of_the_clients_that_per_report_asks(population):
    counts = true_counts(population, 3)
    null = LdpTrieHH(**{**vars(PROTOCOL), "oracle": "none"})
    answer = first_round(population, 3, AT_ONCE, null)
    reported = first_round(population, 3, BY_REPORT)
    assert np.array_equal(answer.aggregate.tally, counts)
    assert answer.diagnostics == replace(reported.diagnostics, is_sampled=True)
    assert answer.aggregate.num_reports == reported.aggregate.num_reports
    assert answer.aggregate.num_clients == 500


def coverage_and_kept(protocol: DiscoveryProtocol, fidelity, population, seed):
    *_, last = engine.rounds(
        protocol,
        InProcessExecutor(ClientWorker(population, seed=seed)),
        roster=Roster(client_order(population, seed=seed)),
        fidelity=fidelity,
    )
    words = population.lexicon.ids(protocol.discoveries(last.state).words)
    words = words[words >= 0]
    kept = np.zeros(len(population.lexicon), dtype=bool)
    kept[words] = True
    counts = population.word_counts().typed
    return counts[kept].sum() / counts.sum(), kept


def distributions(first, second):
    """Return p-values that two samples of runs agree: in coverage, and in kept words."""
    coverage = [np.array([run[0] for run in sample]) for sample in (first, second)]
    edges = np.quantile(np.concatenate(coverage), np.linspace(0, 1, 9)[1:-1])
    table = np.array([np.bincount(np.searchsorted(edges, c), minlength=8) for c in coverage])
    kept = [np.sum([run[1] for run in sample], axis=0) for sample in (first, second)]
    runs = len(first)
    share = (kept[0] + kept[1]) / (2 * runs)
    often = (share > 0.03) & (share < 0.97)
    z = (kept[0] - kept[1])[often] / np.sqrt(2 * runs * share * (1 - share))[often]
    return stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue, z


@pytest.mark.slow("::test_supports_have_their_exact_distribution_with_and_without_reports")
def test_coverage_and_kept_words_have_one_distribution_over_200_runs():
    population = small_population(2_000)
    runs = 200

    def sample(kind, protocol=PROTOCOL, offset=0):
        return [
            coverage_and_kept(protocol, kind, population, seed + offset) for seed in range(runs)
        ]

    reported, at_once = sample(BY_REPORT), sample(AT_ONCE, offset=1_000)
    p_value, z = distributions(reported, at_once)
    assert len(z) > 5
    assert p_value > ALPHA
    assert abs(z).max() < stats.norm.isf(ALPHA / 2)
    # Somewhat more and somewhat less noise shows.
    for epsilon in (2.4, 3.8):
        other = LdpTrieHH(**{**vars(PROTOCOL), "local_epsilon": epsilon})
        p_value, z = distributions(reported, sample(AT_ONCE, other, offset=1_000))
        assert p_value < ALPHA or abs(z).max() > stats.norm.isf(ALPHA / 2)


def test_a_layer_of_many_clients_is_extrapolated_within_its_stated_error(population):
    # Identical reports: a null mechanism shows the extrapolated counts themselves.
    null = LdpTrieHH(**{**vars(PROTOCOL), "oracle": "none", "clients_per_layer": 1_500})
    whole = first_round(population, 0, BY_REPORT, null)
    progress: list[int] = []
    some = Fidelity(name=EXACT_TALLY, drawn_clients=400)
    part = first_round(population, 0, some, null, progress=progress.append)
    counts, truth = part.aggregate.tally, whole.aggregate.tally
    assert part.aggregate.num_clients == 1_500 == sum(progress)
    assert part.aggregate.num_reports == counts.sum() == 3_000
    assert part.diagnostics.num_dummies == counts[part.question.names.nothing]
    error = np.sqrt(truth * (1_500 / 400 - 1))
    often = truth >= 20
    assert often.sum() > 10
    z = (counts - truth)[often] / error[often]
    assert abs(z).max() < 6
    assert 0.4 < z.std() < 1.5
    with_items = part.diagnostics.num_clients_with_items
    assert abs(with_items - whole.diagnostics.num_clients_with_items) < 1_500 * 0.15


def test_without_padding_the_reports_are_those_of_the_counts(population):
    bare = LdpTrieHH(**{**vars(PROTOCOL), "pad": False})
    some = Fidelity(name=EXACT_TALLY, drawn_clients=100)
    answer = first_round(population, 0, some, bare)
    assert answer.diagnostics.num_dummies == 0
    assert 0 < answer.aggregate.num_reports <= 1_000


def test_the_same_seed_gives_the_same_bits(population):
    first, second, other = (first_round(population, seed, AT_ONCE).aggregate for seed in (5, 5, 6))
    assert isinstance(first, Aggregate)
    assert np.array_equal(first.tally, second.tally)
    assert not np.array_equal(first.tally, other.tally)


def test_other_queries_and_sizes_are_refused():
    question = ask.word_votes(cohort=Cohort(start=0, size=100))
    with pytest.raises(InputError, match="'auto' or 'per-report' for PlainVotes"):
        AT_ONCE.samples(question, 100)
    with pytest.raises(InputError, match="drawn_clients = 'all' for PlainVotes"):
        Fidelity(drawn_clients=50).samples(question, 100)
    with pytest.raises(InputError, match="drawn_clients >= 1, got drawn_clients=0"):
        Fidelity(drawn_clients=0)


class Recorder(InProcessExecutor):
    """Notes what it is asked."""

    def answer(self, broadcast, progress=None):
        self.asked = broadcast.question
        return super().answer(broadcast, progress)


def test_auto_draws_a_tally_at_once_where_that_is_cheaper_and_reports_are_as_ever(population):
    cheap = LdpTrieHH(**{**vars(PROTOCOL), "oracle": "oue"})
    for protocol, at_once in ((cheap, True), (PROTOCOL, False)):
        recorder = Recorder(ClientWorker(population, seed=0))
        answer = first_round(population, 0, Fidelity(), protocol, executor=recorder)
        assert answer.diagnostics.is_sampled is at_once
        assert recorder.asked.counts_only is at_once
        expected = first_round(population, 0, AT_ONCE if at_once else BY_REPORT, protocol)
        assert np.array_equal(answer.aggregate.tally, expected.aggregate.tally)


@pytest.mark.slow(
    "tests/oracles/test_sketch_oracles.py::test_a_sketch_drawn_without_storing_reports_has_the_distribution_of_a_sketch_of_reports"
)
@pytest.mark.parametrize("protocol", thinned([SFP, PEM]), ids=["sfp", "pem"])
def test_sketches_drawn_at_once_have_the_distribution_of_those_of_reports(population, protocol):
    reported, at_once = (
        np.array(
            [first_round(population, seed, kind, protocol).aggregate.tally for seed in seeds],
            dtype=float,
        )
        for kind, seeds in ((BY_REPORT, range(60)), (AT_ONCE, range(100, 160)))
    )
    assert len({int(row[-1]) for row in at_once}) > 1
    # Every cell's mean, and the variance of all cells together.
    spread = np.sqrt((reported.var(axis=0) + at_once.var(axis=0)) / 60)
    z = (reported.mean(axis=0) - at_once.mean(axis=0)) / np.maximum(spread, 0.05)
    assert abs(z).max() < 7
    assert abs(np.mean(z**2) - 1) < 0.35
    ratio = reported.var(axis=0).sum() / at_once.var(axis=0).sum()
    assert 0.85 < ratio < 1.18


def test_hits_of_any_blocks_give_one_tally(population):
    question = SFP.next_question(SFP.initialize())
    asked = replace(question, counts_only=True)
    worker = ClientWorker(population, seed=3)
    blocks = list(range(question.cohort.num_blocks))
    whole = answered(worker, asked, blocks)
    parts = [answered(ClientWorker(population, seed=3), asked, blocks[i::2]) for i in (1, 0)]
    merged = parts[0].merge(parts[1])
    assert len(blocks) > 1
    assert np.array_equal(whole.aggregate.tally, merged.aggregate.tally)
    first, second = (
        question.channel.sample(answer.aggregate.tally, np.random.default_rng)
        for answer in (whole, merged)
    )
    assert np.array_equal(first, second)
