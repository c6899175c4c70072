"""What a layer's tally costs by aggregate-level sampling, next to the votes of its reports.

Every row is a layer of Gboard's number of reports over s values, or a Count Mean Sketch of Apple's
size. In turn, in the same run: `aggregate` of some of the values, whose time is scaled up to
all; and counting as many values, scaled up likewise, with the whole tally drawn from the counts of
all. What both ways have in common, the clients and what they choose, is not timed.

Times are the thread's own, medians of at least three rounds. "auto" is whether a run's default
fidelity samples the layer.
"""

from __future__ import annotations

import numpy as np

from benchmarks.measuring import Rows, benchmark, medians
from fedhh.kernels.subset_tally import count_into
from fedhh.oracles import CountMeanSketch, SubsetSelection
from fedhh.oracles.families import SampledAggregates
from fedhh.simulation.fidelity import is_less_work

REPORTS, REPORTS_PER_CALL, VOTES = 60_000_000, 500_000, 4_000_000

CELLS = [(s, epsilon) for s in (1_000, 30_000, 1_000_001) for epsilon in (4.0, 8.0, 10.0)]


def measure(domain_size: int, epsilon: float) -> dict[str, object]:
    """Return one row of the table: Subset Selection."""
    oracle = SubsetSelection(epsilon=epsilon, domain_size=domain_size)
    part = min(max(1, VOTES // oracle.d), REPORTS_PER_CALL)
    rng = np.random.default_rng(0)
    distribution = 1 / np.arange(1, domain_size + 1)
    distribution /= distribution.sum()
    values = rng.choice(domain_size, size=part, p=distribution)
    more = rng.choice(domain_size, size=REPORTS_PER_CALL, p=distribution)
    counts = rng.multinomial(REPORTS, distribution)
    table = np.zeros(domain_size, dtype=np.int64)
    reports_s, counting_s, drawing_s = medians(
        [
            lambda: oracle.aggregate(values=values, rng=rng, out=table),
            lambda: count_into(more, table),
            lambda: oracle.sample_aggregate(counts, rng=rng),
        ]
    )
    return row(
        oracle=f"ss {domain_size:,}".rjust(17),
        epsilon=epsilon,
        size=oracle.d,
        seconds=(
            reports_s * REPORTS / part,
            counting_s * REPORTS / REPORTS_PER_CALL,
            drawing_s,
        ),
        auto=in_auto(oracle),
    )


def measure_sketch(epsilon: float) -> dict[str, object]:
    """Return one row of the table: a Count Mean Sketch of 2,048 x 1,024."""
    oracle = CountMeanSketch(epsilon=epsilon, domain_size=2**40)
    part = max(1, VOTES // oracle.num_cells)
    rng = np.random.default_rng(0)
    values, more = (rng.zipf(1.2, size) % 2**40 for size in (part, REPORTS_PER_CALL))
    noise_free = oracle.noise_free_counts(more, rng=rng) * (REPORTS // REPORTS_PER_CALL)
    table = np.zeros(oracle.aggregate_size, dtype=np.int64)
    reports_s, counting_s, drawing_s = medians(
        [
            lambda: oracle.aggregate(values=values, rng=rng, out=table),
            lambda: oracle.noise_free_counts(more, rng=rng, out=table),
            lambda: oracle.sample_aggregate(noise_free, rng=rng),
        ]
    )
    return row(
        oracle="cms 2,048 x 1,024",
        epsilon=epsilon,
        size=oracle.num_cells,
        seconds=(
            reports_s * REPORTS / part,
            counting_s * REPORTS / REPORTS_PER_CALL,
            drawing_s,
        ),
        auto=in_auto(oracle),
    )


def in_auto(oracle: SampledAggregates) -> bool:
    """Return whether a run's default fidelity samples so many reports."""
    return is_less_work(REPORTS, report_draws=oracle.report_draws, tally_size=oracle.aggregate_size)


def row(
    *, oracle: str, epsilon: float, size: int, seconds: tuple[float, float, float], auto: bool
) -> dict[str, object]:
    """Return a row from seconds for all reports: one by one, counting, drawing."""
    reports, counting, drawing = seconds
    return {
        "oracle": oracle,
        "epsilon": epsilon,
        "report_size": size,
        "reports_s": reports,
        "counting_s": counting,
        "drawing_s": drawing,
        "ratio": reports / (counting + drawing),
        "auto": auto,
    }


@benchmark("exact-tally")
def rows() -> Rows:
    """Yield the rows of both oracles."""
    for domain_size, epsilon in CELLS:
        yield measure(domain_size, epsilon)
    for epsilon in (2.0, 6.0):
        yield measure_sketch(epsilon)
