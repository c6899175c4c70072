"""An HTTP server for one page on the loopback address, that any program of this machine may attack.

Each connection carries one request. Those whose request is not there yet are few, and short: the
oldest makes room for the next. So whoever opens connections and says nothing, or little, or no
HTTP, takes neither descriptors nor memory, and others are answered meanwhile.
"""

from __future__ import annotations

import io
import logging
import socket
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOST = "127.0.0.1"

MOST_WAITING = 64
"""Connections whose request is not read yet."""

SECONDS_TO_ASK = 5.0
"""From the connection to the end of its request's head."""

SECONDS_TO_READ = 30.0
"""In which who asked takes a piece of the answer."""

MOST_BYTES = 16_384
"""Of a request's head; a browser's has less than one thousand."""

_POLL_SECONDS = 0.2

_log = logging.getLogger(__name__)


class QuietHandler(BaseHTTPRequestHandler):
    """Reads one request, within limits; a subclass answers it with ``do_GET``."""

    server: GuardedServer
    timeout = SECONDS_TO_READ

    def handle(self) -> None:
        """Answer the one request, if it comes."""
        head = self.server.head_of(self.connection)
        if head:
            self.rfile = io.BytesIO(head)
            self.handle_one_request()

    def log_message(self, *_: object) -> None:
        """Say nothing: the console belongs to the run."""


class GuardedServer(ThreadingHTTPServer):
    """Listens on a free port of the loopback address."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, handler: type[QuietHandler]) -> None:
        """Listen; nothing is answered before `start`."""
        self._waiting: dict[socket.socket, float] = {}
        self._changed = threading.Condition()
        super().__init__((HOST, 0), handler)
        self._thread = threading.Thread(
            target=self.serve_forever, args=(_POLL_SECONDS,), daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection in a thread; the oldest that has not asked yet may have to go."""
        with self._changed:
            if len(self._waiting) >= MOST_WAITING:
                _stop(next(iter(self._waiting)))
                self._changed.wait_for(lambda: len(self._waiting) < MOST_WAITING, timeout=1.0)
            self._waiting[request] = time.monotonic()
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """End connections whose time to ask is over."""
        with self._changed:
            late = time.monotonic() - SECONDS_TO_ASK
            for connection, since in self._waiting.items():
                if since < late:
                    _stop(connection)

    def head_of(self, connection: socket.socket) -> bytes:
        """Return the head of a connection's request; nothing if it does not come whole."""
        head = b""
        try:
            while b"\r\n\r\n" not in head and b"\n\n" not in head:
                piece = connection.recv(MOST_BYTES + 1 - len(head))
                head += piece
                if not piece or len(head) > MOST_BYTES:
                    return b""
        except OSError:
            return b""
        finally:
            self._forget(connection)
        return head

    def shutdown_request(self, request: Any) -> None:
        """Close a connection, also one that got no thread."""
        self._forget(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of who went away; an error of the page's own is for ``-v``."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            _log.info("the live page could not be answered: %r", error)

    def _forget(self, connection: socket.socket) -> None:
        with self._changed:
            self._waiting.pop(connection, None)
            self._changed.notify_all()


def _stop(connection: socket.socket) -> None:
    """End a connection that another thread reads, which then closes it."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
