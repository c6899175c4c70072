"""Discoveries whose reported estimates may be post-processed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fedhh.arrays import Bools, Ints
from fedhh.found import Found
from fedhh.oracles.consistency import PostProcessing, post_process
from fedhh.questions.noise import Noise
from fedhh.server.local_discovery import CohortProtocol


@dataclass(frozen=True, kw_only=True)
class PostProcessed(CohortProtocol):
    """A discovery whose estimates come from a round's counts of all its candidates.

    Attributes:
        post_processing: What is done with the estimates of the words found, and of nothing before:
            "none"; "norm-sub", so that those of all candidates and the rest of the reports are not
            negative and add up; "base-cut", 0 where they are not significant. Standard errors stay
            those of "none", of which alone estimates have no bias.
    """

    post_processing: PostProcessing = "none"

    def with_reported(
        self,
        found: Found,
        which: Ints | Bools,
        noise: Noise,
        support: Ints,
    ) -> Found:
        """Return words with the estimates that a run reports, after all candidates' processing.

        An interval of the validation round is about the estimate without it, and is dropped.
        """
        if self.post_processing == "none":
            return found
        estimate = post_process(
            self.post_processing,
            noise.oracle.estimate(support, noise.num_reports),
            total=noise.num_reports,
            std=noise.std,
            has_rest=True,
        )
        unknown = np.full(len(found.codes), math.nan)
        return replace(found, estimate=estimate[which], interval_z=unknown)
