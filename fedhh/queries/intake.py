"""The intake of a round: which of the answers that arrive a server counts, and why no others.

An answer arrives in an envelope, with its client's token. The rules, in this order:

1. An answer to another round than the one that is open is refused: it is stale.
2. One with a token that no client of the cohort has is refused.
3. Of a client's answers, the first that is accepted counts; every later one is refused.
4. An answer with a malformed report is refused as a whole, see `fedhh.oracles.report_checks`.
5. So is one with a wrong number of reports: as many as each client sends, or, where clients do not
   fill up, more than that.

Nothing is mended, and nothing raises: an answer is accepted or refused, so accepted and refused
ones add up to those received. The rules read no more than a server can: the envelope, the reports
in it, and what the round has accepted so far.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.oracles import FrequencyOracle, make_oracle
from fedhh.oracles.report_checks import FLAWS, Flaw, check_reports, is_plain_array
from fedhh.queries.base import Aggregate, PrefixQuery, Query
from fedhh.queries.refusals import IntakeCounts, Refusal
from fedhh.queries.sets import HeldSetQuery
from fedhh.queries.sketches import BlindPrefixQuery

Reports = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Envelope:
    """What arrives from a client; a client can put anything into each field.

    Attributes:
        token: Which client of the round's cohort, from 0: it cannot be guessed or copied, which is
            for whoever hands tokens out to see to.
        pass_index: The pass that it answers.
        layer: The layer that it answers.
        reports: Its reports, first axis one each.
    """

    token: object
    pass_index: object
    layer: object
    reports: object


def oracle_of_reports(query: Query) -> FrequencyOracle | None:
    """Return the oracle whose reports answer a query; None of a kind whose answers are others."""
    if type(query) is PrefixQuery:
        return make_oracle(query.oracle, query.domain_size)
    if isinstance(query, HeldSetQuery):
        return query.randomizer
    return query.prefixes if type(query) is BlindPrefixQuery else None


def reports_per_client(query: Query) -> int:
    """Return how many reports a client sends: exactly, or at most where it does not fill up."""
    return 1 if isinstance(query, HeldSetQuery) else query.max_items


class Intake:
    """Takes the answers to one query.

    Of a kind of query whose answers are no oracle's reports, the envelope's rules alone hold, and
    what is accepted is counted and not summed.
    """

    def __init__(self, query: Query) -> None:
        """Open the round of a query."""
        self._query = query
        self._oracle = oracle_of_reports(query)
        self._answered: set[int] = set()
        self._accepted: list[Reports] = []
        self._counts = IntakeCounts()

    @property
    def counts(self) -> IntakeCounts:
        """What became of the answers so far."""
        return self._counts

    @property
    def aggregate(self) -> Aggregate:
        """What the accepted answers add up to."""
        query, oracle = self._query, self._oracle
        aggregate = replace(Aggregate.empty(query.tally_size), num_clients=self._counts.accepted)
        if oracle is None or not self._accepted:
            return aggregate
        reports = np.concatenate(self._accepted)
        aggregate = replace(aggregate, num_reports=len(reports))
        if isinstance(query, BlindPrefixQuery) and oracle.aggregate_form != "sketch":
            return replace(aggregate, messages=reports)
        tally = oracle.aggregate(reports)
        if isinstance(query, PrefixQuery) and oracle.aggregate_form != "values":
            tally = oracle.support(tally)
        return replace(aggregate, tally=tally)

    def note_answered(self, tokens: Iterable[int]) -> None:
        """Take note of clients whose answers are accepted elsewhere: others of them are refused."""
        self._answered.update(tokens)

    def receive(self, envelopes: Sequence[Envelope]) -> None:
        """Accept or refuse some answers, in the order in which they arrive."""
        reasons = [self._reason_of_address(each) for each in envelopes]
        addressed = [place for place, reason in enumerate(reasons) if reason is None]
        flaws = self._flaws([envelopes[place].reports for place in addressed])
        for place, flaw in zip(addressed, flaws, strict=True):
            token: Any = envelopes[place].token
            reasons[place] = Refusal.SECOND if token in self._answered else flaw
            if reasons[place] is None:
                self._answered.add(int(token))
                if self._oracle is not None:
                    self._accepted.append(np.asarray(envelopes[place].reports))
        refused = Counter(reason for reason in reasons if reason is not None)
        self._counts = self._counts.merge(
            IntakeCounts(
                received=len(envelopes), accepted=reasons.count(None), refused=dict(refused)
            )
        )

    def _reason_of_address(self, envelope: Envelope) -> Refusal | None:
        """Return why an answer is refused by the envelope's address and sender, if it is."""
        query = self._query
        place, token = (envelope.pass_index, envelope.layer), envelope.token
        if not all(map(_is_number, place)) or place != (query.pass_index, query.layer):
            return Refusal.STALE
        known = _is_number(token) and 0 <= token < query.cohort.size  # type: ignore[operator]
        return None if known else Refusal.NOT_ASKED

    def _flaws(self, answers: Sequence[object]) -> list[Refusal | None]:
        """Return what is wrong with the reports of each of some answers, None for nothing."""
        oracle = self._oracle
        if oracle is None:
            return [None] * len(answers)
        form = oracle.report_form
        flaws: list[Refusal | None] = []
        arrays = []
        for answer in answers:
            flaw = form.flaw_of_array(answer) if is_plain_array(answer) else Flaw.TYPE
            flaws.append(None if flaw is None else Refusal(flaw))
            arrays.append(np.asarray(answer) if flaw is None else None)
        whole = [(place, array) for place, array in enumerate(arrays) if array is not None]
        if not whole:
            return flaws
        # All answers' reports are checked at once.
        codes = check_reports(oracle, np.concatenate([array for _, array in whole])).codes
        ends = np.cumsum([len(array) for _, array in whole])
        for (place, array), own in zip(whole, np.split(codes, ends[:-1]), strict=True):
            malformed = own[own > 0]
            if len(malformed):
                flaws[place] = Refusal(FLAWS[malformed[0] - 1])
            elif not self._is_right_number(len(array)):
                flaws[place] = Refusal.NUMBER
        return flaws

    def _is_right_number(self, number: int) -> bool:
        most = reports_per_client(self._query)
        return number == most if self._query.pad else number <= most


def _is_number(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
