"""What is no cluster is told from one, in one line and without waiting for Ray."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator

import pytest

from fedhh.validation import InputError

pytest.importorskip("ray")

from fedhh.simulation import ray_connection
from fedhh.simulation.ray_connection import check_cluster, start_ray


def refusal(address: str) -> str:
    with pytest.raises(InputError) as error:
        start_ray(1, address)
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
        ("ray://127.0.0.1:10001", "an address of Ray Client"),
    ],
)
def test_an_address_must_be_one_of_a_head(address: str, message: str, monkeypatch):
    monkeypatch.setattr(ray_connection, "_probe", None)  # refused before anything is asked
    assert message in refusal(address)


def test_auto_without_a_cluster_is_refused(monkeypatch):
    def none(_: str) -> str:
        raise ConnectionError("Could not find any running Ray instance.")

    # Other tests' clusters on this machine are not to be found.
    monkeypatch.setattr(ray_connection.services, "canonicalize_bootstrap_address", none)
    assert "ray_address='auto' finds no Ray cluster on this machine" in refusal("auto")


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
        for connection in self._open:
            connection.close()


@pytest.fixture(
    params=[
        pytest.param(b"", id="silent"),
        pytest.param(b"HTTP/1.0 400 Bad Request\r\n\r\n", id="web server"),
        pytest.param(b"\0\0\0\4\0\0\0\0\0", id="greets as gRPC does, and no more"),
    ]
)
def listener(request) -> Iterator[Listener]:
    listener = Listener(request.param)
    yield listener
    listener.close()


def test_a_port_that_listens_but_is_no_ray_is_named(listener, capfd):
    message = refusal(listener.address)
    assert f"No Ray cluster answers at ray_address={listener.address!r}" in message
    assert "does not answer as the head of a cluster does" in message
    assert capfd.readouterr() == ("", "")


def test_a_machine_without_a_node_of_the_cluster_is_told_to_start_one(monkeypatch):
    import platform

    import ray

    head = {"state": "head", "ray": ray.__version__, "python": platform.python_version()}
    monkeypatch.setattr(ray_connection, "_probe", lambda *_: {**head, "runs here": False})
    assert "start one with `ray start --address 10.0.0.1:6379`" in refusal("10.0.0.1:6379")


def test_the_environment_is_left_as_it_was(monkeypatch):
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    before = dict(os.environ)
    with pytest.raises(InputError):
        check_cluster("127.0.0.1:1")
    with ray_connection._authentication("token"):
        assert os.environ["RAY_AUTH_MODE"] == "token"
    assert dict(os.environ) == before
