"""Approximate k-anonymity of a run: layer by layer, and over its passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial

from fedhh.accounting.anonymity import ASSUMPTIONS, THEOREMS, VARIANTS, LayerAnonymity, anonymity
from fedhh.accounting.bounds.shuffle_bound import out_of_range
from fedhh.accounting.guarantees import AnonymityGuarantee, NotApplicable
from fedhh.accounting.layer_record import LayerRecord
from fedhh.accounting.sources import RECOUNT
from fedhh.mechanisms.local_reports import LocalReports

_ROUNDING = 1e-12


def anonymity_of_run(
    records: Sequence[LayerRecord], mechanism: LocalReports, *, alpha: float
) -> list[AnonymityGuarantee]:
    """Return, for both variants, the claim of each layer and the claim over the whole run.

    A word ends in the same layer of every pass, where it must be kept to surface. Over the run,
    the probabilities of that layer in all passes combine, and the layer with the smallest k counts.
    The claim covers words that end in layers that decide in every pass.

    Args:
        records: Layers of a run.
        mechanism: Its randomizer, Subset Selection with an epsilon from 0.1 to 16.
        alpha: Required probability that a rare value does not surface.
    """
    claims = []
    numbers = sorted({record.layer for record in records})
    for variant in VARIANTS:
        claim = partial(_claim, mechanism=mechanism, alpha=alpha, variant=variant)
        claims += [
            replace(claim([record]), pass_index=record.pass_index, layer=record.layer)
            for record in records
        ]
        over_passes = [
            claim([record for record in records if record.layer == number]) for number in numbers
        ]
        decided = [each for each in over_passes if not isinstance(each.k, NotApplicable)]
        claims.append(min(decided or over_passes, key=_strength))
    return claims


def _claim(
    records: Sequence[LayerRecord], *, mechanism: LocalReports, alpha: float, variant: str
) -> AnonymityGuarantee:
    """Return the claim for a value that may surface in any of these layers."""
    claim = AnonymityGuarantee(
        k=None,
        alpha=alpha,
        variant=variant,
        probability=None,
        theorem=THEOREMS[variant],
        assumptions=ASSUMPTIONS,
        smallest_cohort=min(record.num_clients for record in records),
        claimed_in_paper=variant == "lemma",
        realised=True,
    )
    if any(record.kept_by == "evidence" for record in records):
        return _claim_of_evidence(claim, mechanism.false_discovery_rate)
    local_epsilon = mechanism.local_epsilon
    for record in records:
        problem = out_of_range(local_epsilon=local_epsilon, num_reports=record.num_reports)
        if record.kept_by == "posterior":
            problem = "the layer keeps candidates by what all layers showed, not by its votes"
        elif record.num_kept == 0:
            problem = "the layer kept nothing"
        elif not record.decides:
            problem = f"the layer keeps all of its {record.domain_size - 1} candidates"
        if problem:
            return replace(claim, k=NotApplicable(problem))
    layers = tuple(
        LayerAnonymity(
            local_epsilon=local_epsilon,
            domain_size=record.domain_size,
            subset_size=subset_size,
            num_kept=record.num_kept,
            num_reports=record.num_reports,
            variant=variant,
        )
        for record in records
        if (subset_size := mechanism.values_per_report(record.domain_size)) is not None
    )
    found = _anonymity_once(layers, alpha)
    return replace(claim, k=found.k, probability=found.probability)


def _claim_of_evidence(claim: AnonymityGuarantee, rate: float) -> AnonymityGuarantee:
    """Return the claim for words that pass a test whose p-value is at most ``rate``.

    It is for words that nobody holds, k = 0, and holds before the run.
    """
    return replace(
        claim,
        k=0 if rate <= 1 - claim.alpha + _ROUNDING else None,
        probability=rate,
        theorem=RECOUNT,
        assumptions="a word passes only with a p-value of at most the false discovery rate",
        claimed_in_paper=False,
        realised=False,
    )


@lru_cache(maxsize=1024)
def _anonymity_once(layers: tuple[LayerAnonymity, ...], alpha: float) -> AnonymityGuarantee:
    """Return `anonymity`; layers of a run, and of a sweep's runs, are often alike."""
    return anonymity(layers, alpha=alpha)


def _strength(claim: AnonymityGuarantee) -> int:
    """Return k, -1 where there is none."""
    return claim.k if isinstance(claim.k, int) else -1
