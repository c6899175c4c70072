"""Accounting of a run, whatever its mechanism: one function that goes by the mechanism's type."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

from fedhh.accounting.layer_record import LayerRecord
from fedhh.accounting.opt_in import account_opt_in
from fedhh.accounting.report import PrivacyReport, account_local
from fedhh.accounting.triehh import account_triehh
from fedhh.mechanisms.base import Mechanism
from fedhh.mechanisms.local_reports import LocalReports
from fedhh.mechanisms.opt_in import OptInBlend
from fedhh.mechanisms.sampled_threshold import SampledThreshold
from fedhh.validation import InputError


@singledispatch
def account(
    mechanism: Mechanism,
    layers: Sequence[LayerRecord],
    *,
    num_clients: int,
    delta: float,
    alpha: float,
) -> PrivacyReport:
    """Return the privacy report of a run.

    A mechanism of another type brings its own: ``account.register`` a function for it.

    Args:
        mechanism: What the run did with its clients' data.
        layers: What took part, one record for each round that took place; none before the run.
        num_clients: Clients of the population.
        delta: Central target.
        alpha: Required probability that a rare value does not surface.

    Raises:
        InputError: No accounting is known for the mechanism, or a value is out of range.
    """
    raise InputError(
        f"Expected accounting for the mechanism {type(mechanism).__name__}, got none; register a "
        "function with fedhh.accounting.account.register."
    )


@account.register
def _of_local_reports(
    mechanism: LocalReports,
    layers: Sequence[LayerRecord],
    *,
    num_clients: int,
    delta: float,
    alpha: float,
) -> PrivacyReport:
    return account_local(mechanism, layers, delta=delta, alpha=alpha)


@account.register
def _of_sampled_threshold(
    mechanism: SampledThreshold,
    layers: Sequence[LayerRecord],
    *,
    num_clients: int,
    delta: float,
    alpha: float,
) -> PrivacyReport:
    return account_triehh(
        num_clients=num_clients,
        sample_size=mechanism.sample_size,
        threshold=mechanism.threshold,
        num_rounds=len(mechanism.layers),
        delta=delta,
    )


@account.register
def _of_opt_in_blend(
    mechanism: OptInBlend,
    layers: Sequence[LayerRecord],
    *,
    num_clients: int,
    delta: float,
    alpha: float,
) -> PrivacyReport:
    return account_opt_in(mechanism, layers, delta=delta, alpha=alpha)
