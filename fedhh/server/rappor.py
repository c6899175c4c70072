"""RAPPOR: words as noisy Bloom filters, decoded with a list of candidates.

Source: Erlingsson, Pihur, Korolova (2014), "RAPPOR: randomized aggregatable privacy-preserving
ordinal response", CCS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge, Le

from fedhh.accounting.guarantees import epsilon_text
from fedhh.accounting.local_reports import LocalReports
from fedhh.accounting.sources import RAPPOR
from fedhh.arrays import Ints
from fedhh.oracles.bloom import BitResponse, BloomFilters, BloomReports
from fedhh.protocol import Answers, Heard
from fedhh.questions.blooms import Blooms
from fedhh.questions.names import StringNames
from fedhh.questions.question import Question
from fedhh.server.closed_domain import ClosedDomain
from fedhh.server.cohorts import RunSeed
from fedhh.server.one_question import OneQuestion
from fedhh.server.rappor_decoding import decode, judged_filters
from fedhh.settings import Share, ShareOrAll, ShareOrNone
from fedhh.validation import InputError
from fedhh.words.trie import Codes

_LARGEST_DESIGN = 2**27
"""Bits that all candidates set in all cohorts; the server looks each up, at about 20 ns."""


@dataclass(frozen=True, kw_only=True)
class RapporProtocol(OneQuestion):
    """A discovery by reports of whole words' Bloom filters, which says what candidates are in them.

    Attributes:
        bloom_bits: k, bits of a filter.
        bloom_hashes: h, hash functions of a cohort.
        bloom_cohorts: m, cohorts with functions of their own.
        familywise_error: Chance that any word is returned which no client holds, by Bonferroni's
            correction of the regression's p-values over all candidates.
        hash_seed: Seed of all hash functions; None for the run's, so that each run draws its own.
    """

    bloom_bits: Annotated[int, Ge(2), Le(2**16)] = 128
    bloom_hashes: Annotated[int, Ge(1), Le(64)] = 2
    bloom_cohorts: Annotated[int, Ge(1), Le(2**16)] = 64
    familywise_error: Share = 0.05
    hash_seed: RunSeed = None

    def word_reports(self, response: BitResponse, *, seed: int) -> BloomReports:
        """Return how whole words are reported, with hash functions of a seed."""
        filters = BloomFilters(
            num_bits=self.bloom_bits,
            num_hashes=self.bloom_hashes,
            num_cohorts=self.bloom_cohorts,
            hash_seed=seed,
        )
        return BloomReports(filters=filters, response=response)

    def looked_up(
        self, answers: Answers, reports: BloomReports, tally: Ints, codes: Codes
    ) -> Heard:
        """Return which candidates the sums of whole words' reports are made of.

        Args:
            answers: The round's.
            reports: How whole words are reported.
            tally: ``(tally_size,) int64``: their sums.
            codes: ``(c, width) uint16``: the candidates.
        """
        decoded = decode(reports, tally, answers.question.names.keys_of(codes))
        error = self.familywise_error
        return judged_filters(answers, reports, decoded, codes, familywise_error=error)


@dataclass(frozen=True, kw_only=True)
class Rappor(ClosedDomain, RapporProtocol):
    """Settings of RAPPOR, for one collection of reports, decoded with a list of candidates.

    A client sends, for each word it contributes, a cohort that it draws and the bits of the word's
    Bloom filter there, randomized. Clients need no list: they may report any word, and the server
    finds those of its list in the sums.

    Bits go through a permanent response, with chance f/2 each way, and an instantaneous one, with
    ``irr_p`` and ``irr_q``. f follows from ``local_epsilon``, which is the privacy of the report
    that is collected. The default is the paper's one-time RAPPOR, without the second step; that
    step costs accuracy, and pays where a device reports the same word again and again, which no
    round here asks for. What would bound all such reports is stated in a run's privacy section.

    Attributes:
        irr_p: Chance that a permanent 0 is sent as 1.
        irr_q: Chance that a permanent 1 is sent as 1.
    """

    name: ClassVar[str] = "rappor"
    title: ClassVar[str] = "RAPPOR"

    irr_p: ShareOrNone = 0.0
    irr_q: ShareOrAll = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        # Made once here so that an epsilon that cannot be had is refused.
        _ = self.response
        size = len(self.domain) * self.bloom_cohorts * self.bloom_hashes
        if size > _LARGEST_DESIGN:
            raise InputError(
                f"Expected candidates x bloom_cohorts x bloom_hashes <= {_LARGEST_DESIGN:,}, got "
                f"{len(self.domain):,} x {self.bloom_cohorts} x {self.bloom_hashes}; lower "
                "bloom_cohorts, or give fewer candidates."
            )

    @property
    def response(self) -> BitResponse:
        """What happens to a bit, so that one report has ``local_epsilon``."""
        return BitResponse.of_one_report(
            self.local_epsilon, num_hashes=self.bloom_hashes, p=self.irr_p, q=self.irr_q
        )

    @property
    def plan(self) -> LocalReports:
        num_words = len(self.domain)
        together = self.response.epsilon_of_all_reports(self.bloom_hashes)
        return self.planned_reports(
            self.repeated(num_words + 1),
            most_words=num_words,
            theorem=RAPPOR,
            note="One report is collected about each contribution. Any number of reports made from "
            f"the same permanent response would have epsilon {epsilon_text(together)} together.",
        )

    def question(self) -> Question:
        naming, hashing = self.seeds(2)
        names = StringNames.draw(self.symbols, length=self.longest_word, seed=naming)
        return self.asking(names, Blooms(reports=self.word_reports(self.response, seed=hashing)))

    def decode(self, answers: Answers) -> Heard:
        reports = answers.question.channel.reports
        return self.looked_up(answers, reports, answers.aggregate.tally, self.domain)
