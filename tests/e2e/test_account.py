"""`fedhh account`: what it prints, saves and refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from dp_accounting import NeighboringRelation, dp_event
from dp_accounting.pld import PLDAccountant

from fedhh.accounting import UserLevelEpsilon, user_level_epsilon
from fedhh.experiments.config.load import load_config
from fedhh.experiments.config.protocol import settle
from fedhh.experiments.run.privacy import epsilon_of, privacy_of_plan
from fedhh.oracles import ORACLES

GBOARD = ("--local-epsilon", "10", "--reports", "30000000")
GBOARD_SS = (*GBOARD, "--oracle", "ss", "--domain-size", "1000001")


@pytest.fixture
def fedhh(command):
    """Exit code, standard output, standard error."""

    def call(*words: str) -> tuple[int, str, str]:
        done = command(*words)
        return done.returncode, done.stdout, done.stderr

    return call


@pytest.fixture
def answer(fedhh):
    """The JSON that a command prints."""

    def call(*words: str) -> dict:
        code, out, err = fedhh("account", *words, "--format", "json")
        assert (code, err) == (0, "")
        return json.loads(out)

    return call


def test_shuffle_states_every_bound_of_gboards_case(answer):
    found = answer("shuffle", *GBOARD_SS)
    assert (found["unit"], found["neighboring"], found["delta"]) == ("item", "swap", 1e-10)
    bounds = found["bounds"]
    assert list(bounds) == ["closed_form", "clones", "clones_2023", "ss_blanket"]
    for bound in bounds.values():
        assert {"epsilon", "delta", "applicable", "source"} <= bound.keys()
        assert bound["applicable"]
        assert bound["delta"] == 1e-10
    assert bounds["closed_form"]["epsilon"] == pytest.approx(0.56544, abs=1e-5)
    assert bounds["clones"]["epsilon"] == pytest.approx(0.3074662, abs=1e-7)
    assert bounds["clones_2023"]["epsilon"] == pytest.approx(0.2138382, abs=1e-7)
    assert bounds["ss_blanket"]["epsilon"] <= 0.14945
    for key in ("clones_2023", "closed_form"):
        assert "Subset Selection by docs/accounting.md" in bounds[key]["source"]
    assert all(bound["proven"] for bound in bounds.values())
    assert found["true_epsilon_at_least"] == pytest.approx(0.1492862, abs=1e-7)
    assert found["true_epsilon_at_least"] <= bounds["ss_blanket"]["epsilon"]


def test_a_bound_that_does_not_apply_has_a_reason_and_no_number(answer):
    bounds = answer("shuffle", "--local-epsilon", "10", "--reports", "1000")["bounds"]
    for key in ("closed_form", "ss_blanket"):
        assert bounds[key]["epsilon"] is None
        assert bounds[key]["applicable"] is False
        assert bounds[key]["reason"]
    assert bounds["clones"]["epsilon"] <= 10
    # For any randomizer, what rests on the erratum's theorem is for comparison only.
    assert [key for key, bound in bounds.items() if not bound["proven"]] == [
        "closed_form",
        "clones_2023",
    ]
    assert "erratum" in bounds["clones_2023"]["source"]
    assert "comparison only" in bounds["clones_2023"]["note"]


def test_a_domain_of_two_values_has_no_attack_but_bounds(answer, fedhh):
    words = ("--local-epsilon", "1", "--reports", "1000", "--oracle", "ss", "--domain-size", "2")
    found = answer("shuffle", *words)
    assert found["true_epsilon_at_least"] is None
    assert found["bounds"]["ss_blanket"]["epsilon"] > 0
    assert fedhh("account", "shuffle", *words)[0] == 0


def test_user_level_is_the_smaller_of_groups_and_slots(answer):
    found = answer(
        "user", "--local-epsilon", "6", "--clients", "2000", "--max-items", "3",
        "--delta", "1e-6", "--domain-size", "1001",
    )  # fmt: skip
    assert found["unit"] == "user"
    assert found["local_epsilon_of_all_contributions"] == 18
    assert list(found["bounds"]) == ["clones", "blanket"]
    for row in found["bounds"].values():
        assert row["epsilon"] == min(row["groups"], row["slots"])
        assert row["method"] in {"groups", "slots"}
    assert found["bounds"]["blanket"]["epsilon"] < found["bounds"]["clones"]["epsilon"]


def test_anonymity_of_gboards_case_is_none_as_printed_and_49_corrected(answer):
    sizes = ("--reports", "30000000", "--eta-max", "10000", "--alphabet-size", "100")
    found = answer("anonymity", "--local-epsilon", "10", *sizes)
    assert found["lemma"]["k"] is None
    assert found["lemma"]["probability"] == pytest.approx(0.1418, abs=1e-4)
    assert found["tight"]["k"] == 49
    assert found["tight"]["probability"] <= 0.05
    assert answer("anonymity", "--local-epsilon", "10", *sizes, "--passes", "2")["tight"]["k"] == 26
    assert answer("anonymity", "--local-epsilon", "8", *sizes)["lemma"]["k"] == 45


def central_of(found: dict, unit: str) -> dict:
    (guarantee,) = [
        each for each in found["guarantees"] if (each["unit"], each["trust"]) == (unit, "central")
    ]
    return guarantee


def test_a_plan_covers_all_of_its_rounds_and_both_units(answer):
    target = ("--central-epsilon", "1", "--local-epsilon", "6", "--max-items", "60")
    one = answer("plan", *target)
    several = answer("plan", *target, "--layers", "10", "--passes", "2")
    cohort = one["plan"]["clients"]
    assert several["plan"]["clients_per_layer"] == [cohort] * 20
    assert several["plan"]["clients"] == 20 * cohort
    assert one["target"] == {
        "unit": "item", "trust": "central", "neighboring": "swap", "epsilon": 1.0, "delta": 1e-10,
    }  # fmt: skip
    stated = {(each["unit"], each["trust"]): each["epsilon"] for each in several["guarantees"]}
    assert stated["item", "local"] == 6
    assert stated["user", "local"] == 360
    assert stated["item", "central"] <= 1 < stated["user", "central"]
    assert all(each["theorem"] for each in several["guarantees"])
    # Half of the clones' clients do for Subset Selection; any other randomizer needs them all.
    other = answer("plan", *target, "--oracle", "grr")
    assert other["plan"]["clients"] == 1_094
    assert cohort < 600
    validated = answer("plan", *target, "--layers", "4", "--validation-share", "0.1")["plan"]
    *layers, validation = validated["clients_per_layer"]
    assert len(layers) == 4
    assert min(*layers, validation) >= cohort - 1
    assert validation == int(0.1 * validated["clients"])


@pytest.mark.parametrize("domain", [(), ("--domain-size", "1000001"), ("--eta-max", "500")])
def test_a_plan_and_its_reverse_agree(answer, domain):
    target = ("--central-epsilon", "1", "--layers", "2", "--max-items", "10", *domain)
    clients = answer("plan", "--local-epsilon", "6", *target)["plan"]["clients"]
    back = answer("plan", "--clients", str(clients), *target)
    assert back["plan"]["local_epsilon"] == pytest.approx(6, abs=0.01)
    assert 1 - 2e-3 <= central_of(back, "item")["epsilon"] <= 1


def test_a_presets_plan_is_its_protocols(answer):
    words = ("plan", "--preset", "small", "--set", "protocol.max_items=1", "--central-epsilon", "1")
    found = answer(*words, "--delta", "1e-6")
    config = load_config(
        preset="small", settings=["protocol.max_items=1", "protocol.clients_per_layer=auto"]
    )
    for clients, meets in ((found["plan"]["clients"], True), (found["plan"]["clients"] - 1, False)):
        _, settled = settle(config, clients)
        report = privacy_of_plan(settled, num_clients=clients, delta=1e-6)
        assert (epsilon_of(report.before_run("item")) <= 1) == meets
        if meets:
            layers = [each.num_clients for each in settled.mechanism.layers]
            assert found["plan"]["clients_per_layer"] == layers
            for unit in ("item", "user"):
                assert central_of(found, unit)["epsilon"] == report.before_run(unit).epsilon
    assert found["plan"]["local_epsilon"] == config.privacy.local_epsilon
    assert found["target"]["delta"] == 1e-6


def test_a_plan_that_nothing_reaches_says_so(answer, fedhh):
    words = ("--central-epsilon", "1e-9", "--local-epsilon", "16")
    found = answer("plan", *words)
    assert (found["plan"], found["guarantees"]) == (None, [])
    assert "1,000,000,000,000 clients" in found["reason"]
    code, out, _ = fedhh("account", "plan", *words)
    assert code == 0
    assert "no plan" in out
    code, out, _ = fedhh("account", "plan", "--central-epsilon", "1", "--local-epsilon", "2")
    assert code == 0
    assert "clients in all" in out


def test_an_audit_of_a_report_stands_beside_the_stated_epsilon(answer):
    found = answer(
        "audit", "--oracle", "ss", "--local-epsilon", "2", "--domain-size", "20",
        "--samples", "10000",
    )  # fmt: skip
    assert 1.5 < found["at_least"] <= 2
    assert found["upper_bounds"] == {"local": 2}
    assert found["confidence"] == 0.999
    assert found["verdict"] == "consistent"
    messages, tallies = found["parts"]
    assert "message" in messages["audited"]
    assert "worker's tally" in tallies["audited"]
    for part in (messages, tallies):
        assert 1.5 < part["at_least"] <= part["claimed"] == 2 < part["largest_detectable"]
        assert part["verdict"] == "consistent"


@pytest.mark.slow
def test_a_tally_that_always_tells_the_truth_is_refuted_by_default(fedhh, monkeypatch):
    monkeypatch.setitem(ORACLES, "ss", "tests.wrong_oracles:TellsTheTruthInTallies")
    words = ("account", "audit", "--local-epsilon", "1", "--domain-size", "20")
    code, out, err = fedhh(*words, "--format", "json")
    assert (code, err) == (1, "")
    found = json.loads(out)
    assert found["verdict"] == "refuted"
    # Its messages are honest; a run would never send them.
    assert [part["verdict"] for part in found["parts"]] == ["consistent", "refuted"]
    # In a layer of 1,000 reports chance hides the error, but not the verdict.
    code, out, err = fedhh(*words, "--reports", "1000", "--samples", "1000")
    assert (code, err) == (1, "")
    assert "verdict: refuted at confidence 0.999" in out
    assert out.count(", refuted (") == 1


def test_a_run_on_a_wrong_tally_is_refuted(fedhh, monkeypatch, tmp_path):
    monkeypatch.setitem(ORACLES, "ss", "tests.wrong_oracles:TellsTheTruthInTallies")
    code, out, err = fedhh(
        "account", "audit", "--run", str(small_run(tmp_path)), "--set", "privacy.local_epsilon=3",
        "--samples", "400", "--delta", "0.01", "--format", "json",
    )  # fmt: skip
    assert (code, err) == (1, "")
    assert json.loads(out)["verdict"] == "refuted"


def test_an_audit_of_a_layer_stands_beside_the_bounds(answer):
    found = answer(
        "audit", "--local-epsilon", "3", "--domain-size", "12", "--reports", "8",
        "--samples", "1000", "--delta", "0.01",
    )  # fmt: skip
    assert list(found["upper_bounds"]) == ["closed_form", "clones", "clones_2023", "ss_blanket"]
    assert found["at_least"] <= found["upper_bounds"]["ss_blanket"]
    assert "8 reports of ss" in found["audited"]


def small_run(tmp_path: Path) -> Path:
    """The config of a run of a few clients."""
    rows = [f"{user},{'abcdefgh'[user % 8]}{'xyz'[user % 3]}" for user in range(60)]
    (tmp_path / "said.csv").write_text("user,word\n" + "\n".join(rows) + "\n")
    (tmp_path / "run.toml").write_text(
        f'[population]\nsource = "{tmp_path / "said.csv"}"\nknown = "none"\n'
        "[protocol]\nclients_per_layer = 8\ndepth = 2\neta_max = 5\nmax_items = 1\npasses = 1\n"
    )
    return tmp_path / "run.toml"


def test_an_audit_of_a_run_stands_beside_its_claims(answer, tmp_path):
    found = answer(
        "audit", "--run", str(small_run(tmp_path)), "--set", "privacy.local_epsilon=3",
        "--samples", "300", "--delta", "0.01",
    )  # fmt: skip
    assert found["reports"] == 8
    assert found["local_epsilon"] == 3
    assert found["at_least"] <= found["upper_bounds"]["blanket"] <= 3
    assert "one client holds" in found["neighbors"]
    assert found["verdict"] == "consistent"


SHUFFLE = ("shuffle", "--local-epsilon", "1", "--reports", "1000")
PLAN = ("plan", "--central-epsilon", "1")
ANONYMITY = ("anonymity", "--local-epsilon", "1", "--reports", "100")
AUDIT = ("audit", "--local-epsilon", "1", "--domain-size", "10")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("shuffle", "--local-epsilon", "0", "--reports", "9"), "0.1 <= local_epsilon <= 16.0"),
        (("shuffle", "--local-epsilon", "nan", "--reports", "9"), "got local_epsilon=nan"),
        (("shuffle", "--local-epsilon", "100", "--reports", "9"), "got local_epsilon=100.0"),
        (("shuffle", "--local-epsilon", "x", "--reports", "9"), "--local-epsilon"),
        (("shuffle", "--local-epsilon", "1", "--reports", "1"), "2 <= num_reports"),
        (("shuffle", "--local-epsilon", "1", "--reports", "2.5"), "--reports"),
        (("shuffle", "--local-epsilon", "1"), "Missing option '--reports'"),
        ((*SHUFFLE, "--delta", "0"), "1e-14 <= delta <= 0.1, got delta=0.0"),
        ((*SHUFFLE, "--delta", "nan"), "got delta=nan"),
        ((*SHUFFLE, "--oracle", "ss"), "--domain-size with --oracle ss"),
        ((*SHUFFLE, "--oracle", "zz"), "Unknown oracle 'zz'"),
        ((*SHUFFLE, "--oracle", "ss", "--domain-size", "1"), "domain_size=1"),
        ((*SHUFFLE, "--plot", "bounds.xyz"), "ends in .png, .pdf, .svg, got 'bounds.xyz'"),
        ((*SHUFFLE, "--plot", "."), "ends in .png, .pdf, .svg"),
        (PLAN, "got neither"),
        ((*PLAN, "--local-epsilon", "1", "--clients", "9"), "got both"),
        ((*PLAN, "--clients", "9", "--layers", "10"), "a client for each of 10 layers, got 9"),
        ((*PLAN, "--clients", "0"), "clients=0"),
        ((*PLAN, "--clients", "9", "--unit", "word"), "Unknown unit 'word'"),
        ((*PLAN, "--clients", "9", "--oracle", "none"), "Unknown oracle 'none'"),
        ((*PLAN, "--clients", "9", "--delta", "0"), "1e-14 <= delta <= 0.1"),
        ((*PLAN, "--clients", "9", "--validation-share", "1"), "validation_share=1.0"),
        ((*PLAN, "--clients", "9", "--domain-size", "1"), "domain_size >= 2"),
        ((*PLAN, "--clients", "9", "--domain-size", "9", "--eta-max", "9"), "leave one out"),
        ((*PLAN, "--clients", "9", "--set", "seed=1"), "--set only with --preset or --config"),
        ((*PLAN, "--preset", "small", "--layers", "2"), "got both; change a preset's"),
        ((*PLAN, "--preset", "small", "--set", "protocol.name=triehh"), "got TrieHH (central)"),
        ((*PLAN, "--local-epsilon", "1", "--max-items", "0"), "max_items=0"),
        (("plan", "--central-epsilon", "0", "--clients", "9"), "central_epsilon=0"),
        (("plan", "--central-epsilon", "nan", "--clients", "9"), "central_epsilon=nan"),
        (("user", "--local-epsilon", "1", "--clients", "1", "--max-items", "2"), "num_clients=1"),
        (("user", "--local-epsilon", "1", "--clients", "9", "--max-items", "0"), "max_items=0"),
        ((*ANONYMITY, "--eta-max", "0", "--alphabet-size", "9"), "eta_max=0"),
        ((*ANONYMITY, "--eta-max", "9", "--alphabet-size", "0"), "alphabet_size=0"),
        ((*ANONYMITY, "--eta-max", "9", "--alphabet-size", "9", "--alpha", "1"), "alpha=1.0"),
        ((*ANONYMITY, "--eta-max", "9", "--alphabet-size", "9", "--passes", "0"), "passes=0"),
        (("audit",), "Expected --local-epsilon"),
        ((*AUDIT, "--samples", "2"), "num_samples=2"),
        ((*AUDIT, "--confidence", "1"), "confidence=1.0"),
        ((*AUDIT, "--oracle", "zz"), "Unknown oracle 'zz'"),
        ((*AUDIT, "--reports", "1"), "num_reports=1"),
        ((*AUDIT, "--run", "small"), "--run without --local-epsilon"),
        ((*AUDIT, "--set", "seed=3"), "--set only with --run"),
        (("audit", "--run", "no-such-preset"), "no-such-preset"),
        (("audit", "--run", "small", "--set", "protocol.etamax=3"), "did you mean 'eta_max'"),
    ],
)
def test_wrong_input_is_refused_in_one_line(fedhh, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = fedhh("account", *words)
    assert code == 2
    assert out == ""
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert message in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "start"), [("b.png", b"\x89PNG"), ("b.pdf", b"%PDF"), ("new/b.svg", b"<?xml")]
)
def test_a_figure_is_written_whole(fedhh, tmp_path, name, start):
    code, out, err = fedhh(
        "account", "shuffle", "--local-epsilon", "0.5", "--reports", "100",
        "--plot", str(tmp_path / name),
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert (tmp_path / name).read_bytes().startswith(start)
    assert [p.name for p in (tmp_path / name).parent.iterdir()] == [Path(name).name]
    assert "Wrote" in out


def test_json_stays_json_with_a_figure(fedhh, tmp_path):
    words = ("shuffle", "--local-epsilon", "0.5", "--reports", "100", "--format", "json")
    _, out, _ = fedhh("account", *words, "--plot", str(tmp_path / "b.png"))
    assert json.loads(out)["bounds"]
    assert (tmp_path / "b.png").exists()


def test_a_figure_that_fails_leaves_nothing(fedhh, tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    def full_disk(self, path, **_):
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full_disk)
    (tmp_path / "b.png").write_bytes(b"old")
    code, _, err = fedhh("account", *SHUFFLE[:-1], "50", "--plot", str(tmp_path / "b.png"))
    assert code == 2
    assert "No space left on device" in err
    assert [p.name for p in tmp_path.iterdir()] == ["b.png"]
    assert (tmp_path / "b.png").read_bytes() == b"old"


def test_tables_name_each_bound_with_its_source(fedhh, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    code, out, _ = fedhh("account", "shuffle", *GBOARD_SS)
    assert code == 0
    assert "item level, swap" in out
    for text in ("0.565441", "0.307467", "0.213839", "by docs/accounting.md, section 2", "attack"):
        assert text in out
    code, out, _ = fedhh("account", "shuffle", *SHUFFLE[1:])
    assert code == 0
    assert "Theorem 3.1, with its erratum" in out
    assert "comparison only" in out


def test_the_command_is_there_as_a_process():
    done = subprocess.run(
        [sys.executable, "-m", "fedhh", "account", "shuffle", "--local-epsilon", "0",
         "--reports", "10"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == ("Error: Expected 0.1 <= local_epsilon <= 16.0, got local_epsilon=0.0.\n")


def test_oracles_stand_side_by_side_with_one_recommended(answer):
    found = answer("oracles", "--epsilon", "10", "--domain-size", "1000000")
    rows = {row["name"]: row for row in found["oracles"]}
    assert set(rows) | set(found["refused"]) == set(ORACLES) - {"none"}
    assert found["recommended"] == "ss"
    assert rows["ss"]["variance"] == pytest.approx(1.796e-4, rel=5e-4)
    assert rows["sue"]["relative_to_oue"] == pytest.approx(37.6, rel=0.01)
    assert rows["olh"]["aggregate_size"] is None
    sketches = {name for name, row in rows.items() if row["is_sketch"]}
    assert sketches == {"cms", "hcms", "hashtogram", "flh", "bassily-smith"}
    assert "485,210,757" in found["refused"]["pgr"]


def test_oracles_are_printed_and_drawn(fedhh, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "130")
    words = ("--epsilon", "4", "--domain-size", "100", "--plot", str(tmp_path / "o.png"))
    code, out, err = fedhh("account", "oracles", *words)
    assert (code, err) == (0, "")
    assert (tmp_path / "o.png").read_bytes().startswith(b"\x89PNG")
    assert "Use grr: 100 values are fewer than 3 e^epsilon + 2 = 166" in out
    # From the field's table, at this epsilon and domain.
    for number in ("0.05312", "0.05588", "0.07602", "0.181", "1.076", "0.2852"):
        assert number in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--epsilon", "0", "--domain-size", "9"), "epsilon=0"),
        (("--epsilon", "nan", "--domain-size", "9"), "epsilon=nan"),
        (("--epsilon", "1", "--domain-size", "1"), "domain_size=1"),
        (("--epsilon", "1", "--domain-size", "9", "--plot", "o.txt"), "o.txt"),
    ],
)
def test_an_impossible_comparison_of_oracles_is_refused_in_one_line(fedhh, words, message):
    code, out, err = fedhh("account", "oracles", *words)
    assert (code, out) == (2, "")
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert message in err


# Independently computed reference: the deviation of the item of rank 10 in Apple's figure 4b.
CMS_FIGURE = {(16, 2048): 63_210, (256, 256): 42_583, (1024, 2048): 12_074, (4096, 65536): 9_620}


def test_the_deviation_of_count_mean_sketch_is_apples_figure(answer, monkeypatch):
    # Sketches of all the figure's values take long to draw; below, of fewer.
    monkeypatch.setattr("fedhh.oracles.sketch_errors._SIMULATED", ())
    found = answer("cms-variance")
    surface = {(e["num_cells"], e["num_hashes"]): e["deviation"] for e in found["surface"]}
    assert {size: round(surface[size]) for size in CMS_FIGURE} == CMS_FIGURE
    assert round(found["floor"]) == 9_595


def test_drawn_sketches_deviate_as_the_formula_says(answer):
    found = answer("cms-variance", "--values", "30000", "--reports", "30000000")
    surface = {(e["num_cells"], e["num_hashes"]): e["deviation"] for e in found["surface"]}
    assert len(found["simulated"]) == 2
    for each in found["simulated"]:
        formula = surface[each["num_cells"], each["num_hashes"]]
        assert each["deviation"] == pytest.approx(formula, rel=0.05)


def test_the_deviation_of_count_mean_sketch_is_drawn_and_printed(fedhh, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    words = ("--values", "10000", "--reports", "1000000", "--plot", str(tmp_path / "c.png"))
    code, out, err = fedhh("account", "cms-variance", *words)
    assert (code, err) == (0, "")
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    # sqrt(10**6 e) / (e - 1)
    assert "No size goes below 960." in out
    assert "k = 65,536" in out
    assert "Wrote" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--values", "100"), "values=100"),
        (("--rank", "0"), "rank=0"),
        (("--reports", "10"), "reports=10"),
        (("--epsilon", "0"), "epsilon=0"),
        (("--plot", "c.txt"), "c.txt"),
    ],
)
def test_an_impossible_sketch_is_refused_in_one_line(fedhh, words, message):
    code, out, err = fedhh("account", "cms-variance", *words)
    assert (code, out) == (2, "")
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert message in err


def test_a_second_opinion_stands_next_to_each_bound_and_changes_none(answer):
    words = ("shuffle", "--local-epsilon", "6", "--reports", "20000")
    words += ("--oracle", "ss", "--domain-size", "1000")
    plain, found = answer(*words), answer(*words, "--second-opinion")
    for key, bound in found["bounds"].items():
        opinion = bound.pop("second_opinion")
        assert bound == plain["bounds"][key]
        if key == "closed_form":
            assert opinion is None
            continue
        assert opinion["epsilon"] == bound["epsilon"]
        assert 0 < opinion["lower"] <= bound["epsilon"] <= opinion["upper"] * 1.001
        assert opinion["difference"] == bound["epsilon"] - opinion["upper"]
        assert opinion["lower"] > 0.99 * opinion["upper"]


def test_the_second_opinion_of_a_user_is_on_slots(answer):
    words = ("user", "--local-epsilon", "2", "--clients", "500", "--max-items", "5")
    words += ("--delta", "1e-6")
    plain, found = answer(*words), answer(*words, "--second-opinion")
    for name, bound in found["bounds"].items():
        opinion = bound.pop("second_opinion")
        assert bound == plain["bounds"][name]
        assert opinion["epsilon"] == bound["slots"]
        assert opinion["lower"] <= bound["slots"] <= opinion["upper"] * 1.002
        assert opinion["lower"] > 0.99 * opinion["upper"]


def test_the_table_of_second_opinions_has_a_row_for_each(fedhh):
    words = ("--local-epsilon", "2", "--reports", "100")
    code, out, _ = fedhh("account", "shuffle", *words, "--second-opinion")
    assert code == 0
    _, rows = out.split("second opinion")
    assert [rows.count(f" {name} ") for name in ("clones", "clones-2023", "blanket")] == [1, 1, 0]


@pytest.mark.parametrize(
    "words",
    [
        ("shuffle", "--local-epsilon", "2", "--reports", "1000"),
        ("user", "--local-epsilon", "2", "--clients", "500", "--max-items", "5"),
    ],
)
def test_shuffles_have_no_event_and_small_deltas_no_second_opinion(refused, words):
    assert "shuffled" in refused("account", *words, "--format", "dp-event")
    for delta in ("9e-11", "1e-14"):
        assert delta in refused("account", *words, "--delta", delta, "--second-opinion")


@pytest.mark.parametrize(("unit", "reports"), [("item", 1), ("user", 5)])
def test_a_plan_is_an_event_of_all_reports_about_a_unit(fedhh, unit, reports):
    words = ("plan", "--local-epsilon", "2", "--central-epsilon", "1", "--max-items", "5")
    code, out, _ = fedhh("account", *words, "--unit", unit, "--format", "dp-event")
    assert code == 0
    event = eval(out.splitlines()[1], vars(dp_event))
    accountant = PLDAccountant(NeighboringRelation.REPLACE_ONE).compose(event)
    assert accountant.get_epsilon(0) == pytest.approx(2 * reports)


def test_a_number_below_the_lower_bound_ends_the_command(fedhh, monkeypatch):
    def too_small(**asked) -> UserLevelEpsilon:
        found = user_level_epsilon(**asked)
        return UserLevelEpsilon(groups=found.groups, slots=0.9 * found.slots)

    monkeypatch.setattr("fedhh.accounting.shuffle_accounts.user_level_epsilon", too_small)
    words = ("--local-epsilon", "2", "--clients", "500", "--max-items", "5", "--delta", "1e-6")
    assert fedhh("account", "user", *words)[0] == 0
    code, out, err = fedhh("account", "user", *words, "--second-opinion")
    assert (code, out) == (1, "")
    assert "RefutedClaimError" in err
    assert "clones, slots" in err
