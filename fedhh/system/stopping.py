"""Ends a process at a signal: at once, whatever it is doing, and with no file half written.

Nothing unwinds. An exception raised by a signal inside a compiled loop can crash the interpreter,
and Ray, threads and large arrays take seconds to tidy up. Files are whole or absent anyway, and
what else must end or go is registered with `before_leaving`.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress

INTERRUPTED = 130

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SHOW_CURSOR = b"\x1b[?25h"

_last_actions: list[Callable[[], None]] = []
_leaving = threading.Lock()


def stop_at_signals(message: str) -> None:
    """Have SIGINT and SIGTERM end this process with status 130 and a line on standard error.

    To be called in the main thread, once. The signals' own handlers do nothing: a thread next to
    the main one acts, since that one may be in the middle of a long sort.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    for number in _SIGNALS:
        # Also SIGINT: Python leaves it ignored where a script's shell started us in the background.
        signal.signal(number, _ignore)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)

    def watch() -> None:
        while os.read(reading, 1)[0] not in _SIGNALS:
            pass
        leave(message)

    threading.Thread(target=watch, name="signals", daemon=True).start()


def before_leaving(action: Callable[[], None]) -> None:
    """Have a function called before this process ends at a signal; it must not wait for locks."""
    if action not in _last_actions:
        _last_actions.append(action)


def leave(message: str) -> None:
    """End the process now with status 130, and a line on standard error."""
    with _leaving:
        for action in _last_actions:
            with suppress(Exception):
                action()
        for stream in (1, 2):
            if os.isatty(stream):
                os.write(stream, _SHOW_CURSOR)
        with suppress(OSError):
            os.write(2, f"{message}\n".encode())
        os._exit(INTERRUPTED)


def _ignore(signum: int, frame: object) -> None:
    """Do nothing; that there is a handler makes Python write the signal to the pipe."""
