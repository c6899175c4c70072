"""The live page's server: what is no request meets silence and limits, and takes no descriptor."""

from __future__ import annotations

import http.client
import logging
import os
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import closing, nullcontext
from urllib.parse import urlsplit

import pytest

from fedhh.cli.live import failure_line, followed
from fedhh.experiments.report.explorer import http_server
from fedhh.experiments.report.explorer import server as live_server
from fedhh.experiments.report.explorer.http_server import MOST_BYTES, MOST_WAITING
from fedhh.experiments.report.explorer.live import live_run
from fedhh.experiments.report.explorer.server import LiveServer
from fedhh.experiments.study.callbacks import Callbacks
from fedhh.experiments.study.kinds import LivePage
from fedhh.validation import InputError, RunFailedError
from tests.thinned import thinned


@pytest.fixture
def server():
    with LiveServer("T", {"kind": "run"}) as server:
        yield server


def opened(server: LiveServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", urlsplit(server.address).port), 10)


def said(server: LiveServer, request: bytes) -> bytes:
    """What the server answers, until it closes."""
    with opened(server) as connection:
        connection.sendall(request)
        return everything(connection)


def asking(server: LiveServer, path: str = "") -> bytes:
    """A request for the page, or for something below it."""
    parts = urlsplit(server.address)
    host = f"Host: 127.0.0.1:{parts.port}"
    return f"GET {parts.path}{path} HTTP/1.0\r\n{host}\r\n\r\n".encode()


def everything(connection: socket.socket) -> bytes:
    pieces = []
    try:
        while piece := connection.recv(65_536):
            pieces.append(piece)
    except ConnectionResetError:  # it closed with something of ours unread
        pass
    return b"".join(pieces)


def status(server: LiveServer) -> int:
    """How a normal client is served."""
    parts = urlsplit(server.address)
    with closing(http.client.HTTPConnection("127.0.0.1", parts.port, timeout=10)) as connection:
        connection.request("GET", parts.path)
        answer = connection.getresponse()
        assert b"explorer" in answer.read()
        return answer.status


@pytest.mark.parametrize(
    ("request_line", "code"),
    thinned(
        [
            (b"GET x HTTP/1.0", b"404"),
            (b"GET nothing", b"404"),
            (b"GET", b"400"),
            (b"GET * HTTP/1.1", b"404"),
            (b"GET http://127.0.0.1/ HTTP/1.1", b"404"),
            (b"GET \xff\xfe HTTP/1.1", b"404"),
            (b"BREW / HTTP/1.1", b"501"),
            (b"GET / HTTP/9.9", b"505"),
            (b"\x16\x03\x01\x02", b"400"),
        ],
        keep=2,
    ),
)
def test_a_malformed_request_is_answered_and_nothing_is_written(server, capfd, request_line, code):
    port = urlsplit(server.address).port
    answer = said(server, request_line + f"\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    assert code in answer
    assert status(server) == 200
    assert capfd.readouterr() == ("", "")


def test_a_reset_is_met_with_silence(server, capfd):
    before = len(os.listdir("/proc/self/fd"))
    for request in (b"", b"GET /", asking(server), asking(server, "events")):
        connection = opened(server)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.sendall(request)
        connection.close()
    assert status(server) == 200
    until(lambda: len(os.listdir("/proc/self/fd")) <= before)
    assert capfd.readouterr() == ("", "")


def test_an_error_of_the_page_itself_is_for_v_alone(server, capfd, caplog):
    caplog.set_level(logging.INFO, "fedhh")
    server.say("round", {}, chunk=lambda: 1 / 0)
    assert said(server, asking(server, "chunk/live-0")) == b""
    until(lambda: caplog.messages)
    assert "ZeroDivisionError" in caplog.messages[0]
    assert "Traceback" not in capfd.readouterr().err


def test_a_head_without_end_is_not_read_on(server):
    assert said(server, b"GET / HTTP/1.1\r\nX: " + b"x" * MOST_BYTES) == b""
    assert status(server) == 200


def test_who_says_nothing_in_time_is_let_go(server, monkeypatch):
    monkeypatch.setattr(http_server, "SECONDS_TO_ASK", 0.0)
    with opened(server) as silent:
        assert everything(silent) == b""


def test_a_byte_now_and_then_is_no_request(server, monkeypatch):
    monkeypatch.setattr(http_server, "SECONDS_TO_ASK", 0.0)
    with opened(server) as slow, pytest.raises(OSError, match=r"pipe|reset"):
        send_slowly(slow)


def send_slowly(connection: socket.socket) -> None:
    pause = threading.Event()
    for _ in range(MOST_BYTES):
        connection.sendall(b"x")
        pause.wait(0.01)


@pytest.mark.slow("::test_a_page_says_in_one_line_what_failed")
def test_half_open_connections_make_room_for_others(server):
    before = len(os.listdir("/proc/self/fd"))
    waiting = [opened(server) for _ in range(MOST_WAITING * 3)]
    assert status(server) == 200
    # Ours, and of the server's no more than it allows.
    assert len(os.listdir("/proc/self/fd")) - before - len(waiting) <= MOST_WAITING + 1
    for connection in waiting:
        connection.close()
    until(lambda: len(os.listdir("/proc/self/fd")) <= before)


def test_so_many_pages_listen_and_no_more(server, monkeypatch):
    monkeypatch.setattr(live_server, "MOST_LISTENERS", 2)
    request = asking(server, "events")
    first, second = opened(server), opened(server)
    for listener in (first, second):
        listener.sendall(request)
        assert b"200" in listener.recv(100)
    assert b" 503 " in said(server, request)
    assert status(server) == 200
    first.close()
    second.close()


def events_of_a_run(error: RunFailedError | None) -> str:
    """All that a page hears that listens from before the run's end."""
    heard: list[bytes] = []
    fails = nullcontext() if error is None else pytest.raises(RunFailedError, match=str(error))
    with fails, followed(LivePage(server=live_run("T"), callbacks=Callbacks())) as page:
        connection = opened(page.server)
        connection.sendall(asking(page.server, "events"))
        heard.append(connection.recv(100))  # from now on it is told all that is new
        listening = threading.Thread(target=lambda: heard.append(everything(connection)))
        listening.start()
        if error is not None:
            raise error
    listening.join()
    connection.close()
    return b"".join(heard).decode()


def test_a_run_that_fails_ends_its_page_with_the_cause():
    text = events_of_a_run(RunFailedError("Ray is gone; start it."))
    assert 'event: failure\ndata: "Ray is gone; start it."' in text
    assert "event: end" not in text


def test_while_clients_are_drawn_the_page_says_so_and_a_run_that_ends_well_has_not_failed():
    text = events_of_a_run(None)
    assert 'event: status\ndata: "clients are drawn; the first round follows"' in text
    assert "event: end" in text
    assert "event: failure" not in text


def test_a_page_says_in_one_line_what_failed():
    assert failure_line(InputError("Expected a, got b.")) == "Expected a, got b."
    assert failure_line(OSError(28, "No space left on device", "x")) == "No space left on device: x"
    assert failure_line(KeyError("a\nb" + "x" * 5_000)).startswith("KeyError: 'a\\nbxxx")
    assert len(failure_line(KeyError("x" * 5_000))) < 1_100


def until(done: Callable[[], object]) -> None:
    """Wait ten seconds at most."""
    pause = threading.Event()
    for _ in range(1_000):
        if done():
            return
        pause.wait(0.01)
    raise AssertionError("waited ten seconds")
