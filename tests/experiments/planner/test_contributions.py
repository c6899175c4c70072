"""How many words a client contributes: the planner's B is the one of the T sqrt(B) rule.

Where each of a word's contributors has B words, weighted Gaussian noise publishes it with a chance
of one half from T sqrt(B) contributors on (Gopi et al. 2020; arXiv 2603.14016, Theorem 3.2). A
larger B has more contributors, and a higher T.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import fedhh
from fedhh.accounting.weighted_gaussian import weight_releases
from fedhh.experiments.planner.ladders import CONTRIBUTIONS, LADDERS
from tests.thinned import thinned

B_TRIED = LADDERS[CONTRIBUTIONS]["max_items"]
DELTA = 1e-10


def threshold(epsilon: float, max_items: int, **neighbors: str) -> float:
    (release,) = weight_releases(epsilon=epsilon, delta=DELTA, max_items=max_items, **neighbors)
    return release.threshold


def holders_needed(population, epsilon: float) -> dict[int, float]:
    """Return, for each B, of how many holders a typical word needs for a chance of one half.

    A holder of k words contributes it with chance min(1, B / k), with weight 1 / sqrt(min(B, k)).
    """
    sizes = np.diff(population.block(np.arange(population.num_clients)).offsets)
    of_holders = np.repeat(sizes, sizes)
    needed = {}
    for most in B_TRIED:
        sent = np.minimum(of_holders, most)
        needed[most] = threshold(epsilon, most) / (sent / of_holders / np.sqrt(sent)).mean()
    return needed


@pytest.mark.parametrize(
    ("epsilon", "needed"), [(1.0, (39.6, 130, 328)), (0.315, (118.9, 393, 998))]
)
def test_contributors_needed_are_those_of_the_literature(epsilon: float, needed):
    # Computed independently, for one client more or less; swaps have sqrt(2) times the noise.
    for most, expected in zip((1, 10, 60), needed, strict=True):
        found = threshold(epsilon, most, neighbors="add or remove") * math.sqrt(most)
        assert found == pytest.approx(expected, rel=5e-3)
        under_swaps = threshold(epsilon, most) * math.sqrt(most)
        assert 1.35 * found < under_swaps < math.sqrt(2) * found


def test_a_client_of_many_words_contributes_all_that_raise_its_weight():
    # Where all have 60 words, B of them come from B / 60 of a word's holders.
    alike = {most: threshold(1.0, most) * math.sqrt(most) / (most / 60) for most in (1, 10, 60)}
    assert alike[60] < alike[10] < alike[1]


@pytest.mark.parametrize(
    ("source", "clients", "held_by", "epsilon", "best"),
    thinned(
        [
            # Clients have 1.6, 7 and 64 words in the mean, and some many more.
            ("tweet", 6_000, "1/200", 4, 10),
            ("chat", 3_000, "1/50", 4, 60),
            ("keyboard60d", 2_000, "1/20", 8, 200),
        ]
    ),
)
def test_the_planner_chooses_what_the_rule_says(source, clients, held_by, epsilon, best):
    plan = fedhh.plan(
        settings=(
            f"population.source={source}", f"population.clients={clients}",
            "population.alphabet=lower", "protocol.max_items=20", "execution.workers=0",
        ),
        protocols=("weighted-gaussian",), at=f"user-central-epsilon={epsilon}", held_by=held_by,
        runs=7,
    )  # fmt: skip
    needed = holders_needed(plan.population, epsilon)
    assert min(needed, key=lambda most: needed[most]) == best
    chosen = plan.best.trial.settled.protocol.max_items
    # One run does not tell apart what differs by a few percent.
    assert needed[chosen] <= 1.03 * needed[best]
    assert needed[2] > 1.15 * needed[best]
    assert {trial.settled.protocol.max_items for trial in plan.trials} > {chosen}
