import math

import numpy as np
import pytest

from fedhh.longitudinal.repeated.survival import survival
from fedhh.validation import InputError

# Remission of leukemia under 6-MP, Freireich et al. (1963); the estimate is in every textbook.
TIMES = [6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35]
HAPPENED = [1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]


def test_the_textbook_example():
    estimate = survival(np.array(TIMES, dtype=float), np.array(HAPPENED, dtype=bool))
    assert estimate.times.tolist() == [6, 7, 10, 13, 16, 22, 23]
    assert estimate.share.round(3).tolist() == [0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448]
    assert estimate.low[0] == pytest.approx(0.620, abs=5e-4)
    assert estimate.high[0] == pytest.approx(0.952, abs=5e-4)
    median, low, high = estimate.quantile(0.5)
    assert (median, low, high) == (23, 13, math.inf)


def test_without_censoring_it_is_the_share_left():
    estimate = survival(np.arange(1.0, 21), np.ones(20, dtype=bool))
    assert estimate.share == pytest.approx(1 - np.arange(1, 21) / 20)
    median, low, high = estimate.quantile(0.5)
    assert median == 10
    assert low < 10 < high < math.inf


def test_nothing_that_happened_has_no_median():
    estimate = survival(np.array([3.0, 4.0]), np.zeros(2, dtype=bool))
    assert estimate.quantile(0.5) == (math.inf, math.inf, math.inf)
    with pytest.raises(InputError):
        survival(np.zeros(0), np.zeros(0, dtype=bool))


def test_all_at_once_is_certain_only_with_enough_of_them():
    few = survival(np.full(4, 7.0), np.ones(4, dtype=bool))
    assert few.quantile(0.5) == (7, 7, math.inf)
    more = survival(np.full(8, 7.0), np.ones(8, dtype=bool))
    assert more.quantile(0.5) == (7, 7, 7)


@pytest.mark.parametrize("size", [30, 100])
def test_the_interval_covers_the_median(size):
    rng = np.random.default_rng(size)
    covered = 0
    for _ in range(400):
        times, ends = rng.exponential(10, size), rng.uniform(5, 40, size)
        estimate = survival(np.minimum(times, ends), times <= ends)
        _, low, high = estimate.quantile(0.5)
        covered += low <= 10 * math.log(2) <= high
    assert 0.91 <= covered / 400 <= 0.99
