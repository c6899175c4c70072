"""What a run's page says of words: candidates and discoveries, posterior, known words."""

from __future__ import annotations

import re
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedhh.clients.clients import Clients
from fedhh.clients.known_words import load_known
from fedhh.experiments.report.explorer.chunks import front_coded
from fedhh.experiments.report.explorer.document import write_report
from fedhh.experiments.report.explorer.run_page import run_page
from fedhh.experiments.run import candidates as recording
from fedhh.words.lexicon import Lexicon
from tests.explorer.conftest import Page, run_in

CLIENTS = 4_000
WORDS = ["lol", "haha", "xdx", "omgg", "qqq", "jkl", "brbb", "ikr", "smh", "zzq", "wtfx", "yolo"]
BASE = (
    "population.alphabet=lower", "protocol.max_items=3", "protocol.depth=4",
    "protocol.clients_per_layer=auto", "protocol.participation=one-round",
)  # fmt: skip
ADAPTIVE = ("privacy.local_epsilon=5", "protocol.eta_max=80")
VALIDATED_LDP = (
    "protocol.name=ldp-triehh", "protocol.passes=2", "protocol.eta_max=60",
    "privacy.local_epsilon=5", "protocol.false_discovery_rate=0.05", "population.known=none",
)  # fmt: skip


def population() -> Clients:
    """Clients of which each holds the more frequent words with a higher probability."""
    rng = np.random.default_rng(0)
    held = rng.random((CLIENTS, len(WORDS))) < 0.5 / np.arange(1, len(WORDS) + 1)
    clients, words = np.nonzero(held)
    return Clients.from_rows(
        name="few words",
        lexicon=Lexicon(words=WORDS),
        clients=clients,
        word_ids=words,
        counts=np.ones(len(words), dtype=np.int64),
        num_clients=CLIENTS,
    )


def sampled_run(directory: Path, *settings: str) -> Path:
    """A run that records few of the candidates that it dropped."""
    with pytest.MonkeyPatch.context() as patched:
        for name in ("NEAREST", "SAMPLED", "MISSED"):
            patched.setattr(recording, name, 4)
        return run_in(directory, population(), *BASE, *settings)


@pytest.fixture(scope="module")
def posterior(tmp_path_factory) -> Path:
    return sampled_run(tmp_path_factory.mktemp("posterior"), *ADAPTIVE)


@pytest.fixture(scope="module")
def validated(tmp_path_factory) -> Path:
    return sampled_run(tmp_path_factory.mktemp("validated"), *VALIDATED_LDP)


written = cache(write_report)


def opened(page: Page, directory: Path) -> Page:
    page.size(1400)
    return page.open(written(directory), ready=".words tbody tr")


def rows_of_path(page: Page) -> list[list[str]]:
    """The rows of the last path that the search shows, as texts."""
    rows = page.script(
        "return [...document.querySelectorAll('.fate')].at(-1).querySelectorAll('tbody tr').length"
        "? [...[...document.querySelectorAll('.fate')].at(-1).querySelectorAll('tbody tr')]"
        ".map((row) => [...row.cells].map((cell) => cell.innerText)) : []"
    )
    return [[str(cell) for cell in row] for row in rows]


def candidates_of(directory: Path) -> tuple[pd.DataFrame, pd.DataFrame, set[str]]:
    """Words that layers kept, the validation round's record, and what was discovered."""
    table = pd.read_parquet(directory / "candidates.parquet")
    last = table["layer"].max()
    words = table.query(f"fate == 'word' and layer < {last}").drop_duplicates("prefix")
    found = set(pd.read_parquet(directory / "discoveries.parquet")["word"])
    return words, table.query(f"layer == {last}").set_index("prefix"), found


@pytest.mark.parametrize("run", ["posterior", "validated"])
def test_a_candidate_is_discovered_only_if_the_validation_round_returned_it(page, run, request):
    directory = request.getfixturevalue(run)
    words, validation, found = candidates_of(directory)
    opened(page, directory)
    kinds = set()
    # Of each kind some: in the record of the validation round or not, returned or not, any pass.
    recorded = words["prefix"].isin(validation.index)
    kind = recorded.astype(int) + 2 * words["prefix"].isin(found) + 4 * words["pass"]
    for row in words.groupby(kind).head(4).to_dict("records"):
        word = row["prefix"]
        said = page.search(word)
        last = rows_of_path(page)[-1]
        assert last[1] == "validation round"
        kinds.add((word in validation.index, word in found))
        if word in found:
            assert "It was discovered." in said, word
            assert last[-1] == "returned"
        else:
            assert (
                f"It became a candidate in layer {row['layer']}; it was not discovered: the "
                "validation round did not return it."
            ) in said, word
            assert "It was discovered" not in said
            assert last[-1] == "not returned"
        wanted = (
            f"{validation.loc[word, 'votes']:,}" if word in validation.index else "not recorded"
        )
        assert last[2] == wanted, word
    assert kinds == {(True, True), (True, False), (False, False)}
    assert page.logs()[0] == []


def test_estimates_name_their_unit(page, posterior):
    opened(page, posterior).search("lol")
    heads = page.text(".answer thead")
    assert "contributions in the cohort, estimated" in heads
    assert "clients of the population, true" in heads
    assert "estimated contributors" in page.text(".words thead")


def test_a_layer_that_keeps_by_the_posterior_has_no_threshold_of_votes(page, posterior):
    table = pd.read_parquet(posterior / "candidates.parquet")
    opened(page, posterior)
    kept = table.query("fate == 'kept'")
    layer = int(kept["layer"].min())
    least = kept.query(f"layer == {layer}")["posterior"].min()
    page.slide(0)
    page.wait(lambda: page.script("return !document.querySelector('.posterior').hidden"))
    page.wait(lambda: page.text(".step") == f"layer {layer}")
    page.has("The test of the validation round decides at the end", "main")
    assert "threshold" not in page.text(".plot")
    marked = page.wait(lambda: page.text(".posterior .plot"))
    assert "posterior probability that enough clients hold a candidate" in marked
    shown = marked.split("prefixes kept from ")[1].split("words")[0]
    assert float(shown.split("\n")[0].strip("> ")) == pytest.approx(least, rel=0.01)
    # The validation round's chart has neither.
    page.click(".player button:nth-of-type(3)")
    page.slide(page.last_step())
    page.wait(lambda: page.script("return document.querySelector('.posterior').hidden"))
    page.has("No number of votes is a threshold here: the test adds up", "main")
    assert page.logs()[0] == []


def test_why_a_prefix_was_dropped_is_its_posterior(page, posterior):
    table = pd.read_parquet(posterior / "candidates.parquet")
    # Of prefixes that are too unlikely, the server computes none.
    dropped = table.query("fate == 'dropped' and not is_word").dropna(subset="posterior")
    row = dropped.sort_values(["layer", "votes"]).iloc[-1]
    layer = row["layer"]
    opened(page, posterior)
    said = page.search(row["prefix"] + "a")
    assert f"Layer {layer} dropped {row['prefix']}: the posterior probability that" in said
    stated = float(re.search(r"enough clients hold it was (\d[\d.e-]*\d)", said)[1])
    assert stated == pytest.approx(row["posterior"], rel=0.01)
    assert "fewest votes of a kept candidate" not in said
    assert float(rows_of_path(page)[-1][4]) == pytest.approx(row["posterior"], rel=0.01)


@pytest.mark.parametrize("run", ["posterior", "validated"])
def test_the_validation_round_has_its_name_in_the_player_and_the_table(page, run, request):
    directory = request.getfixturevalue(run)
    opened(page, directory)
    last = pd.read_parquet(directory / "layers.parquet")["layer"].iloc[-1]
    assert page.text(".step") == "validation round"
    missed = pd.read_parquet(directory / "missed.parquet")
    page.choose("Show", "missed")
    rounds = page.script(
        "return [...document.querySelectorAll('.words tbody tr')].map((row) => "
        "[row.cells[0].innerText, row.cells[row.cells.length - 1].innerText])"
    )
    for row in missed.to_dict("records"):
        wanted = "validation" if row["layer"] == last else str(row["layer"] or "–")
        assert [row["word"], wanted] in rounds


def test_two_runs_say_by_what_each_lost_a_word(page, posterior, validated, tmp_path):
    file = write_report(posterior, validated, out=tmp_path / "both.html")
    page.open(file, ready=".words tbody")
    page.has("Both found")
    page.wait(lambda: page.text(".step") == "validation round")
    page.choose("Show", "all")
    assert "estimated contributors, " in page.text(".words thead")
    assert page.text(".remark") == ""
    assert page.logs()[0] == []


def test_what_a_missed_word_was_lost_by(page, posterior, ldp, tmp_path):
    """Words that only the other run found, put into its tables."""
    folder = shutil.copytree(posterior, tmp_path / "other")
    missed = pd.read_parquet(posterior / "missed.parquet")
    assert len(missed)
    layer = pd.read_parquet(posterior / "layers.parquet")["layer"].iloc[0]
    changed = {"pass": 1, "layer": layer, "votes": 871, "threshold": 765, "posterior": 0.0625}
    missed.assign(**changed).to_parquet(posterior / "missed.parquet")
    try:
        found = pd.read_parquet(folder / "discoveries.parquet")
        extra = found.head(1).assign(word=missed["word"].iloc[0], estimated_clients=-13.0)
        pd.concat([found, extra], ignore_index=True).to_parquet(folder / "discoveries.parquet")
        file = write_report(posterior, folder, out=tmp_path / "both.html")
    finally:
        missed.to_parquet(posterior / "missed.parquet")
    page.open(file, ready=".words tbody tr")
    page.has(f"layer {layer}: posterior probability 0.0625", ".words tbody")
    assert "kept from 765" not in page.text(".words tbody")
    assert "votes of all layers after it became a candidate" in page.text(".remark")


def test_estimates_below_zero_have_their_reason(page, posterior, validated, tmp_path):
    for run, reason in (
        (posterior, "is of the validation round's votes alone"),
        (validated, "Estimates are unbiased and not cut at 0"),
    ):
        assert reason not in opened(page, run).text()
        folder = shutil.copytree(run, tmp_path / run.parent.name)
        found = pd.read_parquet(folder / "discoveries.parquet")
        found.loc[0, "estimated_clients"] = -13.0
        found.to_parquet(folder / "discoveries.parquet")
        opened(page, folder)
        assert reason in page.text(".remark")
        page.choose("Show", "missed")
        assert page.text(".remark") == ""


def test_no_device_reports_a_known_word(page, posterior):
    opened(page, posterior)
    words = ["the", "hell", "zebra's", "22nd", "Aardvark", "rizz", "lol", "zebrax", "a", "22n"]
    known = load_known("scowl70").contains_all(words)
    assert 4 < known.sum() < len(words)
    for word, is_known in zip(words, known, strict=True):
        said = page.search(word)
        assert ("no device reports it, since it is in the list scowl70" in said) == is_known, word


def test_the_list_is_in_a_page_only_where_devices_know_it(page, run_page, posterior, tmp_path):
    assert "known-scowl70" not in run_page.read_text(encoding="utf-8")
    folder = shutil.copytree(posterior, tmp_path / "own-list")
    config = (folder / "config.toml").read_text()
    assert 'known = "scowl70"' in config
    config = config.replace('known = "scowl70"', 'known = "mine.txt"')
    (folder / "config.toml").write_text(config)
    opened(page, folder)
    assert "list of known words, mine.txt, which this page does not hold" in page.text()
    assert "no device reports it" not in page.search("the")


@pytest.mark.parametrize(
    ("run", "validates"), [("posterior", True), ("validated", True), ("ldp", False)]
)
def test_a_page_knows_whether_a_validation_round_decides(run, validates, request):
    (shown,) = run_page([request.getfixturevalue(run)]).manifest["runs"]
    assert shown["validates"] is validates


def test_protocols_of_other_mechanisms_have_pages(tmp_path):
    directory = run_in(
        tmp_path, population(), "population.alphabet=lower", "protocol.name=triehh",
        "protocol.central_epsilon=20", "privacy.delta=0.01",
    )  # fmt: skip
    (run,) = run_page([directory]).manifest["runs"]
    assert run["validates"] is False


def test_front_coding_keeps_every_word():
    words = {"a", "ab", "b" * 40, "b" * 39 + "c", "don't", ""}
    again, before = [], ""
    for piece in re.findall("[A-Z][^A-Z]*", front_coded(words)):
        before = before[: ord(piece[0]) - ord("A")] + piece[1:]
        again.append(before)
    assert again == sorted(words)
