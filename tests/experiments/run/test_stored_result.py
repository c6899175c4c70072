"""A run's directory gives the result again as it was."""

from __future__ import annotations

import json
import shutil

import pandas as pd
import pytest

from fedhh.experiments.config.load import load_config
from fedhh.experiments.report.comparison import comparison_table, results_of_runs
from fedhh.experiments.report.run_tables import summary_rows
from fedhh.experiments.run import directory as output
from fedhh.experiments.run.run import run_config
from fedhh.experiments.run.stored_result import read_record, read_result
from fedhh.testing import LETTERS, small_population
from fedhh.validation import InputError
from tests.thinned import thinned

BASE = (
    f"population.alphabet={LETTERS}", "protocol.clients_per_layer=auto", "baseline=none",
    "execution.workers=0",
)  # fmt: skip
TRIE = (
    "protocol.name=ldp-triehh", "protocol.depth=6", "protocol.eta_max=40", "protocol.passes=1",
)  # fmt: skip
PROTOCOLS = {
    "with a bound that says nothing": (*TRIE, "protocol.max_items=2"),
    "without a randomizer": (
        *TRIE,
        "protocol.oracle=none",
        "protocol.max_items=2",
        "privacy.local_epsilon=8",
    ),
    "central": ("protocol.name=triehh", "protocol.central_epsilon=20", "privacy.delta=0.01"),
    "reused": (*TRIE, "protocol.participation=every-round", "protocol.clients_per_layer=300"),
    "approximate": (*TRIE, "simulation.fidelity=exact-tally", "simulation.drawn_clients=100"),
    "PEM, with its ceiling": ("protocol.name=pem", "protocol.length=6", "metrics.ceiling=true"),
}


def stored_run(directory, *settings: str):
    config, result = run_config(load_config(settings=[*BASE, *settings]), small_population(3_000))
    output.new_directory(config, directory, name="")
    output.write_result(directory, result, config, {"known": "none"})
    return config, result


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run's directory with its candidates; tests change copies of it."""
    home = tmp_path_factory.mktemp("made")
    settings = [*BASE, *TRIE, "protocol.max_items=2"]
    config, result = run_config(
        load_config(settings=settings),
        small_population(3_000),
        log_in=lambda _: home / "unfinished",
    )
    output.new_directory(config, home / "run", name="")
    output.write_result(home / "run", result, config, {"known": "none"})
    return home / "run"


@pytest.fixture
def stored(made, tmp_path):
    return shutil.copytree(made, tmp_path / "run")


@pytest.mark.parametrize("settings", thinned(PROTOCOLS.values(), single=True), ids=list(PROTOCOLS))
def test_what_is_read_is_what_was_written(tmp_path, settings):
    config, result = stored_run(tmp_path / "run", *settings)
    stored = read_result(tmp_path / "run")
    assert stored.config == config
    assert stored.known_words == {"known": "none"}
    again = stored.result
    assert again.protocol == result.protocol
    assert again.privacy == result.privacy
    assert again.settings == result.settings
    assert (again.population, again.simulation, again.seed) == (
        result.population, result.simulation, result.seed,
    )  # fmt: skip
    pd.testing.assert_frame_equal(again.discoveries, result.discoveries)
    pd.testing.assert_frame_equal(again.layers, result.layers)
    assert summary_rows(again) == summary_rows(result)
    table = comparison_table(*results_of_runs([(config, result)]))
    same = comparison_table(*results_of_runs([(stored.config, again)]))
    # As text, since bounds that are missing are NaN, which is not equal to itself.
    assert repr(same) == repr(table)
    record = output.result_record(again, stored.config, stored.known_words)
    assert json.loads(json.dumps(record)) == read_record(tmp_path / "run")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("result.json", b"{", r"result\.json is damaged"),
        ("result.json", b"\xff", r"result\.json is damaged"),
        ("result.json", b"{}", "damaged, or of another version"),
        ("result.json", b"[]", r"result\.json is damaged: expected a table"),
        ("discoveries.parquet", b"no", r"discoveries\.parquet is missing or damaged"),
        ("layers.parquet", None, r"layers\.parquet is missing or damaged"),
        ("config.toml", None, r"config\.toml is missing"),
        ("result.json", None, r"result\.json; check the path"),
    ],
)
def test_a_damaged_directory_is_one_line(stored, name, content, message):
    if content is None:
        (stored / name).unlink()
    else:
        (stored / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_result(stored)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("file", ["candidates", "missed"])
def test_a_record_of_candidates_has_numbers_as_posterior(stored, file):
    path = stored / f"{file}.parquet"
    table = pd.read_parquet(path).drop(columns="posterior")
    table.to_parquet(path)
    with pytest.raises(InputError, match="expected one column 'posterior'"):
        read_result(stored)
    table.assign(posterior="<b>").to_parquet(path)
    with pytest.raises(InputError, match="expected float in column 'posterior'"):
        read_result(stored)
