"""Tables and figures never average over settings, and say what is left out of them.

The directories are written as a sweep writes them, with made-up results.
"""

from __future__ import annotations

import io
import itertools
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedhh.experiments.report.sweep_lines import draw_metric
from fedhh.experiments.report.tables import chosen_table, make_table
from fedhh.experiments.study.kinds import Chosen
from fedhh.experiments.study.text_table import TextTable
from fedhh.experiments.sweep.columns import Layout, choose_layout
from fedhh.experiments.sweep.directory import read_labeled_results, write_record, write_tables
from fedhh.experiments.sweep.intervals import paired_gain, sampling_gains
from fedhh.experiments.sweep.plan import Cell, parse_sweep
from fedhh.validation import InputError
from tests.experiments.sweep.test_directory import files_of
from tests.thinned import thinned

BASE = """
[population]
source = "chat"
clients = 12_000
[protocol]
depth = 6
eta_max = 100
max_items = 5
passes = 1
sampler = "greedy"
clients_per_layer = "auto"
[privacy]
local_epsilon = 8
[sweep]
seeds = 3
"""
EPSILONS = '[sweep.axes]\n"privacy.local_epsilon" = [4, 6, 8]\n'
NO_LDP = '[[sweep.extra]]\n"protocol.oracle" = "none"\n'
RANDOM = '[[sweep.extra]]\n"protocol.sampler" = "random"\n'
FEW_KEPT = '[[sweep.extra]]\n"protocol.eta_max" = 50\n"protocol.clients_per_layer" = "auto"\n'
EPSILON_4 = '"privacy.local_epsilon" = [4]\n"protocol.sampler" = ["greedy", "random"]\n'
EXTRA_8 = '[[sweep.extra]]\n"privacy.local_epsilon" = 8\n'
TABLE_1 = """
[[sweep.linked]]
"protocol.sampler" = ["greedy", "random", "random"]
"protocol.passes" = [1, 1, 2]
"""
EPSILON, SAMPLER = "privacy.local_epsilon", "protocol.sampler"


def coverage_of(cell: Cell) -> float:
    """Return a coverage that tells every setting from every other; the seed adds a thousandth."""
    protocol = cell.config.protocol.model_dump()
    coverage = 0.02 * cell.config.privacy.local_epsilon + 0.05 * protocol.get("passes", 1)
    coverage += 0.1 * (protocol.get("sampler") == "random") + protocol.get("eta_max", 0) / 1000
    coverage += 0.3 * (protocol.get("oracle") == "none")
    return coverage + cell.config.seed / 1000


def made(directory: Path, text: str, *, fails: Callable[[Cell], bool] = lambda cell: False) -> Path:
    plan = parse_sweep(tomllib.loads(BASE + text), "test")
    (directory / "cells").mkdir(parents=True)
    for cell in plan.to_run:
        result = {
            "coverage": coverage_of(cell),
            "precision": None if cell.config.privacy.local_epsilon == 4 else 0.5,
            "discovered": 7,
            "limited_by": "noise",
            "population": "chat, 12,000 clients, seed 0",
        }
        failed = fails(cell)
        write_record(
            directory,
            cell,
            {
                "status": "failed" if failed else "done",
                "error": "out of luck" if failed else "",
                "result": {} if failed else result,
                "timings": {"server": 0.1},
                "versions": {},
            },
        )
    write_tables(directory, plan)
    return directory


PROTOCOLS = '[sweep.protocols.one]\n[sweep.protocols.two]\n"sampler" = "random"\n'
FEWER = "eta_max 50, clients per layer auto"


@pytest.mark.parametrize(
    ("text", "columns", "rows"),
    thinned([
        # Cells outside the grid are rows of their own, named by what they set.
        (EPSILONS + NO_LDP + RANDOM + FEW_KEPT, ("epsilon", "outside the grid"), [
            ("4", "", "23.1%"), ("6", "", "27.1%"), ("8", "", "31.1%"),
            ("-", "no LDP (true counts)", "61.1%"), ("8", "sampler random", "41.1%"),
            ("8", FEWER, "26.1%"),
        ]),
        # A single extra stands in the columns of what it sets.
        (EPSILONS + RANDOM, ("epsilon", "sampler"), [
            ("4", "greedy", "23.1%"), ("6", "greedy", "27.1%"), ("8", "greedy", "31.1%"),
            ("8", "random", "41.1%"),
        ]),
        # Extras of whole protocols are distinguished without columns of theirs.
        (PROTOCOLS + NO_LDP + FEW_KEPT, ("protocol", "outside the grid"), [
            ("one", "", "31.1%"), ("two", "", "41.1%"), ("", "no LDP (true counts)", "61.1%"),
            ("", FEWER, "26.1%"),
        ]),
    ], keep=2),
)  # fmt: skip
def test_every_cell_has_a_row_that_says_what_it_is(tmp_path, text, columns, rows):
    table = make_table("summary", made(tmp_path / "a", text))
    assert table.columns == (*columns, "coverage", "precision", "words")
    assert [(*row[:2], row[2].split()[0]) for row in table.rows] == rows
    assert table.note.startswith("Mean ± half the 95% t interval over seeds (3). ")


def test_a_metric_that_a_setting_lacks_is_a_dash_in_its_own_row(tmp_path):
    table = make_table("summary", made(tmp_path / "a", EPSILONS))
    assert [row[2] for row in table.rows] == ["-", "50.0%", "50.0%"]


def test_every_extra_is_a_line_of_its_own_across_the_figure(tmp_path):
    table, _ = read_labeled_results(made(tmp_path / "a", EPSILONS + NO_LDP + RANDOM + FEW_KEPT))
    figure = draw_metric(table, Layout(x=EPSILON, by=()), "coverage", title="t")
    _, *across = figure.axes[0].lines
    assert [line.get_ydata()[0] for line in across] == pytest.approx([0.611, 0.411, 0.261])
    assert [line.get_label() for line in across] == [
        "no LDP\n(true counts)", "sampler random", "eta_max 50,\nclients per layer auto",
    ]  # fmt: skip
    assert len({(line.get_color(), line._unscaled_dash_pattern) for line in across}) == 3


def test_a_metric_of_extras_alone_has_no_figure(tmp_path):
    directory = made(tmp_path / "a", "[sweep.axes]\n" + EPSILON_4 + NO_LDP + EXTRA_8)
    assert [path.stem for path in files_of(directory)] == ["coverage"]
    with pytest.raises(InputError, match="no numbers to draw in precision"):
        files_of(directory, metrics=["precision"])


@pytest.mark.slow("::test_every_extra_is_a_line_of_its_own_across_the_figure")
def test_too_many_extras_for_a_figure_are_refused(tmp_path):
    extras = "".join(f'[[sweep.extra]]\n"protocol.eta_max" = {60 + i}\n' for i in range(13))
    directory = made(tmp_path / "a", EPSILONS + extras)
    with pytest.raises(InputError, match="13 lines for cells outside the grid are too many"):
        files_of(directory)
    assert len(make_table("summary", directory).rows) == 16


def test_table_1_leaves_out_what_stands_next_to_the_grid(tmp_path):
    plain = make_table("gboard-table1", made(tmp_path / "a", TABLE_1))
    extra = '[[sweep.extra]]\n"protocol.oracle" = "none"\n"protocol.sampler" = "greedy"\n'
    assert make_table("gboard-table1", made(tmp_path / "b", TABLE_1 + extra)).rows == plain.rows
    assert [row[6].split()[0] for row in plain.rows] == ["31.1%", "41.1%", "46.1%"]


@pytest.mark.parametrize(
    ("axes", "named"),
    [
        (EPSILONS, "privacy.local_epsilon"),
        ('[sweep.axes]\n"protocol.max_items" = [2, 5]\n"protocol.eta_max" = [50, 100]\n',
         "protocol.max_items, protocol.eta_max"),
        ('[sweep.axes]\n"protocol.clients_per_layer" = [500, 900]\n', "protocol.clients_per_layer"),
    ],
)  # fmt: skip
def test_table_1_refuses_to_average_over_other_settings(tmp_path, axes: str, named: str):
    with pytest.raises(
        InputError, match=f"also vary {named}; use fedhh show DIR --table summary"
    ) as raised:
        make_table("gboard-table1", made(tmp_path / "a", axes + TABLE_1))
    assert "\n" not in str(raised.value)


def test_a_paired_gain_needs_one_row_per_seed():
    table = pd.DataFrame(
        {"seed": [0, 0, 1, 0, 1], "late": [1, 1, 1, 0, 0], "coverage": [0.1, 0.2, 0.3, 0.1, 0.1]}
    )
    late = (table["late"] == 1).to_numpy()
    for later, earlier, name in ((late, ~late, "later"), (~late, late, "earlier")):
        with pytest.raises(InputError, match=f"{name}: 3 rows of 2 seeds"):
            paired_gain(table, later, earlier, "coverage")


FOUR = '"protocol.eta_max" = [50, 100]\n' + TABLE_1


def test_lines_of_one_setting_are_split_by_all_others_and_say_so(tmp_path):
    table, description = read_labeled_results(made(tmp_path / "a", EPSILONS + FOUR))
    layout = choose_layout(table, description["axes"], by=SAMPLER)
    assert layout == Layout(x=EPSILON, by=(SAMPLER, "protocol.eta_max", "protocol.passes"))
    lines = draw_metric(table, layout, "coverage", title="t").axes[0].lines
    assert len(lines) == 6
    ends = {line.get_label(): line.get_ydata()[-1] for line in lines}
    assert ends["greedy, eta_max 50, passes 1"] == pytest.approx(0.261)
    assert ends["random, eta_max 100, passes 2"] == pytest.approx(0.461)


def test_the_horizontal_axis_is_not_the_setting_of_the_lines(tmp_path):
    table, description = read_labeled_results(made(tmp_path / "a", EPSILONS + RANDOM))
    assert choose_layout(table, description["axes"], by=EPSILON) == Layout(x="", by=(EPSILON,))
    with pytest.raises(InputError, match="Expected two settings"):
        choose_layout(table, description["axes"], x=EPSILON, by=EPSILON)


def test_a_sampler_next_to_the_grid_alone_gives_no_gain(tmp_path):
    directory = made(tmp_path / "a", EPSILONS + RANDOM)
    table, description = read_labeled_results(directory)
    assert sampling_gains(table, description["axes"]).empty
    assert [path.stem for path in files_of(directory, metrics=["coverage"])] == ["coverage"]


@pytest.mark.parametrize(
    ("metric", "text"),
    [
        ("nosuch", "Metric 'nosuch' is unknown. Known: coverage, discovered"),
        ("discoverd", "Metric 'discoverd' is unknown; did you mean 'discovered'"),
        ("status", "Metric 'status' has no numbers"),
        ("population", "Metric 'population' has no numbers"),
        (EPSILON, "has no numbers of results"),
    ],
)
def test_a_metric_that_cannot_be_drawn_is_refused(tmp_path, metric: str, text: str):
    directory = made(tmp_path / "a", EPSILONS)
    with pytest.raises(InputError, match=text) as raised:
        files_of(directory, metrics=["coverage", metric])
    assert "\n" not in str(raised.value)
    assert not list(directory.glob("*.png"))
    assert files_of(directory, metrics=["discovered"])


def chosen(directory: Path, **names) -> TextTable:
    return chosen_table(*read_labeled_results(directory), Chosen(**names))


def test_a_table_of_two_settings_is_made_in_one_call(tmp_path):
    directory = made(tmp_path / "a", EPSILONS + '"protocol.eta_max" = [50, 100]\n')
    table = chosen(directory, metrics=["coverage"], rows=["epsilon"], columns="eta_max")
    assert table.columns == ("epsilon", "eta_max 50", "eta_max 100")
    assert [row[0] for row in table.rows] == ["4", "6", "8"]
    assert [row[2].split()[0] for row in table.rows] == ["23.1%", "27.1%", "31.1%"]
    assert table.title.endswith(": coverage")
    two = chosen(directory, metrics=["coverage", "words"], columns="local_epsilon")
    assert two.columns == ("eta_max", "", "epsilon 4", "epsilon 6", "epsilon 8")
    assert [row[:2] for row in two.rows] == [
        (eta, label) for eta in ("50", "100") for label in ("coverage", "words")
    ]
    # A setting outside the grid is no part of any mean.
    beside = made(tmp_path / "b", EPSILONS + NO_LDP)
    by_epsilon = chosen(beside, metrics=["coverage"], rows=["epsilon"])
    assert len(by_epsilon.rows) == 4
    # LaTeX has a column for each of the usual metrics, and no more.
    latex = chosen(directory).render("latex")
    assert "{llrrr}" in latex


def test_days_and_the_share_of_the_ceiling_are_shown_where_they_were_asked_for(tmp_path):
    table, description = read_labeled_results(made(tmp_path / "a", EPSILONS))
    asked = table.assign(days=2.0, share_of_ceiling=0.5)
    columns = chosen_table(asked, description).columns
    assert columns[-2:] == ("share of the ceiling", "days to the result")
    without = table.assign(share_of_ceiling=np.nan)
    assert "share of the ceiling" not in chosen_table(without, description).columns


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"metrics": ["nosuch"]}, "Unknown metric 'nosuch'. Known: coverage, discovered, prec"),
        ({"metrics": ["coverge"]}, "did you mean 'coverage'"),
        ({"rows": ["eta"]}, "Unknown row or column 'eta'. Known: metric, privacy.local_epsilon."),
        ({"rows": ["epsilon"], "columns": "epsilon"}, "each of --rows and --columns once"),
    ],
)
def test_what_a_table_cannot_show_is_one_line_with_the_known_names(tmp_path, names, message):
    with pytest.raises(InputError, match=message) as raised:
        chosen(made(tmp_path / "a", EPSILONS), **names)
    assert "\n" not in str(raised.value)


def test_an_infinite_epsilon_next_to_the_grid_has_no_line(tmp_path):
    table, _ = read_labeled_results(made(tmp_path / "a", EPSILONS + NO_LDP + RANDOM))
    table["central_epsilon"] = np.where(table["extra"] == "no LDP (true counts)", np.inf, 1.0)
    figure = draw_metric(table, Layout(x=EPSILON, by=()), "central_epsilon", title="t")
    assert [line.get_label() for line in figure.axes[0].lines[1:]] == ["sampler random"]


def test_notes_and_captions_say_how_many_cells_failed_and_how_many_seeds_are_left(tmp_path):
    def fails(cell: Cell) -> bool:
        return cell.config.seed > 0 and cell.config.privacy.local_epsilon == 6

    directory = made(tmp_path / "a", EPSILONS, fails=fails)
    note = "2 cells failed and are left out"
    shown = make_table("summary", directory).note
    assert shown.startswith("Mean ± half the 95% t interval over seeds (1 to 3). ")
    assert shown.endswith(f" {note}.")
    table, description = read_labeled_results(directory)
    assert description["failed"] == 2
    layout = Layout(x=EPSILON, by=())
    figure = draw_metric(table, layout, "coverage", title="t", failed=description["failed"])
    assert figure.get_supxlabel() == f"mean and 95% t interval over seeds (1 to 3); {note}"
    two = draw_metric(table[table["seed"] < 2], layout, "coverage", title="t")
    assert two.get_supxlabel() == "mean and range of 2 seeds; of 1, none"


def test_a_table_without_a_title_begins_with_its_head():
    table = TextTable(title="", columns=("a",), rows=(("1",),), note="N.")
    assert table.render("markdown").startswith("| a |")
    assert "\\caption{N.}" in table.render("latex")


def csv_of(directory: Path, name: str = "summary") -> pd.DataFrame:
    return pd.read_csv(io.StringIO(make_table(name, directory).render("csv")))


def test_a_list_is_a_setting_as_any_other(tmp_path):
    lists = '[sweep.axes]\n"metrics.top_k" = [[10, 20], [5]]\n'
    extra = '[[sweep.extra]]\n"metrics.top_k" = [7]\n"protocol.eta_max" = 50\n'
    directory = made(tmp_path / "a", lists + extra)
    table = make_table("summary", directory)
    assert [row[:2] for row in table.rows] == [("10, 20", "100"), ("5", "100"), ("7", "50")]
    assert files_of(directory, metrics=["coverage"])


@pytest.mark.slow(
    "tests/experiments/sweep/test_directory.py::test_settings_keep_the_order_of_the_file"
)
def test_rows_are_in_the_order_of_the_file_whatever_its_values_are(tmp_path):
    axes = """
    [sweep.axes]
    "privacy.local_epsilon" = [8, 4, 6]
    "protocol.sampler" = ["random", "greedy"]
    "protocol.eta_max" = [100, 50]
    """
    directory = made(tmp_path / "a", axes)
    rows = [row[:3] for row in make_table("summary", directory).rows]
    assert rows == list(itertools.product("846", ("random", "greedy"), ("100", "50")))
    gains = [row[:2] for row in make_table("sampling", directory).rows]
    assert gains == list(itertools.product("846", ("100", "50")))


def test_csv_has_one_row_per_setting_with_plain_numbers(tmp_path):
    directory = made(tmp_path / "a", EPSILONS + NO_LDP)
    table = csv_of(directory)
    assert list(table.columns) == [
        EPSILON, "protocol.oracle", "seeds", "coverage_mean", "coverage_low", "coverage_high",
        "precision_mean", "precision_low", "precision_high",
        "discovered_mean", "discovered_low", "discovered_high",
    ]  # fmt: skip
    assert table[EPSILON].tolist()[:3] == [4, 6, 8]
    assert np.isnan(table[EPSILON][3])  # without a randomizer there is no epsilon
    assert table["coverage_mean"].to_numpy() == pytest.approx([0.231, 0.271, 0.311, 0.611])
    assert table["precision_mean"].isna().tolist() == [True, False, False, False]
    assert table["seeds"].tolist() == [3] * 4
    assert all(pd.api.types.is_numeric_dtype(table[name]) for name in table.columns[2:])


def test_csv_of_samplers_and_of_labels_has_plain_numbers_too(tmp_path):
    protocols = '[sweep.protocols."=one"]\n[sweep.protocols.two]\n"sampler" = "random"\n'
    directory = made(tmp_path / "a", protocols + EPSILONS)
    table = csv_of(directory)
    assert table["protocol"].tolist() == ["'=one"] * 3 + ["two"] * 3
    assert table[EPSILON].tolist() == [4, 6, 8] * 2
    sampling = made(tmp_path / "b", "[sweep.axes]\n" + EPSILON_4)
    (row,) = csv_of(sampling, "sampling").to_dict("records")
    assert row["gain_mean"] == pytest.approx(0.1)
    assert (row["greedy_mean"], row["seeds"]) == (pytest.approx(0.231), 3)


def test_dollars_of_a_title_are_no_formula(tmp_path):
    table, _ = read_labeled_results(made(tmp_path / "a", EPSILONS + RANDOM))
    table["extra"] = table["extra"].replace("sampler random", "cost $5 or $6")
    figure = draw_metric(table, Layout(x=EPSILON, by=()), "coverage", title="$a_1$ and $\\x$")
    title = figure.axes[0].title
    assert title._preprocess_math(title.get_text()) == ("$a_1$ and $\\x$", False)
    (legend,) = figure.legends
    (label,) = legend.get_texts()
    assert label._preprocess_math(label.get_text()) == ("cost $5 or $6", False)
