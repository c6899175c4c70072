"""Maps of coverage: where nothing is found, and the bounds next to it."""

import numpy as np
import pandas as pd
import pytest

from fedhh.accounting import missing_mass_lower_bound
from fedhh.clients.population import Population
from fedhh.experiments.config.load import parse_config
from fedhh.experiments.config.population import build_population
from fedhh.experiments.report.heat_map import draw_map
from fedhh.experiments.report.sweep_figures import sweep_figures
from fedhh.experiments.sweep import sweep
from fedhh.experiments.sweep.columns import Layout
from fedhh.experiments.sweep.directory import read_labeled_results
from fedhh.experiments.sweep.plan import parse_sweep

SIZES = (200, 300, 400)
EPSILONS = (2.0, 4.0, 8.0)
TABLE = {
    "population": {"source": "chat", "clients": 300},
    "protocol": {"depth": 4, "max_items": 1, "false_discovery_rate": 0.05, "anonymity_k": 0},
    "metrics": {"ceiling": True, "top_k": [10]},
    "sweep": {
        "axes": {"population.clients": list(SIZES), "privacy.local_epsilon": list(EPSILONS)},
        "protocols": {
            "one": {"name": "ldp-triehh", "passes": 1, "eta_max": 50},
            "two": {"name": "adaptive-triehh", "eta_max": 50},
        },
    },
}


def red_lines(axes):
    return {tuple(map(tuple, line.get_xydata().tolist())) for line in axes.lines}


def test_a_line_parts_where_nothing_was_found_from_the_rest():
    grid = pd.DataFrame(
        [
            {"x": x, "y": y, "seed": seed, "coverage": 0.5 * (x + y > 2) * (seed + 1)}
            for x in (1, 2)
            for y in (1, 2)
            for seed in (0, 1)
        ]
    )
    figure = draw_map(grid, Layout(x="x", by=("y",), facet=()), "coverage", title="t")
    (axes, _) = figure.axes
    # Only the first cell of the first row is empty: a line right of it, and one above it.
    assert red_lines(axes) == {((0.5, -0.5), (0.5, 0.5)), ((-0.5, 0.5), (0.5, 0.5))}
    assert "no seed found a word" in figure.get_supxlabel()
    everywhere = grid.assign(coverage=0.5)
    figure = draw_map(everywhere, Layout(x="x", by=("y",), facet=()), "coverage", title="t")
    assert not red_lines(figure.axes[0])
    assert "no seed found" not in figure.get_supxlabel()


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    directory = tmp_path_factory.mktemp("map") / "out"
    sweep.run_sweep(parse_sweep(TABLE, "test"), directory, workers=0)
    return directory


def clients(size: int) -> Population:
    return build_population(
        parse_config({"population": {"source": "chat", "clients": size}}, "test").population, seed=0
    )


@pytest.mark.slow(
    "tests/experiments/report/test_price_of_trust.py::test_the_dashed_line_is_the_bound_on_the_sweeps_own_clients"
)
def test_bounds_stand_next_to_the_map(results):
    figure = sweep_figures(results)["coverage_map"]
    panels = {axes.get_title().replace("\n", " "): axes for axes in figure.axes if axes.get_title()}
    assert list(panels) == ["one", "two", "known dictionary", "no central mechanism does better"]
    table, _ = read_labeled_results(results)
    largest = table.groupby(["population.clients", "privacy.local_epsilon"])[
        ["ceiling_coverage", "central_epsilon_user_before_run"]
    ].max()
    shown = {name: np.asarray(axes.images[0].get_array()) for name, axes in panels.items()}
    x_is_epsilon = panels["one"].get_xticklabels()[0].get_text() == "4"
    for row, size in enumerate(SIZES):
        population = clients(size)
        found = population.word_counts()
        for column, epsilon in enumerate(EPSILONS):
            at = (row, column) if x_is_epsilon else (column, row)
            ceiling, weakest = largest.loc[(size, epsilon)]
            missed = missing_mass_lower_bound(
                found.typed / found.typed.sum(), found.holders, epsilon=weakest, delta=1e-10
            )
            assert shown["known dictionary"][at] == ceiling
            assert shown["no central mechanism does better"][at] == pytest.approx(1 - missed)
            assert 0 < 1 - missed < 1
    # A line is about what protocols found.
    assert not panels["known dictionary"].lines
