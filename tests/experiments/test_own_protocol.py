"""A protocol from a file next to the config: run, swept, compared, on Ray, resumed, reported."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from fedhh.experiments.config.load import load_config
from fedhh.experiments.config.protocol import settle
from fedhh.experiments.run.run import run_config
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.testing import LETTERS, small_population
from fedhh.validation import InputError
from tests.experiments.config.test_population_plugins import MODULE as POPULATION
from tests.fuzz.work import RUN, call
from tests.own_modules import own_modules

MODULE = '''
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt

from fedhh.server.ldp_triehh import LdpTrieHH


@dataclass(frozen=True, kw_only=True)
class KeepAboveZ(LdpTrieHH):
    """LDP TrieHH that keeps whatever exceeds a z.

    Attributes:
        z: Deviations above the noise.
    """

    title: ClassVar[str] = "above z"
    z: Annotated[float, Gt(0)] = 3.0

    def most_prefixes(self, candidates):
        return candidates

    def keep(self, answers):
        votes = answers.votes
        kept = np.flatnonzero(answers.noise.z(votes) > self.z)
        return kept, int(votes[kept].min(initial=votes.max()))
'''
NAME = "own_above_z:KeepAboveZ"
CONFIG = RUN.replace("ldp-triehh", NAME).replace("clients = 300", "clients = 3_000")
SWEPT = CONFIG + '[sweep.axes]\n"protocol.z" = [2.0, 4.0]\n'

pytestmark = pytest.mark.usefixtures("own_modules", "undrawn")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "own_above_z.py").write_text(MODULE)
    (tmp_path / "mine.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_keeps_what_its_rule_says_and_checks_its_settings(folder):
    population = small_population(3_000)
    config = load_config(
        file=folder / "mine.toml", settings=[f'population.alphabet="{LETTERS}"', "protocol.depth=6"]
    )
    _, result = run_config(config, population)
    layers = result.layers
    assert (layers["threshold_z"] > 3.0).all()
    assert layers["num_kept"].nunique() > 1
    with pytest.raises(InputError, match=r"protocol\.z = -1: expected greater than 0"):
        load_config(file=folder / "mine.toml", settings=["protocol.z=-1"])
    with pytest.raises(InputError, match=r"unknown key protocol\.y\. Known: .*, z\."):
        load_config(file=folder / "mine.toml", settings=["protocol.y=1"])


def test_its_plan_has_the_domains_of_its_own_bound(folder):
    config = load_config(file=folder / "mine.toml", settings=["protocol.eta_max=1"])
    own = settle(config, 3_000)[1].plan.layers
    usual = LdpTrieHH(
        clients_per_layer=1_000, depth=3, passes=1, eta_max=1, max_items=2
    ).plan.layers
    assert [each.smallest_domain for each in own] == [each.smallest_domain for each in usual]
    assert [each.largest_domain for each in usual] == [38 * 39 + 1, 40, 40]
    assert own[-1].largest_domain > usual[-1].largest_domain


def test_a_rule_that_keeps_more_than_its_bound_ends_without_a_result(folder, capsys):
    bound = "    def most_prefixes(self, candidates):\n        return candidates\n"
    assert bound in MODULE
    (folder / "own_above_z.py").write_text(MODULE.replace(bound, ""))
    settings = ["--set", "protocol.eta_max=1", "--out", "refused"]
    with pytest.raises(InputError, match="Expected a domain of 40 to 40 values in pass 1, layer 2"):
        call("run", "--trust", "--config", "mine.toml", *settings)
    assert not (folder / "refused" / "result.json").exists()


@pytest.mark.slow(
    "tests/experiments/test_received_directory.py::test_code_next_to_a_configuration_is_asked_about_wherever_it_stands"
)
def test_it_runs_from_the_command_line_and_its_directory_alone_gives_it_again(folder):
    with own_modules(trusted=False):
        call("run", "--trust", "--config", "mine.toml", "--out", "first")
    (folder / "own_above_z.py").unlink()
    again = ("run", "--config", "first/config.toml", "--out", "second")
    with own_modules(trusted=False):
        with pytest.raises(InputError, match=r"'own_above_z' would be imported.*--trust"):
            call(*again)
        call(*again, "--trust")
    first, second = (
        (folder / name / "discoveries.csv").read_bytes() for name in ("first", "second")
    )
    assert first == second
    assert json.loads((folder / "first" / "result.json").read_text())["protocol"]["name"] == NAME


@pytest.mark.slow("::test_it_keeps_what_its_rule_says_and_checks_its_settings")
def test_it_is_swept_over_its_own_setting_and_compared(folder):
    (folder / "sweep.toml").write_text(SWEPT)
    call("sweep", "--trust", "sweep.toml", "--out", "swept")
    swept = pd.read_parquet(folder / "swept" / "results.parquet")
    assert swept["protocol.z"].tolist() == [2.0, 4.0]
    assert (swept["status"] == "done").all()
    assert swept["discovered"].is_monotonic_decreasing
    protocols = f'[sweep.protocols.own]\nname = "{NAME}"\n[sweep.protocols.theirs]\nname = "sfp"\n'
    (folder / "compare.toml").write_text(CONFIG + protocols)
    one_item = ("--set", "protocol.max_items=1")
    call("compare", "--trust", "--config", "compare.toml", *one_item, "--out", "compared")
    compared = pd.read_parquet(folder / "compared" / "results.parquet")
    assert (compared["status"] == "done").all()
    assert compared["protocol"].tolist() == ["own", "theirs"]


@pytest.mark.slow(
    "tests/simulation/test_calls_of_an_executor.py::test_any_number_of_actors_gives_the_reference"
)
def test_on_ray_it_and_an_own_population_give_the_same_bits_shared_by_clients_or_by_cells(
    folder, shared_ray
):
    (folder / "theirs.py").write_text(POPULATION)
    drawn = 'source = "zipf"', "model = { vocabulary = 100, word_length = 3 }"
    text = CONFIG.replace(drawn[0], 'source = "theirs:Same"').replace(drawn[1], "")
    (folder / "both.toml").write_text(text)
    own = ("run", "--config", "both.toml", "--trust")
    call(*own, "--out", "here")
    call(*own, "--workers", "1", "--out", "there")
    for name in ("discoveries.csv", "layers.parquet"):
        assert (folder / "here" / name).read_bytes() == (folder / "there" / name).read_bytes()
    (folder / "sweep.toml").write_text(SWEPT)
    call("sweep", "--trust", "sweep.toml", "--out", "one")
    call("sweep", "--trust", "sweep.toml", "--workers", "1", "--out", "two")
    one, two = ((folder / name / "results.csv").read_bytes() for name in ("one", "two"))
    assert one == two


@pytest.mark.slow(
    "tests/experiments/run/test_resume.py::test_whatever_differs_is_refused_and_nothing_is_lost"
)
def test_a_changed_module_is_not_mixed_into_a_sweep(folder):
    (folder / "sweep.toml").write_text(SWEPT)
    call("sweep", "--trust", "sweep.toml", "--out", "one")
    (folder / "own_above_z.py").write_text(MODULE + "# changed\n")
    with pytest.raises(InputError, match=r"differs in: modules"):
        call("sweep", "--trust", "sweep.toml", "--out", "one", "--resume")


def test_the_current_folder_serves_without_a_config(folder):
    settings = ["population.clients=3000", f"protocol.name={NAME}", "protocol.z=2.5"]
    assert load_config(preset="small", settings=settings).protocol.z == 2.5
    with pytest.raises(
        InputError, match="own_abov_z' is neither installed here nor next to the co"
    ):
        load_config(preset="small", settings=["protocol.name=own_abov_z:KeepAboveZ"])
