"""What `fedhh account plan` was asked for: a family of plans, and what is looked for in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fedhh.accounting import NotApplicable, PrivacyReport, account
from fedhh.accounting.guarantees import Guarantee, Unit
from fedhh.accounting.plan_search import UNITS, clients_of_plan, local_epsilon_of_plan
from fedhh.experiments.config.protocol import build_protocol
from fedhh.experiments.config.schema import load_config
from fedhh.experiments.run.privacy import DEFAULT_ALPHA, DEFAULT_DELTA
from fedhh.mechanisms.base import Mechanism, PlannedLayer
from fedhh.mechanisms.local_reports import LocalReports
from fedhh.oracles import OracleSpec, oracle_names
from fedhh.protocol import AnyProtocol
from fedhh.settings import AUTO, LARGEST_COUNT
from fedhh.validation import (
    InputError,
    require_at_least,
    require_choice,
    require_epsilon,
    require_positive,
)

_START = 100_000
"""Clients at which a search starts."""
_ANY_DOMAIN = (2, LARGEST_COUNT)
_NO_RANDOMIZER = "none"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Rounds of a plan, where no protocol says them; None for what was not given.

    Attributes:
        layers: Layers of a pass, each with a cohort of its own; 1 if none.
        passes: Passes; 1 if none.
        validation_share: Share of all clients that a validation round asks; no such round if none.
        max_items: B, contributions of a client; 1 if none.
        oracle: The randomizer; "ss" if none.
        domain_size: Values of every layer; any if neither this nor ``eta_max`` is given.
        eta_max: Prefixes that a layer keeps at most, so that votes decide the domain.
        alphabet_size: Symbols that extend each of them; 27 if none.
    """

    layers: int | None = None
    passes: int | None = None
    validation_share: float | None = None
    max_items: int | None = None
    oracle: str | None = None
    domain_size: int | None = None
    eta_max: int | None = None
    alphabet_size: int | None = None

    def plan(self, clients: int, local_epsilon: float) -> LocalReports:
        """Return the plan for so many clients in all; InputError if they are too few."""
        rounds, share = (self.layers or 1) * (self.passes or 1), self.validation_share or 0.0
        validation = int(clients * share)
        cohort = (clients - validation) // rounds
        if cohort < 1 or (share and validation < 1):
            raise InputError(f"Expected a client for each of {rounds} layers, got {clients}.")
        smallest, largest = self._domains()
        layers = [
            PlannedLayer(
                pass_index=pass_index,
                layer=layer,
                num_clients=cohort,
                smallest_domain=smallest,
                largest_domain=largest,
            )
            for pass_index in range(self.passes or 1)
            for layer in range(1, (self.layers or 1) + 1)
        ]
        if share:
            last = layers[-1]
            layers.append(
                replace(last, layer=last.layer + 1, num_clients=validation, smallest_domain=2)
            )
        oracle = self.oracle or "ss"
        params = {"subset_size": "optimal"} if oracle == "ss" else {}
        return LocalReports(
            layers=tuple(layers),
            max_items=self.max_items or 1,
            randomizers=(OracleSpec(name=oracle, epsilon=local_epsilon, params=params),),
        )

    def check(self) -> None:
        """Raise InputError unless the values are such that a plan can have them."""
        counts = {"layers": 1, "passes": 1, "max_items": 1, "domain_size": 2, "eta_max": 1}
        for name, least in {**counts, "alphabet_size": 1}.items():
            if (value := getattr(self, name)) is not None:
                require_at_least(least, **{name: value})
        share = self.validation_share
        if share is not None and not 0 < share < 1:
            raise InputError(f"Expected 0 < validation_share < 1, got validation_share={share}.")
        known = [name for name in oracle_names() if name != _NO_RANDOMIZER]
        require_choice(known, oracle=self.oracle or "ss")
        if self.domain_size is not None and self.eta_max is not None:
            raise InputError("Expected --domain-size or --eta-max, got both; leave one out.")

    def _domains(self) -> tuple[int, int]:
        if self.domain_size is not None:
            return self.domain_size, self.domain_size
        if self.eta_max is None:
            return _ANY_DOMAIN
        symbols = self.alphabet_size or 27
        return symbols + 1, self.eta_max * symbols + 1


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """A target, and the family of plans in which it is to be met.

    Attributes:
        unit: Whose guarantee the target is about.
        central_epsilon: The target.
        delta: Of the guarantee.
        plan: Returns the plan of so many clients in all at a local epsilon.
        title: What the family is called.
        local_epsilon: Given, if the clients are looked for.
        clients: Given, if the local epsilon is looked for.
    """

    unit: Unit
    central_epsilon: float
    delta: float
    plan: Callable[[int, float], Mechanism]
    title: str
    local_epsilon: float | None
    clients: int | None

    def answer(self) -> PlanAnswer:
        """Return the plan that meets the target."""
        target: dict[str, Any] = {
            "unit": self.unit, "epsilon": self.central_epsilon, "delta": self.delta,
        }  # fmt: skip
        clients: int | NotApplicable
        local: float | NotApplicable
        if self.clients is None:
            assert self.local_epsilon is not None
            local = self.local_epsilon
            at = self.local_epsilon
            clients = clients_of_plan(lambda n: self.plan(n, at), **target, start=_START)
        else:
            clients = given = self.clients
            local = local_epsilon_of_plan(
                lambda epsilon: self.plan(given, epsilon), **target, num_clients=given
            )
        if isinstance(clients, NotApplicable) or isinstance(local, NotApplicable):
            reason = clients if isinstance(clients, NotApplicable) else local
            return PlanAnswer(request=self, reason=str(reason))
        mechanism = self.plan(clients, local)
        report = account(mechanism, (), num_clients=clients, delta=self.delta, alpha=DEFAULT_ALPHA)
        return PlanAnswer(
            request=self, clients=clients, local_epsilon=local, mechanism=mechanism, report=report
        )


@dataclass(frozen=True, kw_only=True)
class PlanAnswer:
    """A plan that meets a target, or why none does.

    Attributes:
        request: What was asked for.
        reason: Why there is no plan; empty if there is one.
        clients: In all.
        local_epsilon: Of one contribution.
        mechanism: The plan.
        report: All that it can claim before the run.
    """

    request: PlanRequest
    reason: str = ""
    clients: int = 0
    local_epsilon: float = 0.0
    mechanism: Mechanism | None = None
    report: PrivacyReport | None = None

    @property
    def cohorts(self) -> list[int]:
        """Clients of each layer."""
        return [] if self.mechanism is None else [x.num_clients for x in self.mechanism.layers]

    @property
    def guarantees(self) -> list[Guarantee]:
        """Local and central ones of an item, then of a user."""
        if self.report is None:
            return []
        return [
            each
            for unit in UNITS
            for each in (self.report.best(unit, "local"), self.report.before_run(unit))
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary."""
        request, cohorts = self.request, self.cohorts
        plan = None
        if self.mechanism is not None:
            plan = {
                "local_epsilon": self.local_epsilon,
                "max_items": self.mechanism.max_items,
                "rounds": len(cohorts),
                "passes": self.mechanism.num_passes,
                "clients_per_layer": cohorts,
                "clients": self.clients,
            }
        return {
            "of": request.title,
            "target": {
                "unit": request.unit,
                "trust": "central",
                "neighboring": "swap",
                "epsilon": request.central_epsilon,
                "delta": request.delta,
            },
            "plan": plan,
            "guarantees": [each.to_dict() for each in self.guarantees],
            "reason": self.reason or None,
        }


def plan_request(
    *,
    unit: str,
    central_epsilon: float,
    delta: float | None,
    local_epsilon: float | None,
    clients: int | None,
    shape: Shape,
    preset: str | None = None,
    config: Path | None = None,
    settings: tuple[str, ...] = (),
) -> PlanRequest:
    """Return what was asked for; InputError where options contradict each other."""
    require_positive(central_epsilon=central_epsilon)
    require_choice(UNITS, unit=unit)
    if clients is not None:
        require_at_least(1, clients=clients)
    if local_epsilon is not None:
        require_epsilon(local_epsilon=local_epsilon)
    has_protocol = preset is not None or config is not None
    if local_epsilon is not None and clients is not None:
        raise InputError(
            "Expected either --local-epsilon (how many clients?) or --clients (which local "
            "epsilon?), got both."
        )
    plan: Callable[[int, float], Mechanism]
    if has_protocol:
        if shape != Shape():
            raise InputError(
                "Expected the plan from --preset or --config, or from --layers, --passes and the "
                "like, got both; change a preset's by --set protocol.KEY=VALUE."
            )
        changed = [*settings, *([] if delta is None else [f"privacy.delta={delta!r}"])]
        loaded = load_config(preset=preset, file=config, settings=changed)
        protocol = build_protocol(loaded).with_central_epsilon(central_epsilon)
        plan, title, delta = _plan_of(protocol), protocol.title, loaded.privacy.delta
        if clients is None and local_epsilon is None:
            local_epsilon = loaded.privacy.local_epsilon
    else:
        if settings:
            raise InputError("Expected --set only with --preset or --config.")
        if local_epsilon is None and clients is None:
            raise InputError(
                "Expected either --local-epsilon (how many clients?) or --clients (which local "
                "epsilon?), got neither."
            )
        shape.check()
        plan, title = shape.plan, f"oracle {shape.oracle or 'ss'}"
        if clients is not None:
            shape.plan(clients, 1.0)
    return PlanRequest(
        unit="item" if unit == "item" else "user",
        central_epsilon=central_epsilon,
        delta=DEFAULT_DELTA if delta is None else delta,
        plan=plan,
        title=title,
        local_epsilon=local_epsilon,
        clients=clients,
    )


def _plan_of(protocol: AnyProtocol) -> Callable[[int, float], Mechanism]:
    """Return the plans of a protocol that shares all clients out among its layers."""
    settings: Any = protocol
    fields = vars(protocol)
    if not {"clients_per_layer", "local_epsilon"} <= fields.keys():
        raise InputError(
            f"Expected a protocol with a local epsilon and cohorts, got {protocol.title}; its "
            "sample follows from its central epsilon."
        )

    def plan(clients: int, local_epsilon: float) -> Mechanism:
        changed = replace(settings, clients_per_layer=AUTO, local_epsilon=local_epsilon)
        mechanism: Mechanism = changed.settle(num_clients=clients, seed=0).mechanism
        return mechanism

    return plan
