"""Figures of a run where there is little to draw."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from PIL import Image

from fedhh.experiments.config.load import load_config
from fedhh.experiments.config.population import build_population
from fedhh.experiments.config.schema import Config
from fedhh.experiments.report import run_figures, style
from fedhh.experiments.report.run_figures import figures, plot, plot_run, write_figures
from fedhh.experiments.report.titles import restyle
from fedhh.experiments.run import directory as output
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.run.run import run_config
from fedhh.experiments.study.look import Look
from fedhh.validation import InputError
from tests.thinned import thinned

SMALL = ["population.clients=1000", "execution.workers=0"]


@cache
def run_of(*settings: str) -> tuple[Config, RunResult]:
    """A small run, settled; tests only read it."""
    config = load_config(preset="small", settings=[*SMALL, *settings])
    population = build_population(config.population, seed=config.seed)
    return run_config(config, population)


def estimates(*settings: str):
    """The discoveries of a small run, and its figure of estimates; warnings are errors here."""
    _, result = run_of(*settings)
    return result.discoveries, figures(result)["estimates"].axes[0]


@pytest.fixture(scope="module")
def directory(tmp_path_factory) -> Path:
    """A finished run's directory with its figures."""
    settled, result = run_of()
    folder = output.new_directory(settled, tmp_path_factory.mktemp("run") / "run", name="")
    write_figures(folder, result)
    output.write_result(folder, result, settled, {})
    return folder


def drawn_counts(axes) -> dict[str, int]:
    """The number of points of each kind of discovery, by its label without the count."""
    return {
        str(line.get_label()).rpartition(" (")[0]: len(line.get_xdata())
        for line in axes.lines
        if "(" in str(line.get_label())
    }


def legend_of(axes) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


@pytest.mark.parametrize("epsilon", thinned([5, 1]))
def test_every_discovery_is_a_point_and_the_legends_counts_add_up_to_all(epsilon: int):
    found, axes = estimates(f"privacy.local_epsilon={epsilon}")
    assert sum(drawn_counts(axes).values()) == len(found)
    counts = [int(re.search(r"\(([\d,]+)\)", t)[1].replace(",", "")) for t in legend_of(axes)[:-1]]
    assert counts == list(drawn_counts(axes).values())
    assert axes.get_legend().get_title().get_text() == f"{len(found):,} discovered words"
    held = found["is_target"].sum()
    by_kind = drawn_counts(axes)
    nobody = sum(count for kind, count in by_kind.items() if kind.endswith("held by no client"))
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
        assert (x < 0).all() if "held by no client" in line.get_label() else (x >= 1).all()
    assert (~found["is_target"]).any()


def test_figures_say_the_protocol_and_its_epsilons():
    _, axes = estimates("privacy.local_epsilon=5")
    title = axes.get_title()
    first = "Estimated contributors and true holders"
    assert title.startswith(f"{first}\nLDP TrieHH, local epsilon 5, central eps")
    assert title.count("seed 0") == 1


def test_a_figure_of_estimates_says_whom_they_count(adaptive: RunResult):
    axes = figures(adaptive)["estimates"].axes[0]
    assert axes.get_ylabel() == "estimated contributors ± 2 std. errors"
    assert axes.get_xlabel() == "clients that hold the word"


@pytest.mark.slow(
    "tests/experiments/sweep/test_directory.py::test_lines_that_coincide_can_be_distinguished"
)
def test_passes_that_coincide_can_be_distinguished():
    _, result = run_of("protocol.passes=2")
    upper, lower = figures(result)["trie_by_layer"].axes
    kept = [line for line in upper.lines if str(line.get_label()).startswith("kept")]
    for first, second in (kept, lower.lines):
        assert first.get_linewidth() > 2 * second.get_linewidth()
        assert first.get_zorder() < second.get_zorder()


@pytest.mark.slow(
    "tests/experiments/study/test_contract.py::test_a_finished_directory_is_shown_drawn_and_told"
)
def test_the_figures_of_a_directory_are_those_of_its_run(directory, tmp_path):
    names = set(figures(run_of()[1]))
    paths = plot_run(directory, out=tmp_path / "out")
    assert {path.stem for path in paths} == names
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        f"{name}.{kind}" for name in names for kind in ("png", "pdf", "svg")
    }
    for path in paths:
        assert path.read_bytes() == (directory / path.name).read_bytes()


def test_a_run_with_damaged_tables_is_refused_in_one_line(tmp_path):
    (tmp_path / "result.json").write_text("{")
    with pytest.raises(InputError, match=r"result\.json is damaged"):
        plot_run(tmp_path)


@pytest.fixture(scope="module")
def adaptive() -> RunResult:
    """A run whose layers go by posterior probability, with a validation round."""
    return run_of(
        "protocol.name=adaptive-triehh", "protocol.false_discovery_rate=0.05",
        "population.clients=12000", "protocol.depth=4",
    )[1]  # fmt: skip


def test_layers_that_go_by_posterior_probability_have_no_threshold(adaptive: RunResult):
    layers = adaptive.layers
    assert (layers["kept_by"] == "posterior").any()
    # Also where a table has a number there.
    stated = replace(adaptive, layers=layers.assign(threshold_z=-4.0))
    for result in (adaptive, stated):
        figure = figures(result)["trie_by_layer"]
        assert len(figure.axes) == 1
        assert "posterior probability of being held" in figure.get_supxlabel()
        assert "votes of all rounds" in figure.get_supxlabel().replace("\n", " ")


def test_the_validation_round_is_no_layer(adaptive: RunResult):
    layers = adaptive.layers[adaptive.layers["kept_by"] == "posterior"]
    last = adaptive.layers.iloc[-1]
    assert last["kept_by"] == "evidence"
    drawn = figures(adaptive)
    for name in ("coverage_by_layer", "trie_by_layer"):
        axes = drawn[name].axes[0]
        drawn[name].draw_without_rendering()
        ticks = {text.get_text(): text.get_position()[0] for text in axes.get_xticklabels()}
        place = ticks.pop("validation\nround")
        assert place > layers["layer"].max()
        assert max(int(tick) for tick in ticks) <= layers["layer"].max()
        assert axes.get_xlim()[1] > place
    marks = {str(line.get_label()): line for line in drawn["coverage_by_layer"].axes[0].lines}
    covered = marks["covered"].get_ydata()
    assert list(covered) == list(layers["coverage"])
    (label,) = [label for label in marks if label.startswith("after the validation round")]
    assert marks[label].get_marker() == "D"
    assert list(marks[label].get_ydata()) == [last["coverage"]]
    assert f"{last['coverage']:.1%}" in label
    assert f"before it {covered[-1]:.1%}" in label


@pytest.mark.slow("::test_the_validation_round_is_no_layer")
def test_a_validation_round_of_a_protocol_that_counts_votes_leaves_its_thresholds():
    _, result = run_of("protocol.false_discovery_rate=0.05", "protocol.passes=2")
    figure = figures(result)["trie_by_layer"]
    assert len(figure.axes) == 2
    voted = result.layers[result.layers["kept_by"] == "votes"]
    drawn = [line.get_xdata().max() for line in figure.axes[1].lines]
    assert drawn == [voted["layer"].max()] * 2
    assert "by its votes alone" in figure.get_supxlabel().replace("\n", " ")


@pytest.mark.slow("::test_a_figure_of_estimates_says_whom_they_count")
def test_a_figure_of_estimates_says_which_votes_are_whose(adaptive: RunResult):
    for drawn in (figures(adaptive)["estimates"], plot(adaptive)):
        note = drawn.get_supxlabel().replace("\n", " ")
        assert "error bars: votes of the validation round" in note
        assert "Significant: votes of all rounds" in note
    _, axes = estimates("protocol.false_discovery_rate=0.05")
    assert not axes.figure.get_supxlabel()


@pytest.mark.slow(
    "tests/experiments/report/test_titles.py::test_without_a_title_panels_keep_their_names_and_the_note_stays"
)
@pytest.mark.usefixtures("drawn_figures")
def test_figures_of_a_directory_without_titles_and_of_another_size(directory, tmp_path, command):
    plot_run(directory, out=tmp_path / "out", look=Look(title=False, size=(5.0, 3.0)))
    for name, figure in figures(run_of()[1]).items():
        with Image.open(tmp_path / "out" / f"{name}.png") as image:
            assert image.size == (round(5 * style.DPI), round(3 * style.DPI))
        assert "epsilon" not in (tmp_path / "out" / f"{name}.svg").read_text()
        restyle(figure, Look(title=False))
        assert not figure.get_suptitle()
        assert not figure.axes[0].get_title()
    for size, said in (("5", "'5'"), ("0x3", "'0x3'"), ("5x", "'5x'"), ("1x1", "leave no room")):
        refused = command("plot", str(directory), "--size", size)
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
        assert said in refused.stderr


def test_counts_have_ticks_at_no_votes_and_at_powers_of_ten_above_the_noise():
    axes = Figure().subplots()
    run_figures._count_scales(axes, noise=30.0, largest=2_000.0)
    assert axes.yaxis.get_majorticklocs().tolist() == [0.0, 10.0, 100.0, 1_000.0, 10_000.0]
    first, *rest = axes.xaxis.get_majorticklocs().tolist()
    assert rest == [10.0, 100.0, 1_000.0, 10_000.0]
    assert first < 0
