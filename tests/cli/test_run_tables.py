"""Tables of a run: the validation round has its name, thresholds stand where votes decide.

Below the words stands why an estimate is below 0, where one is.
"""

from __future__ import annotations

import functools
import io
from dataclasses import replace

import pytest

from fedhh.cli.console import SafeConsole
from fedhh.cli.text_tables import print_parts
from fedhh.experiments.report.run_tables import brief_of, falls_short, run_parts
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.run.run import simulate
from fedhh.server.adaptive.adaptive_triehh import AdaptiveTrieHH
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.words.known_words import named_list
from tests.conftest import LETTERS, zipf_population
from tests.thinned import thinned

SEVERAL_ROUNDS = "An estimate below 0 is of the validation round's votes alone; z and the test"
UNBIASED = "Estimates are unbiased and not cut at 0"
ADAPTIVE = AdaptiveTrieHH(
    alphabet=LETTERS, clients_per_layer=400, depth=5, eta_max=30, max_items=2,
    known_words=named_list("none"), ask_public_words=False,
)  # fmt: skip
LDP = LdpTrieHH(alphabet=LETTERS, clients_per_layer=250, depth=5, passes=1, eta_max=20, max_items=2)
VALIDATED = replace(LDP, false_discovery_rate=0.05)


@functools.cache
def run_of(protocol) -> RunResult:
    return simulate(protocol, zipf_population(3_000), seed=4)


def printed(parts) -> str:
    file = io.StringIO()
    print_parts(SafeConsole(file=file, width=400), parts)
    return file.getvalue()


@pytest.mark.slow("::test_a_run_prints_how_far_estimates_are_off_and_whom_they_count")
@pytest.mark.parametrize(
    ("protocol", "of_layers", "of_validation"),
    [(ADAPTIVE, False, False), (LDP, True, None), (VALIDATED, True, True)],
    ids=["posterior and evidence", "votes", "votes and validation"],
)
def test_rounds_have_their_names_and_thresholds(protocol, of_layers, of_validation):
    result = run_of(protocol)
    lines = printed(run_parts(result, num_words=1)).splitlines()
    start = next(i for i, line in enumerate(lines) if "threshold" in line)
    rows = [
        [cell.strip() for cell in line.strip("│ ").split("│")]
        for line in lines[start + 2 : start + 2 + len(result.layers)]
    ]
    for row, layer in zip(rows, result.layers.to_dict("records"), strict=True):
        validates = layer["layer"] > protocol.depth
        assert row[1] == ("validation" if validates else str(layer["layer"]))
        has_threshold = of_validation if validates else of_layers
        assert row[6] == (f"{layer['threshold']:,}" if has_threshold else "-")
    assert (rows[-1][1] == "validation") == (of_validation is not None)


@pytest.mark.slow("::test_a_run_prints_how_far_estimates_are_off_and_whom_they_count")
@pytest.mark.parametrize("of", thinned([brief_of, functools.partial(run_parts, num_words=10)]))
@pytest.mark.parametrize(
    ("protocol", "reason", "other"),
    [(ADAPTIVE, SEVERAL_ROUNDS, UNBIASED), (LDP, UNBIASED, SEVERAL_ROUNDS)],
    ids=lambda each: getattr(each, "name", ""),
)
def test_an_estimate_below_zero_has_its_reason_below_the_table(protocol, reason, other, of):
    result = run_of(protocol)
    assert len(result.discoveries) > 10

    def with_estimate(row: int, estimate: float) -> str:
        words = result.discoveries.copy()
        words.loc[row, "estimated_clients"] = estimate
        # Captions are as wide as their table.
        return " ".join(printed(of(replace(result, discoveries=words))).split())

    text = with_estimate(9, -13.0)
    assert text.count(reason) == 1
    assert f"{falls_short(result.protocol.plan)} {reason}" in text
    assert other not in text
    # Of a word that is not shown, and of one that is not below 0, nothing is said.
    for row, estimate in ((10, -13.0), (9, 0.0)):
        assert reason not in with_estimate(row, estimate)


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        (ADAPTIVE, "Contributors within their intervals"),
        (LDP, "Holders within ± 2 std. errors"),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_a_run_prints_how_far_estimates_are_off_and_whom_they_count(protocol, said):
    result = run_of(protocol)
    metrics = result.metrics
    share = metrics.interval_coverage if protocol is ADAPTIVE else metrics.within_two_std
    lower = f"holders at least clients_low: {metrics.lower_bound_coverage or 0:.1%}; "
    error = f"count error of the significant: {metrics.count_error_relative_significant:.1%}."
    texts = printed(brief_of(result)), printed(run_parts(result, num_words=10))
    # Captions are as wide as their table.
    brief, whole = (" ".join(text.split()) for text in texts)
    assert f"{said}: {share:.1%}; {lower if protocol is ADAPTIVE else ''}{error}" in brief
    assert f"{share:.1%}" in whole
    assert "count error" in whole
    for text in (brief, whole):
        assert "estimates are lower bounds on holders" in text
        assert ("true contributors" in text) == (protocol is ADAPTIVE)
