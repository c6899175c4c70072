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
from fedhh.experiments.study.text_table import TextTable
from fedhh.server.adaptive.adaptive_triehh import AdaptiveTrieHH
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.testing import LETTERS, small_population
from fedhh.words.known_words import KnownWords

SEVERAL_ROUNDS = "An estimate below 0 is of the validation round's votes alone; z and the test"
UNBIASED = "Estimates are unbiased and not cut at 0"
ADAPTIVE = AdaptiveTrieHH(
    alphabet=LETTERS, clients_per_layer=400, depth=5, eta_max=30, max_items=2,
    # Without public words of the language, nothing is asked about a list of them.
    known_words=KnownWords(name="none", words=frozenset(), language="de"), language="de",
)  # fmt: skip
LDP = LdpTrieHH(alphabet=LETTERS, clients_per_layer=250, depth=5, passes=1, eta_max=20, max_items=2)
VALIDATED = replace(LDP, false_discovery_rate=0.05)


@functools.cache
def run_of(protocol) -> RunResult:
    return simulate(protocol, small_population(3_000), seed=4)


def whole(result: RunResult):
    return run_parts(result, num_words=10)


def in_brief(result: RunResult) -> str:
    none = TextTable(title="", columns=(), rows=(), note="")
    return printed(brief_of(result, none))


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
    rows = [line.split() for line in lines[start + 1 : start + 1 + len(result.layers)]]
    for row, layer in zip(rows, result.layers.to_dict("records"), strict=True):
        validates = layer["layer"] > protocol.depth
        assert row[1] == ("validation" if validates else str(layer["layer"]))
        has_threshold = of_validation if validates else of_layers
        assert row[6] == (f"{layer['threshold']:,}" if has_threshold else "-")
    assert (rows[-1][1] == "validation") == (of_validation is not None)


@pytest.mark.parametrize(
    ("protocol", "reason", "other"),
    [(ADAPTIVE, SEVERAL_ROUNDS, UNBIASED), (LDP, UNBIASED, SEVERAL_ROUNDS)],
    ids=lambda each: getattr(each, "name", ""),
)
def test_an_estimate_below_zero_has_its_reason_below_the_table(protocol, reason, other):
    result = run_of(protocol)
    assert len(result.discoveries) > 10

    def with_estimate(row: int, estimate: float) -> str:
        words = result.discoveries.copy()
        words.loc[row, "estimated_clients"] = estimate
        # Captions are as wide as their table.
        return " ".join(printed(whole(replace(result, discoveries=words))).split())

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
        (ADAPTIVE, "interval coverage"),
        (LDP, "within 2 std. errors"),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_a_run_prints_how_far_estimates_are_off_and_whom_they_count(protocol, said):
    result = run_of(protocol)
    metrics = result.metrics
    share = metrics.interval_coverage if protocol is ADAPTIVE else metrics.within_two_std
    # Captions are as wide as their table.
    text = " ".join(printed(whole(result)).split())
    assert f"{said} │ {share:.1%}" in text
    assert f"count error │ {metrics.count_error_relative_significant:.1%}" in text
    assert "estimates are lower bounds on holders" in text
    for each in (text, in_brief(result)):
        assert ("true contributors" in each) == (protocol is ADAPTIVE)


def test_the_end_of_a_run_leaves_swear_words_out_and_says_so():
    result = run_of(LDP)
    words = result.discoveries.head(12).copy()
    shown = list(words["word"])
    assert "Left out" not in in_brief(result)
    words.loc[[0, 4, 11], "word"] = ["Fuckin", "shite", "wanker"]
    rude = replace(result, discoveries=words)
    lines = in_brief(rude).splitlines()
    listed = [line.split()[1] for line in lines if line[:2].strip().isdigit()]
    assert listed == [word for i, word in enumerate(shown) if i not in (0, 4, 11)]
    # The last one is not among the first ten.
    assert "Left out here: 2 swear words; fedhh show --all has all." in lines
    assert "Fuckin" in printed(whole(rude))
