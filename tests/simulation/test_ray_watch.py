"""A head or a raylet that is gone is named in one line, with the cure."""

from __future__ import annotations

import logging
import socket
import threading

import pytest

from fedhh.validation import RunFailedError

pytest.importorskip("ray")

from fedhh.simulation.ray import cluster
from fedhh.simulation.ray.cluster import RayWatch


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(cluster, "PAUSE_SECONDS", 0.01)


@pytest.fixture
def head():
    with socket.create_server(("127.0.0.1", 0), backlog=200) as listening:
        yield listening


@pytest.fixture
def raylet():
    with socket.create_server(("127.0.0.1", 0), backlog=200) as listening:
        yield listening


def watching(head: socket.socket, raylet: socket.socket, *, is_own: bool) -> RayWatch:
    watch = RayWatch.__new__(RayWatch)
    watch._is_own = is_own
    watch._places = {"head (gcs_server)": head.getsockname(), "raylet": raylet.getsockname()}
    return watch


def failure(watching: RayWatch) -> str:
    assert not watching.is_there()
    with pytest.raises(RunFailedError) as error:
        watching.check()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_as_long_as_both_are_there_nothing_is_said(head, raylet, caplog):
    both = watching(head, raylet, is_own=True)
    both.check()
    assert both.is_there()
    for listening in (head, raylet):
        listening.settimeout(10)
        listening.accept()[0].close()
    assert caplog.messages == []


@pytest.mark.parametrize("is_own", [True, False])
def test_a_raylet_that_is_gone_is_named_with_the_cure(head, raylet, is_own):
    both = watching(head, raylet, is_own=is_own)
    port = raylet.getsockname()[1]
    raylet.close()
    said = failure(both)
    assert f"Ray's raylet at 127.0.0.1:{port} is gone" in said
    assert "--resume" in said
    assert ("--workers 0" in said) == is_own
    assert ("start this node again" in said) == (not is_own)


def test_nobody_waits_for_the_head_of_an_own_ray(head, raylet, caplog):
    both = watching(head, raylet, is_own=True)
    head.close()
    assert "Ray's head (gcs_server) at 127.0.0.1:" in failure(both)
    assert caplog.messages == []


def test_a_clusters_head_may_come_back(head, raylet, caplog):
    caplog.set_level(logging.WARNING, "fedhh")
    both = watching(head, raylet, is_own=False)
    place = head.getsockname()
    head.close()
    waits = threading.Thread(target=both.check)
    waits.start()
    while not caplog.messages:
        assert waits.is_alive()
    assert caplog.messages == ["Ray's head does not answer; waiting 30 s for it"]
    with socket.create_server(place, backlog=200):
        waits.join(20)
        assert not waits.is_alive()
        assert both.is_there()


def test_a_clusters_head_that_stays_away_ends_the_run(head, raylet, monkeypatch):
    monkeypatch.setattr(cluster, "_PATIENCE_SECONDS", 0.05)
    both = watching(head, raylet, is_own=False)
    head.close()
    assert "start the cluster again" in failure(both)
