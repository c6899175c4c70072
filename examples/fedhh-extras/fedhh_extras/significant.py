"""LDP TrieHH that extends a prefix only if its votes exceed the noise."""

from dataclasses import dataclass
from typing import ClassVar

from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.settings import Positive


@dataclass(frozen=True, kw_only=True)
class SignificantTrieHH(LdpTrieHH):
    """Keeps at most ``eta_max`` prefixes per layer, and none that chance explains.

    Attributes:
        least_z: How far above the noise a prefix's votes must lie, in standard deviations.
    """

    name: ClassVar[str] = "significant-triehh"
    title: ClassVar[str] = "LDP TrieHH by significance"

    least_z: Positive = 3.0

    def keep(self, answers):
        kept, threshold = super().keep(answers)
        kept = kept[answers.noise.z(answers.votes[kept]) >= self.least_z]
        return kept, int(answers.votes[kept].min()) if len(kept) else threshold
