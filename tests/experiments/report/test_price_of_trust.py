"""The price of trust: protocols in the colors of whom clients trust, below the bound for all."""

from __future__ import annotations

import itertools
import math

import pandas as pd
import pytest
import tomli_w
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

import fedhh
from fedhh.accounting import missing_mass_lower_bound
from fedhh.experiments.report.price_of_trust import spread
from fedhh.experiments.report.style import BLUE, GREEN, GREY, PURPLE, VERMILION
from fedhh.experiments.report.sweep_figures import figures_of
from fedhh.experiments.study.kinds import Drawing
from fedhh.experiments.sweep.central_bound import MOST_CONTRIBUTIONS, central_bound
from tests.thinned import thinned

CLIENTS = 300
DELTA = 1e-6
EPSILONS = (0.1, 1.0, 4.0)
TARGET = "user_central_epsilon"
# The coverage at the largest epsilon: three ends of lines are next to each other.
PROTOCOLS = {
    "local": ("ldp-triehh", 0.30, BLUE),
    "Secure aggregation, every round": ("secagg-triehh", 0.31, GREEN),
    "servers": ("two-servers", 0.30, PURPLE),
    "tee": ("tee-histogram", 0.50, VERMILION),
    "somebody's": ("mine:Protocol", 0.40, GREY),
}
POPULATION = {"source": "chat", "clients": CLIENTS}


@pytest.fixture(scope="module")
def population():
    return fedhh.synthetic_population("chat", CLIENTS, seed=0)


def results(population, *, settings=POPULATION, epsilons=EPSILONS, **columns):
    """Return results as a comparison's file has them, with made-up coverage."""
    held = int((population.word_counts().holders > 0).sum())
    rows = [
        {
            "cell": f"{label} {epsilon} {seed}",
            "protocol": label,
            TARGET: epsilon,
            **columns,
            "beside_grid": False,
            "seed": seed,
            "status": "done",
            "target_words": held,
            "target_contributions": int(population.word_counts().typed.sum()),
            "coverage": most * epsilon / max(epsilons) + seed / 1000,
            "local_epsilon": 4.0 if label == "local" else math.inf,
            "delta": DELTA,
            "population": "chat",
        }
        for label, (_, most, _) in PROTOCOLS.items()
        for epsilon in epsilons
        for seed in range(3)
    ]
    tables = {label: {"name": name} for label, (name, _, _) in PROTOCOLS.items()}
    description = {
        "title": "Trust",
        "axes": ["protocol", TARGET, *columns],
        "sweep": tomli_w.dumps({"population": settings, "sweep": {"protocols": tables}}),
        "failed": 0,
    }
    return pd.DataFrame(rows).assign(extra=""), description


def drawn(table, description, **asked) -> dict[str, Figure | str]:
    return figures_of(table, description, "here", Drawing(metrics=("coverage",), **asked))


def test_every_protocol_has_the_color_of_whom_it_asks_clients_to_trust(population):
    figures = drawn(*results(population))
    assert next(iter(figures)) == "price_of_trust"
    figure = figures["price_of_trust"]
    (axes,) = figure.axes
    assert axes.get_xscale() == "log"
    colors = {text.get_text(): text.get_color() for text in axes.texts}
    assert {label: colors[label] for label in PROTOCOLS} == {
        label: color for label, (_, _, color) in PROTOCOLS.items()
    }
    for label, (_, most, color) in PROTOCOLS.items():
        ends = [
            each for each in axes.containers if to_hex(each.lines[0].get_color()) == color.lower()
        ]
        assert len(ends) == 1, label
        # Three seeds add 0, 1 and 2 thousandths.
        assert ends[0].lines[0].get_ydata()[-1] == pytest.approx(most + 0.001)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "nobody, and a shuffler for this guarantee", "a secure sum", "one of two servers",
        "an aggregator", "unknown here",
    ]  # fmt: skip


@pytest.mark.slow("::test_places_are_apart_and_as_near_as_that_allows")
@pytest.mark.parametrize("epsilons", [EPSILONS, (1.0, 3.0)])
def test_names_at_the_ends_of_lines_do_not_cover_each_other(population, epsilons):
    figure = drawn(*results(population, epsilons=epsilons))["price_of_trust"]
    figure.draw_without_rendering()
    (axes,) = figure.axes
    # Of an annotation, the extent of its text without the line to its point.
    boxes = [Text.get_window_extent(text) for text in axes.texts]
    assert len(boxes) == len(PROTOCOLS) + 2
    for one, other in itertools.combinations(boxes, 2):
        assert not one.overlaps(other)
    assert all(box.x1 <= figure.bbox.x1 for box in boxes)


def test_the_dashed_line_is_the_bound_on_the_sweeps_own_clients(population):
    figure = drawn(*results(population))["price_of_trust"]
    (dashed,) = [line for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    shares = population.word_counts().typed / population.word_counts().typed.sum()
    for place, epsilon in ((0, 0.1), (-1, 4.0)):
        missed = missing_mass_lower_bound(
            shares, population.word_counts().holders, epsilon=epsilon, delta=DELTA
        )
        assert dashed.get_xdata()[place] == pytest.approx(epsilon)
        assert dashed.get_ydata()[place] == pytest.approx(1 - missed)


def test_a_setting_that_cells_have_stands_in_place_of_the_files(population):
    table, description = results(
        population, settings={"source": "post", "clients": 10},
        **{"population.source": "chat", "population.clients": CLIENTS},
    )  # fmt: skip
    bound = central_bound(table, description, EPSILONS)
    assert not bound.why_not
    assert bound.coverage == central_bound(*results(population), EPSILONS).coverage


@pytest.mark.slow("::test_damaged_results_have_no_bound")
@pytest.mark.parametrize(
    ("settings", "why"),
    thinned(
        [
            ({"source": "chat", "clients": CLIENTS + 1}, "its clients are others by now"),
            ({"source": "away.csv"}, "its clients cannot be made or read here"),
            ({"source": "mine:Clients", "clients": 9}, "its clients cannot be made or read here"),
            (
                {"source": "chat", "clients": 10**9},
                f"more than {MOST_CONTRIBUTIONS:,} contributions",
            ),
        ]
    ),
)
def test_without_its_clients_a_figure_has_no_bound_and_says_why(population, settings, why):
    table, description = results(population, settings=settings)
    figure = drawn(table, description)["price_of_trust"]
    assert not [line for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    assert why in figure.get_supxlabel().replace("\n", " ")
    assert len(figure.axes[0].texts) == len(PROTOCOLS)


def test_clients_that_results_say_are_too_many_are_not_drawn(population):
    table, description = results(population)
    many = table.assign(target_contributions=MOST_CONTRIBUTIONS + 1)
    assert "more than" in central_bound(many, description, EPSILONS).why_not
    mixed = table.assign(population=[str(number % 2) for number in range(len(table))])
    assert central_bound(mixed, description, EPSILONS).why_not == "populations or deltas differ"


@pytest.mark.parametrize(
    ("column", "value"), [("target_words", math.nan), ("target_contributions", 7), ("seed", -1)]
)
def test_damaged_results_have_no_bound(population, column, value):
    table, description = results(population)
    assert central_bound(table.assign(**{column: value}), description, EPSILONS).why_not


@pytest.mark.slow("::test_every_protocol_has_the_color_of_whom_it_asks_clients_to_trust")
@pytest.mark.parametrize("protocols", thinned(["3", "{tee = 4}", "{tee = {name = 7}}"]))
def test_protocols_that_a_file_does_not_name_are_unknown(population, protocols):
    table, description = results(population)
    description["sweep"] = f"sweep.protocols = {protocols}"
    figure = drawn(table, description)["price_of_trust"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["unknown here"]
    old = table.drop(columns="target_words")
    assert "price_of_trust" not in drawn(old, description)


@pytest.mark.slow(
    "tests/experiments/sweep/test_directory.py::test_cells_are_chosen_by_their_values"
)
def test_what_varies_besides_is_chosen_first(population):
    one, description = results(population, **{"population.source": "chat"})
    both = pd.concat([one, one.assign(**{"population.source": "post"})], ignore_index=True)
    reason = "price_of_trust: expected one value of population.source"
    assert reason in str(drawn(both, description)["price_of_trust"])
    chosen = drawn(both, description, where=("population.source=chat",))["price_of_trust"]
    assert isinstance(chosen, Figure)


def test_a_comparison_at_one_epsilon_has_no_such_figure(population):
    assert "price_of_trust" not in drawn(*results(population, epsilons=(1.0,)))
    table, description = results(population)
    alone = table[table["protocol"] == "tee"]
    assert "price_of_trust" not in drawn(alone, description)


def test_places_are_apart_and_as_near_as_that_allows():
    places = spread([0.30, 0.30, 0.31, 0.50], 0.05)
    gaps = [after - before for before, after in itertools.pairwise(places)]
    assert min(gaps) >= 0.05 - 1e-12
    assert places[3] == 0.50
    assert sum(places[:3]) == pytest.approx(0.91)
    assert spread([], 1.0) == []
