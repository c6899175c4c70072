"""Figures of a run where there is little to draw."""

from __future__ import annotations

from fedhh.experiments.config import load_config
from fedhh.experiments.plots import figures
from fedhh.experiments.populations import build_population
from fedhh.experiments.run import run_config

SMALL = ["population.clients=1000", "execution.workers=0"]


def estimates(*settings: str):
    """The discoveries of a small run, and its figure of estimates; warnings are errors here."""
    config = load_config(preset="small", settings=[*SMALL, *settings])
    population, _ = build_population(config.population, seed=config.seed)
    _, result = run_config(config, population)
    return result.discoveries, figures(result)["estimates"].axes[0]


def test_a_figure_without_any_real_discovery_has_no_legend():
    found, axes = estimates("privacy.local_epsilon=1")
    assert len(found)
    assert not found["is_target"].any()
    assert axes.get_legend() is None


def test_a_figure_with_real_discoveries_has_a_legend():
    found, axes = estimates("privacy.local_epsilon=12")
    assert found["is_target"].any()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert "exact" in labels
    assert len(labels) > 1
