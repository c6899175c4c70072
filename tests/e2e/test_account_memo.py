"""`fedhh account memo`: what it prints, draws and refuses."""

import json
import math

import pytest

from tests.thinned import thinned

RAPPOR = ("account", "memo", "--answer", "rappor", "--local-epsilon", "4.394449154672439")


@pytest.mark.slow("tests/longitudinal/test_memoization.py::test_the_numbers_of_the_rappor_paper")
def test_the_numbers_of_the_rappor_paper(command):
    done = command(*RAPPOR, "--bits", "4", "--days", "14", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["epsilon_first"] == pytest.approx(1.0743, abs=5e-5)
    assert found["epsilon_forever"] == pytest.approx(4.394, abs=5e-4)
    assert found["unit"].startswith("user")
    assert found["delta"] == 0
    assert [row["days"] for row in found["days"]] == [1, 2, 3, 7, 14]
    last = found["days"][-1]
    assert last["value"]["epsilon"] < found["epsilon_forever"] + 1e-9
    assert last["value_if_fresh"]["epsilon"] == pytest.approx(14 * found["epsilon_first"])
    assert 0.75 < last["value"]["lower"] < last["value_if_fresh"]["upper"] < 0.95
    assert last["change"]["epsilon"] > last["one_day"]["epsilon"] > 0
    assert last["change"]["epsilon"] > found["epsilon_forever"]
    assert found["days"][0]["change"] is None


def test_tables_say_what_is_not_covered(command):
    words = ("account", "memo", "--answer", "one-bit-mean", "--local-epsilon", "1")
    done = command(*words, "--days", "3", "--changes", "2")
    assert (done.returncode, done.stderr) == (0, "")
    visible = (math.e**2 + 1) / (math.e + 1) ** 2
    assert f"Not covered by that: with probability {visible:.4f}" in done.stdout
    assert "A and B with 2 changes?" in done.stdout
    assert "inf" in done.stdout
    assert "50% is guessing" in done.stdout


def test_json_has_null_where_nothing_bounds_epsilon(command):
    words = ("account", "memo", "--answer", "dbitflip", "--local-epsilon", "1", "--days", "2")
    found = json.loads(command(*words, "--format", "json").stdout)
    assert found["days"][1]["change"]["epsilon"] is None
    assert found["days"][1]["value"]["epsilon"] == pytest.approx(1)
    assert found["public_bits"] == pytest.approx(math.log2(math.comb(32, 4)))


@pytest.mark.slow(
    "tests/longitudinal/test_memo_account.py::test_a_device_is_looked_for_in_its_crowd"
)
def test_a_device_is_found_again_in_a_crowd(command):
    words = (*RAPPOR, "--days", "2", "--bits", "32", "--crowd", "10")
    found = json.loads(command(*words, "--format", "json").stdout)["found_in_crowd"]
    assert found["by_chance"] == 0.1 < found["lower"] < found["right"] < found["upper"]
    line = "Found again among 10 devices with the same value, 2 reports under each of two"
    printed = " ".join(command(*words).stdout.split())
    assert f"{line} pseudonyms: {100 * found['right']:.1f}%" in printed


@pytest.mark.parametrize(
    ("words", "message"),
    thinned(
        [
            (("--answer", "rapor", "--local-epsilon", "1"), "did you mean 'rappor'"),
            (("--answer", "rappor", "--local-epsilon", "0"), "local_epsilon=0.0"),
            (("--answer", "fresh", "--local-epsilon", "1", "--days", "0"), "days=0"),
            (("--answer", "fresh", "--local-epsilon", "1", "--changes", "0"), "changes=0"),
            (("--answer", "fresh", "--local-epsilon", "1", "--gamma", "0.1"), "no --gamma"),
            (("--answer", "dbitflip", "--local-epsilon", "1", "--gamma", "0.5"), "gamma=0.5"),
            (("--answer", "dbitflip", "--local-epsilon", "1", "--drawn", "40"), "num_drawn=40"),
            (("--answer", "rappor", "--local-epsilon", "1", "--bits", "3"), "num_bits=3"),
            (("--answer", "rappor", "--local-epsilon", "1", "--p", "0.8"), "p < q"),
            (("--answer", "fresh", "--local-epsilon", "1", "--oracle", "olh"), "try grr"),
            (("--answer", "rappor", "--local-epsilon", "121"), "epsilon <= 120"),
            (("--answer", "rappor", "--local-epsilon", "1", "--bits", "5000"), "at most 4096 bits"),
            (("--answer", "fresh", "--local-epsilon", "1", "--oracle", "zz"), "Unknown oracle"),
            (("--answer", "fresh", "--local-epsilon", "1", "--domain-size", "1"), "domain_size=1"),
            (("--answer", "fresh", "--local-epsilon", "1", "--crowd", "9"), "no --crowd"),
            (("--answer", "dbitflip", "--local-epsilon", "1", "--crowd", "1"), "crowd=1"),
        ],
        keep=5,
    ),
)
def test_wrong_input_is_one_line(refused, tmp_path, words, message):
    days = () if "--days" in words else ("--days", "3")
    assert message in refused("account", "memo", *words, *days)
    assert not list(tmp_path.iterdir())
