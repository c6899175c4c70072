"""A command that waits in the middle of a round, so that a test can stop it there.

Modules next to a config are how plug-ins come into a run; these wait. So a run that is to
be stopped needs no size, and is never over before the signal comes.
"""

from __future__ import annotations

from pathlib import Path

MODULE = """
import time
from pathlib import Path

from fedhh.oracles import SubsetSelection
from fedhh.server.sfp import Sfp


def wait():
    while len(list(Path({folder!r}).glob({pattern!r}))) >= {count} and not Path({go!r}).exists():
        time.sleep(0.01)


class Oracle(SubsetSelection):
    def _add_values(self, values, out, *, rng):
        wait()
        super()._add_values(values, out, rng=rng)


class Server(Sfp):
    def finish_round(self, state, question, aggregate):
        wait()
        return super().finish_round(state, question, aggregate)
"""
ORACLE = "waiting_here:Oracle"
SERVER = "waiting_here:Server"


def write_waiting(folder: Path, pattern: str, *, count: int = 1) -> Path:
    """Write the module; return the file whose presence ends all waiting.

    Args:
        folder: Where commands are started.
        pattern: What they wait for the sight of, below the folder, as for ``glob``.
        count: How many such files there have to be.
    """
    go = folder / "go"
    text = MODULE.format(folder=str(folder), pattern=pattern, count=count, go=str(go))
    (folder / "waiting_here.py").write_text(text)
    return go
