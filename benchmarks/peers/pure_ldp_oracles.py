"""Runs pure-ldp's frequency oracles on values, in an environment that has pure-ldp.

Usage: pure_ldp_oracles.py SETTINGS.json RESULT.json
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path

import numpy as np
from pure_ldp.frequency_oracles.apple_cms import CMSClient, CMSServer
from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
from pure_ldp.frequency_oracles.hadamard_response import (
    HadamardResponseClient,
    HadamardResponseServer,
)
from pure_ldp.frequency_oracles.histogram_encoding import HEClient, HEServer
from pure_ldp.frequency_oracles.local_hashing import (
    FastLHClient,
    FastLHServer,
    LHClient,
    LHServer,
)
from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer


def same(value):
    """Return the value, which is its own number."""
    return value


def make(name, epsilon, size, hashes, cells):
    """Return a client and a server."""
    own = {"index_mapper": same}
    best = {"use_olh": name in {"olh", "flh"}, **own}
    if name in {"cms", "hcms"}:
        sketch = CMSServer(epsilon, hashes, cells, is_hadamard=name == "hcms")
        functions = sketch.get_hash_funcs()
        return CMSClient(epsilon, functions, cells, is_hadamard=name == "hcms"), sketch
    if name == "hr":
        server = HadamardResponseServer(epsilon, size, **own)
        return HadamardResponseClient(epsilon, size, server.get_hash_funcs(), **own), server
    client_class, server_class, words, server_words = {
        "grr": (DEClient, DEServer, (), ()),
        "sue": (UEClient, UEServer, (False,), (False,)),
        "oue": (UEClient, UEServer, (True,), (True,)),
        "she": (HEClient, HEServer, (), (False,)),
        "the": (HEClient, HEServer, (), (True,)),
        "blh": (LHClient, LHServer, (), ()),
        "olh": (LHClient, LHServer, (), ()),
        "flh": (FastLHClient, FastLHServer, (hashes,), (hashes,)),
    }[name]
    keywords = best if name in {"blh", "olh", "flh"} else own
    return (
        client_class(epsilon, size, *words, **keywords),
        server_class(epsilon, size, *server_words, **keywords),
    )


def main() -> None:
    """Privatize, aggregate and estimate all values, some times; each part timed."""
    settings_path, result_path = sys.argv[1:]
    settings = json.loads(Path(settings_path).read_text())
    size, values = settings["domain_size"], settings["values"]
    results = {}
    for name in settings["names"]:
        runs = []
        for seed in range(settings["runs"]):
            # The package draws from the generators of these modules.
            random.seed(seed)
            np.random.seed(seed)  # noqa: NPY002
            client, server = make(
                name, settings["epsilon"], size, settings["num_hashes"], settings["num_cells"]
            )
            started = time.thread_time()
            reports = [client.privatise(value) for value in values]
            reported = time.thread_time()
            for report in reports:
                server.aggregate(report)
            estimates = [float(server.estimate(v, suppress_warnings=True)) for v in range(size)]
            runs.append(
                {
                    "client_s": reported - started,
                    "server_s": time.thread_time() - reported,
                    "estimates": estimates,
                }
            )
        results[name] = runs
    Path(result_path).write_text(json.dumps(results))


main()
