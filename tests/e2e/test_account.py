"""`fedhh account`: what it prints, saves and refuses."""

from __future__ import annotations

import pytest
from dp_accounting import NeighboringRelation, dp_event
from dp_accounting.pld import PLDAccountant

from fedhh.experiments.config.load import load_config
from fedhh.experiments.config.protocol import settle
from fedhh.experiments.run.privacy import epsilon_of, privacy_of_run
from tests.thinned import thinned

GBOARD = ("--local-epsilon", "10", "--reports", "30000000")
GBOARD_SS = (*GBOARD, "--oracle", "ss", "--domain-size", "1000001")


def bounds_of(report: dict) -> dict[str, dict]:
    return {each["method"]: each for each in report["guarantees"]}


def test_shuffle_states_every_bound_of_gboards_case(answer):
    found = answer("account", "shuffle", *GBOARD_SS)
    bounds = bounds_of(found)
    assert list(bounds) == ["closed-form", "clones", "clones-2023", "blanket"]
    for bound in bounds.values():
        assert (bound["unit"], bound["neighboring"], bound["delta"]) == (
            "item",
            "replace-one",
            1e-10,
        )
        assert bound["reason"] is None
    assert bounds["closed-form"]["epsilon"] == pytest.approx(0.56544, abs=1e-5)
    assert bounds["clones"]["epsilon"] == pytest.approx(0.3074662, abs=1e-7)
    assert bounds["clones-2023"]["epsilon"] == pytest.approx(0.2138382, abs=1e-7)
    assert bounds["blanket"]["epsilon"] <= 0.14945
    assert [key for key, bound in bounds.items() if bound["best"]] == ["blanket"]
    for key in ("clones-2023", "closed-form"):
        assert "Subset Selection by docs/accounting.md" in bounds[key]["theorem"]


@pytest.mark.slow("tests/accounting/test_collusion.py::test_gboards_point_with_an_honest_share")
def test_a_shuffle_states_what_remains_when_clients_collude(answer, fedhh):
    found = answer("account", "shuffle", *GBOARD, "--honest-share", "0.9")
    assert "27,000,000 of 30,000,000 reports are honest" in found["notes"][1]
    assert bounds_of(found)["clones"]["epsilon"] == pytest.approx(0.32504, abs=1e-5)
    of_tenth = ("--colluders", "50000000", "--population", "500000000", "--max-items", "60")
    drawn = answer("account", "shuffle", *GBOARD, *of_tenth, "--excess-chance", "1e-11")
    assert 0.325 < bounds_of(drawn)["clones"]["epsilon"] < 0.326
    assert bounds_of(drawn)["clones"]["delta"] == pytest.approx(1.1e-10)
    chosen = answer(
        "account", "user", "--local-epsilon", "2", "--clients", "1000", "--max-items", "2",
        "--colluders", "600", "--population", "9000", "--chosen-cohort", "--delta", "1e-3",
    )  # fmt: skip
    slots = bounds_of(chosen)["clones, slots"]
    assert (slots["smallest_cohort"], slots["delta"]) == (400, 1e-3)
    for words, message in (
        (("--population", "9"), "--population only with --colluders"),
        (("--chosen-cohort",), "--chosen-cohort only with --colluders"),
        (("--colluders", "9"), "--population with --colluders"),
        ((*of_tenth, "--chosen-cohort", "--excess-chance", "1e-9"), "--excess-chance or --chosen"),
        (("--honest-share", "0"), "0 < honest_share <= 1"),
    ):
        code, _, err = fedhh("account", "shuffle", *GBOARD, *words)
        assert code == 2
        assert message in err


@pytest.mark.slow(
    "tests/accounting/test_plan_search.py::test_a_small_plan_is_searched_for_with_an_honest_share"
)
def test_a_plan_is_found_in_spite_of_colluders(answer, fedhh):
    words = ("account", "plan", "--local-epsilon", "4", "--central-epsilon", "1", "--oracle", "grr")
    clients = [answer(*words, "--honest-share", share)["plan"]["clients"] for share in ("1", "0.5")]
    assert 2 * clients[0] < clients[1] < 2.5 * clients[0]
    code, out, _ = fedhh(*words, "--honest-share", "0.5")
    assert code == 0
    assert "0.5 of all clients are honest" in out


def test_a_bound_that_does_not_apply_has_a_reason_and_no_number(answer):
    bounds = bounds_of(answer("account", "shuffle", "--local-epsilon", "10", "--reports", "1000"))
    assert bounds["closed-form"]["epsilon"] is None
    assert bounds["closed-form"]["reason"]
    assert bounds["clones"]["epsilon"] <= 10
    # For any randomizer, what rests on the erratum's theorem is for comparison only.
    compared = [key for key, each in bounds.items() if "comparison only" in each["assumptions"]]
    assert compared == ["closed-form", "clones-2023"]
    assert "erratum" in bounds["clones-2023"]["theorem"]


def test_a_domain_of_two_values_has_bounds(answer, fedhh):
    words = ("--local-epsilon", "1", "--reports", "1000", "--oracle", "ss", "--domain-size", "2")
    found = answer("account", "shuffle", *words)
    assert bounds_of(found)["blanket"]["epsilon"] > 0
    assert fedhh("account", "shuffle", *words)[0] == 0


def test_user_level_is_the_smaller_of_groups_and_slots(answer):
    found = answer(
        "account", "user", "--local-epsilon", "6", "--clients", "2000", "--max-items", "3",
        "--delta", "1e-6", "--domain-size", "1001",
    )  # fmt: skip
    (local, *central) = found["guarantees"]
    assert (local["unit"], local["trust"], local["epsilon"]) == ("user", "local", 18)
    methods = ["clones, groups", "clones, slots", "blanket, groups", "blanket, slots"]
    assert [each["method"] for each in central] == methods
    (best,) = [each["epsilon"] for each in central if each["best"]]
    assert best == min(each["epsilon"] for each in central[2:])
    assert best < min(each["epsilon"] for each in central[:2])


def test_anonymity_of_gboards_case_is_none_as_printed_and_49_corrected(answer):
    sizes = ("--reports", "30000000", "--eta-max", "10000", "--alphabet-size", "100")
    lemma, tight = answer("account", "anonymity", "--local-epsilon", "10", *sizes)["anonymity"]
    assert (lemma["variant"], lemma["k"]) == ("lemma", None)
    assert lemma["probability"] == pytest.approx(0.1418, abs=1e-4)
    assert (tight["variant"], tight["k"]) == ("tight", 49)
    assert tight["probability"] <= 0.05
    twice = answer("account", "anonymity", "--local-epsilon", "10", *sizes, "--passes", "2")
    assert twice["anonymity"][1]["k"] == 26
    weaker = answer("account", "anonymity", "--local-epsilon", "8", *sizes)
    assert weaker["anonymity"][0]["k"] == 45


def central_of(found: dict, unit: str) -> dict:
    (guarantee,) = [
        each for each in found["guarantees"] if (each["unit"], each["trust"]) == (unit, "central")
    ]
    return guarantee


@pytest.mark.slow(
    "tests/accounting/test_accounts.py::test_a_small_plans_clients_give_back_its_local_epsilon"
)
def test_a_plan_covers_all_of_its_rounds_and_both_units(answer):
    target = ("--central-epsilon", "1", "--local-epsilon", "6", "--max-items", "60")
    one = answer("account", "plan", *target)
    several = answer("account", "plan", *target, "--layers", "10", "--passes", "2")
    cohort = one["plan"]["clients"]
    assert several["plan"]["clients_per_layer"] == [cohort] * 20
    assert several["plan"]["clients"] == 20 * cohort
    assert one["unit"] == "item"
    assert (central_of(one, "item")["neighboring"], central_of(one, "item")["delta"]) == (
        "replace-one",
        1e-10,
    )
    stated = {(each["unit"], each["trust"]): each["epsilon"] for each in several["guarantees"]}
    assert stated["item", "local"] == 6
    assert stated["user", "local"] == 360
    assert stated["item", "central"] <= 1 < stated["user", "central"]
    assert all(each["theorem"] for each in several["guarantees"])
    # Half of the clones' clients do for Subset Selection; any other randomizer needs them all.
    other = answer("account", "plan", *target, "--oracle", "grr")
    assert other["plan"]["clients"] == 1_094
    assert cohort < 600
    rounds = ("--layers", "4", "--validation-share", "0.1")
    validated = answer("account", "plan", *target, *rounds)["plan"]
    *layers, validation = validated["clients_per_layer"]
    assert len(layers) == 4
    assert min(*layers, validation) >= cohort - 1
    assert validation == int(0.1 * validated["clients"])


@pytest.mark.slow(
    "tests/accounting/test_accounts.py::test_a_small_plans_clients_give_back_its_local_epsilon"
)
@pytest.mark.parametrize("domain", [(), ("--domain-size", "1000001"), ("--eta-max", "500")])
def test_a_plan_and_its_reverse_agree(answer, domain):
    target = ("--central-epsilon", "1", "--layers", "2", "--max-items", "10", *domain)
    clients = answer("account", "plan", "--local-epsilon", "6", *target)["plan"]["clients"]
    back = answer("account", "plan", "--clients", str(clients), *target)
    assert back["plan"]["local_epsilon"] == pytest.approx(6, abs=0.01)
    assert 1 - 2e-3 <= central_of(back, "item")["epsilon"] <= 1


@pytest.mark.slow(
    "tests/accounting/test_accounts.py::test_a_protocols_plan_has_all_clients_and_its_title"
)
def test_a_presets_plan_is_its_protocols(answer):
    words = "account plan --preset small --set protocol.max_items=1 --central-epsilon 1"
    found = answer(*words.split(), "--delta", "1e-6")
    config = load_config(
        preset="small", settings=["protocol.max_items=1", "protocol.clients_per_layer=auto"]
    )
    for clients, meets in ((found["plan"]["clients"], True), (found["plan"]["clients"] - 1, False)):
        _, settled = settle(config, clients)
        report = privacy_of_run(settled, num_clients=clients, delta=1e-6)
        assert (epsilon_of(report.before_run("item")) <= 1) == meets
        if meets:
            layers = [each.num_clients for each in settled.plan.layers]
            assert found["plan"]["clients_per_layer"] == layers
            for unit in ("item", "user"):
                assert central_of(found, unit)["epsilon"] == report.before_run(unit).epsilon
    assert found["plan"]["local_epsilon"] == config.privacy.local_epsilon


@pytest.mark.slow("tests/accounting/test_accounts.py::test_a_plan_out_of_reach_has_a_reason")
def test_a_plan_that_nothing_reaches_says_so(answer, fedhh):
    words = ("--central-epsilon", "1e-9", "--local-epsilon", "16")
    found = answer("account", "plan", *words)
    assert found.keys() == {"plan", "reason"}
    assert found["plan"] is None
    assert "1,000,000,000,000 clients" in found["reason"]
    code, out, _ = fedhh("account", "plan", *words)
    assert code == 0
    assert "no plan" in out
    code, out, _ = fedhh("account", "plan", "--central-epsilon", "1", "--local-epsilon", "2")
    assert code == 0
    assert "clients in all" in out


SHUFFLE = ("shuffle", "--local-epsilon", "1", "--reports", "1000")
PLAN = ("plan", "--central-epsilon", "1")
ANONYMITY = ("anonymity", "--local-epsilon", "1", "--reports", "100")


@pytest.mark.parametrize(
    ("words", "message"),
    thinned(
        [
            (("shuffle", "--local-epsilon", "0", "--reports", "9"), "0.1 <= local_epsilon <= 16.0"),
            (("shuffle", "--local-epsilon", "x", "--reports", "9"), "--local-epsilon"),
            (("shuffle", "--local-epsilon", "1", "--reports", "1"), "2 <= num_reports"),
            (("shuffle", "--local-epsilon", "1", "--reports", "2.5"), "--reports"),
            (("shuffle", "--local-epsilon", "1"), "Missing option '--reports'"),
            ((*SHUFFLE, "--delta", "0"), "1e-14 <= delta <= 0.1, got delta=0.0"),
            ((*SHUFFLE, "--oracle", "ss"), "--domain-size with --oracle ss"),
            ((*SHUFFLE, "--oracle", "zz"), "Unknown oracle 'zz'"),
            ((*SHUFFLE, "--oracle", "ss", "--domain-size", "1"), "domain_size=1"),
            ((*SHUFFLE, "--figure", "bounds.xyz"), "ends in .png, .pdf, .svg, got 'bounds.xyz'"),
            (PLAN, "got neither"),
            ((*PLAN, "--local-epsilon", "1", "--clients", "9"), "got both"),
            ((*PLAN, "--clients", "9", "--layers", "10"), "a client for each of 10 layers, got 9"),
            ((*PLAN, "--clients", "0"), "clients=0"),
            ((*PLAN, "--clients", "9", "--unit", "word"), "Unknown unit 'word'"),
            ((*PLAN, "--clients", "9", "--validation-share", "1"), "validation_share=1.0"),
            ((*PLAN, "--clients", "9", "--domain-size", "1"), "domain_size >= 2"),
            ((*PLAN, "--clients", "9", "--domain-size", "9", "--eta-max", "9"), "leave one out"),
            ((*PLAN, "--clients", "9", "--set", "seed=1"), "--set only with --preset or --config"),
            ((*PLAN, "--preset", "small", "--layers", "2"), "got both; change a preset's"),
            ((*PLAN, "--preset", "small", "--set", "protocol.name=triehh"), "got TrieHH (central)"),
            ((*PLAN, "--local-epsilon", "1", "--max-items", "0"), "max_items=0"),
            (("plan", "--central-epsilon", "0", "--clients", "9"), "central_epsilon=0"),
            (
                ("user", "--local-epsilon", "1", "--clients", "1", "--max-items", "2"),
                "num_clients=1",
            ),
            (("user", "--local-epsilon", "1", "--clients", "9", "--max-items", "0"), "max_items=0"),
            ((*ANONYMITY, "--eta-max", "0", "--alphabet-size", "9"), "eta_max=0"),
            ((*ANONYMITY, "--eta-max", "9", "--alphabet-size", "9", "--alpha", "1"), "alpha=1.0"),
            ((*ANONYMITY, "--eta-max", "9", "--alphabet-size", "9", "--passes", "0"), "passes=0"),
        ],
        keep=6,
    ),
)
def test_wrong_input_is_refused_in_one_line(refused, tmp_path, words, message):
    assert message in refused("account", *words)
    assert not list(tmp_path.iterdir())


def test_tables_name_each_bound_with_its_source(fedhh, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    code, out, _ = fedhh("account", "shuffle", *GBOARD_SS)
    assert code == 0
    assert "item level, replace-one" in out
    for text in ("0.565441", "0.307467", "0.213839", "by docs/accounting.md, section 2"):
        assert text in out
    code, out, _ = fedhh("account", "shuffle", *SHUFFLE[1:])
    assert code == 0
    assert "Theorem 3.1, with its erratum" in out
    assert "comparison only" in out


@pytest.mark.slow("tests/e2e/test_account_ledger.py::test_an_event_is_python_that_evaluates_to_it")
@pytest.mark.parametrize(("unit", "reports"), [("item", 1), ("user", 5)])
def test_a_plan_is_an_event_of_all_reports_about_a_unit(fedhh, unit, reports):
    words = "account plan --local-epsilon 2 --central-epsilon 1 --max-items 5 --format dp-event"
    code, out, _ = fedhh(*words.split(), "--unit", unit)
    assert code == 0
    event = eval(out.splitlines()[1], vars(dp_event))
    accountant = PLDAccountant(NeighboringRelation.REPLACE_ONE).compose(event)
    assert accountant.get_epsilon(0) == pytest.approx(2 * reports)


def test_a_plan_is_that_of_a_preset_or_of_numbers_and_never_both(fedhh):
    code, _, said = fedhh("account", *PLAN, "--preset", "small", "--layers", "2")
    assert code == 2
    assert "got both; change a preset's" in said
