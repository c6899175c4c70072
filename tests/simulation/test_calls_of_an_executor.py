"""Which calls the executor on Ray makes, on actors of this process: whom it asks, and asks again.

The actors are those that Ray would run; a stand-in for Ray carries out a call when its result is
asked for. What only processes show is in test_ray_executor.py.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence

import pytest

from fedhh.clients.worker import ClientWorker
from fedhh.questions.answer import Answer
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.trie_layers import TrieState
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import Executor, InProcessExecutor, merged
from fedhh.testing import LETTERS, small_population
from fedhh.validation import InputError, RunFailedError
from tests.simulation.same_states import assert_same

pytest.importorskip("ray")

from ray.exceptions import ObjectStoreFullError, RayActorError

from fedhh.simulation.ray import actors as actors_module
from fedhh.simulation.ray import executor as executor_module
from fedhh.simulation.ray.actors import _ClientActor, _groups
from fedhh.simulation.ray.executor import RayExecutor
from fedhh.simulation.ray.watch import MOST_FAILURES, failure_of

PROTOCOL = LdpTrieHH(
    alphabet=LETTERS, clients_per_layer=600, depth=3, passes=1, eta_max=10, max_items=2
)


class Call:
    """A call of an actor: carried out when somebody looks, after those that were made before it."""

    def __init__(self, actor: Actor, method: str, args: tuple[object, ...]) -> None:
        self._actor, self._method, self._args = actor, method, args
        self._result: object = None
        actor.pending.append(self)

    def result(self) -> object:
        if self._actor.is_dead:
            raise RayActorError
        while self in self._actor.pending:
            self._actor.pending.pop(0).carry_out()
        return self._result

    def carry_out(self) -> None:
        self._actor.calls.append(self._method)
        self._result = getattr(self._actor.held, self._method)(*self._args)


class Part:
    """One of two values that a call returns."""

    def __init__(self, call: Call, number: int) -> None:
        self._call, self._number = call, number

    @property
    def _actor(self) -> Actor:
        return self._call._actor

    def result(self) -> object:
        return self._call.result()[self._number]  # type: ignore[index]


class Actor:
    """A client actor of this process, which may be dead, or never come back."""

    def __init__(self) -> None:
        self.held = _ClientActor()
        self.calls: list[str] = []
        self.pending: list[Call] = []
        self.is_dead = self.is_slow = False

    def __getattr__(self, method: str) -> object:
        def remote(*args: object) -> Call:
            return Call(self, method, args)

        def both() -> tuple[Part, Part]:
            call = Call(self, method, ())
            return Part(call, 0), Part(call, 1)

        options = types.SimpleNamespace(remote=both)
        return types.SimpleNamespace(remote=remote, options=lambda num_returns: options)


class Actors:
    """Stands in for `RayActors`; as many as there are cores."""

    def __init__(self, count: int, *, spare: int = 0) -> None:
        self.clients = [Actor() for _ in range(count)]
        self.all = list(self.clients)
        self.seats = list(range(count))
        self.watch = types.SimpleNamespace(check=lambda: None)
        self._spare = spare

    def hold(self, worker: ClientWorker) -> None:
        self._worker = worker
        self.held = [actor.hold.remote(worker) for actor in self.clients]

    def lost(self) -> set[int]:
        return {index for index in self.seats if self.clients[index].is_dead}

    def check_new_nodes(self) -> None: ...

    def replace_client(self, index: int) -> None:
        if self._spare == 0:
            self.seats.remove(index)
            return
        self._spare -= 1
        self.clients[index] = Actor()
        self.all.append(self.clients[index])
        self.held[index] = self.clients[index].hold.remote(self._worker)

    def merge(self, answers: Sequence[tuple[int, Part]]) -> list[Answer]:
        return merged(answer.result() for _, answer in answers)  # type: ignore[misc]

    def close(self) -> None: ...


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(calls: list[Call], *, num_returns: int, timeout: float) -> tuple[list[Call], list]:
        return [call for call in calls if not call._actor.is_slow], []

    ray = types.SimpleNamespace(get=lambda call: call.result(), wait=wait)
    monkeypatch.setattr(executor_module, "ray", ray)
    monkeypatch.setattr(executor_module, "stored", lambda question: question)
    monkeypatch.setattr(executor_module, "_CLIENTS_PER_CALL", 1)


@pytest.fixture(scope="module")
def reference() -> TrieState:
    return last_state(InProcessExecutor(ClientWorker(small_population(2_000), seed=9)))


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


def executor_on(actors: Actors) -> RayExecutor:
    return RayExecutor(ClientWorker(small_population(2_000), seed=9), actors=actors)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [1, 3])
def test_any_number_of_actors_gives_the_reference(count: int, reference: TrieState):
    actors = Actors(count)
    assert_same(last_state(executor_on(actors)), reference)
    for actor in actors.clients:
        assert actor.calls.count("begin") == actor.calls.count("hand_over") == 3
    assert sum(actor.calls.count("absorb") for actor in actors.clients) >= (2 if count == 1 else 0)


@pytest.mark.parametrize(("dead", "spare"), [([1], 1), ([1], 0), ([0, 2], 1), ([0, 1, 2], 3)])
def test_whoever_is_lost_is_answered_for_by_another_to_the_same_bits(
    dead: list[int], spare: int, reference: TrieState
):
    actors = Actors(3, spare=spare)

    def kill(number: int) -> None:
        if number == 1:
            for index in dead:
                actors.clients[index].is_dead = True

    assert_same(last_state(executor_on(actors), kill), reference)
    assert len(actors.all) == 3 + spare
    assert len(actors.seats) == 3 - len(dead) + spare


def test_a_run_ends_in_one_line_where_nobody_is_left():
    actors = Actors(2)
    for actor in actors.clients:
        actor.is_dead = True
    with pytest.raises(RunFailedError, match="no free core: start a node"):
        last_state(executor_on(actors))


def test_losses_without_end_stop_the_run():
    class Doomed(Actors):
        def replace_client(self, index: int) -> None:
            super().replace_client(index)
            self.clients[index].is_dead = True

    actors = Doomed(1, spare=100)
    actors.clients[0].is_dead = True
    with pytest.raises(RunFailedError, match=f"lost {MOST_FAILURES + 1} times in one round"):
        last_state(executor_on(actors))


def test_a_stragglers_blocks_are_answered_elsewhere_and_count_once(
    monkeypatch: pytest.MonkeyPatch, reference: TrieState
):
    monkeypatch.setattr(executor_module, "_SECONDS_LATE", 0.0)
    actors = Actors(3)

    def slow(number: int) -> None:
        actors.clients[1].is_slow = number == 1

    # It does not come back in its second layer, so the others' answers are what counts.
    assert_same(last_state(executor_on(actors), slow), reference)
    assert actors.clients[0].calls.count("begin") > 3


def test_answers_that_count_a_client_twice_end_the_run(monkeypatch: pytest.MonkeyPatch):
    twice = lambda self, answers: merged([answers[0][1].result()] * 2)  # noqa: E731
    monkeypatch.setattr(Actors, "merge", twice)
    with pytest.raises(RuntimeError, match="Expected answers of"):
        last_state(executor_on(Actors(3)))


def test_a_workers_own_error_is_raised_and_not_retried():
    class Broken(ClientWorker):
        def answer(self, broadcast, blocks, progress=None, *, onto=None):
            raise ZeroDivisionError("of the worker")

    actors = Actors(1)
    executor = RayExecutor(Broken(small_population(2_000), seed=9), actors=actors)  # type: ignore[arg-type]
    with pytest.raises(ZeroDivisionError, match=r"^of the worker$"):
        last_state(executor)
    assert actors.clients[0].calls.count("begin") == 1


class Core:
    def __init__(self, free: bool) -> None:
        self._free = free

    def wait(self, seconds: float) -> bool:
        return self._free


@pytest.mark.parametrize("free", [1, 2, 3])
def test_as_many_workers_are_placed_as_cores_are_free_and_it_is_said(free, monkeypatch, caplog):
    cores = iter(Core(number < free) for number in range(3))
    removed: list[Core] = []
    monkeypatch.setattr(actors_module, "placement_group", lambda bundles: next(cores))
    monkeypatch.setattr(actors_module, "remove_placement_group", removed.append)
    assert len(actors_module._reserve(3)) == free
    assert len(removed) == 3 - free
    assert (f"free cores for {free}" in caplog.text) == (free < 3)


def test_where_no_core_is_free_the_cure_is_named(monkeypatch):
    monkeypatch.setattr(actors_module, "placement_group", lambda bundles: Core(free=False))
    monkeypatch.setattr(actors_module, "remove_placement_group", lambda core: None)
    monkeypatch.setattr(actors_module, "all_cores", lambda: 4)
    with pytest.raises(InputError, match=r"None of the 4 cores .* is free"):
        actors_module._reserve(2)


def test_answers_of_a_node_are_merged_there_by_few_at_once():
    level = [("a", index, None) for index in range(9)] + [("b", 9, None)]
    assert [len(group) for group in _groups(level)] == [8, 1, 1]


def test_a_full_object_store_is_named_with_the_cure():
    failure = failure_of(ObjectStoreFullError("A\nstack"))
    assert isinstance(failure, RunFailedError)
    assert "object store is full" in str(failure)
    assert "--resume" in str(failure)
    assert "\n" not in str(failure)
