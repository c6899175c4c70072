"""What discoveries under local differential privacy share: how a client contributes."""

from __future__ import annotations

from typing import Generic

from fedhh.alphabet import Alphabet
from fedhh.protocol import DiscoveryProtocol, QueryType, State
from fedhh.queries import SAMPLERS
from fedhh.validation import require_at_least, require_choice


class LocalProtocol(DiscoveryProtocol[State, QueryType], Generic[State, QueryType]):
    """A discovery whose clients choose B items each and randomize every one of them.

    Subclasses are frozen dataclasses with these settings among theirs.

    Attributes:
        max_items: B, contributions per client.
        sampler: How a client with more than B items chooses: "random" or "greedy".
        alphabet: "printable", "lower", or the symbols themselves.
        pad: Fill up with dummies to exactly B contributions.
    """

    max_items: int
    sampler: str
    alphabet: str
    pad: bool

    @property
    def symbols(self) -> Alphabet:
        """The alphabet as an object."""
        return Alphabet.named(self.alphabet)

    @property
    def contributions_per_client(self) -> int:
        """B, since a client answers once."""
        return self.max_items

    @property
    def pads_reports(self) -> bool:
        """As set."""
        return self.pad

    def check_contributions(self) -> None:
        """Raise InputError if a setting above is out of its range."""
        require_at_least(1, max_items=self.max_items)
        require_choice(SAMPLERS, sampler=self.sampler)
        # Made once here so that a bad alphabet is refused before anything runs.
        _ = self.symbols
