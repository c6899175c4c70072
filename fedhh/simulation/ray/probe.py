"""Joins a Ray cluster for a moment, and prints in one line why it cannot.

A script for a process of its own: where no head answers, Ray tries for minutes, writes screens of
messages, and may end the process. It imports nothing of fedhh.
"""

import logging
import sys

import ray

if __name__ == "__main__":
    try:
        ray.init(address=sys.argv[1], log_to_driver=False, logging_level=logging.CRITICAL)
    except Exception as raised:
        error: BaseException = raised
        while error.__cause__ is not None:
            error = error.__cause__
        sys.stdout.write(" ".join(f"{type(error).__name__}: {error}".split()))
        sys.exit(1)
