"""Audits of a randomizer, a layer and a run: lower bounds by sampling, next to what is claimed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fedhh.accounting import AuditResult, NotApplicable, account_shuffle
from fedhh.accounting.guarantees import SWAP, or_none
from fedhh.accounting.guess_audit import audit_oracle, messages_to_sample
from fedhh.clients.populations.population import StoredPopulation
from fedhh.experiments.config.built_in import preset_names
from fedhh.experiments.config.load import load_config
from fedhh.experiments.config.population import build_population
from fedhh.experiments.run.layer_audit import audit_layer, audit_run, audit_votes, votes_to_sample
from fedhh.experiments.run.run import check_config
from fedhh.experiments.study.json_values import plain
from fedhh.oracles import OracleSpec, make_oracle
from fedhh.random import Stream, generator
from fedhh.validation import require_inside

_LAYERS = 2_000


@dataclass(frozen=True, kw_only=True)
class AuditedPart:
    """One thing that was audited.

    Attributes:
        audited: What.
        found: Lower bound on its epsilon, by sampling.
        claim: The smallest epsilon that is claimed of it, comparisons left out.
    """

    audited: str
    found: AuditResult
    claim: float

    @property
    def refuted(self) -> bool:
        return self.found.epsilon > self.claim

    def to_dict(self) -> dict[str, Any]:
        return {
            "audited": self.audited,
            "at_least": self.found.epsilon,
            "claimed": plain(self.claim),
            "largest_detectable": plain(self.found.largest_detectable),
            "event": self.found.event,
            "num_samples": self.found.num_samples,
            "verdict": _word(self.refuted),
        }


@dataclass(frozen=True, kw_only=True)
class AuditVerdict:
    """Lower bounds next to claims; unit: an item, neighbors: swaps.

    Attributes:
        parts: What was audited; the last one is what was asked for.
        upper_bounds: Epsilons claimed of the last part, by bound; None where one does not apply.
        confidence: Of the verdict, all parts together.
        facts: Of the run that was audited.
    """

    parts: tuple[AuditedPart, ...]
    upper_bounds: Mapping[str, float | None]
    confidence: float
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def refuted(self) -> bool:
        return any(part.refuted for part in self.parts)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary; an infinite number becomes the string "inf"."""
        asked = self.parts[-1]
        found = asdict(asked.found)
        at_least = found.pop("epsilon")
        return {
            "audited": asked.audited,
            **self.facts,
            "unit": "item",
            "neighboring": SWAP,
            **found,
            "estimate": plain(asked.found.estimate),
            "confidence": self.confidence,
            "at_least": at_least,
            "upper_bounds": plain(dict(self.upper_bounds)),
            "parts": [part.to_dict() for part in self.parts],
            "verdict": _word(self.refuted),
        }


def audit_randomizer(
    oracle: str = "ss",
    *,
    local_epsilon: float,
    domain_size: int,
    num_reports: int | None = None,
    num_samples: int | None = None,
    confidence: float = 0.999,
    delta: float = 1e-3,
    seed: int = 0,
) -> AuditVerdict:
    """Return lower bounds on the epsilon that a randomizer really gives, next to what is claimed.

    Audited are messages, tallies of single reports as a run's workers make them, and with
    ``num_reports`` the votes of a layer. Unit: an item; neighbors swap it.

    Args:
        oracle: The randomizer's key.
        local_epsilon: Its stated privacy.
        domain_size: Its values, the dummy included.
        num_reports: Of a layer, whose central epsilon at ``delta`` is then audited.
        num_samples: Messages, tallies, and layers with each of two data sets; chosen if None.
        confidence: Of the verdict, all parts together, in (0, 1).
        delta: Of a layer's central epsilon, from 1e-14 to 0.1.
        seed: Of all samples.

    Raises:
        InputError: A value is out of range.
    """
    spec = OracleSpec(name=oracle, epsilon=local_epsilon)
    require_inside(0, 1, confidence=confidence)
    upper_bounds: dict[str, float | None] = {"local": local_epsilon}
    layer_claim = math.inf
    if num_reports is not None:
        # The bounds first: they know what range they hold in, and cost little.
        bounds = account_shuffle(
            local_epsilon=local_epsilon,
            num_reports=num_reports,
            delta=delta,
            domain_size=domain_size if oracle == "ss" else None,
        ).bounds
        if oracle != "ss":
            bounds = {key: bound for key, bound in bounds.items() if key != "ss_blanket"}
        upper_bounds = {key: or_none(bound.epsilon) for key, bound in bounds.items()}
        layer_claim = min(
            bound.epsilon
            for bound in bounds.values()
            if bound.proven and not isinstance(bound.epsilon, NotApplicable)
        )
    # What is stated of all parts together is wrong with the stated probability at most.
    each = 1 - (1 - confidence) / (2 if num_reports is None else 3)
    randomizer = make_oracle(spec, domain_size)
    parts = [
        AuditedPart(
            audited=f"one report of {oracle}, read as a message",
            found=audit_oracle(
                randomizer,
                num_samples=messages_to_sample(randomizer) if num_samples is None else num_samples,
                rng=generator(seed, Stream.RANDOMIZER),
                confidence=each,
            ),
            claim=local_epsilon,
        ),
        _votes(spec, domain_size, num_samples=num_samples, confidence=each, seed=seed),
    ]
    if num_reports is not None:
        parts.append(
            AuditedPart(
                audited=f"the votes of one layer of {num_reports} reports of {oracle}",
                found=audit_layer(
                    spec,
                    domain_size=domain_size,
                    num_reports=num_reports,
                    num_runs=_LAYERS if num_samples is None else num_samples,
                    delta=delta,
                    confidence=each,
                    seed=seed,
                ),
                claim=layer_claim,
            )
        )
    return AuditVerdict(parts=tuple(parts), upper_bounds=upper_bounds, confidence=confidence)


def audit_configured_run(
    source: str | Path,
    *,
    settings: Sequence[str] = (),
    num_samples: int | None = None,
    confidence: float = 0.999,
    delta: float = 1e-3,
    seed: int = 0,
) -> AuditVerdict:
    """Return lower bounds on the epsilons of a run's first layer that decides, next to its claims.

    Audited are tallies of single reports, and the votes of the layer. Unit: an item; neighbors
    swap the item of one client.

    Args:
        source: A preset, or a run's TOML file.
        settings: Changes as "KEY=VALUE".
        num_samples: Tallies, and runs on each of two populations; chosen if None.
        confidence: Of the verdict, all parts together, in (0, 1).
        delta: Of the run's central epsilon, from 1e-14 to 0.1.
        seed: Of all samples.

    Raises:
        InputError: The run cannot be audited, or a value is out of range.
    """
    preset = str(source) if str(source) in preset_names() else None
    config = load_config(
        preset=preset,
        file=Path(source) if preset is None else None,
        settings=("population.virtual=false", *settings),
    )
    require_inside(0, 1, confidence=confidence)
    population, _ = build_population(config.population, seed=config.seed)
    assert isinstance(population, StoredPopulation)
    _, protocol = check_config(config, population)
    each = 1 - (1 - confidence) / 2
    audit = audit_run(
        protocol,
        population,
        num_runs=_LAYERS if num_samples is None else num_samples,
        delta=delta,
        confidence=each,
        seed=seed,
    )
    votes = _votes(
        audit.oracle, audit.domain_size, num_samples=num_samples, confidence=each, seed=seed
    )
    asked = AuditedPart(
        audited=f"layer {audit.layer} of {protocol.title} on {population.name}",
        found=audit.found,
        claim=min(
            claim.epsilon
            for claim in audit.claims
            if claim.best and not isinstance(claim.epsilon, NotApplicable)
        ),
    )
    return AuditVerdict(
        parts=(votes, asked),
        upper_bounds={claim.method: or_none(claim.epsilon) for claim in audit.claims},
        confidence=confidence,
        facts={
            "local_epsilon": protocol.plan.local_epsilon,
            "reports": audit.num_reports,
            "domain_size": audit.domain_size,
            "neighbors": f"one client holds {audit.words[0]!r} or {audit.words[1]!r}",
        },
    )


def _votes(
    spec: OracleSpec, domain_size: int, *, num_samples: int | None, confidence: float, seed: int
) -> AuditedPart:
    """Return the audit of one report as a run makes it."""
    if num_samples is None:
        num_samples = votes_to_sample(spec.epsilon, domain_size)
    return AuditedPart(
        audited=f"one report of {spec.name}, through a worker's tally",
        found=audit_votes(
            spec, domain_size=domain_size, num_samples=num_samples, confidence=confidence, seed=seed
        ),
        claim=spec.epsilon,
    )


def _word(refuted: bool) -> str:
    return "refuted" if refuted else "consistent"
