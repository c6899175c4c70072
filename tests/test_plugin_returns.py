"""A plug-in that returns a wrong type: code 2, and one line with the place in its code."""

from __future__ import annotations

import sys
from functools import cached_property

import numpy as np
import pytest

from fedhh.clients.clients import Clients
from fedhh.oracles import GeneralizedRandomizedResponse
from fedhh.validation import InputError
from tests.test_plugin_errors import CONFIG

MODULE = """
from dataclasses import dataclass, replace

import numpy as np
from fedhh.clients.clients import Clients
from fedhh.oracles import SubsetSelection
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.words.lexicon import Lexicon


class Chosen(SubsetSelection):
    {oracle}


@dataclass(frozen=True, kw_only=True)
class Mine(LdpTrieHH):
    {protocol}


class Own(Clients):
    def __init__(self, num_clients, *, seed):
        super().__init__(
            name="same", lexicon=Lexicon(words=["aa", "zz"]), offsets=np.arange(num_clients + 1),
            word_ids=np.arange(num_clients) % 2, counts=np.full(num_clients, 1 + seed),
        )

    {population}
"""
LINES = {key: MODULE.splitlines().index(f"    {{{key}}}") + 1
         for key in ("oracle", "protocol", "population")}  # fmt: skip
WRONG = [
    ("protocol", "plan = property(lambda self: [])", "a LocalReports to be returned, got []"),
    ("protocol", "ask = lambda self, planned, run: 'all'", "a Question or None to be returned"),
    ("protocol", "keep = lambda self, answers: None", "a tuple of an array of "
     "integers and an integer to be returned, got None"),
    ("protocol", "hear = lambda self, *given: replace(super(Mine, self).hear(*given), found=[])",
     "Heard.found as a Found or None, got [] of the type list"),
    ("protocol", "settle = lambda self, **sizes: None", "a Cohorts to be returned"),
    ("oracle", "estimate = lambda self, tally, num_reports: list(tally)", "an array of numbers"),
    ("oracle", "report_bits = property(lambda self: '8')", "a number to be returned, got '8'"),
    ("population", "num_clients = property(lambda self: 300.0)", "an integer to be returned, got"),
    ("population", "word_counts = lambda self, progress=None: {}", "WordCounts to be returned"),
    ("population", "block = lambda self, clients: clients", "a ClientBlock to be returned, got an "
     "array of int64"),
]  # fmt: skip
NAMES = {
    "oracle": "protocol.oracle=returning_plugin:Chosen",
    "protocol": "protocol.name=returning_plugin:Mine",
    "population": "population.source=returning_plugin:Own",
}


@pytest.mark.usefixtures("own_modules")
@pytest.mark.parametrize(("place", "code", "expected"), WRONG)
def test_what_is_of_a_wrong_type_is_one_line_with_its_place(
    tmp_path, monkeypatch, command, place, code, expected
):
    monkeypatch.chdir(tmp_path)
    written = dict.fromkeys(NAMES, "...") | {place: code}
    (tmp_path / "returning_plugin.py").write_text(MODULE.format(**written))
    sys.modules.pop("returning_plugin", None)
    text = CONFIG
    if place == "population":
        kept = (line for line in CONFIG.splitlines() if line[:5] not in {"virtu", "model"})
        text = "".join(f"{line}\n" for line in kept)
    (tmp_path / "a.toml").write_text(text)
    done = command(
        "run", "--config", "a.toml", "--set", NAMES[place], "--trust", "--out", "out", "-q"
    )
    said = done.stderr.splitlines()
    assert (done.returncode, len(said)) == (2, 1), done.stderr
    assert f"returning_plugin.py, line {LINES[place]}, in " in said[0]
    assert expected in said[0]


def test_what_fits_stays_as_it_is():
    class Own(GeneralizedRandomizedResponse):
        @cached_property
        def aggregate_size(self):
            """How many."""
            return np.int64(self.domain_size)

        def variance(self, count, num_reports):
            return 1.0 if np.ndim(count) == 0 else super().variance(count, num_reports)

    own = Own(epsilon=1.0, domain_size=4)
    assert own.aggregate_size == 4
    assert own.variance(0.0, 9) == 1.0
    assert own.variance(np.zeros(3), 9).shape == (3,)
    assert Own.variance.__name__ == "variance"
    assert Own.aggregate_size.__doc__ == "How many."


def test_another_plugins_method_is_named_where_it_stands():
    class First(Clients):
        def exact(self):
            return "yes"

        @property
        def num_clients(self):
            return "many"

    class Second(First):
        def own(self):
            return super().num_clients

    with pytest.raises(InputError, match=r"test_plugin_returns\.py, line \d+, in .*First\.num_cl"):
        Second.own(Second.__new__(Second))
    assert First.exact(First.__new__(First)) == "yes"
