"""A server actor gives the rounds that this process would, also after it was lost.

Most tests run the actor's class here, with a stand-in for Ray; what only processes show is at the
end.
"""

from __future__ import annotations

import pickle
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from fedhh.clients.worker import ClientWorker
from fedhh.devices import Devices
from fedhh.experiments.run.run import simulate
from fedhh.experiments.study.callbacks import Callbacks
from fedhh.protocol import DiscoveryProtocol
from fedhh.questions.answer import Answer, Attendance
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.simulation.engine import Round, Walk
from fedhh.simulation.executor import InProcessExecutor
from fedhh.simulation.log import Log
from fedhh.simulation.roster import MissedRoundError
from fedhh.testing import LETTERS, small_population
from fedhh.validation import RunFailedError
from tests.same_bits import assert_same

ray = pytest.importorskip("ray")

from ray.exceptions import RayActorError, RayTaskError  # noqa: E402

from fedhh.simulation.ray import executor as executor_module  # noqa: E402
from fedhh.simulation.ray.cluster import MOST_FAILURES  # noqa: E402
from fedhh.simulation.ray.executor import RayExecutor, Server  # noqa: E402

# Ray's workers need not find the tests.
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])

PROTOCOL = LdpTrieHH(
    alphabet=LETTERS, clients_per_layer=600, depth=4, passes=1, eta_max=20, max_items=2
)
POPULATION = small_population(3_000)


class Asking(InProcessExecutor):
    """Answers here; says in which rounds."""

    asked: list[int] = []  # noqa: RUF012 - of all copies

    def answer(self, broadcast, progress=None):
        self.asked.append(broadcast.question.layer)
        return super().answer(broadcast, progress)


class Rounds:
    """What an actor's generator is to who listens: references, one by one."""

    def __init__(self, made: Iterator[Any], lost_after: int) -> None:
        self._made, self._left = made, lost_after

    def __next__(self) -> Any:
        self._left -= 1
        if self._left < 0:
            return RayActorError()
        return pickle.loads(pickle.dumps(next(self._made)))


class Here:
    """Stands in for Ray, with servers that are lost after so many rounds."""

    def __init__(self, lost_after: Sequence[int]) -> None:
        self._lost_after = iter(lost_after)
        self.started = 0

    def start_server(self) -> Any:
        self.started += 1
        server, lost_after = Server(), next(self._lost_after, 1_000)

        def rounds(*args: Any) -> Rounds:
            return Rounds(server.rounds(*pickle.loads(pickle.dumps(args))), lost_after)

        calls = {"rounds": rounds, "asked": server.asked}
        return types.SimpleNamespace(
            **{name: types.SimpleNamespace(remote=call) for name, call in calls.items()}
        )

    def wait(self, references: list[Any], *, timeout: float) -> tuple[list[Any], list[Any]]:
        return references, []

    def get(self, reference: Any, timeout: float) -> Any:
        if isinstance(reference, RayActorError):
            raise reference
        return reference


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Asking, "asked", [])


def served(monkeypatch: pytest.MonkeyPatch, lost_after: Sequence[int] = ()) -> tuple[Here, Any]:
    """Return an executor whose server is an actor of this process, as its clients are."""
    here = Here(lost_after)
    with monkeypatch.context() as patch:
        patch.setattr(RayExecutor, "__init__", lambda self: None)
        executor = RayExecutor()
    monkeypatch.setattr(executor_module, "ray", here)
    asking = Asking(ClientWorker(POPULATION, seed=3))
    monkeypatch.setattr(executor_module, "stored", lambda x: asking if x is executor else x)
    monkeypatch.setattr(executor_module, "start_server", here.start_server)
    executor.server, executor._watch = here.start_server(), types.SimpleNamespace(check=lambda: 0)
    return here, executor


def walk(protocol: DiscoveryProtocol = PROTOCOL) -> Walk:
    return Walk(protocol=protocol.settle(num_clients=3_000, seed=3))


@pytest.fixture(scope="module")
def reference() -> list[Round]:
    return list(walk().rounds(InProcessExecutor(ClientWorker(POPULATION, seed=3))))


def require_same(made: list[Round], reference: list[Round]) -> None:
    for one, other in zip(made, reference, strict=True):
        for part in ("question", "aggregate", "diagnostics", "state"):
            assert_same(getattr(one, part), getattr(other, part))


def test_a_server_yields_what_this_process_would(monkeypatch, reference):
    seen: list[int] = []
    here, executor = served(monkeypatch)
    require_same(list(executor.rounds(walk(), tuple, seen.append)), reference)
    assert sum(seen) == PROTOCOL.plan.most_answers
    assert here.started == 1


@pytest.mark.parametrize("lost_after", [[0], [2], [1, 0, 3], [4]], ids=str)
@pytest.mark.parametrize("is_logged", [True, False])
def test_one_that_is_lost_goes_on_from_the_log_or_anew_to_the_same_bits(
    tmp_path, monkeypatch, reference, is_logged, lost_after
):
    seen: list[int] = []
    log = Log(tmp_path, run="mine")
    here, executor = served(monkeypatch, lost_after)
    made = []
    for finished in executor.rounds(walk(), log.read, seen.append):
        if is_logged:
            answer = Answer(aggregate=finished.aggregate, diagnostics=finished.diagnostics)
            log.write(len(made), finished.question, answer, 0.0)
        made.append(finished)
    require_same(made, reference)
    assert sum(seen) == PROTOCOL.plan.most_answers
    assert here.started == 1 + len(lost_after)
    # Who has a log asks about no round twice.
    if is_logged:
        assert Asking.asked == [1, 2, 3, 4]


def test_a_server_that_is_lost_without_end_stops_the_run(monkeypatch):
    _, executor = served(monkeypatch, [0] * 100)
    with pytest.raises(RunFailedError, match=f"lost {MOST_FAILURES + 1} times.*--resume"):
        list(executor.rounds(walk(), tuple))


def test_that_a_client_is_lost_is_no_loss_of_the_server(monkeypatch):
    here, executor = served(monkeypatch)
    cause = RunFailedError("Ray workers were lost.")

    class ClientLostError(RayTaskError, RayActorError):  # type: ignore[misc]
        def __init__(self) -> None:
            self.cause, self.traceback_str = cause, ""

    def fail(reference: Any, timeout: float) -> Any:
        raise ClientLostError

    monkeypatch.setattr(here, "get", fail)
    with pytest.raises(RunFailedError, match="Ray workers were lost"):
        list(executor.rounds(walk(), tuple))
    assert here.started == 1


def test_why_a_round_was_missed_survives_the_way_between_processes():
    attendance = Attendance(
        pass_index=0, layer=1, asked=9, eligible=8, dropped=1, answers=3, fewest=4, hours=0.1
    )
    error = pickle.loads(pickle.dumps(MissedRoundError(attendance)))
    assert error.attendance == attendance


REAL = pytest.mark.slow("::test_one_that_is_lost_goes_on_from_the_log_or_anew_to_the_same_bits")


class Killer(Callbacks):
    """Kills actors after the second round."""

    def __init__(self, kill) -> None:
        self._kill, self._rounds = kill, 0
        self.steps = 0

    def advance(self, steps: int) -> None:
        self.steps += steps

    def finish(self, unit, result) -> None:
        self._rounds += 1
        if self._rounds == 2:
            self._kill()


@REAL
# Of a client's loss the log knows nothing; losses with and without one are above.
@pytest.mark.parametrize(
    ("who", "is_logged"), [("server", True), ("server", False), ("client", False), ("all", True)]
)
def test_a_run_whose_actors_are_killed_gives_the_same_bits(
    shared_ray, monkeypatch, tmp_path, who, is_logged
):
    made: list[RayExecutor] = []
    hold = RayExecutor.hold
    monkeypatch.setattr(
        RayExecutor, "hold", lambda self, worker: made.append(self) or hold(self, worker)
    )

    def kill() -> None:
        actors = {"server": [made[0].server], "client": made[0].clients[:1]}
        actors["all"] = [made[0].server, *made[0].clients]
        for actor in actors[who]:
            ray.kill(actor)

    expected = simulate(PROTOCOL, POPULATION, seed=3, log_in=tmp_path / "here")
    killer = Killer(kill)
    folder = tmp_path / "there" if is_logged else None
    found = simulate(PROTOCOL, POPULATION, seed=3, workers=2, callbacks=[killer], log_in=folder)
    assert found.discoveries.equals(expected.discoveries)
    assert found.layers.equals(expected.layers)
    assert killer.steps == PROTOCOL.plan.most_answers
    if is_logged:
        for name in ("candidates", "votes", "missed"):
            of_both = (getattr(each.candidates, name) for each in (found, expected))
            one, other = of_both
            assert one.equals(other)


@REAL
def test_a_round_that_misses_its_answers_ends_the_run_as_in_process(shared_ray):
    devices = Devices(check_in="papaya", eligible=0.5, least_clients=288, when_missed="stop")
    here, there = (
        simulate(PROTOCOL, POPULATION, seed=3, workers=workers, devices=devices)
        for workers in (0, 1)
    )
    assert here.calendar == there.calendar
    assert there.calendar.missed is not None
    assert there.discoveries.equals(here.discoveries)
