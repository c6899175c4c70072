"""What a run asked of clients and network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from fedhh.accounting.plan import Plan
from fedhh.protocol import RoundSummary


def cost_of(plan: Plan, summaries: Sequence[RoundSummary]) -> dict[str, Any]:
    """Return what the run asked of clients and network.

    A client answers in one round, in one of each epoch, or perhaps in every round.

    Columns:
        clients_asked: Clients that answered; one that serves in several rounds counts each time,
            unless it answers all of them at once.
        reports: Reports received, dummies included.
        rounds: Rounds.
        upload_bits_per_client_max: Bits that a client sends at most; missing where they depend on
            cryptography that is not simulated.
        download_bits_per_client_max: Bits that a client receives at most.
    """
    in_all = partial(max, default=0) if plan.uploads_once else sum
    places = [plan.planned(each.pass_index, each.layer).place for each in summaries]

    def at_most(bits: Iterable[float]) -> float:
        return plan.most_of_client(dict(zip(places, bits, strict=True)))

    return {
        "clients_asked": in_all(s.num_clients for s in summaries),
        "reports": in_all(s.num_reports for s in summaries),
        "rounds": len(summaries),
        "upload_bits_per_client_max": at_most(s.report_bits * plan.max_items for s in summaries),
        "download_bits_per_client_max": at_most(s.download_bits for s in summaries),
    }
