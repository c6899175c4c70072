"""From archives of what people wrote to a file of counted words without names or addresses."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from fedhh.clients.populations.population import StoredPopulation
from fedhh.clients.reading.exports.chats import read_chat
from fedhh.clients.reading.exports.git_log import read_git
from fedhh.clients.reading.exports.mailing_list import read_mbox
from fedhh.clients.reading.exports.messages import Messages, salt_of
from fedhh.clients.reading.sources import content_of_table, write_population
from fedhh.clients.reading.tables import require_known_extension
from fedhh.clients.reading.tokens import tokenize
from fedhh.validation import InputError
from fedhh.words.languages import ENGLISH

NAME = "part of a name"


@dataclass(frozen=True, kw_only=True)
class Sources:
    """Where people's words are.

    Attributes:
        git: Git clones: commit messages by author.
        mbox: Archives of mailing lists.
        chats: Exports of chats, of any program that `chats.KNOWN` names.
    """

    git: Sequence[Path] = ()
    mbox: Sequence[Path] = ()
    chats: Sequence[Path] = ()

    def __bool__(self) -> bool:
        return bool(self.git or self.mbox or self.chats)


@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedMessages:
    """What was written, and what was not.

    Attributes:
        population: The authors and their words.
        seen: Messages that the sources hold.
        kept: Messages that words were counted of.
        dropped: Messages that were dropped, by reason.
        taken_out: Lines and pieces taken out of messages, by reason.
        no_words: What the words' own rule and the names dropped, see `tokens.tokenize`; the reasons
            alone, since the pieces may tell who wrote.
        empty_texts: Kept messages without a word.
        samples: Words of some messages, as they were counted, a line each.
    """

    population: StoredPopulation
    seen: int
    kept: int
    dropped: Counter[str]
    taken_out: Counter[str]
    no_words: Counter[tuple[str, str]]
    empty_texts: int
    samples: tuple[str, ...] = field(repr=False)


def prepare_messages(
    sources: Sources,
    out_path: str | Path,
    *,
    salt: str | None = None,
    samples: int = 0,
    language: str = ENGLISH,
) -> PreparedMessages:
    """Count the words of each author's messages, write them as user, word, count, and return them.

    A user is a number of 63 bits, a hash of the author's address, or of the name or the number of
    the account where there is no address, keyed by the salt. Rows are in the order of these
    numbers. Parts of authors' names are no words.

    Args:
        sources: What to read.
        out_path: Where to write, as in `sources.write_population`.
        salt: Of the hash; the same one gives the same authors the same numbers in other files, and
            who knows it can check whether an address is among the users. None: a random one, which
            is not kept.
        samples: How many messages to show the words of.
        language: Of the messages, by its code: whose rules of case hold.

    Raises:
        InputError: A source cannot be read, holds no message that can be kept, the salt is too
            short, or the file cannot be written.
    """
    require_known_extension(Path(out_path))
    messages = Messages(salt=secrets.token_bytes(32) if salt is None else salt_of(salt))
    for path in sources.git:
        read_git(path, messages)
    for path in sources.mbox:
        read_mbox(path, messages)
    for path in sources.chats:
        read_chat(path, messages)
    if not messages.texts:
        reasons = ", ".join(f"{reason} {n:,}" for reason, n in messages.dropped.most_common())
        raise InputError(
            f"Expected at least one message of a person with text, got none of {messages.seen:,} "
            f"messages ({reasons or 'the sources are empty'}); name other sources."
        )
    # In the order of the numbers, so that a row's place does not tell when somebody came.
    numbers = np.array(messages.users, dtype=np.int64)
    order = np.argsort(numbers, kind="stable")
    texts = pa.array(
        [_sound(messages.texts[row]) for row in order.tolist()], type=pa.large_string()
    )
    name = Path(out_path).name
    rows = pa.table({"user": numbers[order], "text": texts})
    content = content_of_table(rows, name=name, language=language)
    population, no_words = content.population, Counter[tuple[str, str]]()
    for (reason, _), times in content.dropped.items():
        no_words[reason, ""] += times
    names = messages.name_words(language)
    words = population.lexicon.words
    is_name = np.fromiter((_named(word, names) for word in words), dtype=bool, count=len(words))
    if is_name.any():
        no_words[NAME, ""] = int(population.word_counts[is_name].sum())
        population = population.keep_words(~is_name)
    write_population(population, out_path, users=np.unique(numbers))
    return PreparedMessages(
        population=population,
        seen=messages.seen,
        kept=len(messages.texts),
        dropped=messages.dropped,
        taken_out=messages.taken_out,
        no_words=no_words,
        empty_texts=content.empty_texts,
        samples=_samples(texts, names, samples, language),
    )


def _sound(text: str) -> str:
    """Return a text that UTF-8 has: JSON may name halves of symbols, which are none."""
    return text.encode("utf-8", "replace").decode()


def _named(word: str, names: frozenset[str]) -> bool:
    return word in names or word.removesuffix("'s") in names


def _samples(texts: pa.Array, names: frozenset[str], number: int, language: str) -> tuple[str, ...]:
    """Return the words of some texts, evenly from all."""
    lines: list[str] = []
    for row in range(0, len(texts), max(1, len(texts) // max(number, 1))):
        if len(lines) == number:
            break
        found = tokenize(texts[row].as_py(), language=language)
        words = [word for word in found if not _named(word, names)]
        if words:
            lines.append(" ".join(words))
    return tuple(lines)
