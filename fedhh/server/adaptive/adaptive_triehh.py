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

from fedhh.accounting.rounds import PlannedRound
from fedhh.arrays import Floats, Ints
from fedhh.found import Found
from fedhh.oracles.base import PureVotes
from fedhh.oracles.client_votes import ClientVotes
from fedhh.protocol import Answers, Decision, Heard, RunState
from fedhh.questions.question import Question
from fedhh.server.adaptive import public_list
from fedhh.server.adaptive.character_model import (
    CharacterModel,
    PublicPrior,
    contexts,
    public_prior,
)
from fedhh.server.adaptive.cohorts import cohort_sizes, fitting_eta, share_noise
from fedhh.server.adaptive.trie_posterior import (
    CREDIBLE,
    LIKELY,
    PLAUSIBLE,
    Children,
    LayerEvidence,
    TriePosterior,
    likeliest,
)
from fedhh.server.evidence import Evidence, Limits
from fedhh.server.ldp_triehh import LdpTrieHH, LocalTrie
from fedhh.server.trie import EtaMax, TrieState
from fedhh.settings import AUTO, CountOrAuto, FromConfig, Share, ShareOrNone, decided
from fedhh.words.known_words import SCOWL70, KnownWords, language_list, named_list
from fedhh.words.languages import ENGLISH, check_language
from fedhh.words.trie import Codes, match_rows

_LIMIT, _LIMIT_OF_ROUND = 8.0, 5.0
"""The least share of clients to look for, in standard deviations of noise: over all clients where
each answers once, so that votes of several layers decide about a word; else over those of a round,
since the validation round decides alone."""
_DOMAINS_TRIED = 12
"""Sizes of a round's domain that limits of its chances are taken from."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AdaptiveState(TrieState):
    """Where a run stands; see `TrieState`.

    Attributes:
        belief: What is believed of the trie's last level.
        model: Of the next symbol.
        evidence: What clients said about found words who were asked after these were found.
    """

    belief: TriePosterior
    model: CharacterModel
    evidence: Evidence


@dataclass(frozen=True, kw_only=True)
class AdaptiveTrieHH(LocalTrie):
    """Settings of Adaptive TrieHH.

    Clients, B, epsilon and reports are those of `LdpTrieHH`. A layer keeps the prefixes that are
    likeliest to be held, by the votes of all layers so far. With a validation round, all layers
    after the one that found a word ask about it, too, where clients answer in one round: k holders
    would have a vote in each round that they share.

    Attributes:
        clients_per_layer: N, mean size of the cohorts of ``depth`` layers; "auto" divides the
            whole population. Each layer that asks has a size of its own.
        eta_max: Prefixes kept per layer; "auto" for as many as fit the clients, epsilon and B, see
            `cohorts.fitting_eta`. Words that end in a layer take no prefix's place.
        front_loaded: Ask most clients in the first layers, where prefixes are decided, and few
            where chains repeat themselves; otherwise cohorts are alike, which amplifies more. They
            always are where a client answers in several rounds.
        least_cohort: Fewest clients of a layer, and of the validation round; "auto" for the
            cohorts that `LdpTrieHH` with its default settings would have, of the same clients,
            alphabet and depth: then the central guarantee before the run is no weaker than its; 1
            where a client answers in several rounds.
            Without that limit (1), late layers are small and little amplified.
        known_words: See `CohortProtocol`; English by default.
        language: Of the clients, by its code. Its public words, which are "scowl70" in English, the
            known ones elsewhere, or the language's own list if none are known, are a prior of the
            next symbol, whose weight falls where it does not fit. Where devices do not know them,
            and words are validated, the first layer asks about one in eight of them, and later ones
            about all if at least one in a hundred is held often enough to be found.
        false_discovery_rate: See `CohortProtocol`.
        validation_share: See there; at least ``least_cohort`` clients.
    """

    name: ClassVar[str] = "adaptive-triehh"
    title: ClassVar[str] = "Adaptive TrieHH"

    eta_max: EtaMax | Literal["auto"] = AUTO  # type: ignore[assignment]
    front_loaded: bool = True
    least_cohort: CountOrAuto = AUTO
    known_words: Annotated[KnownWords, FromConfig("population.known")] = field(
        default_factory=lambda: named_list(SCOWL70)
    )
    language: Annotated[str, FromConfig("population.language")] = ENGLISH
    false_discovery_rate: ShareOrNone = 0.05
    validation_share: Share = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_language(self.language)

    @property
    def _answers_once(self) -> bool:
        return self.participation == "one-round"

    @property
    def asks_again(self) -> bool:
        """Whether layers ask about words that are found, too, whose votes validate them."""
        return self.validates and self._answers_once

    @property
    def num_cohorts(self) -> int:
        """As many as symbols, however many layers decide, so that N says what is asked in all."""
        return self.depth

    def resolve(self, num_clients: int) -> dict[str, Any]:
        """Return ``eta_max`` first, see `cohorts.fitting_eta`, and ``least_cohort`` next.

        If there are too many layers for cohorts as large as those of `LdpTrieHH`, all are alike.
        """
        if self.eta_max == AUTO:
            asked = num_clients if self._answers_once else num_clients * self.depth
            if self.clients_per_layer != AUTO:
                asked = min(asked, self.cohort_clients * self.depth)
            eta_max = fitting_eta(self.oracle_spec, max_items=self.max_items, num_clients=asked)
            return {"eta_max": eta_max}
        if self.least_cohort == AUTO:
            fitting = self._fitting_cohort(num_clients) if self._answers_once else 1
            return {"least_cohort": fitting}
        return super().resolve(num_clients)

    def _fitting_cohort(self, num_clients: int) -> int:
        """Return N of `LdpTrieHH` with its default settings, or less if more layers share it."""
        share = self.validation_share if self.validates else 0
        cohorts, layers = self.num_cohorts, self.rounds_per_pass
        asked, size = num_clients, int(num_clients * (1 - share)) // cohorts
        if self.clients_per_layer != AUTO:
            size = self.cohort_clients
            asked = min(asked, int(size * cohorts / (1 - share)))
        papers = LdpTrieHH(alphabet=self.alphabet, depth=self.depth)
        # If all cohorts are alike, with the validation round's share of the clients, or with less.
        alike = min(size * cohorts // layers, (asked - cohorts) // (layers + self.validates))
        return max(1, min(asked // papers.num_cohorts, alike))

    def kept_back(self, num_clients: int) -> float:
        """Return the validation round's clients of all; no fewer than any layer's."""
        share = super().kept_back(num_clients)
        return max(share, self._fewest_asked) if self.validates else share

    @property
    def num_validation_clients(self) -> int:
        """As in `CohortProtocol`, and no fewer than any layer's."""
        return max(super().num_validation_clients, self._fewest_asked)

    @property
    def fewest_validated(self) -> int:
        """As many as the fewest candidates of a layer: no domain is smaller than a layer's."""
        return max(self.symbols.size, self.fewest_candidates)

    def cohort_size(self, pass_index: int, layer: int) -> int:
        return self._cohort_sizes[layer - self._first_layer]

    @property
    def _fewest_asked(self) -> int:
        return decided(self.least_cohort, "least_cohort")

    @cached_property
    def _first_layer(self) -> int:
        return self.initial()[0].length

    @cached_property
    def _cohort_sizes(self) -> tuple[int, ...]:
        total = self.cohort_clients * self.num_cohorts
        least = self._fewest_asked
        return cohort_sizes(
            self.rounds_per_pass, total, front_loaded=self.front_loaded, least=least
        )

    def begin(self) -> TrieState:
        state = super().begin()
        model = CharacterModel.new(self.symbols.size, has_public=bool(self._public_list.words))
        return AdaptiveState(
            **vars(state),
            belief=TriePosterior.before_any_vote(state.trie.width),
            model=model,
            evidence=Evidence.nothing(0, self._limits),
        )

    def ask(self, planned: PlannedRound, run: RunState) -> Question | None:
        question = super().ask(planned, run)
        if question is None or not self.validates:
            return question
        asked = [question.names.finished]
        if planned.layer == self._first_layer:
            asked.append(self._sampled_list)
        if self.asks_again:
            asked.append(run.found.codes)
        names = replace(question.names, finished=np.concatenate(asked))
        return self.votes_question(names, self.oracle_spec)

    def hear(self, run: RunState, answers: Answers) -> Heard:
        state, question = run.own, answers.question
        noise, every = answers.noise, answers.votes
        votes = every[: question.names.num_extensions + len(state.finished)]
        seen = self._seen(answers, votes)
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
            least=CREDIBLE if self.asks_again else PLAUSIBLE if self.validates else LIKELY,
        )
        evidence = state.evidence
        if self.asks_again:
            carried = every[len(votes) : len(votes) + len(run.found.codes)]
            most = self.most_reports(answers.planned)
            evidence = evidence.with_votes(noise, carried, most)
        found = self._new_candidates(run, answers, chosen.words)
        evidence = evidence.and_nothing(len(found.codes))
        if not len(chosen.prefixes):
            # What ends a pass before its last layer may be votes for the words.
            for each in self.plan.layers:
                if each.layer > question.layer and not each.validates:
                    evidence = evidence.without_round(self.most_reports(each))
        kept = np.sort(np.concatenate([chosen.prefixes, chosen.words]))
        survived = votes[kept]
        decision = Decision(
            num_candidates=question.num_candidates,
            num_kept=len(chosen.prefixes) + len(found.codes),
            threshold=int(survived.min()) if len(survived) else int(votes.max()) + 1,
            noise_std=noise.std,
            kept_by="posterior",
        )
        heard = self.extended(
            run,
            answers,
            kept,
            found,
            decision,
            belief=children.posterior(chosen.prefixes),
            model=state.model.after(numbers, distributions, children.held.reshape(-1, size)),
            evidence=evidence,
        )
        return replace(heard, posterior=chosen.posterior)

    def earlier_evidence(self, run: RunState) -> Evidence:
        evidence: Evidence = run.own.evidence
        return evidence

    @cached_property
    def _limits(self) -> Limits | None:
        """Of some of the domains that each layer and the validation round may have."""
        if not self.asks_again:
            return None
        oracles: list[PureVotes] = []
        for each in self.plan.layers:
            ends = each.smallest_domain, each.largest_domain
            for size in np.unique(np.geomspace(*ends, _DOMAINS_TRIED).astype(np.int64)).tolist():
                oracle = self._oracle(size)
                one = self.votes_per_client == "one"
                votes = ClientVotes(oracle=oracle, max_items=self.max_items) if one else oracle
                oracles.append(votes)
        return Limits.of(oracles)

    def _new_candidates(self, run: RunState, answers: Answers, words: Ints) -> Found:
        """Return the words that a layer makes candidates of the validation round."""
        found = self.words_found(answers, words)
        # What was listed is asked about already.
        (new,) = np.nonzero(match_rows(found.codes, run.found.codes) < 0)
        found = found.only(new)
        if answers.planned.layer == self._first_layer:
            found = found.append(self._listed_found(answers, found.codes))
        # Before the loop does it, since there is evidence for each.
        return self.unknown_of(found)

    def _seen(self, answers: Answers, votes: Ints) -> LayerEvidence:
        return LayerEvidence.of_votes(
            votes,
            answers.noise.oracle,
            num_clients=answers.aggregate.num_clients,
            num_reports=answers.noise.num_reports,
            limit=self._least_share,
        )

    def _public_distribution(self, prefixes: Codes) -> Floats | None:
        return None if self._public is None else self._public.distribution(prefixes)

    @cached_property
    def _listed(self) -> Codes:
        width = self.depth + 1
        public = self._public_list
        if not (self.validates and public.words) or public == self.known_words:
            return np.zeros((0, width), dtype=np.uint16)
        return public_list.listed_words(public.words, self.symbols, width)

    @cached_property
    def _sampled_list(self) -> Codes:
        return public_list.sample_of(self._listed, longer_than=self._first_layer)

    def _listed_found(self, answers: Answers, known: Codes) -> Found:
        """Return the listed words that the first layer makes candidates: some sampled, or all."""
        first = answers.question.names.num_extensions + len(self.initial()[1])
        votes = answers.votes[first : first + len(self._sampled_list)]
        findable = public_list.findable(self._seen(answers, votes))
        if public_list.pays(findable):
            unknown = self._listed[match_rows(self._listed, known) < 0]
            return answers.found(unknown)
        (likely,) = np.nonzero(findable > public_list.CREDIBLE)
        return answers.counted(self._sampled_list[likely], votes[likely])

    def domains(self) -> list[tuple[int, int, int]]:
        """Return, for each layer that asks, its fewest and its most values, the dummy included."""
        trie, finished = self.initial()
        size = self.symbols.size
        most = trie.width * size + len(finished)
        first = most + len(self._sampled_list) + 1
        domains = [(trie.length, first, first)]
        words = trie.width + len(finished) + len(self._listed)
        for layer in range(trie.length + 1, self.depth + 1):
            carried = words if self.asks_again else 0
            domains.append((layer, size + 1, self.most_kept * size + carried + 1))
            words += self.most_kept
        return domains

    @property
    def most_found(self) -> int:
        trie, finished = self.initial()
        first = trie.width + len(finished) + len(self._listed)
        return first + (self.rounds_per_pass - 1) * self.most_kept

    @cached_property
    def _public(self) -> PublicPrior | None:
        if not self._public_list.words:
            return None
        return public_prior(self._public_list.words, self.symbols)

    @property
    def _public_list(self) -> KnownWords:
        own = self.known_words
        if own.language == self.language != ENGLISH:
            return own
        return language_list(self.language) or own

    @cached_property
    def _least_share(self) -> float:
        plan, limit = self.plan, _LIMIT if self._answers_once else _LIMIT_OF_ROUND
        asked = plan.most_answers if self._answers_once else plan.smallest_cohort
        return limit * share_noise(self.oracle_spec, max_items=self.max_items, num_clients=asked)
