"""Starts a local Ray, or joins a cluster: by one line it says why it cannot."""

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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from fedhh.system.stopping import before_leaving
from fedhh.validation import InputError, RunFailedError

_CONNECT_SECONDS = 3.0

_PROBE_SECONDS = 40.0
"""More than the 20 for which Ray tries again where a token is refused."""

_NODES_SHOWN = 3

_MODE = "RAY_AUTH_MODE"
_mode_before: dict[str, str | None] = {}
"""What the environment had before a local Ray asked for tokens in it."""


def start_ray(num_workers: int | None, address: str) -> None:
    """Join the cluster at an address, or start a local Ray with a core for each worker if empty.

    Of a local Ray without a number of workers, the cores are this machine's.

    Raises:
        InputError: The cluster cannot be joined, see `check_cluster`, or a node of it has another
            fedhh.
        RunFailedError: A local Ray cannot be started.
    """
    before_leaving(_kill_children)
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address:
        check_cluster(address)
        options |= {"address": address}
        # Who joins a cluster says how; that is left as it is.
        _mode_before.clear()
    else:
        _mode_before.setdefault(_MODE, os.environ.get(_MODE))
        options |= {"address": "local", "num_cpus": num_workers, "include_dashboard": False}
    try:
        with _own_handler_of_sigterm():
            ray.init(**options)
    except Exception as error:  # Ray raises all kinds, also the class itself
        reason = str(error).strip().partition("\n")[0]
        if address:
            raise _refusal(address, reason) from error
        raise RunFailedError(
            f"Ray cannot start on this machine ({reason}); --workers 0 does without it."
        ) from error
    if address:
        try:
            require_same_fedhh(alive_nodes())
        except BaseException:
            stop_ray()
            raise


def stop_ray() -> None:
    """Stop a local Ray, or leave a cluster; a later Ray is joined as if this one had not been."""
    ray.shutdown()
    if _MODE in _mode_before:
        mode = _mode_before.pop(_MODE)
        if mode is None:
            os.environ.pop(_MODE, None)
        else:
            os.environ[_MODE] = mode


@contextmanager
def running_ray(num_workers: int | None, address: str) -> Iterator[None]:
    """Keep one Ray for several calls that each would start their own; see `start_ray`."""
    if ray.is_initialized():
        yield
        return
    start_ray(num_workers, address)
    try:
        yield
    finally:
        stop_ray()


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


def alive_nodes() -> dict[str, str]:
    """Return the address of each node of the cluster, by its id."""
    return {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes() if node.get("Alive")}


def all_cores() -> int:
    """Return how many cores the cluster has, whoever uses them."""
    return int(ray.cluster_resources().get("CPU", 0))


def free_cores() -> int:
    """Return how many cores of the cluster nobody has asked for, as Ray last heard."""
    return int(ray.available_resources().get("CPU", 0))


def require_same_fedhh(nodes: Mapping[str, str]) -> None:
    """Raise InputError unless every node can import this version of fedhh."""

    # A function inside a function travels as code; others would need fedhh there to be loaded.
    def problem(wanted: str) -> str:
        import importlib

        try:
            found = importlib.import_module("fedhh").__version__
            if found != wanted:
                return f"fedhh {found}"
            importlib.import_module("fedhh.simulation.ray.executor")
        except ImportError as error:
            return f"no fedhh ({error})" if error.name == "fedhh" else f"fedhh without {error.name}"
        return ""

    wanted = importlib.import_module("fedhh").__version__
    task = ray.remote(num_cpus=0)(problem)
    asked = {
        task.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)).remote(
            wanted
        ): address
        for node, address in nodes.items()
    }
    waiting = list(asked)
    problems = []
    while waiting:
        # A short wait, so that a signal in the main thread is handled soon.
        done, waiting = ray.wait(waiting, num_returns=1, timeout=0.5)
        for reference in done:
            with suppress(RayError):  # the node is lost; so it does no harm
                if found := ray.get(reference):
                    problems.append(f"{asked[reference]} has {found}")
    if problems:
        shown = ", ".join(sorted(problems)[:_NODES_SHOWN])
        more = f" and {len(problems) - _NODES_SHOWN} more" if len(problems) > _NODES_SHOWN else ""
        raise InputError(
            f"Every node of the Ray cluster needs fedhh {wanted}; {shown}{more}: "
            "install it there, in the Python that runs `ray start`."
        )


def _require_listener(address: str) -> None:
    """Raise InputError unless somebody listens at ``HOST:PORT``, which Ray takes minutes to say."""
    match = re.fullmatch(r"(\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\]]+):([0-9]{1,5})", address)
    if match is None or not 0 < int(match[2]) < 2**16:
        raise InputError(
            f"Expected ray_address HOST:PORT with a port from 1 to 65535, or auto; got {address!r}."
        )
    try:
        socket.create_connection((match[1].strip("[]"), int(match[2])), _CONNECT_SECONDS).close()
    except OSError as error:
        raise InputError(
            f"No Ray cluster answers at ray_address={address!r} ({error.strerror or error}); start "
            "one with `ray start --head --port PORT`, or leave the address empty."
        ) from None


def _refusal(address: str, reason: str) -> InputError:
    """Return what is said where Ray cannot join; a token that it wants has many names there."""
    if "AuthenticationError" in reason:
        return InputError(
            f"The Ray cluster at ray_address={address!r} wants its token: set RAY_AUTH_MODE=token, "
            "and RAY_AUTH_TOKEN, or copy ~/.ray/auth_token from the machine that started it."
        )
    return InputError(f"Ray cannot join a cluster at ray_address={address!r}: {reason[:500]}")


@contextmanager
def _own_handler_of_sigterm() -> Iterator[None]:
    """Keep this process's handler of SIGTERM, which `ray.init` takes for itself.

    Only the main thread may set one; in another, Ray keeps what it took.
    """
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


def _kill_children() -> None:
    """Kill the local Ray's processes, all below this one.

    `ray.shutdown` asks the raylet first and gives it a second. Of a raylet that is only killed,
    Ray's agents notice the end half a minute later.
    """
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            process.kill()
