"""Which calls the executor on Ray makes, on actors of this process: whom it asks, and asks again.

The actors are those that Ray would run; a stand-in for Ray carries out a call when its result is
asked for. What only processes show is in test_ray_executor.py.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from contextlib import nullcontext

import pytest

from fedhh.clients.worker import ClientWorker
from fedhh.questions.cohort import Cohort
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.trie import TrieState
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import Executor, InProcessExecutor
from fedhh.testing import LETTERS, small_population
from fedhh.validation import RunFailedError
from tests.same_bits import assert_same

pytest.importorskip("ray")

from ray.exceptions import ObjectStoreFullError, RayActorError

from fedhh.simulation.ray import cluster
from fedhh.simulation.ray import executor as executor_module
from fedhh.simulation.ray.cluster import MOST_FAILURES, failure_of
from fedhh.simulation.ray.executor import Client, RayExecutor

PROTOCOL = LdpTrieHH(
    alphabet=LETTERS, clients_per_layer=1_900, depth=3, passes=1, eta_max=10, max_items=2
)


class Call:
    """A call of an actor: carried out when somebody looks."""

    def __init__(self, actor: Actor, method: str, args: tuple[object, ...]) -> None:
        self._actor, self._method, self._args = actor, method, args

    @property
    def is_there(self) -> bool:
        return self._actor.is_dead or not (self._actor.is_slow or self._actor.is_homeless)

    def result(self) -> object:
        if self._actor.is_dead:
            raise RayActorError
        return getattr(self._actor.held, self._method)(*self._args)


class Actor:
    """A client actor of this process, which may be dead, without a core, or never come back."""

    def __init__(self) -> None:
        self.held = Client()
        self.asked: list[range] = []
        self.is_dead = self.is_slow = self.is_homeless = False

    def __getattr__(self, method: str) -> object:
        def remote(*args: object) -> Call:
            if method == "answer":
                self.asked.append(args[2])  # type: ignore[arg-type]
            return Call(self, method, args)

        return types.SimpleNamespace(remote=remote)


class Here:
    """Stands in for Ray: its clock goes on by what is waited for."""

    def __init__(self) -> None:
        self.now, self.cores, self.is_full = 0.0, 9, True
        self.started: list[Actor] = []

    def get(self, call: object, timeout: float = 0.0) -> object:
        return call.result() if isinstance(call, Call) else call

    def wait(self, calls: list[Call], *, num_returns: int, timeout: float) -> tuple[list, list]:
        there = [call for call in calls if call.is_there]
        self.now += 0.0 if there else timeout
        return there[:num_returns], []

    def kill(self, actor: Actor) -> None:
        actor.is_dead = True

    def nodes(self) -> list[object]:
        return []

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": self.cores}

    available_resources = cluster_resources

    def start_client(self) -> Actor:
        actor = Actor()
        actor.is_homeless = self.is_full
        self.started.append(actor)
        return actor


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> Here:
    here = Here()
    for module in (executor_module, cluster):
        monkeypatch.setattr(module, "ray", here)
    watch = types.SimpleNamespace(check=lambda: None, is_there=lambda: False)
    monkeypatch.setattr(executor_module, "RayWatch", lambda address: watch)
    monkeypatch.setattr(executor_module, "running_ray", lambda *_: nullcontext())
    monkeypatch.setattr(executor_module, "start_server", lambda: None)
    monkeypatch.setattr(executor_module, "stored", lambda value: value)
    monkeypatch.setattr(executor_module, "start_client", here.start_client)
    monkeypatch.setattr(executor_module.time, "monotonic", lambda: here.now)
    # Chunks of few clients, since there are few.
    monkeypatch.setattr(executor_module, "_FEWEST_CLIENTS", 1)
    monkeypatch.setattr(executor_module, "_CLIENTS_PER_CHUNK", 1)
    return here


@pytest.fixture(scope="module")
def reference() -> TrieState:
    return last_state(InProcessExecutor(ClientWorker(small_population(6_000), seed=9)))


def last_state(
    executor: Executor, before_round: Callable[[int], None] = lambda _: None
) -> TrieState:
    seen: list[int] = []
    before_round(0)
    for number, round_ in enumerate(rounds(PROTOCOL, executor, progress=seen.append)):
        state = round_.state
        before_round(number + 1)
    assert sum(seen) == PROTOCOL.plan.most_answers
    return state


def executor_on(here: Here, count: int, worker: object = None) -> RayExecutor:
    """Return an executor on actors that have cores; those that are started later may have none."""
    is_full, here.is_full = here.is_full, False
    worker = worker or ClientWorker(small_population(6_000), seed=9)
    executor = RayExecutor(worker, num_workers=count)  # type: ignore[arg-type]
    here.is_full, here.started = is_full, []
    return executor


@pytest.mark.parametrize("count", [1, 3])
def test_any_number_of_actors_gives_the_reference(here: Here, count: int, reference: TrieState):
    executor = executor_on(here, count)
    assert_same(last_state(executor), reference)
    assert all(len(actor.asked) >= 3 for actor in executor.clients)


@pytest.mark.parametrize("is_full", [True, False])
@pytest.mark.parametrize("dead", [[1], [0, 2]])
def test_whoever_is_lost_is_answered_for_by_another_to_the_same_bits(
    dead: list[int], is_full: bool, here: Here, reference: TrieState
):
    here.is_full = is_full
    executor = executor_on(here, 3)
    actors = list(executor.clients)

    def kill(number: int) -> None:
        if number == 1:
            for index in dead:
                actors[index].is_dead = True

    assert_same(last_state(executor, kill), reference)
    # Whoever was asked and did not say so.
    assert 1 <= len(here.started) <= len(dead)
    assert all(bool(actor.asked) != is_full for actor in here.started)


def test_a_run_ends_in_one_line_where_nobody_is_left(here: Here):
    executor = executor_on(here, 2)
    for actor in executor.clients:
        actor.is_dead = True
    with pytest.raises(RunFailedError, match="no free core for one: start a node"):
        last_state(executor)
    assert here.now >= 60
    # Ray knows of no core: why wait?
    before, here.cores = here.now, 0
    with pytest.raises(RunFailedError, match="has no core left: start a node"):
        last_state(executor)
    assert here.now < before + 1


def test_losses_without_end_stop_the_run(here: Here):
    class Doomed(ClientWorker):
        def answer(self, broadcast, blocks, progress=None):
            raise RayActorError

    here.is_full = False
    worker = Doomed(small_population(6_000), seed=9)
    with pytest.raises(RunFailedError, match=f"lost {MOST_FAILURES + 1} times in one round"):
        last_state(executor_on(here, 1, worker))


def test_a_stragglers_blocks_are_answered_elsewhere_and_count_once(
    here: Here, reference: TrieState
):
    executor = executor_on(here, 3)

    def slow(number: int) -> None:
        # It comes back in the next round, when others have answered.
        executor.clients[1].is_slow = number == 1

    assert_same(last_state(executor, slow), reference)
    assert sum(len(actor.asked) for actor in executor.clients) == 3 * 8 + 1
    assert 1 < here.now < 3


def test_one_that_has_no_core_yet_is_not_waited_for(here: Here, reference: TrieState):
    executor = executor_on(here, 3)
    executor.clients[1].is_homeless = True
    assert_same(last_state(executor), reference)
    assert executor.clients[1].asked == []


def test_workers_that_remember_blocks_get_the_same_ones_in_every_round(here: Here):
    class Remembering(ClientWorker):
        remembers = True

    executor = executor_on(here, 3, Remembering(small_population(6_000), seed=9))

    def slow(number: int) -> None:
        executor.clients[1].is_slow = number == 1

    asked: list[list[set[str]]] = []

    def note(number: int) -> None:
        asked.append([set(map(str, actor.asked)) for actor in executor.clients])
        for actor in executor.clients:
            actor.asked.clear()
        slow(number)

    last_state(executor, note)
    _, first, beside, last = asked
    assert first == last
    assert not set.intersection(*first)
    # Another took over from the one that was late.
    assert set.union(*beside) == set.union(*first)
    assert first[1] <= beside[0] | beside[2]


def test_a_workers_own_error_is_raised_and_not_retried(here: Here):
    class Broken(ClientWorker):
        def answer(self, broadcast, blocks, progress=None):
            raise ZeroDivisionError("of the worker")

    executor = executor_on(here, 1, Broken(small_population(6_000), seed=9))
    with pytest.raises(ZeroDivisionError, match=r"^of the worker$"):
        last_state(executor)
    assert len(executor.clients[0].asked) == 1


def test_an_actor_fetches_a_question_once(monkeypatch: pytest.MonkeyPatch):
    fetched: list[object] = []
    monkeypatch.setattr(executor_module, "ray", types.SimpleNamespace(get=fetched.append))
    client = Client()
    for reference in ("a", "a", "b"):
        client._fetch("question", [reference])
    assert fetched == ["a", "b"]


@pytest.mark.parametrize(
    ("clients", "tally", "workers", "chunks"),
    [
        (1_000, 100, 4, 1),
        (10_000, 1_000, 2, 2),
        (300_000, 1_000, 2, 8),
        (10_000_000, 1_000, 2, 16),
        (500_000, 1_000_000, 64, 16),
        (10_000_000_000, 1_000_000, 64, 512),
    ],
)
def test_small_rounds_and_large_tallies_have_few_chunks(
    clients: int, tally: int, workers: int, chunks: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(executor_module, "_FEWEST_CLIENTS", 2**12)
    monkeypatch.setattr(executor_module, "_CLIENTS_PER_CHUNK", 2**15)
    broadcast = types.SimpleNamespace(cohort=Cohort(start=0, size=clients), tally_size=tally)
    made = executor_module._Chunks(broadcast, workers, remembers=False)
    assert len(made.blocks) == chunks
    assert sorted(block for each in made.blocks for block in each) == list(
        range(broadcast.cohort.num_blocks)
    )


def test_a_full_object_store_is_named_with_the_cure():
    failure = failure_of(ObjectStoreFullError("A\nstack"))
    assert isinstance(failure, RunFailedError)
    assert "object store is full" in str(failure)
    assert "--resume" in str(failure)
    assert "\n" not in str(failure)
