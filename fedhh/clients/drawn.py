"""Populations that are not held in memory: clients are drawn again whenever they are asked.

Ranks up to `LEXICON_RANKS` have their words in the lexicon. Beyond, where a word is held by about
one client in 400,000 of the preset with the heaviest tail, all ranks whose words begin with the
same two syllables are one stub: these syllables, and a symbol that no alphabet has. Stubs vote in a
trie's first layers as their words would, and count as contributions; no protocol can find one. So
memory depends on the lexicon and on the block, and not on how many clients there are.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from fedhh.clients.named_words import NAMED_RANKS
from fedhh.clients.population import CountProgress, Ids, Population
from fedhh.clients.synthetic import PopulationModel, RankDrawer, WordList, model_of
from fedhh.kernels.ranks import count_words, listed_rows
from fedhh.questions.clients import ClientBlock
from fedhh.system.machine import num_cores
from fedhh.validation import InputError, require_at_least
from fedhh.words.alphabet import NUL
from fedhh.words.coded_words import coded_words
from fedhh.words.known_words import KnownWords
from fedhh.words.lexicon import Lexicon

LEXICON_RANKS = NAMED_RANKS + 100**3
"""Ranks of the lexicon: all named words, and all coded ones of three syllables."""

STUBS = 100**2
"""Ways to begin with two syllables; a coded word's is its number modulo this."""

_STUB_SYMBOLS = 4

COUNTED_WHOLE = 20_000_000
"""Populations up to this size are counted whole."""

COUNTED_CLIENTS = 1_000_000
"""Of larger populations, so many clients are counted.

That leaves a share of all contributions a standard error of at most 0.4 points in every preset.
"""

MAX_CLIENTS = 2**40

_CLIENTS_AT_ONCE = 8_192
_FINGERPRINTED_CLIENTS = 16_384
_LARGEST_INT32 = 2**31 - 1

_LexiconKey = tuple[KnownWords | None, WordList | None, int]
_lexicons: WeakValueDictionary[_LexiconKey, Lexicon] = WeakValueDictionary()
"""Those in use: a million words take a second to make, and are the same for every seed and size."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Census:
    """What one pass over some clients counted.

    Attributes:
        words: ``(V, 2) int64``: contributions for each word of the lexicon, and its holders.
        squares: Sum over clients of their squared number of contributions.
    """

    words: Ids
    squares: int


class DrawnClients(Population):
    """A synthetic population that draws its clients when asked.

    Its clients hold what those of `synthetic_population` with the same preset and seed do, but for
    the stubs: a client's stream depends on the seed and on its number alone.
    """

    exchangeable = True

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
                `COUNTED_CLIENTS` of more than `COUNTED_WHOLE`. If that is not all, the counts are
                scaled up, and `share_std_error` says how far off shares may be.

        Raises:
            InputError: The preset is unknown, or a number is out of its range.
        """
        model = model_of(preset)
        require_at_least(1, num_clients=num_clients)
        if counted_clients is None:
            counted_clients = num_clients if num_clients <= COUNTED_WHOLE else COUNTED_CLIENTS
        require_at_least(1, counted_clients=counted_clients)
        if num_clients > MAX_CLIENTS:
            raise InputError(f"Expected num_clients <= 2^40, got num_clients={num_clients}.")
        self.name = f"{model.name}, {num_clients:,} clients, seed {seed}"
        self.unit = model.unit
        self._num_clients = num_clients
        self._counted = min(counted_clients, num_clients)
        self._drawer = RankDrawer(model=model, seed=seed)
        listed = model.word_list
        self._lexicon_ranks = LEXICON_RANKS if listed is None else len(listed.words)
        self.num_stubs = STUBS if listed is None else 0
        self._lexicon: Lexicon | None = None
        self._census: _Census | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Workers draw clients; only the one who measures needs the counts.
        return {**self.__dict__, "_census": None}

    @property
    def num_clients(self) -> int:
        return self._num_clients

    @property
    def counted_clients(self) -> int:
        """On how many clients, the first ones, the counts of words rest."""
        return self._counted

    @property
    def lexicon(self) -> Lexicon:
        """The words of the ranks up to `LEXICON_RANKS` and the stubs, or the listed words.

        Not all are held.
        """
        if self._lexicon is None:
            model = self._drawer.model
            made_of = (model.known, model.word_list, self._lexicon_ranks)
            lexicon = _lexicons.get(made_of)
            if lexicon is None:
                ranks = np.arange(1, self._lexicon_ranks + 1)
                starts = coded_words(np.arange(self.num_stubs))
                stubs = [word[:_STUB_SYMBOLS] + NUL for word in starts]
                lexicon = _lexicons[made_of] = Lexicon(words=model.strings(ranks) + stubs)
            self._lexicon = lexicon
        return self._lexicon

    def block(self, clients: Ids) -> ClientBlock:
        rows = self._drawer.draw(clients)
        offsets, word_ids, counts = listed_rows(
            rows.offsets, rows.ranks, rows.counts, self._lexicon_ranks, NAMED_RANKS, STUBS
        )
        return ClientBlock(clients=clients, offsets=offsets, word_ids=word_ids, counts=counts)

    def count(self, progress: CountProgress | None = None) -> None:
        if self._census is None:
            self._census = self._take_census(progress or (lambda counted, of: None))

    def fingerprint(self) -> str:
        rows = self.block(np.arange(min(_FINGERPRINTED_CLIENTS, self._num_clients)))
        return self._hash_with(rows.offsets, rows.word_ids, rows.counts)

    @property
    def word_counts(self) -> Ids:
        return self._scaled(self._counts.words[:, 0])

    @property
    def word_clients(self) -> Ids:
        """``(V,) int64``: how many clients hold each word; nobody holds a stub."""
        holders = self._counts.words[:, 1].copy()
        holders[self._lexicon_ranks :] = 0
        return self._scaled(holders)

    @property
    def share_std_error(self) -> float:
        """At most the standard error of a share of all contributions; 0 if all are counted.

        A share is a ratio X / M of sums over clients with 0 <= X_i <= M_i, so that its variance
        is at most E[M^2] / (n E[M]^2) (delta method), times 1 - n / N for n of N clients.
        """
        n, census = self._counted, self._counts
        contributions = int(census.words[:, 0].sum())
        if n == self._num_clients or not contributions:
            return 0.0
        mean = contributions / n
        return float(np.sqrt(census.squares / n / mean**2 / n * (1 - n / self._num_clients)))

    @property
    def _counts(self) -> _Census:
        self.count()
        assert self._census is not None
        return self._census

    def _scaled(self, counts: Ids) -> Ids:
        if self._counted == self._num_clients:
            return counts
        scaled: Ids = np.rint(counts * (self._num_clients / self._counted)).astype(np.int64)
        return scaled

    def _take_census(self, progress: CountProgress) -> _Census:
        """Draw the clients once, on all cores: integers add up to the same in any order."""
        starts = range(0, self._counted, _CLIENTS_AT_ONCE)
        num_threads = min(num_cores(), len(starts))
        stopped = threading.Event()
        lock = threading.Lock()
        num_done = 0
        progress(0, self._counted)

        def work(thread: int) -> _Census:
            nonlocal num_done
            # Half the memory is twice as much of it in the cache.
            words: npt.NDArray[np.signedinteger[Any]] = np.zeros(
                (len(self.lexicon), 2), dtype=np.int32
            )
            contributions = squares = 0
            for start in starts[thread::num_threads]:
                if stopped.is_set():
                    break
                clients = np.arange(start, min(start + _CLIENTS_AT_ONCE, self._counted))
                rows = self.block(clients)
                sums = np.diff(np.r_[0, np.cumsum(rows.counts, dtype=np.int64)][rows.offsets])
                contributions += int(sums.sum())
                squares += int(np.dot(sums, sums))
                if contributions > _LARGEST_INT32 and words.dtype == np.int32:
                    words = words.astype(np.int64)
                count_words(rows.word_ids, rows.counts, words)
                with lock:
                    num_done += len(clients)
                    progress(num_done, self._counted)
            return _Census(words=words.astype(np.int64), squares=squares)

        # Made once, before threads ask for it.
        assert len(self.lexicon)
        with ThreadPoolExecutor(num_threads) as pool:
            try:
                parts = list(pool.map(work, range(num_threads)))
            finally:
                # After an interrupt, threads end with the chunk at hand.
                stopped.set()
        words = parts[0].words
        for part in parts[1:]:
            words += part.words
        return _Census(words=words, squares=sum(part.squares for part in parts))
