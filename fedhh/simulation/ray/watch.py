"""What Ray says of a failure, and whether the two processes live without which a run cannot go on.

Ray itself waits for a head (GCS) that is gone, then ends this process by lines of its own log. For
a node's raylet it waits for ever, or raises what does not name it; whoever stores or fetches an
object then ends without a word. Both listen on ports that Ray states, so whether they are there is
asked by connecting.
"""

from __future__ import annotations

import logging
import re
import socket
import time
from typing import Any

import ray
from ray.exceptions import (
    ObjectLostError,
    ObjectStoreFullError,
    OutOfDiskError,
    RayActorError,
    RayError,
)

from fedhh.plugins import Carried
from fedhh.validation import InputError, RunFailedError

MOST_FAILURES = 20
"""Deaths of workers in one round, or of one task, after which the run stops: something else is
wrong then."""

LOST = (RayActorError, ObjectLostError)

_MISSING = re.compile(r"ModuleNotFoundError: No module named '([^']+)'")

_PAUSE_SECONDS = 0.5
_CONNECT_SECONDS = 3.0

_PATIENCE_SECONDS = 30.0
"""A cluster's head may be restarted. Ray ends this process once it was gone for 60 s."""

_KEPT = "What is finished is kept: go on with --resume --out DIR, to the same bits"

_log = logging.getLogger(__name__)

Place = tuple[str, int]


def failure_of(error: RayError) -> Exception:
    """Return what a worker raised, or one line of Ray's own error, which may have pages."""
    cause = getattr(error, "cause", None)
    if any(isinstance(each, ObjectStoreFullError | OutOfDiskError) for each in (error, cause)):
        return RunFailedError(
            "Ray's object store is full on a node, and so is the disk that it spills to (/tmp, or "
            "Ray's --temp-dir): free some, start Ray with more --object-store-memory, use fewer "
            f"--workers, or prepare the clients, which keeps them out of the store. {_KEPT}."
        )
    if missing := _MISSING.search(str(error)):
        return InputError(
            f"A Ray worker cannot import the module {missing[1]!r}, which is there in this "
            "process; install it on every node, or put it next to the config."
        )
    if isinstance(cause, Exception):
        return cause
    reason = str(error).strip().partition("\n")[0]
    return RunFailedError(
        f"A Ray worker failed ({type(error).__name__}): {reason} What is finished is kept: go on "
        "with --resume, with --workers 0 also without Ray."
    )


def stored(value: object) -> Any:
    """Return a reference to a value in the object store of this node.

    Raises:
        RunFailedError: There is no room.
    """
    try:
        return ray.put(Carried(value))
    except RayError as error:
        raise failure_of(error) from error


class RayWatch:
    """Connects to a cluster's head and to this machine's raylet, whenever it is asked."""

    def __init__(self, head: Place, raylet: Place, *, is_own: bool) -> None:
        """Watch a head, and the raylet of this node; nobody restarts those of an own Ray."""
        self._places = {"head": head, "raylet": raylet}
        self._is_own = is_own

    def is_there(self) -> bool:
        """Return whether Ray may be asked for anything."""
        return all(map(_answers, self._places.values()))

    def check(self) -> None:
        """Raise RunFailedError if Ray is gone; wait for the head of a cluster to come back.

        For before something that never ends without Ray, or ends this process.
        """
        for name, place in self._places.items():
            if not _answers(place):
                self._wait_for(name, place)

    def _wait_for(self, name: str, place: Place) -> None:
        # One refusal alone may have another cause.
        patience = _PAUSE_SECONDS
        if name == "head" and not self._is_own:
            patience = _PATIENCE_SECONDS
            _log.warning("Ray's head does not answer; waiting %d s for it", patience)
        end = time.monotonic() + patience
        while time.monotonic() < end:
            time.sleep(_PAUSE_SECONDS)
            if _answers(place):
                return
        raise RunFailedError(self._message(name))

    def _message(self, gone: str) -> str:
        host, port = self._places[gone]
        what = f"Ray's {'head (gcs_server)' if gone == 'head' else 'raylet'} at {host}:{port}"
        why = "is gone: it was killed, perhaps for want of memory"
        if self._is_own:
            return f"{what} {why}. {_KEPT}; --workers 0 does it without Ray."
        cure = "start the cluster again" if gone == "head" else "start this node again"
        return f"{what} {why}, or was stopped; {cure}. {_KEPT}."


def watch_ray(address: str) -> RayWatch:
    """Watch the Ray that was joined at an address, or is this process's own if empty."""
    context = ray.get_runtime_context()
    host, _, port = context.gcs_address.rpartition(":")
    here = next(node for node in ray.nodes() if node["NodeID"] == context.get_node_id())
    raylet = here["NodeManagerAddress"], int(here["NodeManagerPort"])
    return RayWatch((host.strip("[]"), int(port)), raylet, is_own=not address)


def _answers(place: Place) -> bool:
    try:
        socket.create_connection(place, _CONNECT_SECONDS).close()
    except OSError:
        return False
    return True
