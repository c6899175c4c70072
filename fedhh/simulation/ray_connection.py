"""Starts a local Ray, or joins a cluster: by one line it says why it cannot.

A cluster is asked by a process of its own (`ray_probe`) before Ray connects. The cluster decides
whether tokens are used: `ray start --head` turns them on where a token is found, `ray.init` with
an address does not, and the two cannot work together.
"""

from __future__ import annotations

import ctypes
import importlib
import inspect
import json
import logging
import os
import platform
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

# Before ray is imported, since it reads these once: no usage statistics, and no warning about how
# a later Ray will treat accelerators, which no actor here asks for.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import ray
from ray._private import services
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from fedhh.system.stopping import before_leaving
from fedhh.validation import InputError

_MODE = "RAY_AUTH_MODE"

_PROBE_SECONDS = 60.0
"""The probe has shorter limits of its own; this one holds while it is still being loaded."""

_NODES_SHOWN = 3


def start_ray(num_workers: int | None, address: str) -> None:
    """Join the cluster at an address, or start a local Ray with a core for each worker if empty.

    Of a local Ray without a number of workers, the cores are this machine's.

    Raises:
        InputError: The address is none, or no cluster answers there within 10 s, or it refuses
            the token, or runs other versions of Python, Ray or fedhh.
    """
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    # Before Ray does, so that it says nothing of a thread in which it cannot handle signals.
    logging.getLogger("ray").setLevel(logging.ERROR)
    with _own_way_to_stop():
        if address:
            _join(address, options)
        else:
            before_leaving(_kill_children)
            with _authentication(os.environ.get(_MODE)), _few_processes():
                ray.init(address="local", num_cpus=num_workers, include_dashboard=False, **options)


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
        ray.shutdown()


def check_cluster(address: str) -> None:
    """Raise InputError unless a cluster answers at an address, as `start_ray` does; join nothing.

    For before work that would be lost.
    """
    _examine(_host_and_port(address))


def alive_nodes() -> dict[str, str]:
    """Return the address of each node of the cluster, by its id."""
    return {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes() if node.get("Alive")}


def free_cores() -> int:
    """Return how many cores of the cluster nobody has asked for, at least 1."""
    return max(int(ray.available_resources().get("CPU", 0)), 1)


def require_same_fedhh(nodes: Mapping[str, str]) -> None:
    """Raise InputError unless every node can import this version of fedhh."""

    # A function inside a function travels as code; others would need fedhh there to be loaded.
    def problem(wanted: str) -> str:
        import importlib

        try:
            found = importlib.import_module("fedhh").__version__
            if found != wanted:
                return f"fedhh {found}"
            importlib.import_module("fedhh.simulation.ray_executor")
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


def _join(address: str, options: Mapping[str, Any]) -> None:
    address = _host_and_port(address)
    mode = _examine(address)
    try:
        with _authentication(mode):
            ray.init(address=address, **options)
    except (OSError, ValueError, RuntimeError, RayError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise InputError(f"Ray cannot join the cluster at ray_address={address!r}: {reason}") from (
            error
        )
    try:
        require_same_fedhh(alive_nodes())
    except BaseException:
        ray.shutdown()
        raise


def _examine(address: str) -> str:
    """Return the mode of authentication of a cluster that this process can join."""
    head, mode = _ask(address)
    _check_versions(address, head)
    if not head["runs here"]:
        raise InputError(
            f"No node of the Ray cluster at ray_address={address!r} runs on this machine; start "
            f"one with `ray start --address {address}`, or run on a machine of the cluster."
        )
    return mode


def _host_and_port(address: str) -> str:
    """Return where a cluster's head is said to be."""
    found = address
    if address == "auto":
        try:
            found = services.canonicalize_bootstrap_address("auto") or ""
        except (OSError, ValueError):
            found = ""
        if found in ("", "auto"):
            raise InputError(
                "ray_address='auto' finds no Ray cluster on this machine; start one with "
                "`ray start --head --port 6379`, or give its HOST:PORT."
            )
    if found.startswith("ray://"):
        raise InputError(
            f"Expected ray_address HOST:PORT, got {found!r}, an address of Ray Client; run on a "
            "machine of the cluster, with the address that `ray start --head` shows."
        )
    match = re.fullmatch(r"(\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\]]+):([0-9]{1,5})", found)
    if match is None or not 0 < int(match[2]) < 2**16:
        raise InputError(
            f"Expected ray_address HOST:PORT with a port from 1 to 65535, or auto; got {found!r}."
        )
    return found


def _ask(address: str) -> tuple[dict[str, Any], str]:
    """Return what the head at an address says, and the mode of authentication it wants.

    A head with tokens refuses who has none; one without takes everybody, so it is asked first
    without a token.
    """
    wanted = os.environ.get(_MODE, "").lower()
    mode = "disabled"
    head = _probe(address, mode)
    if head["state"] == "refused" and wanted == "disabled":
        raise InputError(
            f"The Ray cluster at ray_address={address!r} wants a token, but {_MODE}=disabled here: "
            "unset it."
        )
    if head["state"] == "refused":
        mode = "token"
        head = _probe(address, mode)
    elif head["state"] == "head" and wanted == "token":
        raise InputError(
            f"The Ray cluster at ray_address={address!r} runs without tokens, but {_MODE}=token "
            "here: start the cluster with it, or unset it."
        )
    where = "set RAY_AUTH_TOKEN, or copy ~/.ray/auth_token from the machine that started it."
    refusals = {
        "unreachable": (
            f"No Ray cluster answers at ray_address={address!r} ({head.get('error')}); start one "
            "with `ray start --head --port PORT`, or leave the address empty."
        ),
        "other": (
            f"No Ray cluster answers at ray_address={address!r}: something listens there, but it "
            "does not answer as the head of a cluster does; give the port of `ray start --head`."
        ),
        "no token": f"The Ray cluster at ray_address={address!r} wants a token, and none is found "
        f"here: {where}",
        "refused": f"The Ray cluster at ray_address={address!r} refuses the token found here: "
        f"{where}",
    }
    if head["state"] in refusals:
        raise InputError(refusals[head["state"]])
    return head, mode


def _probe(address: str, mode: str) -> dict[str, Any]:
    """Return the last thing that `ray_probe` could say in its time."""
    script = Path(__file__).with_name("ray_probe.py")
    with suppress(subprocess.TimeoutExpired):
        done = subprocess.run(
            [sys.executable, "-P", str(script), address],
            env={**os.environ, _MODE: mode},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_PROBE_SECONDS,
            check=False,
        )
        for line in reversed(done.stdout.decode(errors="replace").splitlines()):
            with suppress(ValueError):
                said: dict[str, Any] = json.loads(line)
                return said
    return {"state": "unreachable", "error": "no answer in time"}


def _check_versions(address: str, head: Mapping[str, Any]) -> None:
    """Refuse other versions before Ray does, which takes a page for it."""
    here = {"ray": ray.__version__, "python": platform.python_version()}
    parts = 2 if os.environ.get("RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL") == "minor" else 3
    same_python = head["python"].split(".")[:parts] == here["python"].split(".")[:parts]
    if head["python"] and not (head["ray"] == here["ray"] and same_python):
        raise InputError(
            f"The Ray cluster at ray_address={address!r} runs Ray {head['ray']} on Python "
            f"{head['python']}, this process Ray {here['ray']} on Python {here['python']}; use "
            "the same versions on every machine."
        )


@contextmanager
def _authentication(mode: str | None) -> Iterator[None]:
    """Make Ray read a mode and the token anew; the environment is left as it was."""
    before = os.environ.get(_MODE)
    if mode is not None:
        os.environ[_MODE] = mode
    with suppress(AttributeError):  # a Ray without authentication
        raylet: Any = importlib.import_module("ray._raylet")
        loader = raylet.AuthenticationTokenLoader.instance()
        raylet.Config.initialize("")
        loader.reset_cache()
    try:
        yield
    finally:
        os.environ.pop(_MODE, None)
        if before is not None:
            os.environ[_MODE] = before


@contextmanager
def _own_way_to_stop() -> Iterator[None]:
    """Keep this process's handler of SIGTERM, which Ray takes for itself: in Python, and below it.

    Only the main thread may set Python's, and only there does Ray set it.
    """
    handler = signal.getsignal(signal.SIGTERM)
    get, put = ctypes.pythonapi.PyOS_getsig, ctypes.pythonapi.PyOS_setsig
    get.restype, put.argtypes = ctypes.c_void_p, (ctypes.c_int, ctypes.c_void_p)
    below = get(signal.SIGTERM)
    try:
        yield
    finally:
        put(signal.SIGTERM, below)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


@contextmanager
def _few_processes() -> Iterator[None]:
    """Have a local Ray start no autoscaler and no reader of logs: `ray.init` cannot be told so.

    Nobody asks for either; they take a second of processor time as Ray starts, and one by the
    clock as it ends.
    """
    spared = {"no_monitor": True, "include_log_monitor": False}
    try:
        parameter: Any = importlib.import_module("ray._private.parameter")
        every = parameter.RayParams
    except (ImportError, AttributeError):  # a Ray that keeps them elsewhere starts everything
        yield
        return
    if spared.keys() <= inspect.signature(every).parameters.keys():
        parameter.RayParams = partial(every, **spared)
    try:
        yield
    finally:
        parameter.RayParams = every


def _kill_children() -> None:
    """Kill the local Ray's processes, all below this one.

    `ray.shutdown` asks the raylet first and gives it a second. Of a raylet that is only killed,
    Ray's agents notice the end half a minute later. A thread that is still starting Ray starts no
    more of them.
    """
    import psutil

    sys.addaudithook(_refuse_processes)
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _refuse_processes(event: str, _: object) -> None:
    if event == "subprocess.Popen":
        raise RuntimeError("This process is about to end.")
