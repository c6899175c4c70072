"""Titles, labels and sizes of figures: nothing is cut, taken for a formula, or warned about."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.figure import Figure

import fedhh
from fedhh.experiments.config.labels import metric_label
from fedhh.experiments.report import style
from fedhh.experiments.report.heat_map import draw_map
from fedhh.experiments.report.style import FORMATS, png_bytes, save
from fedhh.experiments.report.sweep_lines import draw_metric, draw_tradeoff
from fedhh.experiments.report.titles import (
    name_panel,
    put_heading,
    put_note,
    put_title,
    restyle,
    shortened,
    wrapped,
)
from fedhh.experiments.study.look import Look, parse_size
from fedhh.experiments.sweep.columns import Layout
from fedhh.longitudinal.ledger import Curve
from fedhh.longitudinal.ledger.statements import PLD, SUM
from fedhh.longitudinal.report.account_figures import plot_ledger
from fedhh.longitudinal.report.pipeline_figures import pipeline_figures
from fedhh.validation import InputError
from tests.every import every
from tests.thinned import thinned

LONG = "An $a_1$ \\frac{ label that goes on " * 9
WIDE = "_$W$" + "W" * 300
LABELS = (LONG + "1", LONG + "2", WIDE)
TITLE = f"{LONG * 3}\nof {WIDE}"


def quietly(figure: Figure) -> Figure:
    """Return a figure that was drawn, every warning an error; all its text lies inside of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        png_bytes(figure)
    # Saved at another resolution, which boxes would be in.
    figure.draw_without_rendering()
    titles = [axes.title for axes in figure.axes] + [figure._suptitle, figure._supxlabel]
    legends = [text for legend in figure.legends for text in legend.get_texts()]
    for text in [*filter(None, titles), *legends]:
        box = text.get_window_extent()
        assert box.x0 >= 0, text.get_text()
        assert box.x1 <= figure.bbox.x1, text.get_text()
    return figure


def rows(**columns: object) -> pd.DataFrame:
    """Results of two seeds for each label and epsilon."""
    grid = [
        {
            "protocol": label, "privacy.local_epsilon": epsilon, "beside_grid": False, "extra": "",
            "seed": seed, "delta": 1e-10, "coverage": 0.1 * epsilon + 0.01 * seed,
            "central_epsilon_before_run": epsilon / 10, **columns,
        }
        for label in LABELS for epsilon in (1.0, 2.0, 4.0) for seed in (0, 1)
    ]  # fmt: skip
    return pd.DataFrame(grid)


def test_lines_are_no_wider_than_their_room_and_hold_all_words():
    text = "local epsilon 8, central epsilon 0.555 before the run, and after it " + "W" * 30
    for inches in (2.0, 4.0, 6.0):
        for size in (8, 12):
            broken = wrapped(text, inches, size=size)
            assert broken.replace("\n", "").replace(" ", "") == text.replace(" ", "")
            figure = Figure(figsize=(9, 4), dpi=100)
            drawn = figure.text(0, 0, broken, fontsize=size)
            figure.draw_without_rendering()
            assert drawn.get_window_extent().width / 100 <= inches + 0.1


def test_a_text_of_any_length_takes_a_few_lines():
    assert wrapped("word " * 10_000, 4).count("\n") < 6
    assert wrapped("first\n\nsecond", 4) == "first\nsecond"


def test_short_labels_stay_and_long_ones_stay_apart():
    assert shortened(["a", "b", "a"], 8) == ["a", "b", "a"]
    short = shortened([*LABELS, LONG + "1"], 30)
    assert len(set(short)) == 3
    assert short[0] == short[3]
    assert short[0].startswith("An $a_1$")
    assert short[0].endswith("1")


@pytest.mark.slow("::test_short_labels_stay_and_long_ones_stay_apart")
@pytest.mark.parametrize(
    "layout",
    thinned(
        [
            Layout(x="privacy.local_epsilon", by=("protocol",), facet=()),
            Layout(x="privacy.local_epsilon", by=(), facet=("protocol",)),
            Layout(x="", by=("protocol",), facet=()),
            Layout(x="", by=("privacy.local_epsilon",), facet=("protocol",)),
        ],
        keep=2,
    ),
)
def test_long_labels_with_dollars_draw_without_a_warning(layout: Layout):
    figure = quietly(draw_metric(rows(), layout, "coverage", title=TITLE))
    texts = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    if layout.by == ("protocol",) and layout.x:
        assert len(set(texts)) == 3
        assert any("$W" in text for text in texts)
    for text in figure.findobj(mpl.text.Text):
        if "a_1" in text.get_text():
            assert text._preprocess_math(text.get_text())[1] is False
    restyle(figure, Look(title=False))
    assert not any(
        "$W" in text for text in (figure.get_suptitle(), figure.axes[0].get_title())
    ) or (layout.facet)
    quietly(draw_tradeoff(rows(), layout, title=TITLE)) if layout.x else None


@pytest.mark.slow("::test_short_labels_stay_and_long_ones_stay_apart")
def test_a_map_of_a_setting_with_a_long_name():
    name = f"protocol.{LONG}"
    table = rows(**{name: 3}).assign(**{name: lambda t: t["seed"]})
    layout = Layout(x="privacy.local_epsilon", by=(name,), facet=("protocol",))
    quietly(draw_map(table, layout, "coverage", title=TITLE))
    table = table[table["protocol"] == WIDE]
    one = Layout(x="privacy.local_epsilon", by=(name,), facet=())
    quietly(draw_map(table, one, "coverage", title=TITLE))


@pytest.mark.slow("::test_short_labels_stay_and_long_ones_stay_apart")
def test_the_figures_of_a_pipeline_with_long_use_cases():
    days = pd.DataFrame(
        [{"use_case": name, "day": day, "error": 0.1 * day, "loss_per_device": 0.5}
         for name in LABELS for day in (1, 2)]
    )  # fmt: skip
    use_cases = [
        {"use_case": name, "sent": 5, "waiting": 1, "dropped": 0, "loss_of_life_allowed": 2.0,
         "epsilon": 1.0}
        for name in LABELS
    ]  # fmt: skip
    record = {
        "use_cases": use_cases, "days": 2, "devices": 10, "devices_opted_in": 5, "seed": 0,
        "top": 3, "ledger": {"spent": {"life": {"basic": {"largest": 2.0}}}},
    }  # fmt: skip
    for figure in pipeline_figures(days, record).values():
        quietly(figure)
        texts = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        ticks = [text.get_text() for text in figure.axes[0].get_yticklabels()]
        assert sum("$" in text for text in (*texts, *ticks)) == 3


def panels() -> Figure:
    figure = Figure(figsize=(6, 4), layout="constrained")
    for axes, name in zip(figure.subplots(1, 2), ("left", "right"), strict=True):
        axes.plot([0, 1])
        name_panel(axes, f"the {name} panel")
    put_heading(figure, "A title that needs two lines where a figure is narrow")
    put_note(figure, "What intervals mean, over how many seeds")
    return figure


def test_a_small_figure_gives_the_same_file_which_holds_its_letters():
    figure = Figure(figsize=(1, 1))
    figure.text(0, 0, "word")
    for kind in FORMATS:
        files = [io.BytesIO(), io.BytesIO()]
        for file in files:
            save(figure, file, kind)
        first, second = (file.getvalue() for file in files)
        assert first == second
        assert kind != "pdf" or b"/FontFile2" in first
        assert kind != "svg" or b"<text" not in first


@pytest.mark.slow("::test_a_small_figure_gives_the_same_file_which_holds_its_letters")
@pytest.mark.parametrize("kind", FORMATS)
def test_the_same_figure_gives_the_same_file_which_holds_its_letters(kind: str):
    files = [io.BytesIO(), io.BytesIO()]
    for file in files:
        save(panels(), file, kind)
    first, second = (file.getvalue() for file in files)
    assert first == second
    assert kind != "pdf" or b"/FontFile2" in first
    assert kind != "svg" or b"<text" not in first


def test_every_figure_of_the_package_is_saved_in_one_place():
    package = Path(fedhh.__file__).parent
    saving = [path for path in package.rglob("*.py") if "savefig(" in path.read_text()]
    assert saving == [Path(style.__file__)]


def test_without_a_title_panels_keep_their_names_and_the_note_stays():
    figure = panels()
    restyle(figure, Look(title=False))
    assert not figure.get_suptitle()
    assert [axes.get_title() for axes in figure.axes] == ["the left panel", "the right panel"]
    assert figure.get_supxlabel()
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    put_title(axes, "A title")
    figure.draw_without_rendering()
    before = axes.get_position().height
    restyle(figure, Look(title=False))
    figure.draw_without_rendering()
    assert not axes.get_title()
    assert axes.get_position().height > before


@pytest.mark.slow("::test_lines_are_no_wider_than_their_room_and_hold_all_words")
def test_another_size_breaks_titles_again():
    figure = panels()
    assert "\n" not in figure.get_suptitle()
    restyle(figure, Look(size=(3.0, 3.0)))
    assert tuple(figure.get_size_inches()) == (3.0, 3.0)
    assert "\n" in figure.get_suptitle()
    quietly(figure)
    restyle(figure, Look(size=(8.0, 3.0)))
    assert "\n" not in figure.get_suptitle()


def test_a_size_without_room_is_refused():
    with pytest.raises(InputError, match=r"size: 1x1 inches leave no room"):
        restyle(panels(), Look(size=(1.0, 1.0)))


@every("text", ["", "6", "6x", "x4", "6x4x2", "nanx4", "6xinf", "0x4", "-6x4",
                                  "41x4", "6,5x4", "1e9x1e9"])  # fmt: skip
def test_a_size_is_width_and_height_in_inches(text: str):
    with pytest.raises(InputError, match=r"size: expected WIDTHxHEIGHT in inches, each from 1 to"):
        parse_size(text)


def test_sizes_as_they_are_written():
    assert parse_size("6.5x4") == (6.5, 4.0)
    assert parse_size("3X3") == (3.0, 3.0)


@pytest.mark.slow("::test_a_text_of_any_length_takes_a_few_lines")
def test_a_figure_of_a_command_takes_any_use_case(tmp_path):
    name = f"漢字 $x_1$ {WIDE}"
    days = (1, 2, 3)
    together = dict.fromkeys((SUM, PLD), (1.0, 2.0, 3.0))
    curve = Curve(days=days, together=together, by_use_case={name: (1.0, 2.0, 3.0)})
    for kind in FORMATS:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            plot_ledger(
                tmp_path / f"a.{kind}", title=name, curve=curve, spent=(1.0, 0.0), delta=1e-6
            )
    with pytest.raises(InputError, match=r"^Cannot write .*: "):
        plot_ledger(tmp_path / "a.png" / "b.png", title="", curve=curve, spent=None, delta=1e-6)


def test_a_metric_of_the_top_words_is_named_as_the_metric_is():
    assert metric_label("f1_top_500") == "F1 of the top 500"
    assert metric_label("found_top_1000") == "share found of the top 1,000"
