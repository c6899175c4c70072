"""What no central mechanism does better, on the clients of a sweep's results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from fedhh import plugins
from fedhh.accounting.missing_mass import missing_mass_lower_bound
from fedhh.clients.population import Population
from fedhh.experiments.config.population import (
    build_population,
    expected_tokens,
    is_synthetic,
    population_class,
)
from fedhh.experiments.sweep.directory import base_config
from fedhh.validation import InputError

MOST_CONTRIBUTIONS = 2**24
"""Of a population that is made again for a figure."""

_SECTION = "population."


@dataclass(frozen=True, kw_only=True)
class CentralBound:
    """Upper bounds on coverage by central epsilon; none where clients cannot be had again.

    Attributes:
        coverage: One minus `missing_mass_lower_bound`, for each epsilon.
        clients: Whose: what the results call the population.
        why_not: Why there are no bounds; empty where there are.
    """

    coverage: tuple[float, ...] = ()
    clients: str = ""
    why_not: str = ""


def central_bound(
    rows: pd.DataFrame, description: dict[str, Any], epsilons: Sequence[float]
) -> CentralBound:
    """Return the bounds for the clients of the first seed of some rows of results.

    These clients are drawn or read again, and are taken only if they have as many words and
    contributions as the results say.

    Args:
        rows: Of a sweep's results; at least one.
        description: What the results' file says of the sweep.
        epsilons: Central epsilons of the unit that the rows are about, each above 0.
    """
    first = rows[rows["seed"] == rows["seed"].min()]
    if len(first[["population", "delta"]].drop_duplicates()) > 1:
        return CentralBound(why_not="populations or deltas differ")
    row = first.head(1).to_dict("records")[0]
    try:
        with plugins.disabled():
            population = _clients_of(description, row)
    except InputError:
        return CentralBound(why_not="its clients cannot be made or read here")
    if population is None:
        return CentralBound(
            why_not=f"its clients have more than {MOST_CONTRIBUTIONS:,} contributions"
        )
    found = population.word_counts()
    counts, holders = found.typed, found.holders
    if ((holders > 0).sum(), counts.sum()) != (row["target_words"], row["target_contributions"]):
        return CentralBound(why_not="its clients are others by now")
    shares = counts / counts.sum()
    return CentralBound(
        coverage=tuple(
            1 - missing_mass_lower_bound(shares, holders, epsilon=each, delta=float(row["delta"]))
            for each in epsilons
        ),
        clients=str(row["population"]),
    )


def _clients_of(description: dict[str, Any], row: dict[Any, Any]) -> Population | None:
    """Return the clients of a row; None if they are too many.

    Raises:
        InputError: The configuration, or a file that it names, is not there or is wrong.
    """
    varied = {
        str(path): value
        for path, value in row.items()
        if str(path).startswith(_SECTION) and pd.notna(value)
    }
    base = base_config(description, varied)
    if base is None or row["seed"] < 0 or population_class(base.population.source) is not None:
        raise InputError("The results do not say how their clients are made.")
    config = base.population
    seed = int(row["seed"])
    too_many = row["target_contributions"] > MOST_CONTRIBUTIONS or (
        is_synthetic(config)
        and config.clients is not None
        and expected_tokens(config, seed) > MOST_CONTRIBUTIONS
    )
    return None if too_many else build_population(config, seed=seed)
