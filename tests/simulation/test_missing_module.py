"""A class that workers cannot import ends a run in one line that names its module."""

from __future__ import annotations

import sys
import types

import pytest

from fedhh.validation import InputError
from tests.conftest import LETTERS


class Stray:
    """Made to belong to a module that exists in this process alone."""

    def answer(self, query, blocks, progress=None, *, onto=None):
        raise AssertionError("never called")


def stray_result(worker) -> int:
    return 0


@pytest.fixture
def stray(monkeypatch):
    module = types.ModuleType("only_here")
    kind = type("Stray", (Stray,), {"__module__": "only_here"})
    module.Stray = kind
    module.__spec__ = None
    monkeypatch.setitem(sys.modules, "only_here", module)
    return kind()


def test_a_worker_of_an_unknown_module_is_refused_by_name(stray, shared_ray):
    from fedhh.server.ldp_triehh import LdpTrieHH
    from fedhh.simulation.ray.executor import RayExecutor
    from fedhh.simulation.ray.tasks import map_on_ray

    protocol = LdpTrieHH(alphabet=LETTERS, clients_per_layer=500, depth=3, passes=1)
    query = protocol.next_query(protocol.initialize())
    with (
        RayExecutor(stray, num_workers=1) as executor,
        pytest.raises(InputError, match="cannot import the module 'only_here'"),
    ):
        list(executor.answer(query))
    ((_, outcome),) = map_on_ray(stray_result, [(stray,)], num_workers=1)
    assert isinstance(outcome, InputError)
    assert "'only_here'" in str(outcome)
