"""Rounds that took place, by what accounting looks at."""

from __future__ import annotations

from typing import Any

from fedhh.accounting.rounds import RoundSummary


def heard(
    *, decides: bool = False, num_kept: int = 0, domain_size: int = 2, **numbers: Any
) -> RoundSummary:
    """Return a summary that says what is given, and nothing else of note; without fillers."""
    return RoundSummary(
        **{
            "pass_index": 0,
            "layer": 1,
            "num_prefixes": 0,
            "domain_size": domain_size,
            "num_finished": 0,
            "report_bits": 0.0,
            "download_bits": 0.0,
            "num_candidates": max(domain_size - 1, num_kept + 1) if decides else num_kept,
            "num_kept": num_kept,
            **numbers,
        }
    )
