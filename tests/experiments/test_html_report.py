from __future__ import annotations

import re
import tomllib
from html.parser import HTMLParser

import numpy as np
import pytest

from fedhh.clients.population import StoredPopulation
from fedhh.experiments import output, sweep
from fedhh.experiments.config import load_config
from fedhh.experiments.html_report import write_report
from fedhh.experiments.run import run_config
from fedhh.experiments.sweep_config import parse_sweep
from fedhh.lexicon import Lexicon
from fedhh.validation import InputError

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


def test_words_of_the_data_are_text_and_never_markup(run_directory):
    text = write_report(run_directory).read_text()
    assert HOSTILE not in text
    assert "script" not in Page(text).tags
    for word in ("&lt;script&gt;", "a&amp;b", "plain", "hostile &lt;i&gt;"):
        assert word in text


def test_both_protocols_and_every_guarantee_are_in_it(run_directory):
    text = write_report(run_directory).read_text()
    for name in ("ldp-triehh", "triehh", "Sun et al. (2024), Theorem 1", "Zhu et al. (2020)"):
        assert name in text
    assert "central epsilon, user" in text
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


def test_a_directory_without_results_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no finished run and no sweep"):
        write_report(tmp_path)
    (tmp_path / "result.json").write_text("{")
    with pytest.raises(InputError, match=r"result\.json is damaged"):
        write_report(tmp_path)
