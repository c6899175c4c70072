"""Without a terminal, a line a minute says how far it is."""

from __future__ import annotations

import threading

from fedhh.cli.minute_lines import SECONDS, MinuteLines


def test_a_line_is_printed_after_each_minute_and_none_after_the_end():
    waited, said = [], []
    over = threading.Event()

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        return len(waited) > 3

    def say(line: str) -> None:
        said.append(line)
        if len(said) == 3:
            over.set()

    lines = MinuteLines(lambda: f"after {len(waited)}", say, wait)
    lines.start()
    assert over.wait(30)
    lines.stop()
    assert waited == [SECONDS] * 4
    assert said == ["after 1", "after 2", "after 3"]


def test_nothing_is_printed_of_work_that_ends_before_the_minute_is_over():
    said = []
    lines = MinuteLines(lambda: "line", said.append)
    lines.start()
    lines.stop()
    assert said == []
