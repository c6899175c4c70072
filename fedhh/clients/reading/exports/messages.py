"""What every source of messages gives: texts by author, and what was dropped, by reason."""

from __future__ import annotations

import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b

from fedhh.clients.reading.exports.bots import is_bot
from fedhh.clients.reading.exports.cleaning import prose
from fedhh.clients.reading.tokens import tokenize
from fedhh.validation import InputError
from fedhh.words.languages import ENGLISH

LONGEST_MESSAGE = 2**20
"""Of symbols; what is longer is nobody's typing."""

LARGEST_EXPORT = 2**28
"""Of bytes, for exports that are read in one piece."""

BOT = "bot"
MERGE = "merge"
SYSTEM = "system message"
MEDIA = "media"
DELETED = "deleted message"
FORWARDED = "forwarded"
TOO_LONG = "too long"
NO_AUTHOR = "no author"
NO_TEXT = "no text left"

SHORTEST_SALT = 16
"""Of symbols: shorter ones can be guessed, and names and addresses checked by them."""

_ORDINARY = frozenset({
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "can", "do", "for", "from", "go", "had",
    "has", "have", "he", "her", "him", "his", "how", "i", "if", "in", "is", "it", "its", "just",
    "long", "may", "me", "more", "my", "new", "no", "not", "now", "of", "on", "or", "our", "out",
    "she", "so", "some", "that", "the", "their", "them", "then", "they", "this", "to", "up", "us",
    "was", "we", "what", "when", "will", "with", "you", "your",
})  # fmt: skip
"""Words that names share with every text; all other parts of names are dropped from texts."""


@dataclass(kw_only=True)
class Messages:
    """Texts by author, of one source or of several.

    Attributes:
        salt: What authors are hashed with.
        users: Of each text: its author's number, a keyed hash of the address or the name.
        texts: What its author typed as prose.
        names: Names of authors and of others that a source names, to be dropped from texts.
        seen: How many messages there were, those that were dropped included.
        dropped: Messages that were dropped, by reason.
        taken_out: Lines and pieces taken out of messages, by reason.
    """

    salt: bytes = field(repr=False)
    users: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list, repr=False)
    names: set[str] = field(default_factory=set, repr=False)
    seen: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    taken_out: Counter[str] = field(default_factory=Counter)

    def add(self, author: str, text: str, *, name: str = "", address: str = "") -> None:
        """Take a message, or drop it as a bot's, as too long, or as one with no text left.

        Args:
            author: What tells authors apart: an address, a name, an account's number.
            text: The message.
            name: The author's name, as it is shown.
            address: The author's address, if that is known.
        """
        if not author.strip():
            self.drop(NO_AUTHOR)
            return
        if is_bot(name, address):
            self.drop(BOT)
            return
        self.meet(name, address)
        if len(text) > LONGEST_MESSAGE:
            self.drop(TOO_LONG)
        elif not (kept := prose(text, self.taken_out, self.names)):
            self.drop(NO_TEXT)
        else:
            self.seen += 1
            self.users.append(user_number(author, self.salt))
            self.texts.append(kept)

    def meet(self, name: str, address: str = "") -> None:
        """Take a person's name as one to be dropped from texts, whether or not a text is kept."""
        if not is_bot(name, address):
            self.names.add(name)

    def drop(self, reason: str) -> None:
        """Count a message that is not taken."""
        self.seen += 1
        self.dropped[reason] += 1

    def name_words(self, language: str = ENGLISH) -> frozenset[str]:
        """Return the parts of names, in the form that words of texts have; no initials."""
        parts = {word for name in self.names for word in tokenize(name, language=language)}
        return frozenset(each for each in parts if len(each) > 1 or not each.isascii()) - _ORDINARY


def user_number(author: str, salt: bytes) -> int:
    """Return an author's number: 63 bits of BLAKE2b with the salt as its key.

    Without the salt nobody can tell whose number it is, nor check a guess. The same author in the
    same salt has the same number in every source; upper case and Unicode forms do not matter.
    """
    plain = unicodedata.normalize("NFKC", author).strip().casefold()
    digest = blake2b(plain.encode("utf-8", "surrogatepass"), key=salt, digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def salt_of(text: str) -> bytes:
    """Return the key that a given salt stands for.

    Raises:
        InputError: It is so short that it could be guessed.
    """
    if len(text) < SHORTEST_SALT:
        raise InputError(
            f"Expected a salt of at least {SHORTEST_SALT} symbols, got {len(text)}; take random "
            "ones, or leave --salt out for a new random salt."
        )
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).digest()
