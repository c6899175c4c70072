import math

import numpy as np
import pytest

import fedhh
from fedhh.clients.clients import Clients
from fedhh.clients.drawn import DrawnClients
from fedhh.clients.reading.columns import Layout
from fedhh.clients.reading.sources import read_file
from fedhh.experiments.config.labels import round_up
from fedhh.experiments.run.preflight import preflight_of
from fedhh.experiments.run.privacy import central_before_run, local_epsilon, privacy_of_run
from fedhh.experiments.run.run import simulate
from fedhh.validation import InputError
from fedhh.words.lexicon import Lexicon
from tests.thinned import thinned


def clients_with(words, counts, num_clients):
    """Return clients that hold all of some words, each as often as is said."""
    return Clients.from_rows(
        name="mine",
        lexicon=Lexicon(words=words),
        clients=np.repeat(np.arange(num_clients), len(words)),
        word_ids=np.tile(np.arange(len(words)), num_clients),
        counts=np.tile(counts, num_clients),
        num_clients=num_clients,
    )


SETTINGS = {"passes": 1, "depth": 6, "local_epsilon": 8.0}


@pytest.mark.parametrize(
    ("kind", "settings", "num_clients"),
    thinned(
        [
            (fedhh.LdpTrieHH, SETTINGS, 3_000),
            (fedhh.AdaptiveTrieHH, {"local_epsilon": 4.0}, 30_000),
            (fedhh.Sfp, {"local_epsilon": 4.0}, 3_000),
            (fedhh.TrieHH, {}, 30_000),
        ]
    ),
)
def test_the_epsilons_are_those_that_the_plan_claims(kind, settings, num_clients):
    protocol = kind(**settings)
    population = clients_with(["lol", "brb"], [1, 2], num_clients)
    (plan,) = fedhh.preflight(protocol, population, delta=1e-8).plans
    settled = protocol.settle(num_clients=num_clients, seed=0)
    report = privacy_of_run(settled, num_clients=num_clients, delta=1e-8)
    assert plan.central_epsilon == pytest.approx(central_before_run(report, "item"), rel=1e-9)
    stated = plan.epsilons
    assert stated["central_epsilon_before_run"] == plan.central_epsilon
    assert stated["central_epsilon_user_before_run"] == pytest.approx(
        central_before_run(report, "user"), rel=1e-9
    )
    assert stated["local_epsilon"] == local_epsilon(report, "item") == plan.local_epsilon
    assert stated["local_epsilon_user"] == local_epsilon(report, "user")
    assert plan.smallest_cohort == min(layer.num_clients for layer in settled.plan.layers)
    assert plan.central.delta == 1e-8
    assert plan.local_epsilon == settings.get("local_epsilon", math.inf)


def test_the_share_that_can_be_spelled_is_that_of_the_run():
    words = ["brb", "lol", "verylong", "привет"]
    population = clients_with(words, [1, 2, 3, 4], 800)
    protocol = fedhh.LdpTrieHH(clients_per_layer=100, **SETTINGS)
    found = fedhh.preflight(protocol, population)
    assert (found.clients, found.words, found.contributions) == (800, 4, 8_000)
    assert found.spelling.lost_token_share == pytest.approx(0.7)
    result = simulate(protocol, population, seed=0)
    assert 1 - found.spelling.lost_token_share == pytest.approx(result.metrics.reachable_mass)
    (advice,) = (line for line in found.advice if "cannot be found" in line)
    assert advice.startswith("70.0% of the contributions cannot be found, such as 'привет'")
    assert "more symbols, such as веипрт" in advice
    assert (
        "for 40.0%; words of more than 6 symbols (protocol.depth or the like) for 30.0%." in advice
    )
    assert "lower case" not in advice


@pytest.mark.slow("::test_of_every_kind_of_plan_the_numbers_are_found")
def test_few_clients_amplify_nothing_and_the_number_that_would_is_true():
    protocol = fedhh.LdpTrieHH(**SETTINGS)
    found = fedhh.preflight(protocol, clients_with(["lol"], [1], 499))
    (plan,) = found.plans
    assert plan.is_not_amplified
    assert 8.0 * (1 - 1e-3) < plan.central_epsilon < plan.local_epsilon == 8.0
    fewest, half = plan.amplifying
    assert fewest.epsilon < 8.0
    assert half.epsilon <= 4.0
    for each in (fewest, half):
        settled = protocol.settle(num_clients=each.clients, seed=0)
        report = privacy_of_run(settled, num_clients=each.clients)
        assert each.epsilon == pytest.approx(central_before_run(report, "item"), rel=1e-9)
    # It is about the fewest: a tenth fewer do not.
    fewer = protocol.settle(num_clients=int(fewest.clients * 0.9), seed=0)
    report = privacy_of_run(fewer, num_clients=int(fewest.clients * 0.9))
    assert central_before_run(report, "item") > 8.0 * (1 - 1e-3)
    (advice,) = found.advice
    assert advice.startswith(
        "Shuffling the reports of 499 users amplifies next to nothing: the central epsilon is the "
        "local one, to a thousandth."
    )
    assert f"LDP TrieHH: {fewest.clients:,} users would have 7.9" in advice
    enough = fedhh.preflight(protocol, clients_with(["lol"], [1], fewest.clients))
    assert enough.plans[0].amplifying is None
    assert enough.advice == ()


@pytest.mark.slow("::test_of_every_kind_of_plan_the_numbers_are_found")
def test_where_bounds_are_the_local_epsilon_the_text_says_nothing_less():
    found = fedhh.preflight(fedhh.AdaptiveTrieHH(), clients_with(["lol"], [1], 499))
    assert found.plans[0].central_epsilon == found.plans[0].local_epsilon
    _, _, central, local = found.plans[0].epsilons.values()
    assert local == 10 * found.plans[0].local_epsilon == pytest.approx(central, rel=1e-9)
    line, table = found.plan_parts
    assert line.text == (
        "Epsilon before the run of an item and of a user (delta 1e-10), and users of the smallest "
        "cohort:"
    )
    heads = ("protocol", "central", "local", "central, user", "local, user", "cohort")
    assert table.heads == heads
    cohort = found.plans[0].smallest_cohort
    assert table.rows == [("Adaptive TrieHH", "8", "8", "80", "80", f"{cohort}")]
    assert "amplifies nothing: the central epsilon is the local one. Adap" in found.advice[0]


@pytest.mark.parametrize(
    "kind", thinned([fedhh.Sfp, fedhh.Pem, fedhh.Bitstogram, fedhh.TreeHist], keep=2)
)
def test_of_every_kind_of_plan_the_numbers_are_found(kind):
    found = fedhh.preflight(kind(local_epsilon=8.0), clients_with(["lol"], [1], 499))
    fewest, half = found.plans[0].amplifying
    assert 499 < fewest.clients <= half.clients
    assert half.epsilon <= 4.0 < fewest.epsilon < 8.0
    stated = found.plans[0].epsilons
    assert stated["local_epsilon"] == 8.0 < stated["local_epsilon_user"]
    assert (
        stated["central_epsilon_before_run"]
        < stated["central_epsilon_user_before_run"]
        <= stated["local_epsilon_user"]
    )
    line, table = found.plan_parts
    assert "of an item and of a user (delta 1e-10)" in line.text
    assert table.rows[0][3:5] == (
        round_up(stated["central_epsilon_user_before_run"]),
        round_up(stated["local_epsilon_user"]),
    )


def test_cohorts_of_a_set_size_do_not_grow_with_the_population():
    protocol = fedhh.LdpTrieHH(clients_per_layer=50, **SETTINGS)
    found = fedhh.preflight(protocol, clients_with(["lol"], [1], 499))
    assert found.plans[0].amplifying == ()
    assert "more users do not change it with these settings" in found.advice[0]


@pytest.mark.slow("::test_its_record_is_that_of_json")
def test_a_trusted_server_has_no_local_epsilon_and_no_shuffle():
    found = fedhh.preflight(fedhh.TrieHH(), clients_with(["lol"], [1], 3_000))
    assert "amplifies" not in " ".join(found.lines)
    assert " and none of an item, " in found.lines[2]
    assert " and none of a user, 464 users" in found.lines[2]


def test_words_that_lower_case_would_spell_are_counted():
    population = clients_with(["LOL", "brb", "ПОКА"], [2, 1, 1], 4_000)
    found = fedhh.preflight(fedhh.LdpTrieHH(**SETTINGS), population)
    assert found.folded_share == pytest.approx(0.5)
    (advice,) = (line for line in found.advice if "cannot be found" in line)
    assert "lower case (--fold-case, population.fold_case) for 50.0%" in advice
    assert "population.alphabet_source) for 25.0%" in advice


def test_what_a_few_texts_lose_is_said_with_its_reasons(tmp_path):
    rows = [f"{user},lol 2024 \U0001f602 \U0001f602\n{user},\U0001f602\n" for user in range(60)]
    (tmp_path / "p.csv").write_text("user,text\n" + "".join(rows))
    clients = read_file(tmp_path / "p.csv", Layout())
    protocol = fedhh.Sfp(local_epsilon=4.0)
    found = preflight_of([protocol], clients, delta=1e-3, seed=0)
    assert (found.texts, found.empty_texts, found.tokens) == (120, 60, 300)
    assert found.dropped == {"emoji or symbol": 180, "no letter": 60}
    assert found.contents[2] == (
        "80.0% of the tokens of 120 texts are no words (emoji or symbol 60.0%, no letter 20.0%); "
        "60 texts hold no word."
    )


@pytest.mark.slow("::test_what_a_few_texts_lose_is_said_with_its_reasons")
def test_what_texts_lose_is_said_with_its_reasons(tmp_path):
    rows = [f"{user},lol 2024 \U0001f602 \U0001f602\n{user},\U0001f602\n" for user in range(900)]
    (tmp_path / "p.csv").write_text("user,text\n" + "".join(rows))
    clients = read_file(tmp_path / "p.csv", Layout())
    found = preflight_of([fedhh.LdpTrieHH(**SETTINGS)], clients, delta=1e-10, seed=0)
    assert (found.texts, found.empty_texts, found.tokens) == (1_800, 900, 4_500)
    assert found.dropped == {"emoji or symbol": 2_700, "no letter": 900}
    assert found.contents[2] == (
        "80.0% of the tokens of 1,800 texts are no words (emoji or symbol 60.0%, no letter 20.0%); "
        "900 texts hold no word."
    )


def test_a_population_without_new_words_says_so():
    population = clients_with([], [], 900)
    found = fedhh.preflight(fedhh.LdpTrieHH(**SETTINGS), population)
    assert found.advice == ("No user holds a word that is not known: see population.known.",)


def test_what_cannot_be_looked_at_is_refused():
    protocol = fedhh.LdpTrieHH(**SETTINGS)
    with pytest.raises(InputError, match="held in memory, got a DrawnClients"):
        fedhh.preflight(protocol, DrawnClients("chat", 10, seed=0))
    with pytest.raises(InputError, match="delta"):
        fedhh.preflight(protocol, clients_with(["lol"], [1], 499), delta=2)
    with pytest.raises(InputError):
        fedhh.preflight(protocol, clients_with(["lol"], [1], 2))


def test_its_record_is_that_of_json():
    found = fedhh.preflight(fedhh.TrieHH(), clients_with(["lol"], [1], 3_000))
    (plan,) = found.record["protocols"]
    assert plan["local_epsilon"] is None
    assert plan["smallest_cohort"] == found.plans[0].smallest_cohort
    assert found.record["advice"] == []
    assert str(found).splitlines() == list(found.lines)
