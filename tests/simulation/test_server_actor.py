"""A server actor gives the rounds that this process would, also after it was lost.

Most tests run the actor's class here, with a stand-in for Ray; what only processes show is at the
end.
"""

from __future__ import annotations

import pickle
import sys
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from fedhh.clients.worker import ClientWorker
from fedhh.devices import Devices
from fedhh.experiments.run.run import simulate
from fedhh.experiments.study.callbacks import Callbacks
from fedhh.questions.answer import Answer, Attendance
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.simulation.engine import Round, Walk, together
from fedhh.simulation.executor import InProcessExecutor
from fedhh.simulation.log import Log
from fedhh.simulation.roster import MissedRoundError
from fedhh.testing import LETTERS, small_population
from fedhh.testing.checks import first_difference
from fedhh.validation import InputError, RunFailedError

ray = pytest.importorskip("ray")

from ray.exceptions import RayActorError, RayTaskError  # noqa: E402

from fedhh.simulation.ray import executor as executor_module  # noqa: E402
from fedhh.simulation.ray import server as server_module  # noqa: E402
from fedhh.simulation.ray.server import Served, Server  # noqa: E402
from fedhh.simulation.ray.watch import MOST_FAILURES  # noqa: E402

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
        self.asked.append(broadcast.questions[0].layer)
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

        def walk(*args: Any) -> Rounds:
            return Rounds(server.walk(*pickle.loads(pickle.dumps(args))), lost_after)

        calls = {"walk": walk, "asked": server.asked}
        return types.SimpleNamespace(
            **{name: types.SimpleNamespace(remote=call) for name, call in calls.items()}
        )

    def wait(self, references: list[Any], *, timeout: float) -> tuple[list[Any], list[Any]]:
        return references, []

    def get(self, reference: Any, timeout: float) -> Any:
        if isinstance(reference, RayActorError):
            raise reference
        return reference


def served(
    walks: list[Walk[Any]], monkeypatch: pytest.MonkeyPatch, lost_after: Sequence[int] = ()
) -> tuple[Here, Iterator[Any]]:
    here = Here(lost_after)
    monkeypatch.setattr(server_module, "ray", here)
    monkeypatch.setattr(server_module, "stored", lambda value: value)
    monkeypatch.setattr(server_module, "start_server", here.start_server)
    monkeypatch.setattr(Asking, "asked", [])
    watch: Any = types.SimpleNamespace(check=lambda: None)
    executor = Asking(ClientWorker(POPULATION, seed=3))
    return here, Served(here.start_server(), watch, walks).follow(executor)


def walk(seen: list[int] | None = None, log: Log | None = None, **options: Any) -> Walk[Any]:
    protocol = PROTOCOL.settle(num_clients=3_000, seed=3)
    return Walk(protocol, log=log, progress=None if seen is None else seen.append, **options)


@pytest.fixture(scope="module")
def reference() -> list[Round[Any]]:
    *made, (_, end) = together([walk()], InProcessExecutor(ClientWorker(POPULATION, seed=3)))
    assert end is None
    return [finished for _, finished in made]


def require_same(made: list[tuple[int, Any]], reference: list[Round[Any]], number: int = 0) -> None:
    *rounds, end = [finished for each, finished in made if each == number]
    assert end is None
    for one, other in zip(rounds, reference, strict=True):
        for part in ("question", "aggregate", "diagnostics", "state"):
            assert first_difference(getattr(one, part), getattr(other, part), part) is None


def test_a_server_yields_what_this_process_would(monkeypatch, reference):
    seen: list[int] = []
    here, follow = served([walk(seen)], monkeypatch)
    require_same(list(follow), reference)
    assert sum(seen) == PROTOCOL.plan.most_answers
    assert here.started == 1


@pytest.mark.parametrize("lost_after", [[0], [2], [1, 0, 3], [4]], ids=str)
@pytest.mark.parametrize("is_logged", [True, False])
def test_one_that_is_lost_goes_on_from_the_log_or_anew_to_the_same_bits(
    tmp_path, monkeypatch, reference, is_logged, lost_after
):
    seen: list[int] = []
    log = Log(tmp_path, run="mine") if is_logged else None
    here, follow = served([walk(seen, log)], monkeypatch, lost_after)
    made = []
    for number, finished in follow:
        if log is not None and isinstance(finished, Round):
            answer = Answer(aggregate=finished.aggregate, diagnostics=finished.diagnostics)
            log.write(len(made), finished.question, answer, 0.0)
        made.append((number, finished))
    require_same(made, reference)
    assert sum(seen) == PROTOCOL.plan.most_answers
    assert here.started == 1 + len(lost_after)
    # Who has a log asks about no round twice.
    if is_logged:
        assert Asking.asked == [1, 2, 3, 4]


def test_a_server_that_is_lost_without_end_stops_the_run(monkeypatch):
    _, follow = served([walk()], monkeypatch, [0] * 100)
    with pytest.raises(RunFailedError, match=f"lost {MOST_FAILURES + 1} times.*--resume"):
        list(follow)


def test_that_a_client_is_lost_is_no_loss_of_the_server(monkeypatch):
    here, follow = served([walk()], monkeypatch)
    cause = RunFailedError("Ray workers were lost.")

    class ClientLostError(RayTaskError, RayActorError):  # type: ignore[misc]
        def __init__(self) -> None:
            self.cause, self.traceback_str = cause, ""

    def fail(reference: Any, timeout: float) -> Any:
        raise ClientLostError

    monkeypatch.setattr(here, "get", fail)
    with pytest.raises(RunFailedError, match="Ray workers were lost"):
        list(follow)
    assert here.started == 1


@dataclass(frozen=True, kw_only=True)
class Refusing(LdpTrieHH):
    """Refuses its third question."""

    def next_question(self, run):
        if run.place == 2:
            raise InputError("Expected nothing.")
        return super().next_question(run)


def test_runs_in_lockstep_end_each_by_itself(monkeypatch, reference):
    refusing = Refusing(**{name: getattr(PROTOCOL, name) for name in PROTOCOL.__match_args__})
    walks = [walk(), Walk(refusing.settle(num_clients=3_000, seed=3)), walk()]
    _, follow = served(walks, monkeypatch, [4])
    made = []
    for number, finished in follow:
        made.append((number, finished))
        if number == 2 and len(made) > 5:
            walks[2].stop(ValueError("of who listens"))
    require_same(made, reference)
    ends = {number: finished for number, finished in made if not isinstance(finished, Round)}
    assert str(ends[1]) == "Expected nothing."
    assert str(ends[2]) == "of who listens"
    assert [number for number, _ in made].count(1) == 3


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
@pytest.mark.parametrize("who", ["server", "client", "all"])
@pytest.mark.parametrize("is_logged", [True, False])
def test_a_run_whose_actors_are_killed_gives_the_same_bits(
    shared_ray, monkeypatch, tmp_path, who, is_logged
):
    made: list[Any] = []
    real = executor_module.RayActors

    def noted(*args: Any, **kwargs: Any) -> Any:
        made.append(real(*args, **kwargs))
        return made[-1]

    monkeypatch.setattr(executor_module, "RayActors", noted)

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
