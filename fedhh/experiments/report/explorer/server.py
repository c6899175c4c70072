"""Serves a live page to this machine alone, and tells it what is new by server-sent events.

The server listens on the loopback address. Whoever asks must know a random token and call the
server by a name of this machine: pages of other sites can do neither. It ends with its run.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any

from fedhh.experiments.report.explorer.chunks import packed
from fedhh.experiments.report.explorer.document import document
from fedhh.experiments.report.explorer.http_server import HOST, GuardedServer, QuietHandler
from fedhh.experiments.study.json_values import plain

MOST_LISTENERS = 32
"""Pages that get events at a time, each by a connection that stays."""

_ALIVE_SECONDS = 10.0
_LAST_WORDS_SECONDS = 2.0


class LiveServer:
    """A page, its pieces of data and its events; a context manager, which ends the server."""

    def __init__(self, title: str, manifest: dict[str, Any]) -> None:
        """Listen on a free port; nothing is answered before the context begins.

        The manifest is what the page shows before the first event.
        """
        self._page = document(title, {**manifest, "live": True}, {}, connect="'self'")
        self._token = secrets.token_urlsafe(24)
        self._events: list[str] = []
        self._chunks: dict[str, Callable[[], Any] | str] = {}
        self._building = threading.Lock()
        self._news = threading.Condition()
        self._is_over = False
        self._listening = 0
        self._last_words = "This page shows what it has received."
        self._failure: str | None = None
        self._http = GuardedServer(_handler(self))

    @property
    def address(self) -> str:
        """Where the page is, token included."""
        return f"http://{HOST}:{self._http.server_port}/{self._token}/"

    def __enter__(self) -> LiveServer:
        self._http.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._failure is None:
            self._say("end", self._last_words)
        else:
            self._say("failure", self._failure)
        with self._news:
            self._is_over = True
            self._news.notify_all()
            # Who listens gets the end; who does not read it is not waited for.
            self._news.wait_for(lambda: not self._listening, timeout=_LAST_WORDS_SECONDS)
        self._http.shutdown()
        self._http.server_close()

    def end_with(self, text: str) -> None:
        """Say what the page shows when the server ends."""
        self._last_words = text

    def fail_with(self, text: str) -> None:
        """Say in one line what failed, as the page's last word."""
        self._failure = text

    def say(self, event: str, data: Any, *, chunk: Callable[[], Any] | None = None) -> None:
        """Tell the page what is new.

        Args:
            event: Its name.
            data: Of the event; if there is a piece of data, its name is added as "chunk".
            chunk: Makes a piece of data, when a page first asks for it.
        """
        if chunk is not None:
            name = f"live-{len(self._chunks)}"
            self._chunks[name] = chunk
            data = {**data, "chunk": name}
        self._say(event, data)

    def _say(self, event: str, data: Any) -> None:
        text = f"event: {event}\ndata: {json.dumps(plain(data), allow_nan=False)}\n\n"
        with self._news:
            self._events.append(text)
            self._news.notify_all()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        host = (handler.headers.get("Host") or "").rpartition(":")
        if host[0] not in (HOST, "localhost") or host[2] != str(self._http.server_port):
            handler.send_error(HTTPStatus.FORBIDDEN)
            return
        before, _, path = handler.path.partition("/")
        token, *rest = path.split("/")
        if before or not secrets.compare_digest(token.encode(), self._token.encode()):
            handler.send_error(HTTPStatus.NOT_FOUND)
        elif rest == [""]:
            _send(handler, "text/html; charset=utf-8", self._page)
        elif rest == ["events"]:
            self._stream(handler)
        elif len(rest) == 2 and rest[0] == "chunk" and rest[1] in self._chunks:
            _send(handler, "text/plain; charset=ascii", self._chunk(rest[1]))
        else:
            handler.send_error(HTTPStatus.NOT_FOUND)

    def _chunk(self, name: str) -> str:
        with self._building:
            piece = self._chunks[name]
            if not isinstance(piece, str):
                piece = self._chunks[name] = packed(piece())
            return piece

    def _after(self, num_sent: int) -> tuple[list[str], bool]:
        """Wait for events after the first few, not for ever; return them, and whether it ends."""
        with self._news:
            self._news.wait_for(
                lambda: len(self._events) > num_sent or self._is_over, timeout=_ALIVE_SECONDS
            )
            return self._events[num_sent:], self._is_over

    def _stream(self, handler: BaseHTTPRequestHandler) -> None:
        with self._news:
            is_full = self._listening >= MOST_LISTENERS
            self._listening += not is_full
        if is_full:
            handler.send_error(HTTPStatus.SERVICE_UNAVAILABLE)
            return
        num_sent = 0
        try:
            _head(handler, "text/event-stream")
            while True:
                new, is_over = self._after(num_sent)
                num_sent += len(new)
                # A comment keeps the connection; a page that is gone shows by it.
                handler.wfile.write("".join(new or [":\n\n"]).encode())
                handler.wfile.flush()
                if is_over:
                    return
        except OSError:
            return
        finally:
            with self._news:
                self._listening -= 1
                self._news.notify_all()


def _handler(server: LiveServer) -> type[QuietHandler]:
    class Handler(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802 - the standard library's name
            server.answer(self)

    return Handler


def _head(handler: BaseHTTPRequestHandler, kind: str, length: int | None = None) -> None:
    handler.send_response(HTTPStatus.OK)
    headers = {
        "Content-Type": kind,
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    if length is not None:
        headers["Content-Length"] = str(length)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.end_headers()


def _send(handler: BaseHTTPRequestHandler, kind: str, text: str) -> None:
    content = text.encode("utf-8")
    _head(handler, kind, len(content))
    handler.wfile.write(content)
