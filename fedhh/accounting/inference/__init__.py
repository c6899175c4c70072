"""What a curious server infers from reports, by Bayes, next to what local privacy allows.

* `Evidence`: how likely each kind of report is under each of some hypotheses, exactly
* `allowed_success`: how often a guess may be right under a local epsilon
* `infer_word`: a server that chooses the trie, to learn which word a client holds
* `infer_pool`: a server that learns from many reports which group of values a client prefers
* `InferenceVerdict`: success by number of reports, exact and simulated, and a verdict
"""

from fedhh.accounting.inference.chosen_trie import STRATEGIES, infer_word
from fedhh.accounting.inference.evidence import Evidence
from fedhh.accounting.inference.pool_inference import Pools, infer_pool
from fedhh.accounting.inference.success import (
    GuessesMade,
    InferenceVerdict,
    Success,
    allowed_success,
)

__all__ = [
    "STRATEGIES", "Evidence", "GuessesMade", "InferenceVerdict", "Pools", "Success",
    "allowed_success", "infer_pool", "infer_word",
]  # fmt: skip
