"""Runs pure-ldp's SFP or PEM on a file of words, in an environment that has pure-ldp.

Usage: pure_ldp_words.py {sfp|pem} SETTINGS.json RESULT.json
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pure_ldp.frequency_oracles.apple_cms import CMSClient, CMSServer
from pure_ldp.heavy_hitters.apple_sfp import SFPClient, SFPServer
from pure_ldp.heavy_hitters.prefix_extending import PEMClient, PEMServer


def main() -> None:
    """Privatize every word, aggregate the reports, and decode; each part timed."""
    kind, settings_path, result_path = sys.argv[1:]
    settings = json.loads(Path(settings_path).read_text())
    words = settings["words"]
    epsilon, length, step = settings["epsilon"], settings["length"], settings["step"]
    # SFP halves epsilon, for the word and for its fragment, and gives each client its half.
    server_oracle = CMSServer(epsilon, settings["num_hashes"], settings["num_cells"])
    client_oracle = CMSClient(epsilon, server_oracle.get_hash_funcs(), settings["num_cells"])
    alphabet = set(settings["alphabet"])
    if kind == "sfp":
        client = SFPClient(
            epsilon, step, length, alphabet=alphabet, index_mapper=str, fo_client=client_oracle
        )
        server = SFPServer(
            epsilon, step, length, alphabet=alphabet, index_mapper=str, fo_server=server_oracle
        )
    else:
        client = PEMClient(
            epsilon, step, length, step, alphabet=alphabet, index_mapper=str,
            fo_client=client_oracle,
        )  # fmt: skip
        server = PEMServer(
            epsilon, step, length, step, alphabet=alphabet, index_mapper=str,
            fo_server=server_oracle,
        )  # fmt: skip
    started = time.process_time()
    reports = [client.privatise(word) for word in words]
    privatized = time.process_time()
    for report in reports:
        server.aggregate(report)
    aggregated = time.process_time()
    found, counts = server.find_heavy_hitters(k=settings["keep"])
    decoded = time.process_time()
    order = sorted(range(len(found)), key=lambda i: -counts[i])
    result = {
        "clients_s": privatized - started,
        "aggregate_s": aggregated - privatized,
        "decode_s": decoded - aggregated,
        "found": [found[i] for i in order],
    }
    Path(result_path).write_text(json.dumps(result))


main()
