"""Starts a local Ray, or joins a cluster, and says in one line what is wrong with it.

Ray itself waits for a head (GCS) that is gone, then ends this process by lines of its own log. For
a node's raylet it waits for ever, or raises what does not name it; whoever stores or fetches an
object then ends without a word. Both listen on ports that Ray states, so whether they are there is
asked by connecting.
"""

from __future__ import annotations

import importlib
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import ray
from ray.exceptions import ObjectStoreFullError, OutOfDiskError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from fedhh.plugins import Carried
from fedhh.system.stopping import before_leaving
from fedhh.validation import InputError, RunFailedError, require_at_least

MOST_FAILURES = 20
"""Deaths of actors in a round, or of one task, after which a run stops: something else is wrong."""

PAUSE_SECONDS = 0.5
"""A short wait, so that a signal in the main thread is handled soon."""

_CONNECT_SECONDS = 3.0

_PROBE_SECONDS = 40.0
"""More than the 20 for which Ray tries again where a token is refused."""

_PATIENCE_SECONDS = 30.0
"""A cluster's head may be restarted. Ray ends this process once it was gone for 60 s."""

_NODES_SHOWN = 3

_MODE = "RAY_AUTH_MODE"
_mode_before: dict[str, str | None] = {}
"""What the environment had before a local Ray asked for tokens in it."""

_KEPT = "What is finished is kept: go on with --resume --out DIR, to the same bits"

_log = logging.getLogger(__name__)


@contextmanager
def running_ray(num_workers: int | None, address: str) -> Iterator[None]:
    """Keep one Ray for all that needs one meanwhile: that which is there, or see `start_ray`.

    Raises:
        InputError: A node of the cluster has another fedhh.
    """
    if ray.is_initialized():
        yield
        return
    start_ray(num_workers, address)
    try:
        if address:
            require_same_fedhh(set())
        yield
    finally:
        stop_ray()


def start_ray(num_workers: int | None, address: str) -> None:
    """Join the cluster at an address, or start a local Ray with a core for each worker if empty.

    Of a local Ray without a number of workers, the cores are this machine's.

    Raises:
        InputError: The cluster cannot be joined, see `check_cluster`.
        RunFailedError: A local Ray cannot be started.
    """
    before_leaving(_kill_children)
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address:
        check_cluster(address)
        options["address"] = address
        # Who joins a cluster says how; that is left as it is.
        _mode_before.clear()
    else:
        options |= {"address": "local", "num_cpus": num_workers, "include_dashboard": False}
        _mode_before.setdefault(_MODE, os.environ.get(_MODE))
    handler = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(**options)
    except Exception as error:  # Ray raises all kinds, also the class itself
        reason = str(error).strip().partition("\n")[0]
        if address:
            raise _refusal(address, reason) from error
        raise RunFailedError(
            f"Ray cannot start on this machine ({reason}); --workers 0 does without it."
        ) from error
    finally:
        # Ray takes it for itself; only the main thread may take it back.
        if handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


def stop_ray() -> None:
    """Stop a local Ray, or leave a cluster; a later Ray is joined as if this one had not been."""
    ray.shutdown()
    if _MODE in _mode_before:
        os.environ.pop(_MODE, None)
        if (mode := _mode_before.pop(_MODE)) is not None:
            os.environ[_MODE] = mode


def check_cluster(address: str) -> None:
    """Raise InputError unless Ray can join a cluster at an address; another process tries it.

    For before work that would be lost. Where something else than a head listens, this takes 40 s.

    Args:
        address: ``HOST:PORT`` of the head; "auto" for the cluster of this machine.

    Raises:
        InputError: The address is none, nobody listens there, or no head; no node of the cluster
            runs on this machine; it refuses the token, or runs other versions of Python or Ray.
    """
    if address != "auto":
        _require_listener(address)
    try:
        done = subprocess.run(
            [sys.executable, "-P", str(Path(__file__).with_name("probe.py")), address],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _refusal(
            address,
            f"no head of a cluster with a node on this machine answers in {_PROBE_SECONDS:.0f} s; "
            "give the port of `ray start --head`, and start a node here",
        ) from None
    if done.returncode:
        said = done.stdout.decode(errors="replace").strip()
        raise _refusal(address, said or f"it ended the process that tried ({done.returncode})")


def _require_listener(address: str) -> None:
    """Raise InputError unless somebody listens at ``HOST:PORT``, which Ray takes minutes to say."""
    match = re.fullmatch(r"(\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\]]+):([0-9]{1,5})", address)
    if match is None or not 0 < int(match[2]) < 2**16:
        raise InputError(
            f"Expected ray_address HOST:PORT with a port from 1 to 65535, or auto; got {address!r}."
        )
    if problem := _unanswered((match[1].strip("[]"), int(match[2]))):
        raise InputError(
            f"No Ray cluster answers at ray_address={address!r} ({problem}); start one with `ray "
            "start --head --port PORT`, or leave the address empty."
        )


def _refusal(address: str, reason: str) -> InputError:
    """Return what is said where Ray cannot join; a token that it wants has many names there."""
    if "AuthenticationError" in reason:
        return InputError(
            f"The Ray cluster at ray_address={address!r} wants its token: set RAY_AUTH_MODE=token, "
            "and RAY_AUTH_TOKEN, or copy ~/.ray/auth_token from the machine that started it."
        )
    return InputError(f"Ray cannot join a cluster at ray_address={address!r}: {reason[:500]}")


def require_same_fedhh(known: set[str]) -> None:
    """Raise InputError unless every node can import this version of fedhh.

    ``known`` nodes are not asked; those that are asked are known then.
    """
    wanted = importlib.import_module("fedhh").__version__

    # A function inside a function travels as code; others would need fedhh there to be loaded.
    def problem() -> str:
        import importlib

        try:
            found: str = importlib.import_module("fedhh").__version__
            if found == wanted:
                importlib.import_module("fedhh.simulation.ray.executor")
        except ImportError as error:
            return f"no fedhh ({error})" if error.name == "fedhh" else f"fedhh without {error.name}"
        return "" if found == wanted else f"fedhh {found}"

    asked = {}
    for node in ray.nodes():
        if node["Alive"] and node["NodeID"] not in known:
            known.add(node["NodeID"])
            there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            task = ray.remote(num_cpus=0, scheduling_strategy=there)(problem)
            asked[task.remote()] = node["NodeManagerAddress"]
    problems = []
    for reference, place in asked.items():
        with suppress(RayError):  # the node is lost; so it does no harm
            if found := ray.get(reference):
                problems.append(f"{place} has {found}")
    if problems:
        shown = ", ".join(sorted(problems)[:_NODES_SHOWN])
        more = f" and {len(problems) - _NODES_SHOWN} more" if len(problems) > _NODES_SHOWN else ""
        raise InputError(
            f"Every node of the Ray cluster needs fedhh {wanted}; {shown}{more}: "
            "install it there, in the Python that runs `ray start`."
        )


def workers_at_a_time(num_workers: int | None) -> int:
    """Return how many workers have cores; what is asked for and not there is said.

    Args:
        num_workers: How many are wanted; None for one on each core that is free.
    """
    if num_workers is not None:
        require_at_least(1, num_workers=num_workers)
    free = int(ray.available_resources().get("CPU", 0))
    wanted, cores = num_workers or max(free, 1), require_cores()
    if wanted > cores:
        _log.warning(
            "%d workers were asked for, and the Ray cluster has %d cores: so many work at a time",
            wanted,
            cores,
        )
    return min(wanted, cores)


def require_cores() -> int:
    """Return how many cores the cluster has, whoever uses them; RunFailedError if none."""
    if cores := int(ray.cluster_resources().get("CPU", 0)):
        return cores
    raise RunFailedError(
        "The Ray cluster has no core left: start a node (`ray start --address`), and go on with "
        "--resume."
    )


def failure_of(error: RayError) -> Exception:
    """Return what a worker raised, or one line of Ray's own error, which may have pages."""
    cause = getattr(error, "cause", None)
    if any(isinstance(each, ObjectStoreFullError | OutOfDiskError) for each in (error, cause)):
        return RunFailedError(
            "Ray's object store is full on a node, and so is the disk that it spills to (/tmp, or "
            "Ray's --temp-dir): free some, start Ray with more --object-store-memory, use fewer "
            f"--workers, or prepare the clients, which keeps them out of the store. {_KEPT}."
        )
    if missing := re.search(r"ModuleNotFoundError: No module named '([^']+)'", str(error)):
        return InputError(
            f"A Ray worker cannot import the module {missing[1]!r}, which is there in this "
            "process; install it on every node, or put it next to the config."
        )
    if isinstance(cause, Exception):
        return cause
    reason = str(error).strip().partition("\n")[0]
    return RunFailedError(
        f"A Ray worker failed ({type(error).__name__}): {reason} {_KEPT}, with --workers 0 also "
        "without Ray."
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


Place = tuple[str, int]


class RayWatch:
    """Connects to Ray's head, and to the raylet of this node, whenever it is asked."""

    def __init__(self, address: str) -> None:
        """Watch the Ray that was joined at an address, or is this process's own if empty."""
        context = ray.get_runtime_context()
        here = next(node for node in ray.nodes() if node["NodeID"] == context.get_node_id())
        host, _, port = context.gcs_address.rpartition(":")
        self._is_own = not address
        self._places = {
            "head (gcs_server)": (host.strip("[]"), int(port)),
            "raylet": (here["NodeManagerAddress"], int(here["NodeManagerPort"])),
        }

    def is_there(self) -> bool:
        """Return whether Ray may be asked for anything."""
        return not any(map(_unanswered, self._places.values()))

    def check(self) -> None:
        """Raise RunFailedError if Ray is gone; wait for the head of a cluster to come back.

        For before something that never ends without Ray, or ends this process.
        """
        for name, place in self._places.items():
            if not _unanswered(place):
                continue
            # One refusal alone may have another cause.
            patience, cure = PAUSE_SECONDS, "--workers 0 does it without Ray"
            if not self._is_own:
                cure = "start this node again"
            if name != "raylet" and not self._is_own:
                patience, cure = _PATIENCE_SECONDS, "start the cluster again"
                _log.warning("Ray's head does not answer; waiting %d s for it", patience)
            end = time.monotonic() + patience
            while _unanswered(place):
                if time.monotonic() > end:
                    raise RunFailedError(
                        f"Ray's {name} at {place[0]}:{place[1]} is gone: it was killed, perhaps "
                        f"for want of memory, or was stopped; {cure}. {_KEPT}."
                    )
                time.sleep(PAUSE_SECONDS)


def _unanswered(place: Place) -> str:
    """Return why nobody answers at a place; nothing if somebody does."""
    try:
        socket.create_connection(place, _CONNECT_SECONDS).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _kill_children() -> None:
    """Kill the local Ray's processes, all below this one.

    `ray.shutdown` asks the raylet first and gives it a second. Of a raylet that is only killed,
    Ray's agents notice the end half a minute later.
    """
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            process.kill()
