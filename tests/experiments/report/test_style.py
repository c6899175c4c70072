"""A protocol has one color, in figures and on pages, and ticks are numbers that people write."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.figure import Figure

from fedhh.experiments.report.explorer.study_page import chart
from fedhh.experiments.report.style import (
    PROTOCOLS,
    STYLE,
    colors_of,
    log_scale,
    looks,
    protocol_color,
    write_one,
)
from fedhh.experiments.report.sweep_lines import draw_metric
from fedhh.experiments.sweep.columns import Layout
from fedhh.server.registry import PROTOCOLS as BUILT_IN
from fedhh.server.registry import protocol_class
from fedhh.validation import InputError
from tests.thinned import thinned

EPSILON = "privacy.local_epsilon"


def results(*protocols: str) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"protocol": label, EPSILON: epsilon, "beside_grid": False, "extra": "", "seed": 0,
             "coverage": 0.1 * epsilon}
            for label in protocols for epsilon in (1.0, 2.0)
        ]
    )  # fmt: skip


def test_every_protocol_has_a_color_of_its_own_by_name_and_title():
    colors = {name: protocol_color(name) for name in BUILT_IN}
    assert None not in colors.values()
    assert len(set(colors.values())) == len(colors) == len(PROTOCOLS)
    for name, color in colors.items():
        assert protocol_color(protocol_class(name).title) == color, name


def test_a_label_names_a_protocol_as_a_whole_word():
    own = protocol_color("LDP TrieHH")
    for label in ("LDP TrieHH, 2 passes", "epsilon 4, LDP TrieHH", "LDP TrieHH (epsilon 6)"):
        assert protocol_color(label) == own, label
    assert protocol_color("TrieHH, central 4") == protocol_color("triehh") != own
    assert protocol_color("RAPPOR, closed domain") == protocol_color("rappor")
    assert protocol_color("RAPPOR, open domain") == protocol_color("rappor-unknown")
    for label in ("SFPX", "my LDP TrieHH", "epsilon 4", ""):
        assert protocol_color(label) is None, label


def test_a_line_of_no_protocol_takes_no_protocols_color():
    labels = ["mine", "LDP TrieHH", "yours", "SFP"]
    found = colors_of(labels)
    assert found[1::2] == [protocol_color("LDP TrieHH"), protocol_color("SFP")]
    assert len(set(found)) == 4
    assert [look["color"] for look in looks(labels)] == found
    assert len({look["marker"] for look in looks(["SFP, 1", "SFP, 2"])}) == 2
    assert len(set(colors_of([None, "a", "b"]))) == 3


def test_figures_and_pages_agree_whatever_else_is_shown():
    layout = Layout(x=EPSILON, by=("protocol",), facet=())
    for protocols in (("SFP", "PEM"), ("LDP TrieHH", "PEM", "SFP"), ("PEM",)):
        table = results(*protocols)
        (axes,) = draw_metric(table, layout, "coverage", title="").axes
        drawn = {line.get_label(): line.get_color() for line in axes.get_lines()}
        page = chart(("", ""), table, [EPSILON, "protocol"], ["coverage"], {})
        assert drawn == page["colors"]
        assert drawn["PEM"] == protocol_color("pem")


@pytest.mark.parametrize(
    ("limits", "shown"),
    [
        ((1_900, 2.1e7), ["10,000", "100,000", "1M", "10M"]),
        ((0.003, 5.1), ["0.01", "0.1", "1"]),
        ((0.05, 11), ["0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10"]),
        ((2.5e-5, 100), ["0.0001", "0.001", "0.01", "0.1", "1", "10", "100"]),
        ((30, 70), ["30", "40", "50", "60", "70"]),
        ((2e-9, 2), [f"$10^{{{power}}}$" for power in range(-8, 1)]),
    ],
)
@pytest.mark.parametrize("name", thinned(["x", "y"]))
def test_ticks_of_a_logarithmic_axis_are_numbers_that_people_write(name, limits, shown):
    figure = Figure(figsize=(6, 6))
    axes = figure.subplots()
    axis = getattr(axes, f"{name}axis")
    log_scale(axis)
    getattr(axes, f"set_{name}lim")(*limits)
    figure.draw_without_rendering()
    low, high = limits
    texts = [
        label.get_text()
        for label, place in zip(axis.get_ticklabels(), axis.get_ticklocs(), strict=True)
        if low <= place <= high
    ]
    assert texts == shown
    assert not axis.get_minorticklocs().size


def test_no_power_of_ten_stands_apart_from_its_ticks():
    with mpl.rc_context(STYLE):
        axes = Figure().subplots()
        axes.plot([0, 1], [0, 2e-5])
        axes.figure.draw_without_rendering()
        assert axes.yaxis.get_offset_text().get_text() == ""
        assert axes.get_yticklabels()[-2].get_text().startswith("0.00002")


def test_a_figure_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    def full_disk(self, path, **_):
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full_disk)
    file = tmp_path / "b.png"
    file.write_bytes(b"old")
    with pytest.raises(InputError, match=r"^Cannot write .*b\.png: No space left on device\.$"):
        write_one(Figure(), file)
    assert [path.name for path in tmp_path.iterdir()] == ["b.png"]
    assert file.read_bytes() == b"old"
