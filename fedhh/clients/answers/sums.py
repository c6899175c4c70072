"""Answers to questions for noisy sums: plain votes, and the noise that is in the sum."""

from __future__ import annotations

import numpy as np

from fedhh.clients.answers.base import BlockCounts, WordValues
from fedhh.clients.answers.matching import Values, WordMatcher
from fedhh.clients.answers.prefixes import PrefixAnswerer
from fedhh.clients.populations.coded_words import coded_words
from fedhh.clients.populations.population import ClientBlock
from fedhh.kernels.sampling import choose_contributions
from fedhh.questions.sums import SecretSharedQuestion, SecureSumQuestion
from fedhh.random import Stream, generator
from fedhh.words.lexicon import Lexicon

_BEFORE_ALL = 0
"""The layer whose randomness chooses what is uploaded once for all layers."""


class SecureSumAnswerer(PrefixAnswerer):
    """Adds up votes and noise shares of those clients that do not drop out.

    The shares of a block's clients are drawn as their sum, which has the distribution of their
    sum: equal shares of a negative binomial, or of a Poisson variable, add up to one of the kind.
    """

    _question: SecureSumQuestion

    def add_block(self, rows: ClientBlock, block: int, tally: Values) -> BlockCounts:
        question = self._question
        coded = self._coded.values(rows.coded)
        choices = self.choices(rows, block, self._word_values, coded)
        chosen, sizes = choose_contributions(*choices)
        asked = len(chosen)
        if question.dropout:
            stays = self._rng(Stream.DROPOUT, block).random(asked) >= question.dropout
            chosen, sizes = chosen[stays], sizes[stays]
        if len(chosen):
            sums = tally[: question.num_candidates]
            sums += np.bincount(chosen[chosen >= 0], minlength=len(sums))
            rng = self._rng(Stream.RANDOMIZER, block)
            sums += question.noise.draw(question.part(len(chosen)), len(sums), rng=rng)
        counts = BlockCounts.of(sizes, len(chosen) * question.max_items)
        return BlockCounts(**{**vars(counts), "num_lost": asked - len(chosen)})


class SecretSharedAnswerer(PrefixAnswerer):
    """Counts the uploaded words under each candidate, as two servers would together.

    The servers' noise comes with the first block, so that no count without it is ever passed on.
    """

    _question: SecretSharedQuestion

    def __init__(
        self,
        question: SecretSharedQuestion,
        words: WordMatcher,
        seed: int,
        *,
        noise_free: bool = False,
    ) -> None:
        super().__init__(question, words, seed, noise_free=noise_free)
        numbers = np.arange(len(words.lexicon), dtype=np.int64)
        self._uploads = self._usable(words.lexicon, numbers)

    def add_block(self, rows: ClientBlock, block: int, tally: Values) -> BlockCounts:
        question, lexicon = self._question, self._word_values.values
        # A coded word's own number, so that a greedy client's ties go by it in any block.
        coded = self._usable(Lexicon(words=coded_words(rows.coded)), len(lexicon) + rows.coded)
        choices = self.choices(rows, block, self._uploads, coded.values, layer=_BEFORE_ALL)
        chosen, sizes = choose_contributions(*choices)
        words = chosen[chosen >= 0]
        listed = words < len(lexicon)
        beyond = self._coded.values(words[~listed] - len(lexicon))
        values = np.concatenate([lexicon[words[listed]], beyond])
        sums = tally[: question.num_candidates]
        sums += np.bincount(values[values >= 0], minlength=len(sums))
        if block == 0:
            rng = generator(self._seed, Stream.CURATOR, question.pass_index, question.layer)
            sums += question.noise.draw(1.0, len(sums), rng=rng)
        return BlockCounts.of(sizes, len(chosen) * question.max_items)

    def _usable(self, lexicon: Lexicon, numbers: Values) -> WordValues:
        """Return the numbers of some words, -1 for those that are not uploaded."""
        longest = self._question.excluded.shape[1] - 1
        return WordValues.of(
            np.where(lexicon.reachable(self._question.alphabet, longest), numbers, -1)
        )
