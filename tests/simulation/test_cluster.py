"""A cluster of several Ray nodes gives the reference's bits, also when it loses a node."""

from __future__ import annotations

import numpy as np
import pytest

from fedhh.clients.worker import ClientWorker
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import Executor, InProcessExecutor
from fedhh.testing import LETTERS, small_population
from fedhh.validation import RunFailedError
from tests.same_bits import assert_same

ray = pytest.importorskip("ray")

from ray.cluster_utils import Cluster  # noqa: E402 - only where ray is there

from fedhh.simulation.ray import executor as executor_module  # noqa: E402
from fedhh.simulation.ray.executor import RayExecutor  # noqa: E402

pytestmark = pytest.mark.slow(
    "tests/simulation/test_calls_of_an_executor.py::test_whoever_is_lost_is_answered_for_by_another_to_the_same_bits"
)

PROTOCOL = LdpTrieHH(
    alphabet=LETTERS, clients_per_layer=1_500, depth=4, passes=1, eta_max=20, max_items=4
)
WORKERS = 3


@pytest.fixture
def cluster(no_ray):
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "include_dashboard": False},
    )
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def states(executor: Executor, progress=None):
    with executor:
        return [round_.state for round_ in rounds(PROTOCOL, executor, progress=progress)]


@pytest.mark.parametrize("replaced", [False, True])
def test_a_run_survives_the_loss_of_a_node_with_the_same_bits(
    cluster, caplog, monkeypatch, replaced
):
    # Else those that are left answer for the node before Ray knows that it is gone.
    monkeypatch.setattr(executor_module, "_LATE_SECONDS", 1e9)
    # Of small chunks each actor has several.
    monkeypatch.setattr(executor_module, "_FEWEST_CLIENTS", 1)
    monkeypatch.setattr(executor_module, "_CLIENTS_PER_CHUNK", 1)
    reference = states(InProcessExecutor(ClientWorker(small_population(6_000), seed=9)))
    # As many cores as actors: one of them runs on the node that goes.
    going = cluster.add_node(num_cpus=1)
    cluster.add_node(num_cpus=2)
    cluster.wait_for_nodes()
    worker = ClientWorker(small_population(6_000), seed=9)
    # Where no other node comes for it, one more is asked for than there are cores.
    asked = WORKERS if replaced else WORKERS + 1
    executor = RayExecutor(worker, num_workers=asked, address=cluster.address)
    first = list(executor.clients)
    assert len(first) == WORKERS
    seen: list[int] = []
    last: list[object] = []

    def lose_a_node(num_clients: int) -> None:
        seen.append(num_clients)
        last[:] = executor.clients
        # In the middle of the second layer.
        if going in cluster.worker_nodes and sum(seen) > PROTOCOL.clients_per_layer * 1.3:
            cluster.remove_node(going, allow_graceful=False)
            if replaced:
                cluster.add_node(num_cpus=1)

    found = states(executor, lose_a_node)
    assert going not in cluster.worker_nodes
    assert ("4 workers were asked for" in caplog.text) == (not replaced)
    assert_same(found, reference)
    assert sum(seen) == PROTOCOL.plan.most_answers
    changed = sum(actor is not before for actor, before in zip(last, first, strict=True))
    assert changed == 1


class Large(ClientWorker):
    """A worker, or an answer, that does not fit into a store of 80 MB."""

    def __init__(self, *args, what: str, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self._what = what
        self._ballast = np.zeros(2 * 10**7 if what == "worker" else 0)

    def answer(self, broadcast, blocks, progress=None):
        answer = super().answer(broadcast, blocks, progress)
        if self._what == "answer":
            object.__setattr__(answer, "ballast", np.zeros(2 * 10**7))
        return answer


@pytest.mark.slow(
    "tests/simulation/test_calls_of_an_executor.py::test_a_full_object_store_is_named_with_the_cure"
)
def test_a_full_object_store_is_one_line_with_the_cure(no_ray):
    def run(what: str) -> list[object]:
        worker = Large(small_population(6_000), seed=9, what=what)
        return states(RayExecutor(worker, num_workers=1, address=cluster.address))

    # As if the disk were full, too: else Ray spills to it.
    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 1,
            "include_dashboard": False,
            "object_store_memory": 8 * 10**7,
            "_system_config": {"local_fs_capacity_threshold": 1e-6},
        },
    )
    try:
        for what in ("worker", "answer"):
            with pytest.raises(RunFailedError, match=r"object store is full .*--resume") as error:
                run(what)
            assert "\n" not in str(error.value)
        assert run("neither")
    finally:
        ray.shutdown()
        cluster.shutdown()
