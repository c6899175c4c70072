"""What a run's page holds, without a browser: the run's data, and nothing typed as markup."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fedhh.accounting.guarantees import UNITS
from fedhh.clients.clients import Clients
from fedhh.experiments.config.labels import round_up
from fedhh.experiments.report.explorer.chunks import unpacked
from fedhh.experiments.report.explorer.document import write_report
from fedhh.experiments.report.explorer.run_page import names_of, run_page
from fedhh.words.lexicon import Lexicon
from tests.explorer.conftest import HOSTILE, SYMBOLS, run_in

CLIENTS = 300


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A run of few clients, who all hold the same hostile words."""
    population = Clients.from_rows(
        name="hostile <i>\u202e",
        lexicon=Lexicon(words=HOSTILE),
        clients=np.repeat(np.arange(CLIENTS), len(HOSTILE)),
        word_ids=np.tile(np.arange(len(HOSTILE)), CLIENTS),
        counts=np.ones(CLIENTS * len(HOSTILE), dtype=np.int64),
        num_clients=CLIENTS,
    )
    return run_in(
        tmp_path_factory.mktemp("hostile"), population, "protocol.name=ldp-triehh",
        f"population.alphabet={SYMBOLS}", "population.known=none", "protocol.max_items=8",
        "protocol.depth=5", "protocol.passes=1", "protocol.eta_max=20",
        "protocol.clients_per_layer=auto", "privacy.local_epsilon=14",
    )  # fmt: skip


@pytest.fixture(scope="module")
def text(run) -> str:
    return write_report(run).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pieces(text) -> dict[str, Any]:
    found = re.findall(r'octet-stream" id="chunk-([a-z0-9-]+)">([A-Za-z0-9+/=]*)</script>', text)
    return {name: unpacked(packed) for name, packed in found}


def test_the_words_of_a_page_are_the_discoveries_of_its_run(run, pieces):
    discoveries = pd.read_parquet(run / "discoveries.parquet")
    (of_page,) = pieces["manifest"]["runs"]
    words = pieces[of_page["words"]]
    assert "play" in words["word"] == discoveries["word"].tolist()
    assert words["true_clients"] == discoveries["true_clients"].tolist()
    assert of_page["discovered"] == len(discoveries)


def test_every_round_of_a_page_has_the_counts_of_its_layer(run, pieces):
    candidates = pd.read_parquet(run / "candidates.parquet")
    (of_page,) = pieces["manifest"]["runs"]
    rounds = [(1, layer) for layer in range(1, 7)]  # five layers, and the validation round
    assert [tuple(each[:2]) for each in of_page["rounds"]] == rounds
    for number, layer, name in of_page["rounds"]:
        here = candidates[(candidates["pass"] == number) & (candidates["layer"] == layer)]
        assert sum(pieces[name]["true_clients"]) == here["true_clients"].sum() > 0


def test_what_users_typed_is_data_and_never_markup(text):
    markup = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    for word in HOSTILE[:4]:
        assert word not in markup
    assert "hacked" not in markup
    assert "\u202e" not in text


@pytest.mark.slow("::test_several_runs_are_compared_with_both_epsilons_of_each")
def test_a_run_and_a_baseline_of_its_protocol_have_a_page(run, tmp_path):
    both = tmp_path / "mine"
    shutil.copytree(run, both)
    shutil.copytree(run, both / "baseline")
    assert [each["name"] for each in run_page([both]).manifest["runs"]] == [
        "LDP TrieHH (mine)",
        "LDP TrieHH (baseline)",
    ]


def test_several_runs_are_compared_with_both_epsilons_of_each(run, pieces):
    assert pieces["manifest"]["comparison"] is None
    table = run_page([run, run]).manifest["comparison"]
    assert table["columns"][4:] == [
        *("item epsilon before the run", "item epsilon for this run"),
        *("user epsilon before the run", "user epsilon for this run"),
    ]
    stated = json.loads((run / "result.json").read_text())["privacy"]["central_epsilon"]
    epsilons = [
        round_up(stated[unit][time]) for unit in UNITS for time in ("before_run", "after_run")
    ]
    coverage = pieces["manifest"]["runs"][0]["coverage"]
    for name, row in zip("AB", table["rows"], strict=True):
        assert row[:2] == [f"LDP TrieHH ({name})", f"{coverage:.1%}"]
        assert row[4:] == epsilons


def test_names_tell_runs_apart():
    one, other = (SimpleNamespace(protocol=SimpleNamespace(title=title)) for title in "xy")
    assert names_of([one, other], [Path("a"), Path("a")]) == ["x", "y"]
    assert names_of([one, one], [Path("a"), Path("a/b")]) == ["x (a)", "x (b)"]
    assert names_of([one, one], [Path("a"), Path("b/a")]) == ["x (A)", "x (B)"]


def test_the_policy_lets_nothing_out(text):
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', text)
    assert "default-src 'none'" in policy
    assert "connect-src 'none'" in policy
    assert not re.search(r"(?:src|href)=[\"']?https?:", text)
