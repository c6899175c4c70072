"""What faulty clients send in answer to a query: second answers, stale ones, malformed ones.

Each is made from honest reports of uniform values, and then damaged. So it differs from an answer
that is accepted by its fault alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.faults import FAULTS, Fault
from fedhh.oracles import FrequencyOracle
from fedhh.oracles.report_checks import check_reports
from fedhh.queries.base import Query
from fedhh.queries.intake import Envelope, oracle_of_reports, reports_per_client
from fedhh.queries.refusals import Refusal

Reports = npt.NDArray[Any]

REFUSALS = {
    Fault.SECOND: Refusal.SECOND,
    Fault.STALE: Refusal.STALE,
    Fault.NUMBER: Refusal.NUMBER,
    Fault.SIZE: Refusal.SIZE,
    Fault.TYPE: Refusal.TYPE,
    Fault.ROW: Refusal.ROW,
    Fault.DOMAIN: Refusal.DOMAIN,
    Fault.REPEATED: Refusal.REPEATED,
}
"""Why the server refuses each."""


class FaultyAnswers:
    """Makes answers to one query that the server refuses."""

    def __init__(self, query: Query, *, round_before: tuple[int, int] | None) -> None:
        """Prepare for a query.

        Args:
            query: The broadcast.
            round_before: Pass and layer that stale answers are for; None in the first round.
        """
        self._query = query
        self._round_before = round_before
        self._oracle = oracle_of_reports(query)

    def can_have(self, fault: Fault) -> bool:
        """Return whether an answer to the query can have a fault, and be refused for it."""
        if fault is Fault.SECOND:
            return True
        if fault is Fault.STALE:
            return self._round_before is not None
        return self._oracle is not None and reports_can_have(fault, self._oracle)

    def envelopes(
        self, faults: Sequence[Fault], tokens: Sequence[int], *, rng: np.random.Generator
    ) -> list[Envelope]:
        """Return an answer of each of some clients.

        Args:
            faults: What is wrong with each.
            tokens: The clients' tokens.
            rng: Source of what is in them.
        """
        query, oracle = self._query, self._oracle
        honest: Sequence[Reports | None] = [None] * len(tokens)
        if oracle is not None and tokens:
            number = reports_per_client(query)
            values = rng.integers(oracle.domain_size, size=len(tokens) * number)
            honest = np.split(oracle.privatize(values, rng=rng), len(tokens))
        envelopes = []
        for fault, token, reports in zip(faults, tokens, honest, strict=True):
            place = query.pass_index, query.layer
            if fault is Fault.STALE and self._round_before is not None:
                place = self._round_before
            sent = reports
            if oracle is not None and reports is not None:
                sent = damaged(fault, oracle, reports, fewer=query.pad and rng.random() < _HALF)
            pass_index, layer = place
            envelopes.append(
                Envelope(token=token, pass_index=pass_index, layer=layer, reports=sent)
            )
        return envelopes


_HALF = 0.5


def reports_can_have(fault: Fault, oracle: FrequencyOracle) -> bool:
    """Return whether an oracle's reports can have a fault, and are refused for it."""
    if fault is Fault.NUMBER:
        return True
    honest = oracle.privatize(np.zeros(1, dtype=np.int64), rng=np.random.default_rng(0))
    refused = check_reports(oracle, damaged(fault, oracle, honest, fewer=False)).refused
    return list(refused) == [REFUSALS[fault].value]


def damaged(fault: Fault, oracle: FrequencyOracle, reports: Reports, *, fewer: bool) -> Reports:
    """Return a client's honest reports with a fault; as they are if they cannot have it.

    Args:
        fault: What goes wrong.
        oracle: Whose reports they are.
        reports: They, first axis one each; at least one.
        fewer: Whether a wrong number of them is one too few and not one too many.
    """
    form = oracle.report_form
    flat = reports.reshape(len(reports), -1).copy()
    if fault is Fault.NUMBER:
        return reports[1:] if fewer else np.concatenate([reports, reports[:1]])
    if fault is Fault.SIZE:
        return np.concatenate([flat, flat[:, -1:]], axis=1)
    if fault is Fault.TYPE:
        return reports.astype(np.float64 if form.dtype.kind in "iub" else np.int64)
    beyond = np.nan if form.dtype.kind == "f" else np.iinfo(form.dtype).max
    # The last report, so that those before it are in order.
    last = flat[-1]
    if fault is Fault.ROW and form.has_row:
        last[0] = beyond
    elif fault is Fault.DOMAIN:
        last[-1] = beyond
    elif fault is Fault.REPEATED and len(last) > 1:
        last[1] = last[0]
    return flat.reshape(reports.shape)


def faults_at(places: npt.NDArray[np.int64]) -> list[Fault]:
    """Return faults by their places in `FAULTS`."""
    return [FAULTS[place] for place in places.tolist()]
