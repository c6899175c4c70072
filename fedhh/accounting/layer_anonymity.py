"""Approximate k-anonymity of a run: layer by layer, and over its passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial

from fedhh.accounting.anonymity import ASSUMPTIONS, THEOREMS, VARIANTS, LayerAnonymity, anonymity
from fedhh.accounting.bounds.shuffle_bound import out_of_range
from fedhh.accounting.guarantees import AnonymityGuarantee, NotApplicable
from fedhh.accounting.local_reports import LocalReports
from fedhh.accounting.run_facts import LayerRecord
from fedhh.accounting.sources import VALIDATION
from fedhh.oracles.registry import oracle_class

_ROUNDING = 1e-12

_VALIDATES = ("validation", "evidence")
"""What a validation round keeps words by; see `fedhh.protocol.RoundSummary`."""


def anonymity_of_run(
    records: Sequence[LayerRecord], plan: LocalReports, *, alpha: float
) -> list[AnonymityGuarantee]:
    """Return the claims of each layer and over the whole run.

    For Subset Selection alone, both variants of Lemma 1 of Sun et al. (2024): a word ends in the
    same layer of every pass, where it must be kept to surface. Over the run, the probabilities of
    that layer in all passes combine, and the layer with the smallest k counts. The claim covers
    words that end in layers that decide in every pass. With a validation round, every word must
    also pass it, so that the larger k of both counts. For other randomizers, the claim of the
    validation round alone, if there is one, as variant "tight".

    Args:
        records: Layers that took place; none before the run.
        plan: Its randomizers; for Subset Selection, with an epsilon from 0.1 to 16.
        alpha: Required probability that a rare value does not surface.
    """
    validation = claim_of_validation(plan, alpha=alpha)
    if not (plan.is_subset_selection and records):
        return [] if validation is None else [validation]
    claims = []
    numbers = sorted({record.layer for record in records if record.kept_by not in _VALIDATES})
    for variant in VARIANTS:
        claim = partial(_claim, plan=plan, alpha=alpha, variant=variant)
        for record in records:
            of_layer = claim([record])
            if validation is not None and record.kept_by in _VALIDATES:
                of_layer = replace(validation, variant=variant)
            claims.append(replace(of_layer, pass_index=record.pass_index, layer=record.layer))
        over_passes = [
            claim([record for record in records if record.layer == number]) for number in numbers
        ]
        decided = [each for each in over_passes if not isinstance(each.k, NotApplicable)]
        over_run = [replace(validation, variant=variant)] if validation is not None else []
        if over_passes:
            over_run.append(min(decided or over_passes, key=_strength))
        claims.append(max(over_run, key=_strength))
    return claims


def claim_over_run(claims: Sequence[AnonymityGuarantee]) -> AnonymityGuarantee | None:
    """Return the tight claim over a whole run, None where no k is claimed.

    Args:
        claims: A run's, see `anonymity_of_run`.
    """
    for claim in claims:
        if claim.variant == "tight" and claim.layer is None and isinstance(claim.k, int):
            return claim
    return None


def claim_of_validation(plan: LocalReports, *, alpha: float) -> AnonymityGuarantee | None:
    """Return the claim for words that must pass a validation round; None without one.

    It holds before the run, by design: a word that at most k clients hold passes only with a
    p-value of at most the false discovery rate (docs/accounting.md, section 5). k is None if
    ``alpha`` is stricter than one minus that rate, and NotApplicable for sketches, whose reports
    share hash functions: votes of a word that no client holds are not independent there.

    Args:
        plan: The plan, the validation round last.
        alpha: Required probability that a rare value does not surface.
    """
    rate = plan.false_discovery_rate
    if not rate:
        return None
    from fedhh.oracles.sketch import SketchOracle  # It loads compiled code.

    k: int | NotApplicable | None = None
    randomizer = plan.validation_randomizer or plan.randomizers[-1]
    if issubclass(oracle_class(randomizer.name), SketchOracle):
        k = NotApplicable("the validation round's reports share hash functions")
    elif rate <= 1 - alpha + _ROUNDING:
        k = plan.anonymity_k
    return AnonymityGuarantee(
        k=k,
        alpha=alpha,
        variant="tight",
        probability=rate,
        theorem=VALIDATION,
        assumptions="by design, for every word returned, whatever the other votes are",
        smallest_cohort=plan.layers[-1].fewest_clients,
    )


def _claim(
    records: Sequence[LayerRecord], *, plan: LocalReports, alpha: float, variant: str
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
    local_epsilon = plan.local_epsilon
    for record in records:
        problem = out_of_range(local_epsilon=local_epsilon, num_reports=record.num_reports)
        if plan.votes_per_client == "one":
            problem = "a layer counts clients, and the lemma is about votes of reports"
        elif record.kept_by == "posterior":
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
        if (subset_size := plan.values_per_report(record.domain_size)) is not None
    )
    found = _anonymity_once(layers, alpha)
    return replace(claim, k=found.k, probability=found.probability)


@lru_cache(maxsize=1024)
def _anonymity_once(layers: tuple[LayerAnonymity, ...], alpha: float) -> AnonymityGuarantee:
    """Return `anonymity`; layers of a run, and of a sweep's runs, are often alike."""
    return anonymity(layers, alpha=alpha)


def _strength(claim: AnonymityGuarantee) -> int:
    return claim.k if isinstance(claim.k, int) else -1
