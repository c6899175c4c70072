"""The validation round: a last cohort votes on the found words, and those return that stand out."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fedhh.accounting.rounds import PlannedRound
from fedhh.protocol import Answers, Heard, RunState
from fedhh.questions.reports import VoteQuestion
from fedhh.server.evidence import Evidence
from fedhh.words.rows import match_rows

if TYPE_CHECKING:
    from fedhh.server.local_discovery import CohortProtocol


@dataclass(frozen=True)
class Validation:
    """What asks and hears the validation round of a local protocol.

    Attributes:
        protocol: Whose words it tests.
    """

    protocol: CohortProtocol[Any, Any]

    def ask(self, planned: PlannedRound, run: RunState[Any]) -> VoteQuestion | None:
        """Return a broadcast of the found words to vote on; None if there is no word."""
        codes, protocol = run.found.codes, self.protocol
        if not len(codes):
            return None
        short = np.zeros((protocol.symbols.size, codes.shape[1]), dtype=np.uint16)
        short[:-1, 0] = np.arange(1, len(short))
        missing = max(0, protocol.fewest_validated - len(codes))
        filling = short[match_rows(short, codes) < 0][:missing]
        return protocol.words_question(np.concatenate([codes, filling]), protocol.validation_oracle)

    def hear(self, run: RunState[Any], answers: Answers[VoteQuestion]) -> Heard[Any]:
        """Return the words that the votes let through."""
        protocol, noise, clients = self.protocol, answers.noise, answers.aggregate.num_clients
        votes = answers.votes[: len(run.found.codes)]
        validation = Evidence.nothing(len(votes)).with_votes(noise, votes, clients)
        earlier = protocol.earlier_evidence(run.own)
        limits = None if earlier is None else protocol.limits
        evidence = validation
        if earlier is not None:
            most = protocol.most_reports(answers.planned)
            evidence = earlier.with_votes(noise, votes, clients, limits=limits, planned=most)
        accepted, chosen = evidence.accepted(
            run.found,
            protocol.false_discovery_rate,
            validation=validation,
            anonymity_k=protocol.anonymity_k,
            limits=limits,
        )
        decision = answers.decision(
            threshold=int(votes[chosen].min()) if chosen.any() else int(votes.max()) + 1,
            num_candidates=len(votes),
            num_kept=len(accepted.codes),
            kept_by="validation" if earlier is None else "evidence",
        )
        # Votes of several rounds decide together; words that fill up the domain are no candidates.
        z = decision.threshold_z if earlier is None else math.nan
        return Heard(
            own=run.own,
            decision=replace(decision, threshold_z=z, num_candidates=len(answers.votes)),
            found=protocol.with_reported(accepted, chosen, noise, votes),
        )
