"""Tables and figures of a sweep, made from its results file alone."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from scipy import stats

from fedhh.experiments.report.sweep_figures import plot_sweep, sweep_figures
from fedhh.experiments.report.sweep_lines import draw_gains, draw_metric
from fedhh.experiments.report.tables import TextTable, make_table
from fedhh.experiments.study.request import Request
from fedhh.experiments.study.source import load_source
from fedhh.experiments.sweep.columns import Layout, choose_layout, keep_where
from fedhh.experiments.sweep.directory import read_results
from fedhh.experiments.sweep.intervals import paired_gain, sampling_gains, summarize
from fedhh.validation import InputError
from tests.fuzz.work import undrawn


def results_in(directory: Path, rows: pd.DataFrame, axes: list[str]) -> Path:
    filled = {"status": "done", "error": "", "beside_grid": False, "population": "toy, seed 0"}
    table = rows.assign(**{k: v for k, v in filled.items() if k not in rows})
    # Settings come before "beside_grid", all else behind it.
    settings = [name for name in table if "." in name]
    rest = [name for name in table if name not in (*settings, "beside_grid")]
    table = table[[*settings, "beside_grid", *rest]]
    description = {"title": "toy", "axes": axes, "best": "coverage", "sweep": ""}
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    metadata = {**arrow.schema.metadata, b"fedhh": json.dumps(description).encode()}
    directory.mkdir(exist_ok=True)
    pq.write_table(arrow.replace_schema_metadata(metadata), directory / "results.parquet")
    return directory


def grid(**columns: list[Any]) -> pd.DataFrame:
    index = pd.MultiIndex.from_product(columns.values(), names=list(columns))
    frame = index.to_frame(index=False)
    rng = np.random.default_rng(0)
    for metric in ("coverage", "precision", "recall", "f1"):
        frame[metric] = rng.uniform(0.3, 0.6, len(frame))
    return frame


def files_of(directory: Path, **options: Any) -> list[Path]:
    """The files of a sweep's figures, which are left empty."""
    with undrawn():
        return plot_sweep(directory, **options)


def test_the_interval_is_students_t_of_the_mean():
    values = np.array([0.41, 0.44, 0.47, 0.40])
    table = pd.DataFrame({"x": 1, "coverage": values})
    row = summarize(table, ["x"], "coverage").iloc[0]
    low, high = stats.t.interval(0.95, 3, loc=values.mean(), scale=stats.sem(values))
    assert row["mean"] == pytest.approx(values.mean())
    assert (row["low"], row["high"]) == (pytest.approx(low), pytest.approx(high))
    assert row["seeds"] == 4


def test_one_seed_has_no_interval_and_a_share_stays_a_share():
    table = pd.DataFrame({"x": [1, 2, 2], "coverage": [0.5, 0.01, 0.99]})
    rows = summarize(table, ["x"], "coverage")
    assert np.isnan(rows["low"][0])
    three = pd.DataFrame({"x": 1, "coverage": [0.5, 0.01, 0.99]})
    row = summarize(three, ["x"], "coverage").iloc[0]
    assert (row["low"], row["high"]) == (0, 1)


def test_two_seeds_have_their_own_values_in_place_of_an_interval():
    table = pd.DataFrame({"x": [1, 2, 2], "coverage": [0.5, 0.01, 0.99]})
    rows = summarize(table, ["x"], "coverage")
    assert (rows["low"][1], rows["high"][1]) == (0.01, 0.99)
    assert rows["mean"][1] == pytest.approx(0.5)


def test_settings_keep_the_order_of_the_file():
    table = pd.DataFrame({"x": ["b", "a", "b", "a"], "coverage": [1.0, 2.0, 1.0, 2.0]})
    assert summarize(table, ["x"], "coverage")["x"].tolist() == ["b", "a"]


def test_a_gain_is_taken_seed_by_seed():
    table = pd.DataFrame(
        {"who": ["a", "b"] * 3, "seed": [1, 1, 2, 2, 3, 3],
         "coverage": [0.1, 0.15, 0.4, 0.45, 0.7, 0.75]}
    )  # fmt: skip
    gain = paired_gain(table, (table.who == "b").to_numpy(), (table.who == "a").to_numpy(),
                       "coverage")  # fmt: skip
    assert gain["mean"] == pytest.approx(0.05)
    assert gain["high"] - gain["low"] == pytest.approx(0, abs=1e-12)


def table_1(directory: Path) -> Path:
    rows = []
    for sampler, passes, clients, coverage in (
        ("greedy", 1, 200, 0.40), ("random", 1, 200, 0.50), ("random", 2, 100, 0.60),
    ):  # fmt: skip
        rows += [
            {"protocol.sampler": sampler, "protocol.passes": passes, "seed": seed,
             "protocol.clients_per_layer": clients, "coverage": coverage + seed / 100}
            for seed in (0, 1, 2)
        ]  # fmt: skip
    axes = ["protocol.sampler", "protocol.passes", "protocol.clients_per_layer"]
    return results_in(directory, pd.DataFrame(rows), axes)


def test_table_1_stands_next_to_the_papers(tmp_path):
    table = make_table("gboard-table1", table_1(tmp_path))
    assert [row[3] for row in table.rows] == ["77.1%", "83.1%", "92.1%"]
    half = 100 * stats.t.ppf(0.975, 2) * 0.01 / np.sqrt(3)
    assert table.rows[0][6] == f"41.0% [{41 - half:.1f}%, {41 + half:.1f}%]"
    assert [row[7] for row in table.rows] == ["", "+6.0", "+9.0"]
    assert table.rows[1][8] == "+10.0 [+10.0, +10.0]"


def sampling(directory: Path) -> Path:
    rows = grid(
        **{"protocol.sampler": ["greedy", "random"], "protocol.max_items": [5, 20, 60],
           "population.model.adoption": [0.2, 1.0], "seed": [0, 1, 2]}
    )  # fmt: skip
    random = rows["protocol.sampler"] == "random"
    rows["coverage"] = 0.3 + 0.1 * rows["seed"] + 0.06 * random * rows["population.model.adoption"]
    axes = ["protocol.sampler", "protocol.max_items", "population.model.adoption"]
    return results_in(directory, rows, axes)


def test_samplers_stand_next_to_each_other_with_their_gain(tmp_path):
    table = make_table("sampling", sampling(tmp_path))
    assert table.columns == ("max items", "adoption", "greedy", "random", "gain")
    assert table.rows[0] == ("5", "0.2", "40.0%", "41.2%", "+1.2 [+1.2, +1.2]")
    assert table.rows[-1] == ("60", "1", "40.0%", "46.0%", "+6.0 [+6.0, +6.0]")
    assert len(table.rows) == 6
    alone = results_in(
        tmp_path / "alone", grid(**{"protocol.sampler": ["random"], "seed": [0]}), []
    )
    with pytest.raises(InputError, match="no setting with both samplers"):
        make_table("sampling", alone)


def test_the_gain_of_random_sampling_is_drawn_where_both_ran(tmp_path):
    files = {path.name for path in files_of(sampling(tmp_path), metrics=["coverage"])}
    assert "sampling_gain.png" in files
    table, description = read_results(tmp_path)
    gains = sampling_gains(table, description["axes"])
    assert gains["sampling_gain"].to_numpy() == pytest.approx([1.2, 1.2, 1.2, 6, 6, 6] * 3)
    layout = Layout(x="protocol.max_items", by=("protocol.sampler", "population.model.adoption"))
    lines = [
        line
        for line in draw_gains(gains, layout, title="t").axes[0].lines
        if line.get_marker() != "None"
    ]
    assert [list(line.get_ydata()) for line in lines] == [
        pytest.approx([1.2] * 3), pytest.approx([6.0] * 3)
    ]  # fmt: skip


def test_coverage_is_drawn_against_central_epsilon_only_where_that_varies(tmp_path):
    rows = grid(**{"privacy.local_epsilon": [2.0, 4.0, 8.0], "seed": [0]}).assign(delta=1e-10)
    for name, central in (("one", [0.3, 0.3, 0.3]), ("several", [0.1, 0.2, 0.3])):
        directory = results_in(
            tmp_path / name,
            rows.assign(central_epsilon_before_run=central),
            ["privacy.local_epsilon"],
        )
        files = {path.name for path in files_of(directory, metrics=["coverage"])}
        assert ("tradeoff.png" in files) == (name == "several")


def test_labels_of_several_settings_widen_the_figure(tmp_path):
    rows = grid(**{"protocol.sampler": ["greedy", "random"], "seed": [0],
                   "population.model.copy_exponent": [0.0, 0.0804]})  # fmt: skip
    by = ("protocol.sampler", "population.model.copy_exponent")
    table, _ = read_results(results_in(tmp_path, rows, list(by)))
    figure = draw_metric(table, Layout(x="", by=by), "coverage", title="t")
    FigureCanvasAgg(figure).draw()
    boxes = [label.get_window_extent() for label in figure.axes[0].get_xticklabels()]
    assert len(boxes) == 4
    assert all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes))


def test_table_1_needs_its_rows(tmp_path):
    directory = results_in(tmp_path, grid(**{"protocol.passes": [1, 2], "seed": [0]}), [])
    with pytest.raises(InputError, match=r"do not vary protocol\.clients_per_layer, protocol\.sam"):
        make_table("gboard-table1", directory)
    with pytest.raises(InputError, match="Unknown table 'gboard'"):
        make_table("gboard", directory)


def test_a_row_without_a_randomizer_has_no_epsilon(tmp_path):
    rows = grid(**{"privacy.local_epsilon": [2.0, 8.0], "seed": [0]})
    rows["protocol.oracle"], rows["beside_grid"] = ["ss", "none"], [False, True]
    table = make_table("summary", results_in(tmp_path, rows, ["privacy.local_epsilon"]))
    assert [row[:2] for row in table.rows] == [("2", "ss"), ("-", "none")]


def test_a_table_has_three_formats():
    table = TextTable(title="T_1", columns=("a|b", "c"), rows=(("1", "50%"),), note="N.")
    assert table.render("csv") == "a|b,c\n1,50%\n"
    assert "| a\\|b | c   |\n|------|-----|\n| 1    | 50% |" in table.render("markdown")
    assert "\\caption{T\\_1. N.}" in table.render("latex")
    assert "    1 & 50\\% \\\\" in table.render("latex")
    assert "\\begin{tabular}{lr}" in table.render("latex")
    assert all(f"\\{rule}rule" in table.render("latex") for rule in ("top", "mid", "bottom"))
    with pytest.raises(InputError, match="Unknown format 'html'"):
        table.render("html")


def test_only_finished_cells_are_read(tmp_path):
    rows = grid(**{"protocol.passes": [1, 2], "seed": [0]}).assign(status=["done", "failed"])
    table, _ = read_results(results_in(tmp_path, rows, ["protocol.passes"]))
    assert table["protocol.passes"].tolist() == [1]


@pytest.mark.parametrize("content", [None, b"no parquet"])
def test_results_that_are_missing_or_damaged_are_refused(tmp_path, content: bytes | None):
    if content is not None:
        (tmp_path / "results.parquet").write_bytes(content)
    with pytest.raises(InputError, match=r"results\.parquet is (missing|no results file)"):
        read_results(tmp_path)


@pytest.mark.parametrize("name", ["absent", "x" * 300])
def test_a_directory_without_a_sweep_is_refused(tmp_path, name: str):
    with pytest.raises(InputError, match="holds no sweep to resume"):
        load_source(Request(out=tmp_path / name, resume=True), kind="sweep")
    with pytest.raises(InputError, match=r"results\.parquet is missing"):
        read_results(tmp_path / name)


EPSILON, SAMPLER, PASSES, COHORT = (
    "privacy.local_epsilon", "protocol.sampler", "protocol.passes", "protocol.clients_per_layer",
)  # fmt: skip


def test_the_number_with_most_values_is_x_and_what_follows_from_others_is_left_out():
    table = grid(**{SAMPLER: ["greedy", "random"], PASSES: [1, 2], EPSILON: [2.0, 4.0, 8.0]})
    table[COHORT] = 6000 // table[PASSES]
    table["beside_grid"] = False
    axes = [SAMPLER, PASSES, COHORT, EPSILON]
    assert choose_layout(table, axes) == Layout(x=EPSILON, by=(SAMPLER, PASSES))
    assert choose_layout(table, axes, by=PASSES) == Layout(x=EPSILON, by=(PASSES, SAMPLER))
    with pytest.raises(InputError, match=r"Unknown x 'protocol\.sampler'"):
        choose_layout(table, axes, x=SAMPLER)


def test_fewer_than_three_numbers_make_no_line():
    table = grid(**{SAMPLER: ["greedy", "random"], PASSES: [1, 2]}).assign(beside_grid=False)
    assert choose_layout(table, [SAMPLER, PASSES]) == Layout(x="", by=(SAMPLER, PASSES))
    assert choose_layout(table, [SAMPLER, PASSES], x=PASSES) == Layout(x=PASSES, by=(SAMPLER,))


@pytest.mark.slow("::test_fewer_than_three_numbers_make_no_line")
def test_a_sweep_without_numbers_is_drawn_as_points(tmp_path):
    directory = results_in(tmp_path, grid(**{SAMPLER: ["greedy", "random"], "seed": [0, 1]}),
                           [SAMPLER])  # fmt: skip
    plot_sweep(directory, metrics=("coverage",))
    assert (tmp_path / "coverage.png").stat().st_size > 5_000


@pytest.mark.slow("::test_coverage_is_drawn_against_central_epsilon_only_where_that_varies")
def test_every_figure_comes_as_png_pdf_and_svg_and_says_its_interval(tmp_path):
    rows = grid(**{EPSILON: [2.0, 4.0, 8.0], COHORT: [10, 100], "seed": [0, 1, 2]})
    rows = rows.assign(central_epsilon_before_run=rows[EPSILON] / 10, delta=1e-10)
    directory = results_in(tmp_path / "in", rows, [EPSILON, COHORT])
    paths = plot_sweep(directory, out=tmp_path / "out")
    names = {path.stem for path in paths}
    assert names == {"coverage", "precision", "recall", "f1", "coverage_map", "tradeoff"}
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files == {f"{name}.{kind}" for name in names for kind in ("png", "pdf", "svg")}


def test_lines_are_means_and_their_note_names_interval_and_seeds(tmp_path):
    rows = grid(**{EPSILON: [2.0, 4.0, 8.0], SAMPLER: ["greedy", "random"], "seed": [0, 1, 2]})
    rows["beside_grid"] = False
    figure = draw_metric(rows, Layout(x=EPSILON, by=(SAMPLER,)), "coverage", title="t")
    greedy, random = figure.axes[0].lines
    expected = rows[rows[SAMPLER] == "random"].groupby(EPSILON)["coverage"].mean()
    assert random.get_ydata() == pytest.approx(expected.to_numpy())
    assert (greedy.get_label(), random.get_label()) == ("greedy", "random")
    assert figure._supxlabel.get_text() == "mean and 95% t interval over seeds (3)"


def test_cells_next_to_the_grid_are_a_line_across(tmp_path):
    rows = grid(**{EPSILON: [2.0, 4.0, 8.0], "seed": [0, 1]}).assign(beside_grid=False)
    extra = rows.tail(2).assign(beside_grid=True, coverage=0.7, extra="no LDP (true counts)")
    both = pd.concat([rows, extra], ignore_index=True)
    figure = draw_metric(both, Layout(x=EPSILON, by=()), "coverage", title="t")
    line, across = figure.axes[0].lines
    assert len(line.get_xdata()) == 3
    assert list(across.get_ydata()) == pytest.approx([0.7, 0.7])
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["no LDP\n(true counts)"]
    assert across.get_label() == "no LDP\n(true counts)"


@pytest.mark.slow("::test_a_sweep_of_27_lines_has_nine_panels")
def test_too_many_lines_become_maps_or_panels(tmp_path):
    many = {EPSILON: [float(i) for i in range(1, 12)], PASSES: list(range(1, 10))}
    directory = results_in(tmp_path / "a", grid(**many, seed=[0]), [EPSILON, PASSES])
    assert [path.stem for path in files_of(directory, metrics=("coverage",))] == ["coverage_map"]
    rows = grid(**many, **{SAMPLER: ["greedy", "random"]}, seed=[0]).assign(beside_grid=False)
    axes = [EPSILON, PASSES, SAMPLER]
    assert choose_layout(rows, axes) == Layout(x=EPSILON, by=(SAMPLER,), facet=(PASSES,))
    # Choosing one setting must not average over the other.
    assert choose_layout(rows, axes, by=SAMPLER) == choose_layout(rows, axes)
    drawn = sweep_figures(results_in(tmp_path / "b", rows, axes), metrics=("coverage",))
    assert list(drawn) == ["coverage", "coverage_map", "sampling_gain"]
    assert [len(axes.lines) for axes in drawn["coverage"].axes] == [2] * 9
    chosen = drawn["coverage"].axes[4]
    assert chosen.get_title() == "passes 5"
    expected = rows[(rows[PASSES] == 5) & (rows[SAMPLER] == "random")]["coverage"]
    assert list(chosen.lines[1].get_ydata()) == list(expected)
    # A map for each sampler, and the bar of their one scale.
    assert [axes.get_title() for axes in drawn["coverage_map"].axes] == ["greedy", "random", ""]


def test_panels_of_the_users_choice_are_refused_with_the_way_out_if_they_do_not_help(tmp_path):
    rows = grid(**{EPSILON: [2.0, 4.0, 8.0], PASSES: list(range(1, 10)),
                   SAMPLER: ["greedy", "random"], "seed": [0]})  # fmt: skip
    directory = results_in(tmp_path, rows, [EPSILON, PASSES, SAMPLER])
    drawn = sweep_figures(directory, x=EPSILON, facet=[SAMPLER], metrics=["coverage"])
    assert list(drawn) == ["coverage_map", "sampling_gain"]
    # The gain has a line for each of the passes, and none for the samplers.
    assert "9 lines are too many" in drawn["sampling_gain"]
    with pytest.raises(InputError, match=f"Expected {SAMPLER} in one place"):
        sweep_figures(directory, by=SAMPLER, facet=[SAMPLER])
    with pytest.raises(InputError, match=r"Unknown facet 'protocol\.eta_max'"):
        sweep_figures(directory, facet=["protocol.eta_max"])


def test_a_sweep_of_27_lines_has_nine_panels(tmp_path):
    rows = grid(**{
        "protocol": ["A", "B", "C"], EPSILON: [2.0, 4.0, 8.0, 9.0], COHORT: [10, 20, 50],
        PASSES: [1, 2, 3], "seed": [0],
    })  # fmt: skip
    rows["beside_grid"] = False
    layout = choose_layout(rows, ["protocol", EPSILON, COHORT, PASSES])
    assert layout == Layout(x=EPSILON, by=("protocol",), facet=(COHORT, PASSES))
    figure = draw_metric(rows, layout, "coverage", title="t")
    assert len(figure.axes) == 9
    assert {len(axes.lines) for axes in figure.axes} == {3}
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["A", "B", "C"]


def test_cells_are_chosen_by_their_values(tmp_path):
    rows = grid(**{EPSILON: [2.0, 4.0, 8.0], COHORT: [1000, 2000], "seed": [0]})
    rows["beside_grid"] = False
    assert keep_where(rows, [])["coverage"].tolist() == rows["coverage"].tolist()
    for text in ("8", "8.0"):
        assert set(keep_where(rows, [f"{EPSILON}={text}"])[EPSILON]) == {8.0}
    both = keep_where(rows, [f"{EPSILON}=8", f"{EPSILON} = 2", f"{COHORT}=1,000"])
    assert (set(both[EPSILON]), set(both[COHORT])) == ({2.0, 8.0}, {1000})
    extra = rows.tail(1).assign(beside_grid=True)
    kept = keep_where(pd.concat([rows, extra], ignore_index=True), [f"{COHORT}=1000"])
    assert kept["beside_grid"].sum() == 1
    for where, message in (
        (f"{EPSILON}=3", r"No cell has privacy.local_epsilon=3; there are 2, 4, 8\."),
        ("privacy.local_epsilo=3", "did you mean 'privacy.local_epsilon'"),
        (EPSILON, "Expected KEY=VALUE"),
    ):
        with pytest.raises(InputError, match=message):
            keep_where(rows, [where])


def test_lines_that_coincide_can_be_distinguished():
    rows = grid(**{EPSILON: [2.0, 4.0, 8.0], SAMPLER: ["greedy", "random"], "seed": [0]})
    rows = rows.assign(beside_grid=False, coverage=0.5)
    figure = draw_metric(rows, Layout(x=EPSILON, by=(SAMPLER,)), "coverage", title="t")
    under, over = figure.axes[0].lines
    assert under.get_zorder() < over.get_zorder()
    assert under.get_linewidth() > 2 * over.get_linewidth()
    assert under.get_markersize() > 2 * over.get_markersize()
    assert under.get_linestyle() != over.get_linestyle()


@pytest.mark.parametrize("names", [["greedy", "random"], ["a long name of a thing", "b" * 24]])
@pytest.mark.parametrize("title", ["short", "a title that goes on and on " * 4])
def test_no_text_of_a_figure_overlaps_another(names: list[str], title: str):
    rows = grid(**{EPSILON: [2.0, 4.0, 8.0], SAMPLER: names, "seed": [0, 1, 2]})
    rows["beside_grid"] = False
    figure = draw_metric(rows, Layout(x=EPSILON, by=(SAMPLER,)), "precision", title=title)
    FigureCanvasAgg(figure).draw()
    axes = figure.axes[0]
    texts = [axes.title, axes.xaxis.label, axes.yaxis.label, figure._supxlabel, *figure.legends]
    # A tick beyond the axis is not drawn.
    low, high = axes.get_ylim()
    ticks = [tick for tick in axes.get_yticklabels() if low <= tick.get_position()[1] <= high]
    ticks += axes.get_xticklabels()
    boxes = [text.get_window_extent() for text in (*texts, *ticks)]
    for i, box in enumerate(boxes):
        assert figure.bbox.x0 <= box.x0
        assert box.x1 <= figure.bbox.x1
        assert not any(box.overlaps(other) for other in boxes[:i])
