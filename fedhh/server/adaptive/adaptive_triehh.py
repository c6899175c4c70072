"""Adaptive TrieHH: the clients and the local privacy of LDP TrieHH, and another server.

To Sun et al. (2024), Algorithm 2, it adds: a posterior over all layers (`trie_posterior`), larger
cohorts where prefixes are decided, votes of later layers about words that have ended, and a
validation round (`evidence`). The local epsilon is the same, the central one by default no larger
(`least_cohort`); uploads and broadcasts are larger. What each part brings:
docs/adaptive-triehh.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le

from fedhh.accounting.plan import PlannedRound
from fedhh.found import Found
from fedhh.oracles.client_votes import ClientVotes
from fedhh.oracles.families import PureVotes
from fedhh.protocol import Decision, Heard, RunState
from fedhh.questions.question import Aggregate
from fedhh.questions.reports import VoteQuestion
from fedhh.server.adaptive import public_list
from fedhh.server.adaptive.character_model import (
    LONGEST_CONTEXT,
    CharacterModel,
    PublicPrior,
    contexts,
    public_prior,
)
from fedhh.server.adaptive.cohorts import AdaptiveCohorts, fitting_eta, share_noise
from fedhh.server.adaptive.state import AdaptiveState
from fedhh.server.adaptive.trie_posterior import Children, LayerEvidence, TriePosterior, likeliest
from fedhh.server.evidence import Evidence, Limits
from fedhh.server.local_discovery import FalseDiscoveryRate
from fedhh.server.noise import Noise, counted
from fedhh.server.pruning import top_eta
from fedhh.server.trie import EtaMax, LayerVotes, TrieState
from fedhh.settings import AUTO, FromConfig, Passes
from fedhh.validation import InputError
from fedhh.words.alphabet import END
from fedhh.words.known_words import SCOWL70, KnownWords, language_list, named_list
from fedhh.words.languages import ENGLISH, check_language
from fedhh.words.rows import match_rows
from fedhh.words.trie import Codes

_LIMIT = 8.0
"""The least share of clients to look for, in standard deviations of noise over all clients."""
_DOMAINS_TRIED = 12
"""Sizes of a round's domain that limits of its chances are taken from."""


@dataclass(frozen=True, kw_only=True)
class AdaptiveTrieHH(AdaptiveCohorts):
    """Settings of Adaptive TrieHH.

    Clients, B, epsilon and reports are those of `LdpTrieHH`, and nobody is asked twice. What is
    beyond it can be turned off one by one; without all of it, results are those of `LdpTrieHH`.

    Attributes:
        passes: Tries built one after the other; 1 with a posterior, which would gain nothing.
        clients_per_layer: N, mean size of the cohorts of ``depth`` layers; "auto" divides the
            whole population. With front-loaded cohorts, each layer has a size of its own.
        eta_max: Prefixes kept per layer; "auto" for as many as fit the clients, epsilon and B, see
            `cohorts.fitting_eta`.
        terminated_beyond_eta: Words that end in a layer take no prefix's place.
        requery_words: Ask about found words in all later layers too, so that more clients than the
            validation round's say whether they are real; needs a posterior and a validation round.
        public_words: What the prior of the next symbol is counted on: the public words of the
            "language", "scowl70", which are English, or "none"; its mixture weight falls where it
            does not fit. Needs a posterior.
        public_context: By how many preceding symbols these are counted, at most.
        known_words: See `CohortProtocol`; English by default, as the public words are.
        language: Of the clients, by its code. Public words are "scowl70" in English; elsewhere they
            are the known ones, or the language's own list if none are known.
        ask_public_words: Ask about one in eight of the public words themselves in the first layer,
            and about all of them in later ones if at least one in a hundred is held often enough
            to be found; only where devices do not know them, and words are re-queried.
        learn_symbols: Learn which symbols follow which from the layers' tallies; needs a posterior.
        false_discovery_rate: See `LdpTrieHH`.
    """

    name: ClassVar[str] = "adaptive-triehh"
    title: ClassVar[str] = "Adaptive TrieHH"

    eta_max: EtaMax | Literal["auto"] = AUTO  # type: ignore[assignment]
    passes: Passes = 1
    terminated_beyond_eta: bool = True
    requery_words: bool = True
    public_words: Literal["language", "scowl70", "none"] = "language"
    public_context: Annotated[int, Ge(0), Le(LONGEST_CONTEXT)] = 4
    known_words: Annotated[KnownWords, FromConfig("population.known")] = field(
        default_factory=lambda: named_list(SCOWL70)
    )
    language: Annotated[str, FromConfig("population.language")] = ENGLISH
    ask_public_words: bool = True
    learn_symbols: bool = True
    false_discovery_rate: FalseDiscoveryRate = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        check_language(self.language)
        if not self.has_posterior:
            return
        for setting, value, wanted in (
            ("passes", self.passes, 1),
            ("participation", self.participation, "one-round"),
        ):
            if value != wanted:
                raise InputError(
                    f"Expected {setting}={wanted} with ranking='posterior', got {setting}={value}; "
                    "set ranking='votes' for others."
                )

    def resolve(self, num_clients: int) -> dict[str, Any]:
        """Return ``eta_max`` first, see `cohorts.fitting_eta`."""
        if self.eta_max != AUTO:
            return super().resolve(num_clients)
        asked = num_clients
        if self.clients_per_layer != AUTO:
            asked = min(asked, self.cohort_clients * self.depth)
        eta_max = fitting_eta(self.oracle_spec, max_items=self.max_items, num_clients=asked)
        return {"eta_max": eta_max}

    def keep(
        self, votes: npt.NDArray[np.int64], noise: Noise, question: VoteQuestion
    ) -> tuple[npt.NDArray[np.int64], int]:
        """Return which candidates a layer keeps by votes; words may be kept besides the best."""
        if not self.terminated_beyond_eta:
            return super().keep(votes, noise, question)
        numbers = np.arange(len(votes))
        is_word = (numbers >= question.names.num_extensions) | (
            numbers % question.names.trie.alphabet_size == END
        )
        prefixes = numbers[~is_word]
        kept, threshold = top_eta(votes[prefixes], self.most_kept, ties=self.ties)
        words = numbers[is_word & (votes >= threshold)]
        return np.sort(np.concatenate([prefixes[kept], words])), threshold

    def begin(self) -> TrieState:
        state = super().begin()
        if not self.has_posterior:
            return state
        model = CharacterModel.new(
            self.symbols.size, learns=self.learn_symbols, has_public=bool(self._public_list.words)
        )
        return AdaptiveState(
            **vars(state),
            belief=TriePosterior.before_any_vote(state.trie.width),
            model=model,
            evidence=Evidence.nothing(0),
        )

    def ask(self, planned: PlannedRound, run: RunState[TrieState]) -> VoteQuestion | None:
        question = super().ask(planned, run)
        if question is None or not (self.has_posterior and self._carries):
            return question
        asked = [question.names.finished, run.found.codes]
        if planned.layer == self._first_layer:
            asked.insert(1, self._sampled_list)
        names = replace(question.names, finished=np.concatenate(asked))
        return self.votes_question(names, self.oracle_spec)

    def hear(
        self,
        planned: PlannedRound,
        run: RunState[TrieState],
        question: VoteQuestion,
        aggregate: Aggregate,
    ) -> Heard[TrieState]:
        if not self.has_posterior:
            return super().hear(planned, run, question, aggregate)
        state = self._belief(run)
        layer = LayerVotes.of(question, aggregate)
        noise, every = layer.noise, layer.votes
        votes = every[: question.names.num_extensions + len(state.finished)]
        seen = self._seen(votes, noise, aggregate)
        size = question.alphabet.size
        ends = question.names.trie.spell(np.arange(question.names.trie.width) * size)[:, :-1]
        numbers = contexts(ends, size)
        distributions = state.model.distributions(numbers, self._public_distribution(ends))
        children = Children.after_votes(
            state.belief, seen, state.model.mixed(distributions), length=question.names.trie.length
        )
        chosen = likeliest(
            children,
            seen,
            num_short=len(state.finished),
            most_kept=self.most_kept,
            terminated_beyond_eta=self.terminated_beyond_eta,
            validates=self.validates,
        )
        evidence = state.evidence
        if self._carries:
            carried = every[len(votes) : len(votes) + len(run.found.codes)]
            evidence = evidence.with_votes(
                noise,
                carried,
                aggregate.num_clients,
                limits=self.limits,
                planned=self.most_reports(planned),
            )
        kept = chosen.prefixes
        found = self._new_candidates(run, layer, chosen.words)
        trie = question.names.trie.extend(kept)
        is_over = question.layer == self.depth or trie.width == 0
        evidence = evidence.and_nothing(len(found.codes))
        if is_over and self.limits is not None:
            # What ends a pass before its last layer may be votes for the words.
            for each in self.plan.layers:
                if each.layer > question.layer and not each.validates:
                    evidence = evidence.without_round(self.limits, self.most_reports(each))
        words = chosen.words[chosen.words < question.names.num_extensions]
        extensions = np.union1d(kept, words)
        shares, exceeding = layer.compared(state, extensions)
        survived = votes[np.concatenate([kept, chosen.words])]
        return Heard(
            own=replace(
                state,
                # Behind the last layer no round asks.
                layer=self.depth + 1 if is_over else question.layer + 1,
                trie=trie,
                finished=state.finished[:0],
                shares=shares,
                belief=children.posterior(kept),
                model=state.model.after(numbers, distributions, children.held.reshape(-1, size)),
                evidence=evidence,
            ),
            decision=Decision(
                num_candidates=question.num_candidates,
                num_kept=len(kept) + len(found.codes),
                threshold=int(survived.min()) if len(survived) else int(votes.max()) + 1,
                noise_std=noise.std,
                kept_by="posterior",
                num_exceeding=exceeding,
            ),
            found=found,
            kept=None if is_over else trie.levels[-1],
            posterior=chosen.posterior,
        )

    def earlier_evidence(self, own: TrieState) -> Evidence | None:
        if not (self.has_posterior and self._carries):
            return None
        assert isinstance(own, AdaptiveState)
        return own.evidence

    @property
    def limits(self) -> Limits | None:
        return self._limits if self.has_posterior and self._carries else None

    @cached_property
    def _limits(self) -> Limits:
        """Of some of the domains that each layer and the validation round may have."""
        oracles: list[PureVotes] = []
        for each in self.plan.layers:
            ends = each.smallest_domain, each.largest_domain
            for size in np.unique(np.geomspace(*ends, _DOMAINS_TRIED).astype(np.int64)).tolist():
                oracle = self._oracle(size)
                one = self.votes_per_client == "one"
                votes = ClientVotes(oracle=oracle, max_items=self.max_items) if one else oracle
                oracles.append(votes)
        return Limits.of(oracles)

    def _belief(self, run: RunState[TrieState]) -> AdaptiveState:
        assert isinstance(run.own, AdaptiveState)
        return run.own

    def _new_candidates(
        self, run: RunState[TrieState], layer: LayerVotes, words: npt.NDArray[np.int64]
    ) -> Found:
        """Return the words that a layer makes candidates of the validation round."""
        found = layer.found(words, self.depth)
        found = self.with_reported(found, words, layer.noise, layer.votes)
        # What was listed is asked about already.
        (new,) = np.nonzero(match_rows(found.codes, run.found.codes) < 0)
        found = found.only(new)
        if layer.question.layer == self._first_layer:
            found = found.append(self._listed_found(layer, found.codes))
        # Before the loop does it, since there is evidence for each.
        return self.unknown_of(found)

    def _seen(
        self, votes: npt.NDArray[np.int64], noise: Noise, aggregate: Aggregate
    ) -> LayerEvidence:
        return LayerEvidence.of_votes(
            votes,
            noise.oracle,
            num_clients=aggregate.num_clients,
            num_reports=noise.num_reports,
            limit=_LIMIT * self._share_noise,
        )

    def _public_distribution(self, prefixes: Codes) -> npt.NDArray[np.float64] | None:
        return None if self._public is None else self._public.distribution(prefixes)

    @cached_property
    def _listed(self) -> Codes:
        width = self.depth + 1
        public = self._public_list
        asks = self.ask_public_words and public.words and public != self.known_words
        if not (asks and self.has_posterior and self._carries):
            return np.zeros((0, width), dtype=np.uint16)
        return public_list.listed_words(public.words, self.symbols, width)

    @cached_property
    def _sampled_list(self) -> Codes:
        return public_list.sample_of(self._listed, longer_than=self._first_layer)

    def _listed_found(self, layer: LayerVotes, known: Codes) -> Found:
        """Return the listed words that the first layer makes candidates: some sampled, or all."""
        question, aggregate = layer.question, layer.aggregate
        first = question.names.num_extensions + len(self.initial()[1])
        votes = layer.votes[first : first + len(self._sampled_list)]
        findable = public_list.findable(self._seen(votes, layer.noise, aggregate))
        if public_list.pays(findable):
            return Found.in_round(question, self._listed[match_rows(self._listed, known) < 0])
        (likely,) = np.nonzero(findable > public_list.CREDIBLE)
        codes, support = self._sampled_list[likely], votes[likely]
        return counted(question, aggregate, layer.noise, codes=codes, support=support)

    def domains(self) -> list[tuple[int, int, int]]:
        """Return, for each layer that asks, its fewest and its most values, the dummy included."""
        if not self.has_posterior:
            return super().domains()
        trie, finished = self.initial()
        size = self.symbols.size
        most = trie.width * size + len(finished)
        first = most + len(self._sampled_list) + 1
        domains = [(trie.length, first, first)]
        words = trie.width + len(finished) + len(self._listed)
        for layer in range(trie.length + 1, self.depth + 1):
            carried = words if self._carries else 0
            domains.append((layer, size + 1, self.most_kept * size + carried + 1))
            words += self.most_kept
        return domains

    @property
    def most_found(self) -> int:
        if not self.has_posterior:
            return super().most_found
        trie, finished = self.initial()
        first = trie.width + len(finished) + len(self._listed)
        return first + (self.rounds_per_pass - 1) * self.most_kept

    @property
    def _carries(self) -> bool:
        return self.requery_words and self.validates

    @cached_property
    def _public(self) -> PublicPrior | None:
        if not self._public_list.words:
            return None
        return public_prior(self._public_list.words, self.symbols, self.public_context)

    @property
    def _public_list(self) -> KnownWords:
        if self.public_words != "language":
            return named_list(self.public_words)
        own = self.known_words
        if own.language == self.language != ENGLISH:
            return own
        return language_list(self.language) or own

    @cached_property
    def _share_noise(self) -> float:
        """See `share_noise`, of all clients together."""
        asked = sum(self._cohort_sizes) + (self.num_validation_clients if self.validates else 0)
        return share_noise(self.oracle_spec, max_items=self.max_items, num_clients=asked)
