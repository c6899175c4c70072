"""What is no cluster is distinguished in one line; a Ray that starts leaves the signals alone."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from fedhh.validation import InputError, RunFailedError

ray = pytest.importorskip("ray")

from fedhh.simulation.ray import cluster  # noqa: E402 - only where ray is there
from fedhh.simulation.ray.cluster import check_cluster, start_ray, stop_ray  # noqa: E402


def refusal(address: str, join: Callable[[str], None] = lambda at: start_ray(1, at)) -> str:
    with pytest.raises(InputError) as error:
        join(address)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("cluster", "Expected ray_address HOST:PORT with a port from 1 to 65535, or auto"),
        ("127.0.0.1", "Expected ray_address HOST:PORT"),
        (":6379", "Expected ray_address HOST:PORT"),
        ("127.0.0.1:0", "port from 1 to 65535"),
        ("127.0.0.1:65536", "port from 1 to 65535"),
        ("127.0.0.1:6379/x", "Expected ray_address HOST:PORT"),
        ("local", "Expected ray_address HOST:PORT"),
        ("ray://127.0.0.1:10001", "Expected ray_address HOST:PORT"),
    ],
)
def test_an_address_must_be_one_of_a_head(address: str, message: str, monkeypatch):
    monkeypatch.setattr(cluster.subprocess, "run", None)  # refused before Ray is asked
    assert message in refusal(address)


def test_a_port_where_nobody_listens_is_named():
    assert "No Ray cluster answers at ray_address='127.0.0.1:1' (Connection refused)" in refusal(
        "127.0.0.1:1"
    )


class Listener:
    """Listens at a free port, says something to whoever comes, and waits."""

    def __init__(self, says: bytes) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._says = says
        self._open: list[socket.socket] = []
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._open.append(connection)
            connection.sendall(self._says)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for each in self._open:
            each.close()


@pytest.mark.slow("::test_what_ray_says_of_a_cluster_is_one_line")
def test_a_port_that_listens_but_is_no_ray_is_named(capfd, monkeypatch):
    monkeypatch.setattr(cluster, "_PROBE_SECONDS", 4.0)
    # A silent one, a web server, and one that greets as gRPC does and says no more.
    says = (b"", b"HTTP/1.0 400 Bad Request\r\n\r\n", b"\0\0\0\4\0\0\0\0\0")
    listeners = [Listener(each) for each in says]
    addresses = [listener.address for listener in listeners]
    # At once: each takes the whole time.
    with ThreadPoolExecutor(len(says)) as threads:
        messages = list(threads.map(partial(refusal, join=check_cluster), addresses))
    for address, message in zip(addresses, messages, strict=True):
        assert f"Ray cannot join a cluster at ray_address={address!r}: no head" in message
        assert "with a node on this machine answers in 4 s; give the port of `ray start" in message
    assert capfd.readouterr() == ("", "")
    for listener in listeners:
        listener.close()


# As Ray 2.60 says them.
@pytest.mark.parametrize(
    ("code", "message"),
    [
        pytest.param(
            "raise ConnectionError('Failed') from RuntimeError('No node\\n of it.')",
            "Ray cannot join a cluster at ray_address='auto': RuntimeError: No node of it.",
            id="no node here",
        ),
        pytest.param(
            "raise ConnectionError('Failed') from RuntimeError('Traceback\\n'"
            "'ray.exceptions.AuthenticationError: RPC error')",
            "wants its token: set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN, or copy",
            id="token",
        ),
        pytest.param(
            "raise RuntimeError('Version mismatch: Started with:\\n    Ray: 2.9.0')",
            "Version mismatch: Started with: Ray: 2.9.0",
            id="versions",
        ),
        pytest.param("import os; os._exit(7)", "it ended the process that tried (7)", id="dies"),
    ],
)
def test_what_ray_says_of_a_cluster_is_one_line(code, message, tmp_path, monkeypatch, capfd):
    """The process that tries finds a Ray that fails."""
    (tmp_path / "ray.py").write_text(f"def init(**options):\n    {code}\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert message in refusal("auto")
    assert capfd.readouterr() == ("", "")


def test_a_local_ray_that_cannot_start_is_one_line(monkeypatch):
    def init(**_: object) -> None:
        raise Exception("No space left.\nand so on")

    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(RunFailedError) as error:
        start_ray(1, "")
    assert str(error.value) == (
        "Ray cannot start on this machine (No space left.); --workers 0 does without it."
    )


def test_a_ray_that_starts_leaves_the_handler_of_sigterm(monkeypatch):
    def init(**_: object) -> None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(ray, "init", init)
    start_ray(1, "")
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize("mode", [None, "disabled"])
def test_a_ray_that_ends_leaves_no_mode_of_authentication(monkeypatch, mode):
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    if mode is not None:
        monkeypatch.setenv("RAY_AUTH_MODE", mode)
    monkeypatch.setattr(cluster, "_mode_before", {})
    monkeypatch.setattr(ray, "init", lambda **_: os.environ.update(RAY_AUTH_MODE="token"))
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    start_ray(1, "")
    assert os.environ["RAY_AUTH_MODE"] == "token"
    stop_ray()
    assert os.environ.get("RAY_AUTH_MODE") == mode


def test_who_joins_a_cluster_keeps_the_mode_of_authentication(monkeypatch):
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setattr(cluster, "_mode_before", {"RAY_AUTH_MODE": None})
    monkeypatch.setattr(cluster, "check_cluster", lambda _: None)
    for name in ("init", "shutdown"):
        monkeypatch.setattr(ray, name, lambda **_: None)
    start_ray(1, "127.0.0.1:1")
    stop_ray()
    assert os.environ["RAY_AUTH_MODE"] == "token"


def test_workers_print_nothing_here(monkeypatch):
    asked: list[dict[str, object]] = []
    monkeypatch.setattr(ray, "init", lambda **options: asked.append(options))
    start_ray(2, "")
    (options,) = asked
    assert options == {
        "address": "local",
        "num_cpus": 2,
        "include_dashboard": False,
        "log_to_driver": False,
        "logging_level": logging.ERROR,
    }
