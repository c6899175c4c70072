"""Figures of a run where there is little to draw."""

from __future__ import annotations

import re

import pytest

from fedhh.experiments.config.population import build_population
from fedhh.experiments.config.schema import load_config
from fedhh.experiments.report.run_figures import figures, plot_run, write_figures
from fedhh.experiments.run import directory as output
from fedhh.experiments.run.run import run_config
from fedhh.validation import InputError

SMALL = ["population.clients=1000", "execution.workers=0"]


def estimates(*settings: str):
    """The discoveries of a small run, and its figure of estimates; warnings are errors here."""
    config = load_config(preset="small", settings=[*SMALL, *settings])
    population, _ = build_population(config.population, seed=config.seed)
    _, result = run_config(config, population)
    return result.discoveries, figures(result)["estimates"].axes[0]


def drawn_counts(axes) -> dict[str, int]:
    """The number of points of each kind of discovery, by its label without the count."""
    return {
        str(line.get_label()).rpartition(" (")[0]: len(line.get_xdata())
        for line in axes.lines
        if "(" in str(line.get_label())
    }


def legend_of(axes) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


@pytest.mark.parametrize("epsilon", [1, 5, 12])
def test_every_discovery_is_a_point_and_the_legends_counts_add_up_to_all(epsilon: int):
    found, axes = estimates(f"privacy.local_epsilon={epsilon}")
    assert sum(drawn_counts(axes).values()) == len(found)
    counts = [int(re.search(r"\(([\d,]+)\)", t)[1].replace(",", "")) for t in legend_of(axes)[:-1]]
    assert counts == list(drawn_counts(axes).values())
    assert axes.get_legend().get_title().get_text() == f"{len(found):,} discovered words"
    held = found["is_target"].sum()
    by_kind = drawn_counts(axes)
    nobody = sum(count for kind, count in by_kind.items() if kind.endswith("held by nobody"))
    assert nobody == len(found) - held


def test_words_that_nobody_holds_stand_left_of_all_others_and_inside_the_figure():
    found, axes = estimates("privacy.local_epsilon=5")
    left, right = axes.get_xlim()
    for line in axes.lines:
        if "(" not in str(line.get_label()):
            continue
        x = line.get_xdata()
        assert (x >= left).all()
        assert (x <= right).all()
        assert (x < 0).all() if "held by nobody" in line.get_label() else (x >= 1).all()
    assert (~found["is_target"]).any()


def test_figures_say_the_protocol_and_its_epsilons():
    _, axes = estimates("privacy.local_epsilon=5")
    title = axes.get_title()
    assert title.startswith("Estimated and true holders\nLDP TrieHH, local epsilon 5, central eps")
    assert title.count("seed 0") == 1


def test_passes_that_coincide_can_be_told_apart():
    config = load_config(preset="small", settings=[*SMALL, "protocol.passes=2"])
    population, _ = build_population(config.population, seed=config.seed)
    _, result = run_config(config, population)
    upper, lower = figures(result)["trie_by_layer"].axes
    kept = [line for line in upper.lines if str(line.get_label()).startswith("kept")]
    for first, second in (kept, lower.lines):
        assert first.get_linewidth() > 2 * second.get_linewidth()
        assert first.get_zorder() < second.get_zorder()


def test_the_figures_of_a_directory_are_those_of_its_run(tmp_path):
    config = load_config(preset="small", settings=SMALL)
    population, facts = build_population(config.population, seed=config.seed)
    settled, result = run_config(config, population)
    output.new_directory(settled, tmp_path / "run", name="")
    write_figures(tmp_path / "run", result)
    output.write_result(tmp_path / "run", result, settled, facts)
    names = set(figures(result))
    paths = plot_run(tmp_path / "run", out=tmp_path / "out")
    assert {path.stem for path in paths} == names
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        f"{name}.{kind}" for name in names for kind in ("png", "pdf", "svg")
    }
    for path in paths:
        assert path.read_bytes() == (tmp_path / "run" / path.name).read_bytes()


def test_a_run_with_damaged_tables_is_refused_in_one_line(tmp_path):
    (tmp_path / "result.json").write_text("{")
    with pytest.raises(InputError, match=r"result\.json is damaged"):
        plot_run(tmp_path)
