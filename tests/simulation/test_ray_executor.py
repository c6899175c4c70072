"""Ray gives the reference's bits: with any number of workers, and when actors die."""

from __future__ import annotations

import os
import sys
import threading
import types
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from fedhh.clients.fakes import Fakes
from fedhh.clients.population import client_order
from fedhh.clients.worker import ClientWorker
from fedhh.devices import Devices
from fedhh.kernels.cache import cache_directory
from fedhh.protocol import DiscoveryProtocol
from fedhh.questions.clients import ClientBlock
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.sfp import Sfp
from fedhh.server.trie import TrieState
from fedhh.simulation.engine import Round, rounds
from fedhh.simulation.executor import Executor, InProcessExecutor
from fedhh.simulation.fidelity import EXACT_TALLY, Fidelity
from fedhh.simulation.roster import Roster
from fedhh.testing import LETTERS, small_population
from fedhh.validation import InputError, RunFailedError
from tests.asked_clients import answered
from tests.conftest import RAY_CORES, join_shared_ray
from tests.same_bits import assert_same

ray = pytest.importorskip("ray")

from ray.exceptions import RaySystemError  # noqa: E402 - only where ray is there

from fedhh.simulation.ray import executor as executor_module  # noqa: E402
from fedhh.simulation.ray.cluster import RayWatch, failure_of, stored  # noqa: E402
from fedhh.simulation.ray.executor import Client, RayExecutor  # noqa: E402
from fedhh.simulation.ray.tasks import computed, map_on_ray  # noqa: E402

CALLS = "tests/simulation/test_calls_of_an_executor.py"
TASKS = "tests/simulation/test_calls_of_tasks.py"
pytestmark = [
    pytest.mark.usefixtures("shared_ray"),
    pytest.mark.slow(f"{CALLS}::test_any_number_of_actors_gives_the_reference"),
]
LOST = pytest.mark.slow(
    f"{CALLS}::test_whoever_is_lost_is_answered_for_by_another_to_the_same_bits"
)

PROTOCOL = LdpTrieHH(
    alphabet=LETTERS, clients_per_layer=1_500, depth=4, passes=1, eta_max=20, max_items=4
)

SFP = Sfp(
    alphabet=LETTERS,
    clients_per_layer=1_500,
    max_items=4,
    length=4,
    word_hashes=16,
    fragment_hashes=16,
    hash_seed=0,
)


@pytest.fixture(scope="module")
def reference() -> TrieState:
    return last_state(InProcessExecutor(ClientWorker(small_population(6_000), seed=9)))


def last_state(executor: Executor) -> TrieState:
    with executor:
        *_, last = rounds(PROTOCOL, executor)
    return last.state


def here_and_there(
    protocol: DiscoveryProtocol,
    there: RayExecutor,
    groups: tuple[int, ...] = (),
    *,
    devices: Devices | None = None,
    **options: Any,
) -> list[Round]:
    """Return the first round of a protocol, asked in this process and through actors."""
    population = small_population(6_000)
    roster = Roster(client_order(population, seed=9), devices=devices, fakes=groups)
    here = InProcessExecutor(ClientWorker(population, seed=9))
    return [next(rounds(protocol, way, roster=roster, **options)) for way in (here, there)]


@pytest.fixture(scope="class")
def three_workers(end_of_ray: None) -> Iterator[RayExecutor]:
    """Three actors for several runs: an actor takes longer to start than a small run."""
    join_shared_ray()
    with RayExecutor(ClientWorker(small_population(6_000), seed=9), num_workers=3) as executor:
        yield executor


# One and two workers are those of the tests below.
class TestThreeWorkers:
    def test_they_give_the_reference(self, three_workers: RayExecutor, reference: TrieState):
        seen: list[int] = []
        for round_ in rounds(PROTOCOL, three_workers, progress=seen.append):
            state = round_.state
        assert_same(state, reference)
        assert sum(seen) == PROTOCOL.plan.most_answers

    def test_tallies_drawn_at_once_are_the_same_with_any_number_of_workers(
        self,
        three_workers: RayExecutor,
    ):
        for protocol in (PROTOCOL, SFP):
            at_once = Fidelity(name=EXACT_TALLY)
            expected, answer = here_and_there(protocol, three_workers, fidelity=at_once)
            assert np.array_equal(answer.aggregate.tally, expected.aggregate.tally)
            assert answer.diagnostics == expected.diagnostics

    def test_the_same_devices_are_there_with_any_number_of_workers(
        self,
        three_workers: RayExecutor,
    ):
        devices = Devices(check_in="papaya", eligible=0.7, dropout=0.1, least_clients=890)
        for protocol in (PROTOCOL, SFP):
            expected, answer = here_and_there(protocol, three_workers, devices=devices)
            assert np.array_equal(answer.aggregate.tally, expected.aggregate.tally)
            assert answer.diagnostics == expected.diagnostics
            assert answer.aggregate.num_clients == answer.diagnostics.attendance.answers < 1_500

    def test_fake_clients_send_the_same_with_any_number_of_workers(
        self, three_workers: RayExecutor
    ):
        fakes = Fakes(words=["fade", "bead"], goal="promote", strategy="output", seed=9)
        expected, answer = here_and_there(PROTOCOL, three_workers, (300,), fakes=fakes.answer)
        assert np.array_equal(answer.aggregate.tally, expected.aggregate.tally)
        assert answer.aggregate.num_clients == answer.question.cohort.size
        sent, same = answer.diagnostics.fakes, expected.diagnostics.fakes
        assert np.array_equal(sent.tally, same.tally)
        assert sent.num_clients == same.num_clients > 0


def wait_for_cores() -> None:
    """Wait until the cores of actors that are just gone are free."""
    while ray.available_resources().get("CPU", 0) < RAY_CORES:
        threading.Event().wait(0.05)


class TestFewerCoresThanWorkers:
    @pytest.mark.slow(f"{TASKS}::test_arguments_are_taken_when_a_worker_is_free")
    def test_as_many_as_fit_answer_for_all_and_it_is_said(self, monkeypatch, caplog, reference):
        wait_for_cores()
        worker = ClientWorker(small_population(6_000), seed=9)
        executor = RayExecutor(worker, num_workers=RAY_CORES + 1)
        assert len(executor.clients) == RAY_CORES
        assert "4 workers were asked for, and the Ray cluster has 3 cores" in caplog.text
        while ray.available_resources().get("CPU", 0):
            threading.Event().wait(0.05)
        # They have all cores: others are refused with the cure.
        with monkeypatch.context() as patch, RayExecutor(worker, num_workers=1) as others:
            patch.setattr(executor_module, "_ALONE_SECONDS", 0.2)
            with pytest.raises(RunFailedError, match=r"No worker .* no free core .*: start a node"):
                next(rounds(PROTOCOL, others))
        assert_same(last_state(executor), reference)

    @LOST
    def test_actors_that_are_lost_and_find_no_core_leave_their_blocks_to_others_if_any(
        self, monkeypatch, caplog, reference
    ):
        wait_for_cores()
        worker = ClientWorker(small_population(6_000), seed=9)
        executor = RayExecutor(worker, num_workers=2)
        seen: list[int] = []
        with executor:
            for number, round_ in enumerate(rounds(PROTOCOL, executor, progress=seen.append)):
                state = round_.state
                if number == 1:
                    # As if its node went with it: nobody gets a core again.
                    monkeypatch.setattr(executor_module, "_ALONE_SECONDS", 0.5)
                    monkeypatch.setattr(executor_module, "start_client", never_placed)
                    ray.kill(executor.clients[0])
            assert_same(state, reference)
            assert sum(seen) == PROTOCOL.plan.most_answers
            follow = rounds(PROTOCOL, executor)
            next(follow)
            ray.kill(executor.clients[1])
            with pytest.raises(RunFailedError, match=r"No worker .* left.*--resume"):
                next(follow)


@pytest.mark.slow(f"{TASKS}::test_what_calls_share_is_made_once")
def test_what_calls_share_is_stored_or_made_once_by_a_task_of_its_own(tmp_path):
    made, broken = computed(noted, tmp_path, "fine"), computed(noted, tmp_path, "broken")
    calls = [(made,), (broken,), (made,), (stored((7,)),)]
    results = dict(map_on_ray(first_of, calls, num_workers=1))
    assert results[0] == results[2] != os.getpid()
    assert str(results[1]) == "not for this one"
    assert results[3] == 7
    assert sorted(each.name.split()[0] for each in tmp_path.iterdir()) == ["broken", "fine"]


def noted(folder, name: str) -> tuple[int]:
    """Write down that it was called, and return the process."""
    (folder / f"{name} {uuid.uuid4()}").touch()
    if name == "broken":
        raise ValueError("not for this one")
    return (os.getpid(),)


def first_of(values: tuple[int]) -> int:
    return values[0]


def never_placed():
    """An actor whose core no node has."""
    return ray.remote(num_cpus=1, resources={"absent": 1})(Client).remote()


def test_an_error_of_rays_own_is_one_line_with_the_cure():
    text = str(failure_of(RaySystemError("A\n" + "stack\n" * 1_000)))
    assert "\n" not in text
    assert "RaySystemError" in text
    assert "--resume" in text
    assert len(text) < 300


class DyingWorker(ClientWorker):
    """Kills its process once, in the middle of a layer, when it meets a chosen block."""

    def __init__(self, *args: object, marker: str, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._marker = marker

    def answer(self, broadcast, blocks, progress=None):
        import os
        from pathlib import Path

        if broadcast.question.layer == 2 and 3 in blocks and not Path(self._marker).exists():
            Path(self._marker).touch()
            os._exit(1)
        return super().answer(broadcast, blocks, progress)


@LOST
def test_an_actor_that_exits_in_a_layer_changes_nothing(tmp_path, reference: TrieState):
    marker = tmp_path / "died"
    worker = DyingWorker(small_population(6_000), seed=9, marker=str(marker))
    assert_same(last_state(RayExecutor(worker, num_workers=1)), reference)
    assert marker.exists()


class SlowPopulation:
    """Delegates, but takes its time over each block, so that a kill falls into a layer."""

    def __init__(self, population) -> None:
        self._population = population

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__dict__["_population"], name)

    def __getstate__(self):
        return self.__dict__

    def __setstate__(self, state) -> None:
        self.__dict__.update(state)

    def block(self, clients) -> ClientBlock:
        import time

        time.sleep(0.1)
        return self._population.block(clients)


@LOST
def test_killing_an_actor_from_outside_changes_nothing(reference: TrieState):
    worker = ClientWorker(SlowPopulation(small_population(6_000)), seed=9)  # type: ignore[arg-type]
    executor = RayExecutor(worker, num_workers=2)
    handle = executor.clients[1]
    killed = threading.Event()

    def kill() -> None:
        ray.kill(handle)
        killed.set()

    timer = threading.Timer(0.4, kill)
    with executor:
        for number, round_ in enumerate(rounds(PROTOCOL, executor)):
            state = round_.state
            if number == 0:
                timer.start()
    assert killed.is_set()
    assert executor.clients == []
    assert_same(state, reference)


class Straggler(ClientWorker):
    """Takes its time wherever it answers first for a certain block of the second layer."""

    def __init__(self, *args: object, marker: str, seconds: float, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._marker, self._seconds = marker, seconds

    def answer(self, broadcast, blocks, progress=None):
        import time
        from pathlib import Path

        blocks = list(blocks)
        if broadcast.question.layer == 2 and 1 in blocks:
            try:
                Path(self._marker).touch(exist_ok=False)
                time.sleep(self._seconds)
            except FileExistsError:
                pass
        return super().answer(broadcast, blocks, progress)


@pytest.mark.slow(f"{CALLS}::test_a_stragglers_blocks_are_answered_elsewhere_and_count_once")
@pytest.mark.parametrize("seconds", [60.0, 1.5])
def test_a_stragglers_blocks_are_answered_elsewhere_and_count_once(
    tmp_path, monkeypatch, reference: TrieState, seconds: float
):
    # Late at once, so that those who wait ask elsewhere, whoever is then first.
    monkeypatch.setattr(executor_module, "_LATE_SECONDS", 0.2)
    worker = Straggler(
        small_population(6_000), seed=9, marker=str(tmp_path / "slow"), seconds=seconds
    )
    seen: list[int] = []
    with RayExecutor(worker, num_workers=3) as executor:
        for round_ in rounds(PROTOCOL, executor, progress=seen.append):
            state = round_.state
    assert (tmp_path / "slow").exists()
    assert_same(state, reference)
    assert sum(seen) == PROTOCOL.plan.most_answers


@pytest.mark.slow(f"{CALLS}::test_a_workers_own_error_is_raised_and_not_retried")
def test_a_workers_own_error_is_raised_and_not_retried():
    class Broken(ClientWorker):
        def answer(self, broadcast, blocks, progress=None):
            raise ZeroDivisionError("of the worker")

    executor = RayExecutor(Broken(small_population(6_000), seed=9), num_workers=1)
    # Its own words, not Ray's pages of what was called where.
    with pytest.raises(ZeroDivisionError, match=r"^of the worker$"):
        last_state(executor)


def die_once_and_fail_at_two(number: int, marker: str) -> int:
    import os
    from pathlib import Path

    if number == 1 and not Path(marker).exists():
        Path(marker).touch()
        os._exit(1)
    if number == 2:
        raise ZeroDivisionError("of the call")
    return number


@pytest.mark.slow(f"{TASKS}::test_every_result_comes_with_its_number_and_errors_are_handed_back")
def test_a_lost_task_is_started_again_and_one_that_fails_does_not_stop_others(tmp_path):
    calls = ((number, str(tmp_path / "died")) for number in range(4))
    results = dict(map_on_ray(die_once_and_fail_at_two, calls, num_workers=2))
    assert isinstance(results.pop(2), ZeroDivisionError)
    assert results == {0: 0, 1: 1, 3: 3}


def place_of_compiled_code(_: int) -> str:
    return str(cache_directory())


def test_workers_keep_compiled_code_where_the_driver_does():
    assert dict(map_on_ray(place_of_compiled_code, [(0,)], num_workers=1)) == {
        0: str(cache_directory())
    }


def test_errors_of_rays_own_end_a_run_and_nothing_is_stored_once_it_is_gone(monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise RaySystemError("A\n" + "stack\n" * 1_000)

    def gone(_: RayWatch) -> None:
        raise RunFailedError("Ray's raylet is gone.")

    worker = ClientWorker(small_population(600), seed=9)
    with RayExecutor(worker, num_workers=1) as executor:
        with monkeypatch.context() as patch:
            patch.setattr(ray, "get", fail)
            with pytest.raises(RunFailedError, match="RaySystemError"):
                next(rounds(PROTOCOL, executor))
        # Where Ray is gone, storing would end this process.
        monkeypatch.setattr(RayWatch, "check", gone)
        monkeypatch.setattr(ray, "put", None)
        with pytest.raises(RunFailedError, match="raylet is gone"):
            next(rounds(PROTOCOL, executor))
        with pytest.raises(RunFailedError):
            executor.hold(worker)
        with pytest.raises(RunFailedError):
            next(map_on_ray(place_of_compiled_code, [(0,)], num_workers=1))


class Stray:
    """Made to belong to a module that exists in this process alone."""

    remembers = False

    def answer(self, broadcast, blocks, progress=None):
        raise AssertionError("never called")


def stray_result(worker) -> int:
    return 0


@pytest.fixture
def stray(monkeypatch):
    module = types.ModuleType("only_here")
    kind = type("Stray", (Stray,), {"__module__": "only_here"})
    module.Stray = kind
    module.__spec__ = None
    monkeypatch.setitem(sys.modules, "only_here", module)
    return kind()


def test_a_worker_of_an_unknown_module_is_refused_by_name(stray):
    question = PROTOCOL.next_question(PROTOCOL.initialize())
    with (
        RayExecutor(stray, num_workers=1) as executor,
        pytest.raises(InputError, match="cannot import the module 'only_here'"),
    ):
        answered(executor, question)
    ((_, outcome),) = map_on_ray(stray_result, [(stray,)], num_workers=1)
    assert isinstance(outcome, InputError)
    assert "'only_here'" in str(outcome)
