"""A log is heard again to the same bits, and only by the run that wrote it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from fedhh.clients.worker import ClientWorker
from fedhh.questions.answer import Answer, Attendance, Diagnostics
from fedhh.questions.question import Aggregate
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.pem import Pem
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import InProcessExecutor
from fedhh.simulation.log import Log, digest
from fedhh.system.archive import read_archive, write_archive
from fedhh.testing import LETTERS, small_population
from fedhh.validation import InputError
from tests.same_bits import assert_same

TRIE = LdpTrieHH(
    alphabet=LETTERS, clients_per_layer=200, depth=3, passes=1, eta_max=20, max_items=4
)
PEM = Pem(alphabet=LETTERS, clients_per_layer=200, length=3, step=1, keep=5)
POPULATION = small_population(2_000)


class Counting(InProcessExecutor):
    """Answers in this process, and counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__(ClientWorker(POPULATION, seed=3))
        self.asked = 0

    def answer(self, broadcast, progress=None):
        self.asked += 1
        return super().answer(broadcast, progress)


def write(log: Log, protocol) -> list:
    """Run a protocol and log its rounds."""
    done = list(rounds(protocol, Counting()))
    for place, each in enumerate(done):
        answer = Answer(aggregate=each.aggregate, diagnostics=each.diagnostics)
        log.write(place, each.question, answer, place + 0.5)
    return done


@pytest.mark.parametrize("protocol", [TRIE, PEM], ids=lambda each: each.name)
def test_hearing_any_number_of_rounds_again_gives_the_same_bits(tmp_path, protocol):
    protocol = protocol.settle(num_clients=2_000, seed=3)
    done = write(log := Log(tmp_path, run="mine"), protocol)
    heard = log.read()
    assert [each.seconds for each in heard] == [place + 0.5 for place in range(len(done))]
    for number in range(len(done) + 1):
        executor = Counting()
        again = list(rounds(protocol, executor, heard=heard[:number]))
        assert executor.asked == len(done) - number
        assert [each.was_heard for each in again] == [place < number for place in range(len(done))]
        for one, other in zip(again, done, strict=True):
            assert_same(one.state, other.state)
            assert one.diagnostics == other.diagnostics


def test_all_that_tables_need_comes_back(tmp_path):
    question = next(rounds(TRIE, Counting())).question
    attendance = Attendance(
        pass_index=0, layer=1, asked=9, eligible=8, dropped=1, answers=5, fewest=4, hours=0.1
    )
    answer = Answer(
        aggregate=Aggregate(
            tally=np.array([3, -1]), num_reports=7, num_clients=5, messages=np.array([[1, 2]])
        ),
        diagnostics=Diagnostics(
            num_dummies=1,
            num_clients_with_items=4,
            is_sampled=True,
            attendance=attendance,
            fakes=Aggregate(
                tally=np.array([1, 0]), num_reports=3, num_clients=2, messages=np.array([[1, 2]])
            ),
        ),
    )
    log = Log(tmp_path, run="mine")
    log.write(0, question, answer, 1.5)
    (back,) = log.read()
    assert_same(back.answer, answer)
    assert back.asked == 9


def test_a_log_of_another_run_or_question_is_refused(tmp_path):
    write(log := Log(tmp_path, run="mine"), TRIE)
    with pytest.raises(InputError, match=r"0\.arrays is of another run.* new directory"):
        Log(tmp_path, run="other").read()
    executor = Counting()
    with pytest.raises(InputError, match=r"1\.arrays is of another run"):
        list(rounds(replace(TRIE, eta_max=10), executor, heard=log.read()))
    assert executor.asked == 0


def test_a_log_with_a_gap_or_too_large_is_refused(tmp_path, monkeypatch):
    write(log := Log(tmp_path, run="mine"), TRIE)
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    monkeypatch.setattr("fedhh.simulation.log.memory_bytes", lambda: size - 1)
    with pytest.raises(InputError, match="at most this machine's memory"):
        log.read()
    monkeypatch.undo()
    (tmp_path / "1.arrays").unlink()
    with pytest.raises(InputError, match=r"1\.arrays"):
        log.read()


@pytest.mark.parametrize(
    "change",
    [{"seconds": "x"}, {"attendance": 3}, {"num_reports": None}],
    ids=str,
)
def test_notes_that_say_something_else_are_refused(tmp_path, change):
    write(log := Log(tmp_path, run="mine"), TRIE)
    arrays, notes = read_archive(tmp_path / "0.arrays")
    write_archive(tmp_path / "0.arrays", arrays, {**notes, **change})
    with pytest.raises(InputError, match="damaged") as refused:
        log.read()
    assert "\n" not in str(refused.value)


def test_a_tally_of_other_numbers_is_refused(tmp_path):
    write(log := Log(tmp_path, run="mine"), TRIE)
    arrays, notes = read_archive(tmp_path / "0.arrays")
    write_archive(tmp_path / "0.arrays", {"tally": arrays["tally"].astype(float)}, notes)
    with pytest.raises(InputError, match="expected 64-bit integers"):
        log.read()


@dataclass(frozen=True)
class Leaf:
    value: object


@dataclass(frozen=True)
class Other:
    value: object


DIFFERENT = [
    1, 1.0, True, None, "1", b"1", np.int64(1), (1,), [1], (1, 2), ((1,), 2), (1, (2,)), {"1": 1},
    {1: 1}, frozenset({1, 2}), np.array([1]), np.array([1], np.int32), np.array([[1]]),
    np.array([1.0]), Leaf(1), Other(1), Leaf(Leaf(1)), ("a", "b"), ("ab",), ("a", ("b",)),
]  # fmt: skip


def test_digests_differ_by_type_shape_and_value_and_by_nothing_else():
    assert len({digest(each) for each in DIFFERENT}) == len(DIFFERENT)
    assert digest(frozenset("abc")) == digest(frozenset("cba"))
    assert digest(np.arange(4)[::2]) == digest(np.array([0, 2]))
    assert digest("\ud800") != digest("\ud801")
    with pytest.raises(TypeError, match=r"cannot know object at question\.value again"):
        digest(Leaf(object()))
