from __future__ import annotations

import math

import numpy as np
import pytest

from fedhh.validation import InputError, require_at_least
from tests.every import every


@every("value", [0, -(2**80), math.nan, math.inf, "3", None, 5.0, True, [3]])
def test_what_is_no_integer_above_the_bound_is_refused_in_one_line(value):
    with pytest.raises(InputError, match=r"^Expected an integer size >= 1, got size=.*\.$"):
        require_at_least(1, size=value)


@pytest.mark.parametrize("value", [1, 2**80, np.int64(3), np.uint8(1)])
def test_integers_at_or_above_the_bound_pass(value):
    require_at_least(1, size=value)
