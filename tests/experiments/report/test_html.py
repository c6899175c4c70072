from __future__ import annotations

import json
import re
import tomllib
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedhh.clients.populations.population import StoredPopulation
from fedhh.experiments.config.schema import load_config
from fedhh.experiments.report.html import write_report
from fedhh.experiments.report.run_figures import write_figures
from fedhh.experiments.run import directory as output
from fedhh.experiments.run.run import run_config
from fedhh.experiments.sweep import sweep
from fedhh.experiments.sweep.plan import parse_sweep
from fedhh.validation import InputError
from fedhh.words.lexicon import Lexicon

HOSTILE = "<script>"


class Page(HTMLParser):
    """Collects tags and text, and insists that what is opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.images: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "img":
            self.images.append(dict(attrs)["src"])
        elif tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def run_directory(tmp_path_factory):
    """A run with a baseline on clients who hold a word that a browser would take for a tag."""
    words = [HOSTILE, "a&b", "plain"]
    population = StoredPopulation.from_rows(
        name="hostile <i>",
        lexicon=Lexicon(words=words),
        clients=np.repeat(np.arange(3_000), 3),
        word_ids=np.tile(np.arange(3), 3_000),
        counts=np.ones(9_000, dtype=np.int64),
        num_clients=3_000,
    )
    config = load_config(
        settings=[
            "population.alphabet=printable", "protocol.max_items=3", "protocol.depth=8",
            "protocol.eta_max=200", "protocol.passes=1", "protocol.clients_per_layer=auto",
            "privacy.local_epsilon=10", "baseline.name=triehh", "baseline.central_epsilon=20",
            "privacy.delta=0.01", "execution.workers=0",
        ]
    )  # fmt: skip
    directory = tmp_path_factory.mktemp("report") / "run"
    baseline = directory / output.BASELINE_FOLDER
    for each, folder in ((config, directory), (config.of_baseline, baseline)):
        settled, result = run_config(each, population)
        output.new_directory(settled, folder, name="")
        write_figures(folder, result)
        output.write_result(folder, result, settled, {})
    return directory


def test_a_report_is_one_file_without_anything_from_outside(run_directory, tmp_path):
    file = write_report(run_directory, tmp_path / "mine.html")
    text = file.read_text()
    page = Page(text)
    figures = list(run_directory.rglob("*.png"))
    assert len(page.images) == len(figures) >= 4
    assert all(source.startswith("data:image/png;base64,") for source in page.images)
    assert not re.search(r"https?:|src=\"(?!data)|<link|@import", text)
    assert not (run_directory / "report.html").exists()


def test_no_image_that_stands_in_the_directory_gets_into_the_page(run_directory):
    before = Page(write_report(run_directory).read_text()).images
    left = run_directory / ".estimates-x1y2.png"
    left.write_bytes(b"half")
    (run_directory / "mine.png").write_bytes(b"mine")
    (run_directory / "estimates.png").write_bytes(b"half")
    assert Page(write_report(run_directory).read_text()).images == before


def test_words_of_the_data_are_text_and_never_markup(run_directory):
    text = write_report(run_directory).read_text()
    assert HOSTILE not in text
    assert "script" not in Page(text).tags
    for word in ("&lt;script&gt;", "a&amp;b", "plain", "hostile &lt;i&gt;"):
        assert word in text


def test_both_protocols_and_every_guarantee_are_in_it(run_directory):
    text = write_report(run_directory).read_text()
    for name in ("adaptive-triehh", "triehh", "Sun et al. (2024), Theorem 1", "Zhu et al. (2020)"):
        assert name in text
    assert "central epsilon before the run, user" in text
    assert "clients_per_layer" in text  # the configuration


def test_a_sweep_has_a_report_with_its_figures(tmp_path):
    table = tomllib.loads(
        """
        [population]
        source = "chat"
        clients = 6_000
        [protocol]
        depth = 5
        eta_max = 30
        passes = 1
        [sweep]
        title = "A & B"
        axes = { "protocol.max_items" = [1, 2, 3] }
        """
    )
    sweep.run_sweep(parse_sweep(table, "x"), tmp_path / "out", workers=0)
    text = write_report(tmp_path / "out").read_text()
    page = Page(text)
    assert "<h1>A &amp; B</h1>" in text
    assert len(page.images) >= 3
    assert "coverage" in text


def sweep_in(directory: Path, **columns) -> Path:
    """A sweep's results with made-up numbers, over all combinations of some settings."""
    index = pd.MultiIndex.from_product(columns.values(), names=list(columns))
    table = index.to_frame(index=False).assign(beside_grid=False, seed=0, status="done", error="")
    table = table.assign(coverage=0.5, local_epsilon=1.0, central_epsilon=0.1, delta=1e-10)
    description = {"title": "T", "axes": list(columns), "best": "coverage", "sweep": ""}
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    metadata = {**arrow.schema.metadata, b"fedhh": json.dumps(description).encode()}
    pq.write_table(arrow.replace_schema_metadata(metadata), directory / "results.parquet")
    return directory


def test_a_sweep_of_27_settings_has_a_report(tmp_path):
    directory = sweep_in(
        tmp_path,
        **{"protocol": ["A", "B", "C"], "privacy.local_epsilon": [2.0, 4.0, 8.0],
           "protocol.clients_per_layer": [10, 20, 30]},
    )  # fmt: skip
    text = write_report(directory).read_text()
    assert len(Page(text).images) == 2
    assert "too many" not in text


def test_a_figure_that_cannot_be_drawn_is_a_sentence_in_the_page(tmp_path):
    many = {"protocol.eta_max": [1, 2, 3], "protocol.sampler": [f"s{i}" for i in range(40)]}
    directory = sweep_in(tmp_path, **many)
    page = write_report(directory).read_text()
    assert Page(page).images == []
    assert "coverage: 40 lines are too many for one figure" in page
    assert page.count("<tr>") == 121


def test_a_directory_without_results_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no finished run and no sweep"):
        write_report(tmp_path)
    (tmp_path / "result.json").write_text("{")
    with pytest.raises(InputError, match=r"result\.json is damaged"):
        write_report(tmp_path)
