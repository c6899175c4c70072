"""The figure of shuffle bounds: their epsilons, with the asked number of reports among them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedhh.accounting import shuffle_bound
from fedhh.experiments.report import account_figures
from fedhh.experiments.report.account_figures import plot_shuffle
from fedhh.validation import InputError

DELTA = 1e-6


@pytest.fixture
def drawn(monkeypatch):
    """Draw and return the panels."""
    figures = []
    monkeypatch.setattr(account_figures, "write_one", lambda figure, path: figures.append(figure))

    def draw(**asked):
        plot_shuffle(Path("bounds.png"), delta=DELTA, **asked)
        return figures.pop().axes

    return draw


def test_the_asked_number_of_reports_is_a_point_of_every_line(drawn):
    asked, other = drawn(local_epsilon=0.5, num_reports=1_000, domain_size=None)
    assert [axes.get_title() for axes in (asked, other)] == [
        "local epsilon 0.5",
        "local epsilon 2.5",
    ]
    lines = {line.get_label(): line for line in asked.lines if len(line.get_xdata()) > 2}
    marks = [line for line in asked.lines if line.get_marker() == "o"]
    # Without a domain, what is proven for Subset Selection alone is for comparison.
    closed, clones, later = lines
    assert clones == "clones (2021)"
    assert closed.endswith(", for comparison")
    assert later == "clones (2023), for comparison"
    for line, mark in zip(lines.values(), marks, strict=True):
        reports, epsilons = line.get_data()
        (at,) = np.flatnonzero(np.asarray(reports) == 1_000)
        assert (reports[0], reports[-1]) == (10, 100_000)
        np.testing.assert_array_equal(mark.get_data(), ([1_000], [epsilons[at]]))
        assert np.nanargmin(epsilons) == len(epsilons) - 1
    bound = shuffle_bound("clones", local_epsilon=0.5, num_reports=1_000, domain_size=None)
    assert max(lines[clones].get_ydata()) <= 0.5
    shown = dict(zip(*lines[clones].get_data(), strict=True))
    assert shown[1_000] == pytest.approx(bound.epsilon(DELTA), rel=1e-3)
    assert not [line for axes in (asked, other) for line in axes.lines if line.get_marker() == "*"]
    assert not [line for line in other.lines if line.get_marker() == "o"]


def test_a_format_that_nobody_knows_is_refused_before_anything_is_drawn():
    with pytest.raises(InputError, match=r"\.png"):
        plot_shuffle(
            Path("bounds.xyz"), local_epsilon=1.0, num_reports=20, delta=DELTA, domain_size=None
        )
