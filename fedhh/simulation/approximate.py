"""Tallies drawn without reports: the way to cohorts that no machine can draw report by report.

Clients choose their contributions as ever, but nobody randomizes them: the clients' true counts of
a layer are taken instead, and every value's support is drawn as Bin(c, p) + Bin(n - c, q), with c
the value's true count among n reports. That is each value's exact law (Wang et al. 2017, "Locally
differentially private protocols for frequency estimation", section 3). What is lost is the
dependence between values: the tallies of subset selection always sum to n d, these do on average.

Of a cohort larger than ``drawn_clients`` only so many clients are asked, and their counts are
scaled up. A count c of N clients then has a standard error of at most sqrt(c (N / m - 1)) for m
drawn ones, since a client contributes a value at most once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from fedhh.oracles import OracleSpec, make_pure_oracle
from fedhh.queries.base import Aggregate, Answer, Cohort, Diagnostics, PrefixQuery, Query, Tally
from fedhh.random import Stream, generator
from fedhh.simulation.executor import Executor, Progress
from fedhh.validation import InputError, require_at_least

_TRUE_VALUES = OracleSpec(name="none", epsilon=float("inf"))


@dataclass(frozen=True, kw_only=True)
class _Progress:
    """Reports clients of the whole cohort, as the drawn ones answer."""

    listener: Progress
    scale: float
    carried: list[float]

    def __call__(self, num_clients: int) -> None:
        before, after = self.carried[0], self.carried[0] + num_clients * self.scale
        self.carried[0] = after
        self.listener(round(after) - round(before))


class ApproximateExecutor(Executor):
    """Draws tallies from true counts that another executor brings."""

    def __init__(self, executor: Executor, *, seed: int, drawn_clients: int) -> None:
        """Ask clients through this executor.

        Args:
            executor: The way to the clients; closed with this one.
            seed: The run's seed.
            drawn_clients: Most clients of a cohort that are drawn.
        """
        require_at_least(1, drawn_clients=drawn_clients)
        self._executor = executor
        self._seed = seed
        self._drawn_clients = drawn_clients

    def answer(self, query: Query, progress: Progress | None = None) -> Iterator[Answer]:
        """Yield one answer for the whole cohort.

        Raises:
            InputError: The query's tally is not one of independent values.
        """
        if not isinstance(query, PrefixQuery):
            raise InputError(
                f"Expected a protocol that asks for prefixes with fidelity approximate-tally, got "
                f'a {type(query).__name__}; set simulation.fidelity = "per-report".'
            )
        oracle = make_pure_oracle(query.oracle, query.domain_size)
        cohort = query.cohort
        drawn = replace(cohort, size=min(cohort.size, self._drawn_clients))
        scale = cohort.size / drawn.size
        if progress is not None:
            progress = _Progress(listener=progress, scale=scale, carried=[0.0])
        true_query = replace(query, cohort=drawn, oracle=_TRUE_VALUES)
        answer = reduce(Answer.merge, self._executor.answer(true_query, progress))
        true_counts, num_reports = _scaled(answer.aggregate, query, cohort, drawn)
        rng = generator(self._seed, Stream.TALLY, query.pass_index, query.layer)
        yield Answer(
            aggregate=Aggregate(
                tally=oracle.approximate_sample_tally(true_counts, num_reports, rng=rng),
                num_reports=num_reports,
                num_clients=cohort.size,
            ),
            diagnostics=Diagnostics(
                num_dummies=int(true_counts[query.dummy]),
                num_clients_with_items=round(answer.diagnostics.num_clients_with_items * scale),
            ),
        )

    def close(self) -> None:
        """Close the executor that asks the clients."""
        self._executor.close()


def _scaled(
    aggregate: Aggregate, query: PrefixQuery, cohort: Cohort, drawn: Cohort
) -> tuple[Tally, int]:
    """Return the whole cohort's counts of values, dummies among them, and its reports."""
    if drawn.size == cohort.size:
        return aggregate.tally, aggregate.num_reports
    scale = cohort.size / drawn.size
    counts = np.rint(aggregate.tally * scale).astype(np.int64)
    if not query.pad:
        return counts, int(counts.sum())
    # Every client of the cohort sends exactly B reports, so the dummies make up for rounding.
    num_reports = cohort.size * query.max_items
    real = int(counts.sum() - counts[query.dummy])
    counts[query.dummy] = max(num_reports - real, 0)
    return counts, num_reports
