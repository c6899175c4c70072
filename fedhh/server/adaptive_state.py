"""What Adaptive TrieHH knows between two rounds."""

from __future__ import annotations

from dataclasses import dataclass

from fedhh.server.character_model import CharacterModel
from fedhh.server.evidence import Evidence
from fedhh.server.guesses import Guesses
from fedhh.server.ldp_triehh import TrieState
from fedhh.server.trie_posterior import TriePosterior


@dataclass(frozen=True, kw_only=True, eq=False)
class AdaptiveState(TrieState):
    """Where a run with a posterior stands; see `TrieState`.

    ``found`` are the words to be recounted, by what the layers say in which they ended, and the
    returned ones in the end.

    Attributes:
        belief: What is believed of the trie's last level.
        model: Of the next symbol.
        evidence: What clients said about found words who were asked after these were found.
        guesses: Words to be asked about beside the next layer's candidates.
        is_over: Whether the trie has come to its end.
    """

    belief: TriePosterior
    model: CharacterModel
    evidence: Evidence
    guesses: Guesses
    is_over: bool = False
