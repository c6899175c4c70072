"""Approximate k-anonymity of a run: layer by layer, and over its passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fedhh.accounting.anonymity import ASSUMPTIONS, THEOREMS, LayerAnonymity, anonymity
from fedhh.accounting.bounds.shuffle_bound import out_of_range
from fedhh.accounting.guarantees import AnonymityGuarantee, NotApplicable
from fedhh.accounting.rounds import RoundSummary
from fedhh.accounting.sources import VALIDATION
from fedhh.oracles.registry import oracle_class

if TYPE_CHECKING:
    from fedhh.accounting.local_reports import LocalReports

_ROUNDING = 1e-12

_VALIDATES = ("validation", "evidence")
"""What a validation round keeps words by; see `fedhh.accounting.rounds`."""


def anonymity_of_run(
    rounds: Sequence[RoundSummary], plan: LocalReports, *, alpha: float
) -> list[AnonymityGuarantee]:
    """Return the claims of each layer and over the whole run.

    For Subset Selection alone, Lemma 1 of Sun et al. (2024) with a corrected coupling: a word ends
    in the same layer of every pass, where it must be kept to surface. Over the run, the
    probabilities of that layer in all passes combine, and the layer with the smallest k counts. The
    claim covers words that end in layers that decide in every pass. With a validation round, every
    word must also pass it, so that the larger k of both counts. For other randomizers, the claim of
    the validation round alone, if there is one.

    Args:
        rounds: That took place; none before the run.
        plan: Its randomizers; for Subset Selection, with an epsilon from 0.1 to 16.
        alpha: Required probability that a rare value does not surface.
    """
    validation = claim_of_validation(plan, alpha=alpha)
    if not (plan.is_subset_selection and rounds):
        return [] if validation is None else [validation]
    claims = []
    for each in rounds:
        if validation is not None and each.kept_by in _VALIDATES:
            of_layer = validation
        else:
            of_layer = _claim([each], plan=plan, alpha=alpha)
        claims.append(replace(of_layer, pass_index=each.pass_index, layer=each.layer))
    numbers = sorted({each.layer for each in rounds if each.kept_by not in _VALIDATES})
    over_passes = [
        _claim([each for each in rounds if each.layer == number], plan=plan, alpha=alpha)
        for number in numbers
    ]
    decided = [each for each in over_passes if not isinstance(each.k, NotApplicable)]
    over_run = [] if validation is None else [validation]
    if over_passes:
        over_run.append(min(decided or over_passes, key=_strength))
    claims.append(max(over_run, key=_strength))
    return claims


def claim_over_run(claims: Sequence[AnonymityGuarantee]) -> AnonymityGuarantee | None:
    """Return the claim over a whole run, None where no k is claimed.

    Args:
        claims: A run's, see `anonymity_of_run`.
    """
    for claim in claims:
        if claim.layer is None and isinstance(claim.k, int):
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
    from fedhh.oracles.hashed import SketchOracle  # It loads compiled code.

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
    rounds: Sequence[RoundSummary], *, plan: LocalReports, alpha: float
) -> AnonymityGuarantee:
    """Return the claim for a value that may surface in any of these layers."""
    problem = next(filter(None, (_why_not(each, plan) for each in rounds)), None)
    if problem is None:
        claim = anonymity(
            [
                LayerAnonymity(
                    local_epsilon=plan.local_epsilon,
                    domain_size=each.domain_size,
                    subset_size=subset_size,
                    num_kept=each.num_kept,
                    num_reports=each.num_reports,
                )
                for each in rounds
                if (subset_size := plan.values_per_report(each.domain_size)) is not None
            ],
            alpha=alpha,
        )
    else:
        claim = AnonymityGuarantee(
            k=NotApplicable(problem),
            alpha=alpha,
            variant="tight",
            probability=None,
            theorem=THEOREMS["tight"],
            assumptions=ASSUMPTIONS,
        )
    return replace(claim, smallest_cohort=min(each.num_clients for each in rounds), realised=True)


def _why_not(heard: RoundSummary, plan: LocalReports) -> str | None:
    """Return why the lemma says nothing about a layer; None if it does."""
    if plan.votes_per_client == "one":
        return "a layer counts clients, and the lemma is about votes of reports"
    if heard.kept_by == "posterior":
        return "the layer keeps candidates by what all layers showed, not by its votes"
    if heard.num_kept == 0:
        return "the layer kept nothing"
    if not heard.decides:
        return f"the layer keeps all of its {heard.num_candidates} candidates"
    if heard.num_candidates + 1 < heard.domain_size:
        return "the layer has fillers, and keeps none of them however many votes they have"
    return out_of_range(local_epsilon=plan.local_epsilon, num_reports=heard.num_reports)


def _strength(claim: AnonymityGuarantee) -> int:
    return claim.k if isinstance(claim.k, int) else -1
