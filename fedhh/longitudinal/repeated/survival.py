"""How long until something happens, where for some it had not happened when one stopped looking.

Sources: Kaplan and Meier (1958), "Nonparametric estimation from incomplete observations", JASA 53;
Brookmeyer and Crowley (1982), "A confidence interval for the median survival time", Biometrics 38,
with the log-log transform of survival's limits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedhh.arrays import Bools, Floats
from fedhh.validation import InputError

_Z, _TAIL = 1.959963984540054, 0.025
"""Of a two-sided 95 % interval."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Survival:
    """The Kaplan-Meier estimate.

    Attributes:
        times: ``(k,) float64``, ascending: when something happened.
        share: ``(k,) float64``: the share to which it has not happened after each time.
        low: ``(k,) float64``: lower limit of that share, 95 % at each time.
        high: ``(k,) float64``: its upper limit.
    """

    times: Floats
    share: Floats
    low: Floats
    high: Floats

    def quantile(self, part: float) -> tuple[float, float, float]:
        """Return when it has happened to this part, and both ends of the interval around it.

        Infinite where it had not by the last time.
        """
        left = 1 - part + 1e-12
        return tuple(_first(self.times, each <= left) for each in (self.share, self.low, self.high))  # type: ignore[return-value]


def survival(times: Floats, happened: Bools) -> Survival:
    """Return the Kaplan-Meier estimate of the share to which it has not happened.

    Args:
        times: ``(n,) float64``, at least 0: when it happened, or when one stopped looking.
        happened: ``(n,) bool``.

    Raises:
        InputError: There is nobody.

    >>> some = survival(np.array([1.0, 2, 2, 3, 4]), np.array([True, True, False, True, False]))
    >>> some.times.tolist(), some.share.round(3).tolist()
    ([1.0, 2.0, 3.0], [0.8, 0.6, 0.3])
    >>> some.quantile(0.5)[0]
    3.0
    """
    if not len(times):
        raise InputError("Expected at least one time, got none.")
    at = np.unique(times[happened])
    events = (times[happened][None, :] == at[:, None]).sum(axis=1)
    at_risk = (times[None, :] >= at[:, None]).sum(axis=1)
    share = np.cumprod(1 - events / at_risk)
    with np.errstate(divide="ignore", invalid="ignore"):
        greenwood = np.cumsum(events / (at_risk * (at_risk - events)))
        spread = _Z * np.sqrt(greenwood) / np.abs(np.log(share))
        low, high = share ** np.exp(spread), share ** np.exp(-spread)
    gone = share <= 0
    # Where it happened to all n, the transform has no limits. A share of more than this would have
    # left none with a chance below 2.5 %.
    low[gone], high[gone] = 0.0, 1 - _TAIL ** (1 / max(events.sum(), 1))
    return Survival(times=at, share=share, low=low, high=high)


def _first(times: Floats, is_reached: Bools) -> float:
    return float(times[is_reached.argmax()]) if is_reached.any() else math.inf
