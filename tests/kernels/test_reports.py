import numpy as np

from fedhh.kernels.reports import count_supports
from fedhh.oracles import OptimizedLocalHashing
from tests.every import every


def cell(words: list[int], value: int, num_cells: int) -> int:
    low, high, offset = (word % 2**64 for word in words)
    hashed = (low * (value % 2**32) + high * (value // 2**32) + offset) % 2**64 // 2**32
    return hashed * num_cells // 2**32


@every("domain_size", [50, 2**32, 2**32 + 1, 2**48])
@every("epsilon", [0.1, 1.0, 4.0, 21.0])
def test_support_counts_equal_plain_integers(domain_size, epsilon):
    oracle = OptimizedLocalHashing(epsilon=epsilon, domain_size=domain_size)
    rng = np.random.default_rng(0)
    values = rng.integers(0, domain_size, size=700)
    reports = oracle.privatize(values, rng=rng)
    # Edges of the domain and of the halves, values held, and a repeat, in no order.
    edges = [v for v in (0, 1, 49, 2**32 - 1, 2**32, 2**47) if v < domain_size]
    candidates = np.array([*values[:5].tolist(), *edges[::-1], int(values[0])])
    expected = [
        sum(cell(row[:3], value, oracle.num_cells) == row[3] for row in reports.tolist())
        for value in candidates.tolist()
    ]
    assert oracle.support(reports=reports, candidates=candidates).tolist() == expected
    assert sum(expected) > 0


def test_no_reports_and_no_candidates_give_empty_counts():
    nothing = np.empty(0, dtype=np.uint64)
    assert (
        count_supports(nothing, nothing, nothing, nothing, np.arange(3), False).tolist() == [0] * 3
    )
    one = np.ones(1, dtype=np.uint64)
    assert count_supports(one, one, one, one, np.empty(0, dtype=np.int64), True).tolist() == []
