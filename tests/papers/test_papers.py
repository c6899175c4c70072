"""Arithmetic that papers state, exactly; what is drawn, in tiny versions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedhh.accounting import shuffle_epsilon
from fedhh.experiments.run.run import simulate
from fedhh.oracles import OracleSpec, make_pure_oracle
from fedhh.oracles.bloom_filters import BitResponse
from fedhh.server.triehh import TrieHH
from fedhh.validation import InputError
from papers import oracle_crossover, pem, rappor, triehh, triehh_batch
from papers.bit_values import bit_population
from papers.one_word_clients import PrefixHolders, one_word_population
from papers.registry import PAPERS, reproduction_of
from papers.reproduction import published, write_reproduction
from papers.shuffled_blanket import (
    clones_local_epsilon,
    hoeffding_blanket_delta,
    hoeffding_blanket_local_epsilon,
)


def silent(line: str) -> None:
    """Hear nothing."""


def test_batch_sizes_are_the_formulas():
    made = triehh_batch.reproduce(quick=False, seed=0, say=silent)
    ours = dict(zip(made.results["clients"], made.results["sample"], strict=True))
    assert ours == {1_781_400: 39_152, 650_000: 14_286, 123_831_776: 2_721_656}
    first = made.results.iloc[0]
    # Rounded to the nearest number, the formula gives what is published, and epsilon is above 4.
    assert round(1_781_400 * (1 - math.exp(-0.4)) / 15) == first["published"] == 39_153
    assert 4 < first["published_epsilon"] < 4.0001
    # The range of clients is exact: one fewer or more gives another batch.
    for clients, published_m in (
        (first["fewest_clients"], 39_153),
        (first["most_clients"], 39_153),
    ):
        assert math.floor(clients * (1 - math.exp(-0.4)) / 15) == published_m
    assert math.floor((first["fewest_clients"] - 1) * (1 - math.exp(-0.4)) / 15) == 39_152
    assert math.floor((first["most_clients"] + 1) * (1 - math.exp(-0.4)) / 15) == 39_154
    assert "reproduces exactly" not in made.findings[0]
    assert all("reproduces exactly" in line for line in made.findings[1:])


@pytest.mark.parametrize("growth", [2, 4, 9, 54])
def test_grr_and_oue_are_equally_good_at_the_crossover(growth):
    epsilon = math.log(growth)
    domain = 3 * growth + 2
    assert oracle_crossover.crossover(epsilon) == pytest.approx(domain)

    def noise_of(name: str, domain: int) -> float:
        return oracle_crossover.noise(
            make_pure_oracle(OracleSpec(name=name, epsilon=epsilon), domain)
        )

    v0 = [noise_of(name, domain) for name in ("grr", "olh", "oue")]
    assert v0 == pytest.approx([4 * growth / (growth - 1) ** 2] * 3, rel=1e-12)
    assert noise_of("grr", domain - 1) < v0[0] < noise_of("grr", domain + 1)


def test_the_last_domain_of_grr_is_the_crossover_rounded_down():
    for epsilon in (1.0, 2.0, 4.0):
        last = oracle_crossover.last_of_grr(epsilon, "oue")
        assert last == math.floor(oracle_crossover.crossover(epsilon))


@pytest.mark.slow("::test_hits_and_their_weights")
def test_drawn_noise_is_the_exact_one():
    size = oracle_crossover.Size(epsilons=(1.0,), seeds=4, tallies=60)
    drawn = oracle_crossover.draw(size, seed=0, say=silent)
    for _, part in drawn.groupby(["domain_size", "oracle"]):
        # 240 tallies of at least two values: a tenth is their standard error at most.
        assert part["drawn"].mean() == pytest.approx(part["exact"].iloc[0], rel=0.45)
    worst = drawn[drawn["oracle"] == "grr"].groupby("domain_size")["drawn"].mean()
    assert worst.is_monotonic_increasing


def test_pem_has_the_groups_of_the_paper():
    lengths = pem.protocol(16, 11, 1.0).prefix_lengths
    assert lengths == (15, 26, 37, 48)
    assert len(pem.protocol(32, 1, 1.0).prefix_lengths) == 43


def test_hits_and_their_weights():
    assert pem._scores(np.array([1, 3]), 4) == (0.5, (4 + 2) / 10)


@pytest.mark.slow("::test_pem_has_the_groups_of_the_paper")
def test_pem_finds_what_many_hold_and_no_more_than_the_ceiling():
    counts = np.array([4_000, 3_000, 2_000, 1_000, *([1] * 500)])
    population = bit_population(counts, "random")
    ranks = pem.hits(population, 4, 4, 6.0, seed=0)
    assert {1, 2} <= set(ranks.tolist()) <= {1, 2, 3, 4}
    f, ncr = pem.ceiling(counts, 4, 4, 6.0, seed=0)
    assert 0.75 < f <= ncr <= 1
    assert pem.ceiling(counts, 4, 4, 0.1, seed=0)[0] < 0.5


@pytest.mark.slow("::test_pem_has_the_groups_of_the_paper")
def test_pem_runs_on_a_log(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    names = [bytes(each) for each in rng.integers(97, 123, size=(60, 6), dtype=np.uint8)]
    counts = np.sort(rng.integers(1, 40, size=60))[::-1]
    counts[:4] = [4_000, 3_000, 2_000, 1_000]
    path = tmp_path / "log.txt"
    lines = [name + b"\t%d\n" % count for name, count in zip(names, counts, strict=True)]
    path.write_bytes(b"".join(lines))
    stated = dict(published()["pem"])
    stated |= {"users": int(counts.sum()), "distinct": 60, "counts": {"1": 4_000, "4": 1_000}}
    monkeypatch.setattr(pem, "published", lambda: {"pem": stated})
    monkeypatch.setattr(pem, "QUICK", pem.Size(settings=((32, 11),), epsilons=(4.0,), seeds=2))
    made = reproduction_of("pem", data=path)(quick=True, seed=0, say=silent)
    assert set(made.results["values"]) == {"log"}
    assert (made.results["f1"] > 0.1).all()
    assert "github.com/vvv214/LDP_Protocols" in made.summary.note
    assert made.findings[0].startswith("Values of the log: F differs")
    # Nothing but numbers is told of the log.
    told = made.summary.render("markdown") + made.results.to_csv() + "".join(made.findings)
    assert not any(name.decode() in told for name in names)
    with pytest.raises(InputError, match="only pem takes a file"):
        reproduction_of("rappor", data=path)


def test_rappors_numbers_reproduce():
    size = rappor.Size(seeds=4, tallies=200, reports=50)
    response = BitResponse(f=0.5, p=0.5, q=0.75)
    drawn = rappor.draw(response, size, seed=0).groupby("number")["drawn"].mean()
    # 40,000 bits each, and 800 squares of relative variance 2.
    assert drawn["p*"] == pytest.approx(0.5625, abs=5 * 0.5 / 200)
    assert drawn["q*"] == pytest.approx(0.6875, abs=5 * 0.5 / 200)
    assert drawn["variance of a bit"] == pytest.approx(15.75, rel=5 * math.sqrt(2 / 800))
    stated = published()["rappor"]
    assert round(4 * math.log(3), 3) == stated["epsilon_permanent"]
    assert round(response.epsilon_of_one_report(2), 4) == stated["epsilon_report"]
    assert round(response.bit_variance, 2) == stated["bit_variance"]
    findings = rappor._findings(
        {"epsilon_infinity": 4.4, "epsilon_1": 1.07434, "variance of a bit": 15.75},
        rappor.draw(response, size, seed=0).query("number == 'variance of a bit'"),
    )
    ends = ["does not reproduce.", "reproduces.", "reproduces."]
    assert [line.split(": ")[-1] for line in findings[:3]] == ends


@pytest.mark.slow("::test_the_local_epsilon_by_clones_is_allowed_and_a_larger_one_is_not")
def test_local_epsilons_of_2019_are_the_published_ones():
    setting = published()["triehh"]
    for epsilon, local in setting["local_epsilon"].items():
        ours = hoeffding_blanket_local_epsilon(
            epsilon=float(epsilon), delta=setting["delta"], num_reports=setting["clients"]
        )
        assert ours == pytest.approx(local, abs=6e-4)
        delta = hoeffding_blanket_delta(
            ours, epsilon=float(epsilon), num_reports=setting["clients"]
        )
        assert delta == pytest.approx(setting["delta"], rel=1e-9)
        # What is known since allows more of it.
        assert triehh.local_epsilons(float(epsilon))["2021"] > ours


def test_the_local_epsilon_by_clones_is_allowed_and_a_larger_one_is_not():
    target = {"delta": 1e-8, "num_reports": 20_000}
    found = clones_local_epsilon(**target, epsilon=0.5)
    central = [
        shuffle_epsilon("clones", **target, local_epsilon=each) for each in (found, found * 1.001)
    ]
    assert central[0] <= 0.5 * (1 + 1e-6) < central[1]
    assert clones_local_epsilon(delta=1e-10, num_reports=2, epsilon=16.0) == 16.0
    with pytest.raises(ValueError, match=r"local_epsilon=0\.1"):
        clones_local_epsilon(delta=1e-14, num_reports=100, epsilon=1e-6)


def test_f1_by_k_is_that_of_precision_and_recall():
    # Three of the top ten, one far word, one that no client holds.
    f1 = triehh.f1_by_k(np.array([0, 4, 9, 250, -1]))
    assert f1[0] == pytest.approx(2 * 0.8 * 0.3 / (0.8 + 0.3))
    assert f1[-1] == pytest.approx(2 * 0.8 * (4 / 299) / (0.8 + 4 / 299))
    assert not triehh.f1_by_k(np.zeros(0, dtype=np.int64)).any()
    assert (triehh.f1_by_k(np.arange(299)) == 1.0).all()


@pytest.fixture(scope="module")
def clients():
    return one_word_population(20_000)


@pytest.mark.slow("::test_hits_and_their_weights")
def test_prefix_holders_are_counted(clients):
    holders = PrefixHolders(clients)
    pairs = list(zip(clients.lexicon.words, clients.word_clients.tolist(), strict=True))
    assert [count for _, count in pairs] == sorted((count for _, count in pairs), reverse=True)
    for word, own in pairs[:20]:
        begins = [
            sum(count for other, count in pairs if other.startswith(word[:n]))
            for n in range(1, len(word) + 1)
        ]
        assert holders.of(word).tolist() == [*begins, own]


@pytest.mark.slow("::test_hits_and_their_weights")
def test_runs_of_triehh_follow_the_exact_distribution(clients):
    protocol = TrieHH(
        alphabet="abcdefghijklmnopqrstuvwxyz", depth=9, threshold=5, clients_per_layer=800
    )
    distribution = triehh.expected_recall(clients, PrefixHolders(clients), protocol)
    words = [simulate(protocol, clients, seed=seed).discoveries["word"] for seed in range(4)]
    runs = [clients.lexicon.ids(found.tolist()) for found in words]
    recall = [np.searchsorted(np.sort(found), triehh.KS) / triehh.KS for found in runs]
    assert all((found >= 0).all() for found in runs)
    # Words are found or not with standard deviation below a half each.
    far = 4 * 0.5 / np.sqrt(4 * triehh.KS)
    assert (np.abs(np.mean(recall, axis=0) - distribution) < far).all()
    assert distribution[0] > 0.8 > 0.4 > distribution[-1]


def test_every_paper_has_a_module_and_unknown_ones_are_refused():
    for name in PAPERS:
        assert callable(reproduction_of(name))
    with pytest.raises(InputError, match="did you mean 'pem'"):
        reproduction_of("pme")


@pytest.mark.slow("::test_hits_and_their_weights")
def test_a_reproduction_is_written_whole(tmp_path, monkeypatch):
    small = oracle_crossover.Size(epsilons=(1.0,), seeds=3, tallies=5)
    monkeypatch.setattr(oracle_crossover, "QUICK", small)
    made = oracle_crossover.reproduce(quick=True, seed=0, say=silent)
    paths = write_reproduction(made, tmp_path, command="python -m papers oracle-crossover --quick")
    assert {path.name for path in paths} == {
        "oracle-crossover.png", "results.csv", "summary.csv", "summary.md",
    }  # fmt: skip
    assert all(path.exists() for path in paths)
    domains = len(oracle_crossover.domains(1.0))
    assert (len(made.results), len(made.summary.rows)) == (domains * 3 * 3, domains)
    again = oracle_crossover.reproduce(quick=True, seed=0, say=silent)
    assert again.results.equals(made.results)
    other = oracle_crossover.reproduce(quick=True, seed=7, say=silent)
    assert not other.results["drawn"].equals(made.results["drawn"])
