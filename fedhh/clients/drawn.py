"""Populations that are not held in memory: clients are drawn again whenever they are asked.

Ranks up to `LEXICON_RANKS` have their words in the lexicon. Beyond, where a word is held by about
one client in 400,000 of the preset with the heaviest tail, all ranks whose words begin with the
same two syllables are one stub: these syllables, and a symbol that no alphabet has. Stubs vote in a
trie's first layers as their words would, and count as contributions; no protocol can find one. So
memory depends on the lexicon and on the block, and not on how many clients there are.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from weakref import WeakValueDictionary

import numpy as np

from fedhh.arrays import Ints
from fedhh.clients.kept_counts import kept_counts
from fedhh.clients.named_words import NAMED_RANKS
from fedhh.clients.population import CountProgress, Population, WordCounts, count_words
from fedhh.clients.synthetic import PopulationModel, RankDrawer, WordList, model_of
from fedhh.kernels.ranks import STUBS, list_words
from fedhh.questions.clients import ClientBlock
from fedhh.system.machine import num_cores
from fedhh.validation import require_at_least, require_between
from fedhh.words.alphabet import NUL
from fedhh.words.coded_words import coded_words
from fedhh.words.known_words import KnownWords
from fedhh.words.lexicon import Lexicon

LEXICON_RANKS = NAMED_RANKS + 100**3
"""Ranks of the lexicon: all named words, and all coded ones of three syllables."""

_STUB_SYMBOLS = 4

COUNTED_WHOLE = 20_000_000
"""Populations up to this size are counted whole."""

COUNTED_CLIENTS = 1_000_000
"""Of larger populations, so many clients are counted.

That leaves a share of all contributions a standard error of at most 0.4 points in every preset.
"""

KEPT_FROM = 2_000_000
"""Counts of so many clients or more, which take seconds, are kept on disk."""

MAX_CLIENTS = 2**40

_LexiconKey = tuple[KnownWords | None, WordList | None, int]
_lexicons: WeakValueDictionary[_LexiconKey, Lexicon] = WeakValueDictionary()
"""Those in use: a million words take a second to make, and are the same for every seed and size."""


class DrawnClients(Population):
    """A synthetic population that draws its clients when asked.

    Its clients hold what those of `synthetic_population` with the same preset and seed do, but for
    the stubs: a client's stream depends on the seed and on its number alone.
    """

    arrangement = "independent"

    def __init__(
        self,
        preset: str | PopulationModel,
        num_clients: int,
        *,
        seed: int,
        counted_clients: int | None = None,
    ) -> None:
        """Describe the population; nothing is drawn yet.

        Args:
            preset: chat, keyboard60d, tweet, post, or a model of your own.
            num_clients: How many clients, at most 2^40.
            seed: The run's seed.
            counted_clients: Count words on at most so many clients; None: on all, or on
                `COUNTED_CLIENTS` of more than `COUNTED_WHOLE`.

        Raises:
            InputError: The preset is unknown, or a number is out of its range.
        """
        model = model_of(preset)
        require_between(1, MAX_CLIENTS, num_clients=num_clients)
        if counted_clients is None:
            counted_clients = num_clients if num_clients <= COUNTED_WHOLE else COUNTED_CLIENTS
        require_at_least(1, counted_clients=counted_clients)
        self.name = f"{model.name}, {num_clients:,} clients, seed {seed}"
        self.unit = model.unit
        self._num_clients = num_clients
        self._num_counted = counted_clients
        self._drawer = RankDrawer(model=model, seed=seed)
        listed = model.word_list
        self._lexicon_ranks = LEXICON_RANKS if listed is None else len(listed.words)
        self._num_stubs = STUBS if listed is None else 0

    @property
    def num_clients(self) -> int:
        return self._num_clients

    @cached_property
    def lexicon(self) -> Lexicon:
        """The words of the ranks up to `LEXICON_RANKS` and the stubs, or the listed words.

        Not all are held.
        """
        model = self._drawer.model
        made_of = (model.known, model.word_list, self._lexicon_ranks)
        lexicon = _lexicons.get(made_of)
        if lexicon is None:
            ranks = np.arange(1, self._lexicon_ranks + 1)
            starts = coded_words(np.arange(self._num_stubs))
            stubs = [word[:_STUB_SYMBOLS] + NUL for word in starts]
            lexicon = Lexicon(words=model.strings(ranks) + stubs, num_stubs=self._num_stubs)
            _lexicons[made_of] = lexicon
        return lexicon

    def block(self, clients: Ints) -> ClientBlock:
        rows = self._drawer.draw(clients)
        ranks, counts = rows.ranks, rows.counts
        # In the same memory: fresh pages take as long as all that is written into them.
        offsets, words = np.empty_like(rows.offsets), ranks.view(np.int32)
        ranks_listed = self._lexicon_ranks
        size = list_words(rows.offsets, ranks, counts, ranks_listed, NAMED_RANKS, offsets, words)
        return ClientBlock(
            clients=clients, offsets=offsets, word_ids=words[:size], counts=counts[:size]
        )

    def _count(self, progress: CountProgress | None) -> WordCounts:
        counted = min(self._num_counted, self.num_clients)
        count = partial(count_words, self, progress, num_counted=counted, num_threads=num_cores())
        if counted < KEPT_FROM:
            return count()
        # Known words change no draw, but the words, of which the fingerprint is.
        drawer = replace(self._drawer, model=replace(self._drawer.model, known=None))
        return kept_counts(self, repr(drawer), counted, count)
