"""The validation round: a last cohort votes on the found words, and those return that stand out."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fedhh.accounting.rounds import PlannedRound
from fedhh.found import Found
from fedhh.protocol import Answers, Heard, RunState
from fedhh.questions.question import Question

if TYPE_CHECKING:
    from fedhh.server.local_discovery import CohortProtocol


@dataclass(frozen=True)
class Validation:
    """What asks and hears the validation round of a local protocol.

    Attributes:
        protocol: Whose words it tests.
    """

    protocol: CohortProtocol

    def ask(self, planned: PlannedRound, run: RunState) -> Question | None:
        """Return a broadcast of the found words to vote on; None if there is no word."""
        codes, protocol = run.found.codes, self.protocol
        return protocol.words_question(codes, protocol.validation_oracle) if len(codes) else None

    def hear(self, run: RunState, answers: Answers) -> Heard:
        """Return the words that the votes let through."""
        protocol, noise, votes = self.protocol, answers.noise, answers.votes
        earlier, most = protocol.earlier_evidence(run), protocol.most_reports(answers.planned)
        accepted, chosen = earlier.with_votes(noise, votes, most).accepted(
            self._estimated(run.found, answers),
            protocol.false_discovery_rate,
            support=noise.oracle.p,
            anonymity_k=protocol.anonymity_k,
        )
        if (how := protocol.post_processing) != "none":
            # Intervals are about estimates without it.
            estimate = answers.processed(votes, how)[chosen]
            unknown = np.full(len(estimate), math.nan)
            accepted = replace(accepted, estimate=estimate, interval_z=unknown)
        decision = answers.decision(
            threshold=int(votes[chosen].min()) if chosen.any() else int(votes.max()) + 1,
            num_candidates=len(votes),
            num_kept=len(accepted.codes),
            kept_by="validation" if earlier.limits is None else "evidence",
        )
        # Votes of several rounds decide together.
        z = decision.threshold_z if earlier.limits is None else math.nan
        return Heard(
            own=run.own,
            decision=replace(decision, threshold_z=z),
            found=accepted,
        )

    def _estimated(self, found: Found, answers: Answers) -> Found:
        """Return the words with this round's estimates alone.

        Here a client's B contributions are about words only, so that fewer are left unsaid than
        where prefixes compete with them.
        """
        noise, clients = answers.noise, answers.aggregate.num_clients
        estimate = noise.estimate(answers.votes)
        held = np.clip(estimate, 0, max(clients, 1))
        return replace(
            found,
            estimate=estimate,
            variance=np.asarray(noise.oracle.variance(held, max(noise.num_reports, 1))),
            num_clients=np.full(len(estimate), clients),
        )
