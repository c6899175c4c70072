"""What one more run of some settings will give, from runs that had no part in choosing them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri, stdtrit

from fedhh.experiments.planner.goal import Goal
from fedhh.experiments.planner.trial import Outcome, Trial

LEVEL = 0.95
CONFIRMATIONS = 5
"""Runs by other seeds that a prediction rests on."""


@dataclass(frozen=True, kw_only=True)
class Predicted:
    """A share in one more run.

    Attributes:
        mean: Of the runs.
        low: Lower end of the interval for one more run; None with one run.
        high: Upper end.
    """

    mean: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, values: Sequence[float], *, std_error: float = 0.0) -> Predicted:
        """Return the mean of some runs with a prediction interval for one more.

        Args:
            values: One of each run.
            std_error: By how much the clients of a run and those of these runs differ, where they
                are different draws.
        """
        mean = float(np.mean(values))
        if len(values) < 2:
            return cls(mean=mean)
        factor = float(stdtrit(len(values) - 1, 0.5 + LEVEL / 2))
        of_runs = factor * float(np.std(values, ddof=1)) * math.sqrt(1 + 1 / len(values))
        half = math.hypot(of_runs, float(ndtri(0.5 + LEVEL / 2)) * std_error)
        return cls(mean=mean, low=max(mean - half, 0.0), high=min(mean + half, 1.0))


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The best settings of a protocol, and what a run of them will give.

    Attributes:
        trial: The settings, and the run that chose them.
        runs: On how many runs all numbers rest.
        coverage: Share of all contributions that fall on words that are found.
        recall: Share of the words to find that are found.
        precision: Share of returned words that somebody holds.
        upload: Bytes that a client sends at most, of all runs the most.
        download: Bytes that it receives at most, likewise.
    """

    trial: Trial
    runs: int
    coverage: Predicted
    recall: float
    precision: float
    upload: int
    download: int

    @classmethod
    def of(cls, trial: Trial, outcomes: Sequence[Outcome]) -> Prediction:
        """Return it from runs; that of the trial alone if there are no others.

        A run's own clients and the planning clients may be two draws: so twice the variance.
        """
        assert trial.outcome is not None
        used = list(outcomes) or [trial.outcome]
        std_error = math.sqrt(2) * max(each.std_error for each in used)
        return cls(
            trial=trial,
            runs=len(used),
            coverage=Predicted.of([each.coverage for each in used], std_error=std_error),
            recall=float(np.mean([each.recall for each in used])),
            precision=float(np.mean([each.precision for each in used])),
            upload=max(each.upload for each in (trial.outcome, *used)),
            download=max(each.download for each in (trial.outcome, *used)),
        )

    @property
    def bytes(self) -> int:
        """What a client sends and receives at most."""
        return self.upload + self.download

    def meets(self, goal: Goal) -> bool:
        """Return whether the limits are kept by what all runs needed at most."""
        return self.as_trial.meets(goal)

    def rank(self, goal: Goal) -> tuple[float, float]:
        """Return what sorts predictions: what the goal makes large, and coverage."""
        coverage = self.coverage.mean
        return (coverage if goal.metric == "coverage" else self.recall, coverage)

    @property
    def as_trial(self) -> Trial:
        """The settings with means of what was found, and the most that was sent and received."""
        assert self.trial.outcome is not None
        return replace(
            self.trial,
            outcome=replace(
                self.trial.outcome,
                coverage=self.coverage.mean,
                recall=self.recall,
                precision=self.precision,
                upload=self.upload,
                download=self.download,
            ),
        )
