"""BLENDER: clients who opt in to a trusted curator find the words, all together count them.

Source: Avent, Korolova, Zeber, Hovden, Livshits (2017), "BLENDER: enabling local search with a
hybrid differential privacy model", USENIX Security.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from annotated_types import Ge, Le

from fedhh.accounting.opt_in import OptInBlend, head_list_threshold, laplace_scale
from fedhh.accounting.rounds import PlannedRound
from fedhh.arrays import Floats, Ints
from fedhh.oracles import OracleSpec
from fedhh.protocol import Answers, Decision, Heard, RunState
from fedhh.questions.question import Question
from fedhh.server.blending import Shares, client_shares, opt_in_shares, with_floor
from fedhh.server.cohorts import Delta
from fedhh.server.local_discovery import LocalProtocol
from fedhh.server.trusted_aggregator import Curated
from fedhh.settings import Count, Items, Share
from fedhh.validation import SMALLEST_EPSILON, InputError
from fedhh.words.trie import Codes

_HEAD, _OPT_IN, _CLIENTS = 1, 2, 3
"""Layers of the one pass."""

_FEWEST = 2
"""Clients of a group: a variance needs two."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BlenderState:
    """Where a run of BLENDER stands; nothing in here but what the curator may publish.

    Attributes:
        head: ``(c, length) uint16``: the words of the head list, most frequent first.
        share: ``(c,) float64``: shares of the opt-in clients that contribute each; empty before.
        variance: ``(c,) float64``: of these estimates.
    """

    head: Codes
    share: Floats
    variance: Floats


@dataclass(frozen=True, kw_only=True)
class Blender(LocalProtocol, Curated):
    """Settings of BLENDER, for words.

    Some clients have opted in: they trust a curator with plain words, which publishes only what is
    differentially private. A part of them finds the head list, words whose noisy count exceeds a
    threshold; the rest of them counts the list's words, with noise. All other clients randomize
    what they say about the list. Both estimates of each word's share of clients are averaged by
    their inverse variances (`blending`).

    A run makes two promises, one to each group: see `fedhh.accounting.opt_in`. No client is in two
    groups. A word is on the list only if somebody holds it, so that precision is 1 by construction.

    Where this differs from the paper: there are words only, no URLs below them; and clients choose
    their B contributions among the list's words, with the dummy for what is left, as in all
    protocols here, where the paper sends a wildcard for every record that is not on the list.

    Attributes:
        clients_per_layer: Clients of all groups together; "auto" for the whole population.
        opt_in_share: Share of the clients that opted in.
        head_share: Share of those that finds the head list; the rest counts it.
        opt_in_epsilon: Central privacy of a client who opted in, for all it contributes.
        delta: Its delta.
        head_items: Words that a client contributes to finding the list, at most. The noise grows
            with it.
        max_words: Most words of the list.
        oracle: Randomizer of the other clients: "grr" (the paper's), or "ss".
    """

    name: ClassVar[str] = "blender"
    title: ClassVar[str] = "BLENDER"
    trust_model: ClassVar[str] = "hybrid"

    opt_in_share: Share = 0.05
    head_share: Share = 0.5
    opt_in_epsilon: Annotated[float, Ge(SMALLEST_EPSILON), Le(100)] = 4.0
    delta: Delta = 1e-10
    head_items: Items = 1
    max_words: Count = 500
    oracle: Literal["grr", "ss"] = "grr"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_one_round("whose groups are told apart by whom they trust")
        # Computed once here so that a delta without a threshold is refused before anything runs.
        _ = self.threshold

    @property
    def threshold(self) -> float:
        """Noisy count that a word of the head list exceeds."""
        epsilon, delta = self.opt_in_epsilon, self.delta
        return head_list_threshold(epsilon=epsilon, delta=delta, records=self.head_items)

    @property
    def head_scale(self) -> float:
        """Scale of the Laplace noise on counts of words as the list is made."""
        return laplace_scale(epsilon=self.opt_in_epsilon, records=self.head_items)

    @property
    def opt_in_scale(self) -> float:
        """Scale of the Laplace noise on counts of the list's words."""
        return laplace_scale(epsilon=self.opt_in_epsilon, records=self.max_items)

    def noise(self, layer: int, size: int, scale: float) -> Floats:
        """Return the curator's noise of a layer, ``(size,) float64``: one fixed draw for a run."""
        return self.noise_of(layer).laplace(scale=scale, size=size)

    @property
    def groups(self) -> tuple[int, int, int]:
        """Clients who find the list, who else opted in, and who did not."""
        clients = self.cohort_clients
        opted_in = round(clients * self.opt_in_share)
        head = round(opted_in * self.head_share)
        sizes = (head, opted_in - head, clients - opted_in)
        if min(sizes) < _FEWEST:
            raise InputError(
                f"Expected at least {_FEWEST} clients in each group, got {sizes[0]:,} that find "
                f"the list, {sizes[1]:,} that count it and {sizes[2]:,} that did not opt in, of "
                f"{clients:,}; change opt_in_share or head_share, or ask more clients."
            )
        return sizes

    @property
    def plan(self) -> OptInBlend:
        head, opt_in, clients = self.groups
        listed = 2, self.max_words + 1
        local = self.planned_reports(
            # Both groups that hear of the list are asked at the same time.
            [replace(self.planned_round(_CLIENTS, clients, *listed), opens_with_previous=True)],
            most_words=self.max_words,
            randomizers=(self._randomizer,),
        )
        words = self.plain_words().names.num_keys
        return OptInBlend(
            layers=(
                replace(
                    self.planned_round(_HEAD, head, words), max_items=self.head_items, padded=True
                ),
                # How many words a client who opted in holds is for nobody but the curator.
                replace(self.planned_round(_OPT_IN, opt_in, *listed), padded=True),
                *local.layers,
            ),
            opt_in_epsilon=self.opt_in_epsilon,
            opt_in_delta=self.delta,
            local=local,
        )

    def with_central_epsilon(
        self, epsilon: float, *, unit: Literal["item", "user"] = "user"
    ) -> Self:
        return replace(self, opt_in_epsilon=epsilon)

    def begin(self) -> BlenderState:
        return BlenderState(
            head=np.zeros((0, self.length), dtype=np.uint16),
            share=np.zeros(0),
            variance=np.zeros(0),
        )

    def ask(self, planned: PlannedRound, run: RunState) -> Question | None:
        """Return the broadcast to a group; None if the list is empty."""
        if planned.layer == _HEAD:
            return self.plain_words()
        if not len(run.own.head):
            return None
        plain = OracleSpec(name="none", epsilon=math.inf)
        return self.words_question(
            run.own.head, plain if planned.layer == _OPT_IN else self._randomizer
        )

    def hear(self, run: RunState, answers: Answers) -> Heard:
        """Return what a group's answers say; after the clients', the words with blended estimates.

        Estimates are blended shares, times the clients that did not opt in; their variances are
        the blended ones, in which who was drawn into the groups is a part.

        Of the first round, ``num_candidates`` are all strings that the alphabet allows: how many
        words the group holds is nobody's to know; its ``threshold_estimate`` is the curator's. The
        others drop nothing.
        """
        layer, own, clients = answers.planned.layer, run.own, answers.aggregate.num_clients
        if layer == _HEAD:
            question = answers.question
            head = self.head_list(question.channel.rows(question, answers.aggregate))
            decision = Decision(
                num_candidates=question.names.num_keys,
                num_kept=len(head),
                threshold_estimate=self.threshold,
                noise_std=math.sqrt(2) * self.head_scale,
                kept_by="estimates",
            )
            return Heard(own=replace(own, head=head), decision=decision)
        decision = answers.decision(kept_by="estimates")
        if layer == _OPT_IN:
            scale = self.opt_in_scale
            noisy = answers.votes + self.noise(_OPT_IN, len(answers.votes), scale)
            shares = opt_in_shares(noisy, num_clients=clients, scale=scale)
            shares = with_floor(shares, 2 * scale**2 / clients**2)
            own = replace(own, share=shares.share, variance=shares.variance)
            return Heard(own=own, decision=replace(decision, noise_std=math.sqrt(2) * scale))
        oracle, reports = answers.noise.oracle, answers.aggregate.num_reports
        local = client_shares(answers.votes, oracle, num_clients=clients, num_reports=reports)
        local = with_floor(local, float(oracle.variance(0, max(reports, 1))) / clients**2)
        blended = Shares(share=own.share, variance=own.variance).blend(local)
        order = np.argsort(-blended.share, kind="stable")
        share, variance = blended.share[order], blended.variance[order]
        found = answers.found(
            own.head[order],
            estimate=share * clients,
            variance=variance * clients**2,
            z=share / np.sqrt(variance),
        )
        return Heard(own=own, decision=decision, found=found)

    @property
    def _randomizer(self) -> OracleSpec:
        params = {"subset_size": "optimal"} if self.oracle == "ss" else {}
        return OracleSpec(name=self.oracle, epsilon=self.local_epsilon, params=params)

    def head_list(self, rows: Ints) -> Codes:
        """Return the words whose noisy count exceeds the threshold, most frequent first.

        Args:
            rows: ``(m, length + 1) int64``: a word's symbols, and how many clients send it; one for
                each word, by its key.

        Returns:
            ``(c, length) uint16``, at most ``max_words``.
        """
        noisy = rows[:, -1] + self.noise(_HEAD, len(rows), self.head_scale)
        order = np.argsort(-noisy, kind="stable")
        kept = order[noisy[order] > self.threshold][: self.max_words]
        return rows[kept, :-1].astype(np.uint16)
