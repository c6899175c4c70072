"""A protocol has one color, whatever stands next to it, in figures and on pages."""

from __future__ import annotations

import pandas as pd

from fedhh.experiments.report.explorer.study_page import chart
from fedhh.experiments.report.style import PROTOCOLS, colors_of, looks, protocol_color
from fedhh.experiments.report.sweep_lines import draw_metric
from fedhh.experiments.sweep.columns import Layout
from fedhh.server.registry import protocol_class, protocol_names

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
    colors = {name: protocol_color(name) for name in protocol_names()}
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
