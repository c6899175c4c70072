"""Tables of words say why an estimate is below 0, where one is."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from fedhh.cli.console import SafeConsole
from fedhh.cli.text_tables import print_parts
from fedhh.experiments.report.run_brief import brief_of
from fedhh.experiments.report.run_tables import falls_short, run_parts
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.run.run import simulate
from fedhh.server.adaptive.adaptive_triehh import AdaptiveTrieHH
from fedhh.server.ldp_triehh import LdpTrieHH
from tests.conftest import LETTERS, zipf_population

SEVERAL_ROUNDS = "An estimate below 0 is of the validation round's votes alone; z and the test"
UNBIASED = "Estimates are unbiased and not cut at 0"
ADAPTIVE = AdaptiveTrieHH(alphabet=LETTERS, clients_per_layer=400, depth=5, eta_max=30, max_items=2)
LDP = LdpTrieHH(alphabet=LETTERS, clients_per_layer=250, depth=5, eta_max=20, max_items=2)


def with_estimate(result: RunResult, row: int, estimate: float) -> RunResult:
    words = result.discoveries.copy()
    words.loc[row, "estimated_clients"] = estimate
    return replace(result, discoveries=words)


def printed(result: RunResult, *, brief: bool) -> str:
    file = io.StringIO()
    console = SafeConsole(file=file, width=400)
    if brief:
        print_parts(console, brief_of(result))
    else:
        print_parts(console, run_parts(result, num_words=10))
    # Captions are as wide as their table.
    return " ".join(file.getvalue().split())


@pytest.mark.parametrize("brief", [True, False])
@pytest.mark.parametrize(
    ("protocol", "reason", "other"),
    [(ADAPTIVE, SEVERAL_ROUNDS, UNBIASED), (LDP, UNBIASED, SEVERAL_ROUNDS)],
    ids=lambda each: getattr(each, "name", ""),
)
def test_an_estimate_below_zero_has_its_reason_below_the_table(protocol, reason, other, brief):
    result = simulate(protocol, zipf_population(3_000), seed=4)
    assert len(result.discoveries) > 10
    text = printed(with_estimate(result, 9, -13.0), brief=brief)
    assert text.count(reason) == 1
    assert f"{falls_short(result.protocol.plan)} {reason}" in text
    assert other not in text
    # Of a word that is not shown, and of one that is not below 0, nothing is said.
    for row, estimate in ((10, -13.0), (9, 0.0)):
        assert reason not in printed(with_estimate(result, row, estimate), brief=brief)
