"""What tables and figures need of a protocol, as data: a directory is read without its code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, get_args

from fedhh.accounting.local_reports import LocalReports
from fedhh.accounting.plan import Participation, Plan
from fedhh.accounting.rounds import PlannedRound
from fedhh.protocol import Answers, DiscoveryProtocol, RunState
from fedhh.validation import InputError
from fedhh.words.alphabet import Alphabet


def statement_of(protocol: DiscoveryProtocol) -> dict[str, Any]:
    """Return what a finished run writes of its protocol, as JSON values."""
    plan = protocol.plan
    local = isinstance(plan, LocalReports)
    return {
        "title": protocol.title,
        "symbols": protocol.symbols.symbols,
        "longest_word": protocol.longest_word,
        "false_discovery_rate": getattr(protocol, "false_discovery_rate", 0.0),
        "anonymity_k": getattr(protocol, "anonymity_k", 0),
        "plan": {
            "layers": [[getattr(layer, name) for name in _LAYER] for layer in plan.layers],
            "max_items": plan.max_items,
            "padded": plan.padded,
            "participation": plan.participation,
            "epochs": plan.epochs,
            "secret_cohorts": plan.secret_cohorts,
            "num_apart": plan.num_apart,
            "local_epsilon": plan.local_epsilon if local else None,
            "is_of_whole_set": plan.is_of_whole_set,
            "false_discovery_rate": plan.false_discovery_rate,
            "votes_per_client": getattr(plan, "votes_per_client", "all"),
        },
    }


_LAYER = ("pass_index", "layer", "num_clients", "smallest_domain", "largest_domain")
"""What is stated of a planned round, in this order."""


@dataclass(frozen=True, kw_only=True)
class StatedProtocol(DiscoveryProtocol):
    """A protocol of a finished run, by what the run stated of it; it cannot run.

    Attributes:
        title: What tables and figures call it.
        alphabet: Symbols that a discovered word may have.
        length: Symbols of the longest word that can be discovered.
        false_discovery_rate: Of its validation round; 0 without one.
        anonymity_k: k of its validation round.
        stated_plan: What the run did with its clients' data.
    """

    title: str  # type: ignore[misc]  # Of a protocol with code it is the class's.
    alphabet: str
    length: int
    false_discovery_rate: float
    anonymity_k: int
    stated_plan: Plan

    @classmethod
    def of(cls, statement: dict[str, Any]) -> StatedProtocol:
        """Return the protocol of a statement."""
        stated = statement["plan"]
        epsilon = stated["local_epsilon"]
        spends: dict[str, Any] = {
            "max_items": _whole(stated["max_items"]),
            "padded": bool(stated["padded"]),
            "local_epsilon": math.inf if epsilon is None else float(epsilon),
        }
        shared: dict[str, Any] = {
            "layers": tuple(_layer(numbers, spends) for numbers in stated["layers"]),
            "participation": _participation(stated["participation"]),
            "epochs": _whole(stated["epochs"]),
            "secret_cohorts": bool(stated["secret_cohorts"]),
            "num_apart": _whole(stated["num_apart"]),
        }
        plan = Plan(**shared)
        if epsilon is not None:
            plan = LocalReports(
                **shared,
                # What they were is not stated, only what they spent.
                randomizers=(),
                is_of_whole_set=bool(stated["is_of_whole_set"]),
                false_discovery_rate=float(stated["false_discovery_rate"]),
                votes_per_client="one" if stated["votes_per_client"] == "one" else "all",
            )
        return cls(
            title=str(statement["title"]),
            alphabet=str(statement["symbols"]),
            length=_whole(statement["longest_word"]),
            false_discovery_rate=float(statement["false_discovery_rate"]),
            anonymity_k=_whole(statement["anonymity_k"]),
            stated_plan=plan,
        )

    @property
    def symbols(self) -> Alphabet:
        return Alphabet(symbols=self.alphabet)

    @property
    def longest_word(self) -> int:
        return self.length

    @property
    def plan(self) -> Plan:
        return self.stated_plan

    def settle(self, *, num_clients: int, seed: int) -> StatedProtocol:
        return self

    def begin(self) -> NoReturn:
        """Refuse: the protocol's code is not here."""
        raise InputError(f"{self.title}: expected the protocol's code, got what a run says of it.")

    def ask(self, planned: PlannedRound, run: RunState) -> NoReturn:
        self.begin()

    def hear(self, run: RunState, answers: Answers) -> NoReturn:
        self.begin()


def _layer(numbers: Sequence[Any], spends: dict[str, Any]) -> PlannedRound:
    stated: dict[str, Any] = dict(zip(_LAYER, map(_whole, numbers), strict=True))
    return PlannedRound(**stated, **spends)


def _participation(value: Any) -> Participation:
    """Return a participation as it is; ValueError for all else."""
    for known in get_args(Participation):
        if value == known:
            return known  # type: ignore[no-any-return]
    raise ValueError(f"expected a participation, got {value!r}")


def _whole(value: Any) -> int:
    """Return an integer as it is; ValueError for all else."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise ValueError(f"expected a whole number, got {value!r}")
    return value
