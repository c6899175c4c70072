"""Actors that are started before there is a worker give the same bits."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedhh.clients.warm_up import warm_up
from fedhh.clients.worker import ClientWorker
from fedhh.kernels import sampling, subset_tally
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import Executor, InProcessExecutor
from fedhh.testing import LETTERS, small_population
from tests.asked_clients import answered

ray = pytest.importorskip("ray")

from fedhh.simulation.ray.executor import RayExecutor  # noqa: E402 - only where ray is there

# Ray's workers need not find the tests.
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])

PROTOCOL = LdpTrieHH(
    alphabet=LETTERS, clients_per_layer=1_500, depth=4, passes=1, eta_max=20, max_items=4
)


def worker() -> ClientWorker:
    return ClientWorker(small_population(6_000), seed=9)


def estimates(executor: Executor) -> np.ndarray:
    with executor:
        *_, last = rounds(PROTOCOL, executor)
    return last.state.found.estimate


class Fatal:
    """Ends the process of the first actor that warms up, and fails in the others."""

    def __init__(self, marker: Path) -> None:
        self._marker = str(marker)

    def __call__(self) -> None:
        try:
            os.close(os.open(self._marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError as error:
            raise ZeroDivisionError("of the warm-up") from error
        os._exit(1)


@pytest.fixture(scope="module")
def reference() -> np.ndarray:
    return estimates(InProcessExecutor(worker()))


@pytest.mark.slow(
    "tests/simulation/test_calls_of_an_executor.py::test_whoever_is_lost_is_answered_for_by_another_to_the_same_bits"
)
def test_an_actor_that_dies_in_the_warm_up_is_replaced_and_one_that_fails_goes_on(
    tmp_path, reference, shared_ray
):
    marker = tmp_path / "died"
    executor = RayExecutor(num_workers=2, warm_up=Fatal(marker))
    executor.hold(worker())
    found = estimates(executor)
    assert marker.exists()
    assert np.array_equal(found, reference)
    assert ray.is_initialized()  # it was there before


def test_a_warm_up_loads_the_kernels_of_real_answers(monkeypatch):
    seen: set[tuple[object, ...]] = set()
    for module, name in ((sampling, "choose_contributions"), (subset_tally, "count_into")):
        kernel = getattr(module, name)

        def spy(*arguments, name=name, kernel=kernel):
            seen.add((name, *map(kernel.typeof_pyval, arguments)))
            return kernel(*arguments)

        monkeypatch.setattr(module, name, spy)
    warm_up()
    warmed_up = set(seen)
    assert len(warmed_up) == 2
    question = PROTOCOL.next_question(PROTOCOL.initialize())
    for asked in (question, replace(question, counts_only=True)):
        answered(worker(), asked, [0])
    assert seen == warmed_up
