"""What Adaptive TrieHH knows between two rounds."""

from __future__ import annotations

from dataclasses import dataclass

from fedhh.server.adaptive.character_model import CharacterModel
from fedhh.server.adaptive.trie_posterior import TriePosterior
from fedhh.server.evidence import Evidence
from fedhh.server.trie import TrieState


@dataclass(frozen=True, kw_only=True, eq=False)
class AdaptiveState(TrieState):
    """Where a run with a posterior stands; see `TrieState`.

    Attributes:
        belief: What is believed of the trie's last level.
        model: Of the next symbol.
        evidence: What clients said about found words who were asked after these were found.
    """

    belief: TriePosterior
    model: CharacterModel
    evidence: Evidence
