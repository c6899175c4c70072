"""Progress where no terminal shows a bar: a line a minute."""

from __future__ import annotations

import threading
from collections.abc import Callable

SECONDS = 60.0


class MinuteLines:
    """Prints what a function returns, once a minute, from a thread of its own.

    Work that says nothing for minutes, such as drawing clients, is reported all the same.
    """

    def __init__(
        self,
        line: Callable[[], str],
        say: Callable[[str], None],
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        """Prepare; nothing is printed before the first minute is over.

        Args:
            line: Returns what to print.
            say: Prints it.
            wait: Waits for so many seconds, or returns True as soon as the work is over.
        """
        self._over = threading.Event()
        self._line, self._say, self._wait = line, say, wait or self._over.wait
        self._thread = threading.Thread(target=self._print, name="progress", daemon=True)

    def start(self) -> None:
        """Begin to count the minutes."""
        self._thread.start()

    def stop(self) -> None:
        """Print no more."""
        self._over.set()
        self._thread.join()

    def _print(self) -> None:
        while not self._wait(SECONDS):
            self._say(self._line())


def duration(seconds: float | None) -> str:
    """Return seconds as hours, minutes and seconds; dashes if nobody knows them.

    >>> duration(3_725.4), duration(None)
    ('1:02:05', '-:--:--')
    """
    if seconds is None:
        return "-:--:--"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
