"""Plans: limits are kept, what is predicted happens, and no part of it is chance."""

from __future__ import annotations

import itertools
import math
import tomllib
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import fedhh
from fedhh.experiments.config.labels import round_up
from fedhh.experiments.config.load import parse_config
from fedhh.experiments.config.population import build_population
from fedhh.experiments.planner.deployment import DeploymentPlan
from fedhh.experiments.planner.front import costs
from fedhh.experiments.planner.goal import Goal
from fedhh.experiments.planner.prediction import Predicted, Prediction
from fedhh.experiments.planner.trial import (
    Outcome,
    Terms,
    Trial,
    share_std_error,
    with_guarantee,
)
from fedhh.experiments.planner.trust import trust_model_of
from fedhh.experiments.report.plan_figures import draw_plan
from fedhh.experiments.run.privacy import privacy_of_run
from fedhh.experiments.run.run import check_config, run_config
from fedhh.experiments.study.callbacks import Callbacks
from fedhh.server.registry import PROTOCOLS, protocol_class
from fedhh.validation import InputError
from tests.thinned import thinned

CHAT = ("population.clients=12000", "execution.workers=0")
LIMITS = {
    "at": "item-central-epsilon=3",
    "held_by": "1/100",
    "days": 8,
    "max_bytes": "3kB",
    "min_precision": 0.25,
}


@pytest.fixture(scope="module")
def made():
    return fedhh.plan(settings=CHAT, protocols=("ldp-triehh", "triehh"), runs=24, **LIMITS)


SMALL = {
    "settings": CHAT, "protocols": ("triehh",), "at": "item-central-epsilon=4", "runs": 2,
}  # fmt: skip


@pytest.fixture(scope="module")
def small():
    return fedhh.plan(**SMALL)


def test_a_small_plan_keeps_its_limits_and_takes_the_best_of_its_search(small):
    assert small.runs == 2 >= len(small.trials)
    for trial in small.trials:
        _, protocol = check_config(small.config_of(trial), small.population)
        stated = privacy_of_run(protocol, num_clients=12_000, delta=1e-10).before_run("item")
        assert stated.epsilon <= 4
        assert stated.epsilon == pytest.approx(trial.terms.central_epsilon, rel=1e-6)
    assert small.best.trial.outcome.recall == max(each.outcome.recall for each in small.trials)
    by = costs(small.goal).values()
    points = [(-t.outcome.recall, *(cost(t) for cost in by)) for t in small.front]
    assert not any(
        one != other and all(a <= b for a, b in zip(one, other, strict=True))
        for one, other in itertools.permutations(points, 2)
    )
    # What is written runs by another seed than the search.
    config = small.config_of(small.best.trial)
    assert parse_config(tomllib.loads(small.to_toml()), "plan.toml").result_key == config.result_key
    assert (config.seed, small.best.trial.config.seed) == (0, 1)


def test_the_same_seed_makes_the_same_small_plan(small):
    assert fedhh.plan(**SMALL).to_dict() == small.to_dict()


def test_its_tables_and_figure_show_what_was_predicted_and_searched(small):
    best = dict(zip(small.best_table.columns, small.best_table.rows[0], strict=True))
    expected = small.best.coverage
    assert best["coverage"] == f"{expected.mean:.1%} ({expected.low:.1%} to {expected.high:.1%})"
    assert (best["item local"], best["runs"]) == ("none", str(small.best.runs))
    shown = dict(zip(small.front_table.columns, small.front_table.rows[0], strict=True))
    assert shown["coverage"] == f"{small.front[0].outcome.coverage:.1%}"
    assert shown["bytes"] == f"{small.front[0].bytes:,}"
    days, sizes, epsilon = draw_plan(small).axes
    assert days.get_xlabel() == "days"
    assert "upload and download" in sizes.get_xlabel()
    assert epsilon.get_xlabel() == "local epsilon"
    for axes, cost in zip((days, sizes, epsilon), costs(small.goal).values(), strict=True):
        ((points, look),) = [
            (set(zip(*line.get_data(), strict=True)), line.get_linestyle())
            for line in axes.lines
            if line.get_label() == "TrieHH (central)"
        ]
        # This protocol randomizes nothing on a device, so that it has no point there.
        assert (axes is epsilon) == (not points)
        assert look == "None"
        assert points == {
            (cost(trial), trial.outcome.coverage) for trial in small.trials if cost(trial) < np.inf
        }


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"at": None, "local_epsilon": 5.0}, "without a local epsilon for all clients"),
        ({"protocols": ("two-servers",)}, "depends on cryptography that is not built"),
        ({"max_bytes": 1}, r"No settings meet the goal\. The nearest tried, of TrieHH"),
    ],
)
def test_what_no_protocol_promises_is_refused_with_the_reason(limits, message):
    few = ("population.clients=2000", "execution.workers=0")
    with pytest.raises(InputError, match=message):
        fedhh.plan(**{**SMALL, "settings": few, "runs": 1, **limits})


def test_trust_models_of_given_samples_follow_from_plans():
    words = fedhh.Candidates(tuple("abcdefgh"))
    for protocol, trust in (
        (fedhh.TrieHH(clients_per_layer=100, threshold=9), "central"),
        (fedhh.TeeHistogram(central_epsilon=1.0), "central"),
        (fedhh.TwoServers(noise_std=10.0), "two servers"),
        (fedhh.SecAggTrieHH(noise_std=10.0), "secure aggregation"),
        (fedhh.Svim(candidates=words), "local"),
    ):
        assert trust_model_of(protocol.settle(num_clients=50_000, seed=0)) == trust


@pytest.mark.slow("::test_a_small_plan_keeps_its_limits_and_takes_the_best_of_its_search")
def test_every_limit_is_kept_by_every_setting(made):
    assert len({trial.config.protocol.name for trial in made.trials}) >= 2
    assert len(made.trials) >= 5
    clients = made.population.num_clients
    for trial in made.trials:
        _, protocol = check_config(made.config_of(trial), made.population)
        # Accounting of the whole plan, and not of the search's quick way.
        stated = privacy_of_run(protocol, num_clients=clients, delta=1e-10).before_run("item")
        assert stated.epsilon <= 3
        assert stated.epsilon == pytest.approx(trial.terms.central_epsilon, rel=1e-6)
        assert protocol.rounds_in_turn <= 8
        assert trial.outcome.upload + trial.outcome.download <= 3_000
        assert trial.outcome.precision >= 0.25


@pytest.mark.slow("::test_a_small_plan_keeps_its_limits_and_takes_the_best_of_its_search")
def test_a_written_plan_runs_and_gives_what_was_predicted(made, tmp_path):
    made.write(tmp_path / "plan.toml")
    text = (tmp_path / "plan.toml").read_text(encoding="utf-8")
    assert text.startswith("# fedhh plan: words held by 0.01 of 12,000 clients, item central")
    best = made.best
    for each in made.predictions:
        if each.runs < 2:
            continue
        config = made.config_of(each.trial)
        if each is best:
            table = tomllib.loads(text)
            assert parse_config(table, "plan.toml").result_key == config.result_key
        # The run's seed is that of no planning run, and draws clients of its own.
        assert config.seed == 0
        assert each.trial.config.seed == 1
        population = build_population(config.population, seed=config.seed)
        result = run_config(config, population)[1]
        assert each.coverage.low <= result.metrics.coverage <= each.coverage.high
        assert each.coverage.high - each.coverage.low < 0.12
        assert result.metrics.min_clients == 120
        assert result.privacy.before_run("item").epsilon <= 3
        cost = result.cost
        moved = cost["upload_bits_per_client_max"] + cost["download_bits_per_client_max"]
        assert moved <= 8 * 3_000
        assert cost["rounds"] <= 8


@pytest.mark.slow("::test_a_small_plan_keeps_its_limits_and_takes_the_best_of_its_search")
def test_the_front_has_no_dominated_row_and_all_others_are_dominated(made):
    by = costs(made.goal).values()

    def point(trial):
        return (-trial.outcome.recall, *(cost(trial) for cost in by))

    front = {point(trial) for trial in made.front}

    def below(one, other):
        return one != other and all(a <= b for a, b in zip(one, other, strict=True))

    assert not any(below(a, b) for a, b in itertools.permutations(front, 2))
    rest = {point(trial) for trial in made.trials} - front
    assert rest
    assert all(any(below(a, b) for a in front) for b in rest)


@pytest.mark.slow("::test_a_small_plan_keeps_its_limits_and_takes_the_best_of_its_search")
def test_the_search_finds_more_than_its_start(made):
    for name in ("ldp-triehh", "triehh"):
        own = [trial for trial in made.trials if trial.config.protocol.name == name]
        chosen = next(e.trial for e in made.predictions if e.trial.config.protocol.name == name)
        assert chosen.outcome.recall == max(trial.outcome.recall for trial in own)


@pytest.mark.slow("::test_the_same_seed_makes_the_same_small_plan")
def test_the_same_seed_makes_the_same_plan_and_another_one_does_not():
    asked = {"protocols": ("triehh",), "at": "user-central-epsilon=4", "runs": 2}
    one, same = (fedhh.plan(settings=CHAT, **asked) for _ in range(2))
    assert one.to_dict() == same.to_dict()
    other = fedhh.plan(settings=(*CHAT, "seed=5"), **asked)
    assert other.to_dict()["best"] != one.to_dict()["best"]


@pytest.mark.slow(
    "tests/simulation/test_calls_of_an_executor.py::test_any_number_of_actors_gives_the_reference"
)
def test_workers_change_nothing(small, ray_here):
    on_ray = fedhh.plan(**SMALL | {"settings": (CHAT[0], "execution.workers=2")})
    assert on_ray.to_dict() == small.to_dict()
    assert set(ray_here) == {("cells", 2, "")}


@pytest.mark.slow("::test_a_small_plan_keeps_its_limits_and_takes_the_best_of_its_search")
def test_a_budget_of_runs_is_not_passed():
    found = fedhh.plan(
        settings=CHAT, protocols=("triehh", "blender"),
        at="item-central-epsilon=4", min_precision=0.0, runs=3,
    )  # fmt: skip
    assert found.runs == 3
    assert len(found.trials) <= 3


def test_no_more_runs_end_than_were_announced():
    class Heard(Callbacks):
        def __init__(self):
            self.works = []

            self.notes = []

        def start(self, work):
            self.works.append([work.noun, work.total, 0])

        def note(self, text):
            self.notes.append(text)

        def finish(self, unit, result):
            self.works[-1][2] += 1

    heard = Heard()
    found = fedhh.plan(
        settings=CHAT, protocols=("triehh",), at="item-central-epsilon=4", runs=2,
        callbacks=(heard,),
    )  # fmt: skip
    searched, *confirmed = heard.works
    assert searched == ["runs", 2, found.runs]
    assert confirmed
    assert all(noun == "runs by other seeds" and ended == n for noun, n, ended in confirmed)
    # The best of the search is said while it goes on.
    best = max(found.trials, key=lambda trial: trial.rank(found.goal))
    share = f"{best.outcome.coverage:.1%}"
    assert len(heard.notes) == found.runs
    assert heard.notes[-1] == f"best so far: TrieHH (central), coverage {share}"


def test_a_plan_states_all_four_epsilons_and_how_much_of_its_words_is_found():
    goal = Goal(local_epsilon=6.0, held_by=1 / 50)
    settings = {"population": {"clients": 1_000}, "protocol": {"name": "ldp-triehh", "depth": 4}}
    config = parse_config({**settings, "privacy": {"local_epsilon": 6.0}}, "test")
    population = fedhh.synthetic_population("chat", 1_000, seed=1)
    settled, protocol = check_config(config, population)
    held = int((population.word_counts().holders >= 20).sum())
    trial = Trial(
        asked=config.protocol, config=config, settled=settled,
        terms=Terms.of(protocol, goal, num_clients=1_000, delta=1e-10),
        outcome=Outcome(
            coverage=0.5, wanted=held, recall=0.25, precision=1.0, words=9, upload=8, download=9
        ),
    )  # fmt: skip
    found = DeploymentPlan(
        goal=goal, base=config, population=population, predictions=(Prediction.of(trial, []),),
        trials=(trial,), left_out={}, runs=1,
    )  # fmt: skip
    best = found.best
    _, settled = check_config(found.config_of(best.trial), found.population)
    report = privacy_of_run(settled, num_clients=1_000, delta=1e-10)
    stated = (report.before_run("item"), report.best("item", "local"))
    stated += (report.before_run("user"), report.best("user", "local"))
    (record,) = found.to_dict()["best"]
    names = (
        *("central_epsilon_before_run", "local_epsilon"),
        *("central_epsilon_user_before_run", "local_epsilon_user"),
    )
    epsilons = [record[name] for name in names]
    assert epsilons == pytest.approx([each.epsilon for each in stated], rel=1e-9)
    assert epsilons[1] == 6.0
    assert epsilons[3] == 6.0 * best.trial.settled.protocol.max_items
    held = (found.population.word_counts().holders >= 20).sum()
    assert record["words_to_find"] == held > 0
    cells = dict(zip(found.best_table.columns, found.best_table.rows[0], strict=True))
    shown = [cells[f"{unit} {kind}"] for unit in ("item", "user") for kind in ("central", "local")]
    assert shown == list(map(round_up, epsilons))
    predicted, claimed = found.best_lines
    assert predicted == (
        f"Predicted of LDP TrieHH: 25.0% of the {held:,} words to find, coverage 50.0%."
    )
    item, user = (f"{a} and {b}" for a, b in (shown[:2], shown[2:]))
    assert claimed == (
        f"Central and local epsilon before the run (delta 1e-10): {item} of an item, {user} of a "
        "user."
    )
    lines = [part.text for part in itertools.islice(found.parts, 3)]
    assert lines[1:] == [predicted, claimed]
    assert found.to_toml().splitlines()[1:3] == [f"# {predicted}", f"# {claimed}"]


def test_an_epsilon_of_the_front_is_never_rounded_down():
    by = costs(Goal(local_epsilon=8.0))["central epsilon, item"]

    def shown(epsilon):
        return by(SimpleNamespace(terms=SimpleNamespace(central_epsilon=epsilon)))

    assert [shown(each) for each in (5.6707, 0.98616, 8.0, 123.4, math.inf)] == [
        *(5.68, 0.987, 8.0, 124.0, math.inf)
    ]


FEW = ("population.clients=500", "execution.workers=0")


def test_limits_are_reached_by_smaller_sizes_of_those_alone_who_promise_them():
    asked = {"settings": FEW, "local_epsilon": 6.0, "min_precision": 0.0}
    wide = fedhh.plan(protocols=("ldp-triehh", "triehh", "blender"), runs=1, **asked)
    assert set(wide.left_out) == {"triehh", "blender"}
    (trial,) = wide.trials
    assert (trial.config.protocol.name, trial.terms.local_epsilon) == ("ldp-triehh", 6.0)
    most = trial.bytes // 3
    narrow = fedhh.plan(protocols=("ldp-triehh",), runs=2, max_bytes=most, **asked).best
    assert narrow.bytes <= most
    assert narrow.trial.settled.protocol.eta_max < trial.settled.protocol.eta_max


def test_the_nearest_epsilon_that_is_named_can_be_met():
    asked = {"settings": FEW, "protocols": ("triehh",), "runs": 1, "min_precision": 0.0}
    with pytest.raises(InputError, match=r"nearest is .* of triehh") as refusal:
        fedhh.plan(at="item-central-epsilon=0.00001", **asked)
    named = str(refusal.value).rpartition("--at ")[2].rstrip(".")
    found = fedhh.plan(at=named, **asked).best.trial.terms.central_epsilon
    epsilon = float(named.partition("=")[2])
    assert found <= epsilon < 1.01 * found
    # And half of it cannot.
    with pytest.raises(InputError, match="nearest"):
        fedhh.plan(at=f"item-central-epsilon={epsilon / 2}", **asked)


def test_the_smaller_of_two_epsilons_decides():
    config = parse_config({"population": {"clients": 12_000}}, "test")
    both = Goal(unit="item", central_epsilon=3.0, local_epsilon=2.0)
    assert with_guarantee(config, both, 12_000).privacy.local_epsilon == 2.0
    central = replace(both, local_epsilon=None)
    alone = with_guarantee(config, central, 12_000).privacy.local_epsilon
    assert alone > 2.0
    loose = replace(both, local_epsilon=alone + 1)
    assert with_guarantee(config, loose, 12_000).privacy.local_epsilon == alone


def test_where_the_largest_local_epsilon_gives_less_than_is_allowed_it_is_taken():
    goal = Goal(unit="item", central_epsilon=90.0)
    config = parse_config({"population": {"clients": 12_000}}, "test")
    assert 16 <= with_guarantee(config, goal, 12_000).privacy.local_epsilon <= 90


INFEASIBLE = {
    "bytes": (
        {"max_bytes": 20},
        r"No settings meet the goal\. The nearest tried, of .*--max-bytes \d+ B, got 20 B",
    ),
    "days": ({"days": 0.5}, r"No settings meet .*--days \d+ \(\d+ rounds\), got 0\.5"),
    "precision": (
        # Without the validation round, which precision of 1 takes.
        {
            "min_precision": 1.0,
            "protocols": ("ldp-triehh",),
            "settings": (*CHAT, "baseline=none", "protocol.false_discovery_rate=0"),
        },
        r"--min-precision 0\.\d+, got 1",
    ),
}


@pytest.mark.slow("::test_what_no_protocol_promises_is_refused_with_the_reason")
@pytest.mark.parametrize(("limits", "message"), INFEASIBLE.values(), ids=INFEASIBLE)
def test_what_cannot_be_met_is_refused_with_the_nearest(limits, message: str):
    asked = {
        "protocols": ("ldp-triehh", "triehh"), "at": "item-central-epsilon=2", "runs": 2,
        "settings": CHAT,
    }  # fmt: skip
    with pytest.raises(InputError, match=message) as refusal:
        fedhh.plan(**{**asked, **limits})
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"trust_model": "nobody"}, "Unknown trust_model 'nobody'. Known: all, central"),
        ({"protocols": ("svim",)}, "population.candidates has none"),
        ({"runs": 0}, "runs >= 1"),
        ({"at": "central=1"}, "Expected --at item-central-epsilon=E"),
        ({"max_upload": "big"}, "--max-upload"),
    ],
)
def test_wrong_input_is_refused_in_one_line(given, message: str):
    asked = {"settings": CHAT, "at": "item-central-epsilon=1", "protocols": ("triehh",)}
    with pytest.raises(InputError, match=message) as refusal:
        fedhh.plan(**{**asked, **given})
    assert "\n" not in str(refusal.value)


@pytest.mark.slow("::test_trust_models_of_given_samples_follow_from_plans")
def test_trust_models_follow_from_plans():
    words = fedhh.Candidates(tuple("abcdefgh"))
    found = {}
    for name in PROTOCOLS:
        kind = protocol_class(name)
        known = {"candidates": words} if "candidates" in kind.__dataclass_fields__ else {}
        found[name] = trust_model_of(kind(**known).settle(num_clients=50_000, seed=0))
    for name in ("triehh", "tee-histogram", "weighted-gaussian", "dp-sips", "sample-and-threshold"):
        assert found.pop(name) == "central"
    assert found.pop("blender") == "hybrid"
    assert found.pop("secagg-triehh") == "secure aggregation"
    assert found.pop("two-servers") == "two servers"
    assert set(found.values()) == {"local"}


def test_rounds_that_can_be_asked_at_once_take_one_day():
    pem = fedhh.Pem(max_items=1).settle(num_clients=20_000, seed=0)
    assert len(pem.plan.layers) > 1
    assert pem.rounds_in_turn == 1
    validated = replace(pem, false_discovery_rate=0.05)
    assert validated.rounds_in_turn == 2
    assert fedhh.TwoServers().settle(num_clients=20_000, seed=0).rounds_in_turn == 1
    trie = fedhh.LdpTrieHH().settle(num_clients=50_000, seed=0)
    assert trie.rounds_in_turn == len(trie.plan.layers)


def test_the_interval_is_for_one_more_run():
    # Student's t of 4 degrees of freedom at 0.975, from a printed table.
    values = [0.50, 0.52, 0.49, 0.51, 0.53]
    spread = math.sqrt(sum((x - 0.51) ** 2 for x in values) / 4)
    half = 2.7764 * spread * math.sqrt(1 + 1 / 5)
    found = Predicted.of(values)
    assert found.mean == pytest.approx(0.51)
    assert (found.low, found.high) == pytest.approx((0.51 - half, 0.51 + half), abs=1e-5)
    wider = Predicted.of(values, std_error=0.03)
    assert wider.high - wider.mean == pytest.approx(math.hypot(half, 1.95996 * 0.03), abs=1e-5)
    assert Predicted.of([0.4]) == Predicted(mean=0.4)


@pytest.mark.parametrize(("draws", "clients", "off"), thinned([(12, 300, 0.6), (60, 1_000, 0.35)]))
def test_the_error_of_a_share_by_the_draw_of_clients_is_what_draws_show(draws, clients, off):
    words = ("lol", "dont", "im", "pre", "ii", "haha")
    shares, errors = [], []
    for seed in range(draws):
        drawn = fedhh.synthetic_population("chat", clients, seed=seed)
        held = np.array([i for i, word in enumerate(drawn.lexicon.words) if word in words])
        shares.append(drawn.word_counts().typed[held].sum() / drawn.word_counts().typed.sum())
        errors.append(share_std_error(drawn, held))
    # Of 60 draws, a standard deviation is known to a tenth.
    assert np.std(shares, ddof=1) == pytest.approx(np.mean(errors), rel=off)


@pytest.mark.slow("::test_what_no_protocol_promises_is_refused_with_the_reason")
def test_a_protocol_whose_bytes_nobody_knows_is_left_out_with_the_reason():
    found = fedhh.plan(
        settings=CHAT,
        protocols=("two-servers", "tee-histogram"),
        at="user-central-epsilon=4",
        runs=4,
    )
    assert {each.trial.config.protocol.name for each in found.predictions} == {"tee-histogram"}
    assert "depends on cryptography that is not built" in found.left_out["two-servers"]
