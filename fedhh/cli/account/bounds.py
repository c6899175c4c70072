"""Bounds as the commands print them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fedhh.accounting import NotApplicable, shuffle_epsilon
from fedhh.accounting.bounds.blanket import Blanket
from fedhh.accounting.bounds.clones import Clones, Clones2023, SelectionClones2023
from fedhh.accounting.bounds.closed_form import CLOSED_FORM_ASSUMPTIONS
from fedhh.accounting.sources import CLOSED_FORM_OF_SELECTION, SUN_CENTRAL
from fedhh.oracles import oracle_names
from fedhh.validation import InputError, require_choice

BOUND_KEYS = {
    "closed_form": "closed-form",
    "clones": "clones",
    "clones_2023": "clones-2023",
    "ss_blanket": "blanket",
}
_SOURCES = {"clones": Clones.theorem, "blanket": Blanket.theorem}
_OF_SELECTION = {
    "closed-form": CLOSED_FORM_OF_SELECTION,
    "clones-2023": SelectionClones2023.theorem,
}
_FOR_COMPARISON = {
    "closed-form": (SUN_CENTRAL, CLOSED_FORM_ASSUMPTIONS),
    "clones-2023": (Clones2023.theorem, Clones2023.assumptions),
}


def selection_of(oracle: str, domain_size: int | None) -> int | None:
    """Return the domain of Subset Selection, or None for any other randomizer."""
    require_choice(["any", *oracle_names()], oracle=oracle)
    if oracle != "ss":
        return None
    if domain_size is None:
        raise InputError("Expected --domain-size with --oracle ss, got none.")
    return domain_size


def bound_as_json(
    name: str,
    *,
    local_epsilon: float,
    num_reports: int,
    delta: float,
    domain_size: int | None,
) -> dict[str, Any]:
    """Return one bound as JSON values; "proven" says whether it holds for this randomizer.

    Args:
        name: One of the values of `BOUND_KEYS`.
        local_epsilon: Privacy of one report.
        num_reports: Reports in one shuffle.
        delta: Central target.
        domain_size: Of Subset Selection; None for any other randomizer.
    """
    proven = domain_size is not None or name not in _FOR_COMPARISON
    if name in _SOURCES:
        source, note = _SOURCES[name], None
    else:
        source, note = (_OF_SELECTION[name], None) if proven else _FOR_COMPARISON[name]
    if name == "blanket" and domain_size is None:
        epsilon: float | NotApplicable = NotApplicable(
            "needs --oracle ss and --domain-size: it holds for Subset Selection only"
        )
    else:
        epsilon = shuffle_epsilon(
            name,
            local_epsilon=local_epsilon,
            num_reports=num_reports,
            delta=delta,
            domain_size=domain_size if name == "blanket" else None,
        )
    applicable = not isinstance(epsilon, NotApplicable)
    return {
        "epsilon": epsilon if applicable else None,
        "delta": delta,
        "applicable": applicable,
        "proven": proven,
        "source": source,
        "note": note,
        "reason": None if applicable else str(epsilon),
    }


def round_up(epsilon: float) -> str:
    """Return an epsilon as text, rounded up."""
    if not math.isfinite(epsilon):
        return "inf"
    return f"{np.ceil(epsilon * 1e6) / 1e6:.7g}"
