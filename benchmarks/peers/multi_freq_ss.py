"""Times multi-freq-ldpy's Subset Selection clients, in an environment that has multi-freq-ldpy.

Usage: multi_freq_ss.py SETTINGS.json RESULT.json
"""

import json
import statistics
import sys
import time
from pathlib import Path

from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client


def main() -> None:
    """Report every value of each setting; the median of some rounds, after one to warm up."""
    settings_path, result_path = sys.argv[1:]
    results = []
    for cell in json.loads(Path(settings_path).read_text()):
        taken = []
        for _ in range(cell["rounds"] + 1):
            started = time.thread_time()
            for value in cell["values"]:
                report = SS_Client(value, cell["domain_size"], cell["epsilon"])
            taken.append(time.thread_time() - started)
        results.append(
            {
                "report_s": statistics.median(taken[1:]) / len(cell["values"]),
                "subset_size": len(report),
            }
        )
    Path(result_path).write_text(json.dumps(results))


main()
