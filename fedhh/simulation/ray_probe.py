"""Asks an address whether the head of a Ray cluster answers there; prints what it says as JSON.

A script for a process of its own: where no head answers, Ray's client tries for minutes, writes
screens of messages, and ends the process that asks if it cannot read a token. It imports nothing
of fedhh, and lives no longer than its time limits.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import socket
import sys
from contextlib import suppress
from typing import Any

_SECONDS_TO_CONNECT = 3.0
_SECONDS_TO_ANSWER = 4.0


def probe(address: str) -> dict[str, Any]:
    """Return what ``host:port`` answers, by the authentication mode in the environment.

    Returns:
        ``state`` is "unreachable", "no token", "refused" (the token, or the lack of one), "other"
        (something else answers) or "head", with the cluster's "ray" and "python" versions and
        whether a node of it "runs here".
    """
    faulthandler.dump_traceback_later(_SECONDS_TO_CONNECT, exit=True)
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _SECONDS_TO_CONNECT) as at:
            print(json.dumps({"state": "other"}), flush=True)  # noqa: T201 - if the time runs out
            if os.environ.get("RAY_USE_TLS", "0") in {"", "0"} and not _speaks_http2(at):
                return {"state": "other"}
    except OSError as error:
        return {"state": "unreachable", "error": error.strerror or str(error)}
    faulthandler.cancel_dump_traceback_later()

    raylet: Any = importlib.import_module("ray._raylet")
    services: Any = importlib.import_module("ray._private.services")
    with suppress(AttributeError):  # a Ray without authentication
        if raylet.get_authentication_mode() == raylet.AuthenticationMode.TOKEN:
            print(json.dumps({"state": "no token"}), flush=True)  # noqa: T201 - as above
            loader = raylet.AuthenticationTokenLoader.instance()
            if not loader.has_token():
                return {"state": "no token"}
            loader.get_raw_token()
            print(json.dumps({"state": "other"}), flush=True)  # noqa: T201 - as above
    faulthandler.dump_traceback_later(_SECONDS_TO_ANSWER, exit=True)
    try:
        client = raylet.GcsClient(address=address)
        versions = json.loads(client.internal_kv_get(b"CLUSTER_METADATA", b"cluster") or b"{}")
    except Exception as error:  # Ray's exceptions differ between versions
        refused = type(error).__name__ == "AuthenticationError"
        return {"state": "refused" if refused else "other"}
    here = True
    with suppress(Exception):  # how Ray itself looks for a node to connect to, since 2.50 or so
        alive = [node for node in client.get_all_node_info().values() if node.state == 0]
        local = {bytes.fromhex(node) for node in services.find_node_ids()}
        here = any(node.node_id in local for node in alive)
    return {
        "state": "head",
        "ray": versions.get("ray_version", ""),
        "python": versions.get("python_version", ""),
        "runs here": here,
    }


def _speaks_http2(connection: socket.socket) -> bool:
    """Return whether a server answers HTTP/2's greeting, as gRPC servers do, in kind.

    Any other is recognised without loading Ray.
    """
    settings = b"\0\0\0\x04\0\0\0\0\0"
    try:
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings)
        answer = connection.makefile("rb").read(4)
    except OSError:
        return False
    return len(answer) == 4 and answer[3] == settings[3]


if __name__ == "__main__":
    print(json.dumps(probe(sys.argv[1])), flush=True)  # noqa: T201 - what it is for
