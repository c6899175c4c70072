"""The table of a run's layers names the validation round; thresholds stand where votes decide."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from fedhh.cli.console import SafeConsole
from fedhh.cli.text_tables import print_parts
from fedhh.experiments.report.run_tables import run_parts
from fedhh.experiments.run.run import simulate
from fedhh.server.adaptive.adaptive_triehh import AdaptiveTrieHH
from fedhh.server.ldp_triehh import LdpTrieHH
from tests.conftest import LETTERS, zipf_population

ADAPTIVE = AdaptiveTrieHH(alphabet=LETTERS, clients_per_layer=400, depth=5, eta_max=30, max_items=2)
LDP = LdpTrieHH(alphabet=LETTERS, clients_per_layer=250, depth=5, passes=1, eta_max=20, max_items=2)
VALIDATED = replace(LDP, false_discovery_rate=0.05)


@pytest.mark.parametrize(
    ("protocol", "of_layers", "of_validation"),
    [(ADAPTIVE, False, False), (LDP, True, None), (VALIDATED, True, True)],
    ids=["posterior and evidence", "votes", "votes and validation"],
)
def test_rounds_have_their_names_and_thresholds(protocol, of_layers, of_validation):
    result = simulate(protocol, zipf_population(3_000), seed=4)
    file = io.StringIO()
    print_parts(SafeConsole(file=file, width=200), run_parts(result, num_words=1))
    lines = file.getvalue().splitlines()
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
