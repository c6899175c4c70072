"""The live page's server under seeded garbage: silent, and a normal client is served.

A long search: ``FEDHH_FUZZ_CASES=20000 pytest tests/fuzz/test_live_server.py -m "" -n 0``.
"""

from __future__ import annotations

import os
import random
import socket
import struct
import threading
import time
from urllib.parse import urlsplit

from fedhh.experiments.report.explorer.http_server import MOST_WAITING
from fedhh.experiments.report.explorer.server import LiveServer
from tests.cli.test_live_server import everything, opened, status
from tests.fuzz.mutation import mutate_bytes

CASES = int(os.environ.get("FEDHH_FUZZ_CASES", "300"))
PATIENCE = 10.0
"""Seconds in which a case has to end: one that takes them hangs."""

ABUSES = ("ask", "ask and reset", "half", "half and reset", "stay")


def requests(server: LiveServer) -> list[bytes]:
    """What a browser sends, of which garbage is made."""
    parts = urlsplit(server.address)
    paths = (parts.path, f"{parts.path}chunk/live-0", "/", "/x/events", f"{parts.path}../..")
    return [
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{parts.port}\r\nAccept: */*\r\n"
        "Connection: keep-alive\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n".encode()
        for path in paths
    ]


def abuse(server: LiveServer, rng: random.Random, kept: list[socket.socket]) -> None:
    """Send a damaged request in one of several ways; the answer is read, or is not."""
    data = rng.choice(requests(server))
    if rng.random() < 0.9:
        data = mutate_bytes(data, rng)
    how = rng.choice(ABUSES)
    connection = opened(server)
    connection.settimeout(PATIENCE)
    try:
        connection.sendall(data[: rng.randrange(len(data) + 1)] if "half" in how else data)
        if how == "ask":
            connection.shutdown(socket.SHUT_WR)
            everything(connection)
    except (BrokenPipeError, ConnectionResetError):  # a head too long is not read to its end
        pass
    except OSError as error:
        if error.errno is None:
            raise AssertionError(f"the server hangs at {data!r}") from error
    if how in {"half", "stay"}:
        kept.append(connection)
        return
    if "reset" in how:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def test_garbage_changes_nothing_for_a_normal_client(capfd):
    failures: list[BaseException] = []
    with LiveServer("T", {"kind": "run"}) as server:
        server.say("round", {}, chunk=lambda: {"x": [1]})
        before = len(os.listdir("/proc/self/fd"))
        kept: list[socket.socket] = []
        done = threading.Event()

        def serve_a_normal_client() -> None:
            try:
                while not done.is_set():
                    assert status(server) == 200
            except BaseException as error:
                failures.append(error)

        client = threading.Thread(target=serve_a_normal_client)
        client.start()
        for number in range(CASES):
            abuse(server, random.Random(f"live server {number}"), kept)
            if len(kept) > MOST_WAITING * 2:
                kept.pop(0).close()
        done.set()
        client.join()
        for connection in kept:
            connection.close()
        end = time.monotonic() + PATIENCE
        while len(os.listdir("/proc/self/fd")) > before:
            assert time.monotonic() < end, "descriptors were lost"
            time.sleep(0.01)
    assert failures == []
    assert capfd.readouterr() == ("", "")
