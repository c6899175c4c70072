"""What `fedhh account` prints: bounds for a planned run, without running it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from fedhh.accounting import (
    LayerAnonymity,
    NotApplicable,
    anonymity,
    largest_local_epsilon,
    paper_subset_size,
    shuffle_epsilon,
    smallest_num_reports,
    subset_selection_lower_bound,
    user_level_epsilon,
)
from fedhh.accounting.blanket import Blanket
from fedhh.accounting.clones import Clones, Clones2023
from fedhh.accounting.closed_form import CLOSED_FORM_THEOREM
from fedhh.experiments.json_output import print_json
from fedhh.oracles import ORACLES
from fedhh.validation import InputError, require_at_least, require_choice, require_positive

BOUND_KEYS = {
    "closed_form": ("closed-form", CLOSED_FORM_THEOREM),
    "clones": ("clones", Clones.theorem),
    "clones_2023": ("clones-2023", Clones2023.theorem),
    "ss_blanket": ("blanket", Blanket.theorem),
}


def shuffle_command(
    *,
    local_epsilon: float,
    num_reports: int,
    delta: float,
    oracle: str,
    domain_size: int | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Print the item-level central epsilon of one shuffle by every bound."""
    selection = _selection(oracle, domain_size)
    if plot is not None:
        from fedhh.experiments.account_plots import check_figure, plot_shuffle

        check_figure(plot)
    bounds = {
        key: bound_as_json(
            name,
            source,
            local_epsilon=local_epsilon,
            num_reports=num_reports,
            delta=delta,
            domain_size=selection,
        )
        for key, (name, source) in BOUND_KEYS.items()
    }
    content: dict[str, Any] = {
        "unit": "item",
        "neighboring": "swap",
        "local_epsilon": local_epsilon,
        "reports": num_reports,
        "delta": delta,
        "bounds": bounds,
    }
    if selection is not None:
        lower = subset_selection_lower_bound(
            local_epsilon=local_epsilon,
            num_reports=num_reports,
            domain_size=selection,
            subset_size=paper_subset_size(local_epsilon, selection),
        )
        content["domain_size"] = selection
        content["true_epsilon_at_least"] = (
            None if isinstance(lower, NotApplicable) else lower.epsilon(delta)
        )
    if plot is not None:
        plot_shuffle(
            plot,
            local_epsilon=local_epsilon,
            num_reports=num_reports,
            delta=delta,
            domain_size=selection,
        )
    if as_json:
        print_json(content)
        return
    table = Table(title=f"central epsilon at delta {delta:g}, item level, swap")
    for name in ("bound", "epsilon", "source"):
        table.add_column(name, overflow="fold")
    for key, bound in bounds.items():
        epsilon = bound["epsilon"]
        table.add_row(
            key.replace("_", " "),
            "not applicable" if epsilon is None else round_up(epsilon),
            bound["source"] + (f" ({bound['reason']})" if bound["reason"] else ""),
        )
    if content.get("true_epsilon_at_least") is not None:
        known = math.floor(content["true_epsilon_at_least"] * 1e6) / 1e6
        table.add_row("true value, at least", f"{known:.7g}", "an attack")
    Console().print(table)
    if plot is not None:
        Console().print(f"Wrote {plot}", soft_wrap=True, highlight=False)


def user_command(
    *,
    local_epsilon: float,
    num_clients: int,
    max_items: int,
    delta: float,
    domain_size: int | None,
    as_json: bool,
) -> None:
    """Print the user-level central epsilon of B contributions per client."""
    names = ["clones"] if domain_size is None else ["clones", "blanket"]
    bounds: dict[str, Any] = {}
    for name in names:
        both = user_level_epsilon(
            bound=name,
            local_epsilon=local_epsilon,
            num_clients=num_clients,
            max_items=max_items,
            delta=delta,
            domain_size=domain_size,
        )
        bounds[name] = {
            "epsilon": both.epsilon,
            "method": both.method,
            "groups": both.groups,
            "slots": both.slots if isinstance(both.slots, float) else None,
        }
    content = {
        "unit": "user",
        "neighboring": "swap",
        "delta": delta,
        "local_epsilon_of_all_contributions": local_epsilon * max_items,
        "bounds": bounds,
    }
    if as_json:
        print_json(content)
        return
    table = Table(title=f"central epsilon at delta {delta:g}, user level, swap")
    for heading in ("bound", "by groups", "by slots", "smaller"):
        table.add_column(heading)
    for name, row in bounds.items():
        slots = "not applicable" if row["slots"] is None else round_up(row["slots"])
        table.add_row(name, round_up(row["groups"]), slots, round_up(row["epsilon"]))
    Console().print(table)


def anonymity_command(
    *,
    local_epsilon: float,
    num_reports: int,
    eta_max: int,
    alphabet_size: int,
    alpha: float,
    passes: int,
    as_json: bool,
) -> None:
    """Print the k of approximate k-anonymity of a full layer."""
    require_at_least(1, eta_max=eta_max, alphabet_size=alphabet_size, passes=passes)
    domain_size = eta_max * alphabet_size + 1
    content: dict[str, Any] = {"unit": "item", "alpha": alpha, "passes": passes}
    for variant in ("lemma", "tight"):
        layer = LayerAnonymity(
            local_epsilon=local_epsilon,
            domain_size=domain_size,
            subset_size=paper_subset_size(local_epsilon, domain_size),
            num_kept=eta_max,
            num_reports=num_reports,
            variant=variant,
        )
        claim = anonymity([layer] * passes, alpha=alpha)
        content[variant] = {
            "k": None if isinstance(claim.k, NotApplicable) else claim.k,
            "probability": claim.probability,
            "reason": str(claim.k) if isinstance(claim.k, NotApplicable) else None,
            "source": claim.theorem,
            "assumptions": claim.assumptions,
        }
    if as_json:
        print_json(content)
        return
    table = Table(title=f"approximate k-anonymity at alpha {alpha:g}, {passes} pass(es)")
    for heading in ("variant", "k", "P(kept) at k, or at 0", "source"):
        table.add_column(heading, overflow="fold")
    for variant in ("lemma", "tight"):
        row = content[variant]
        k = "none" if row["k"] is None else str(row["k"])
        chance = "" if row["probability"] is None else f"{row['probability']:.4f}"
        notes = (row["source"], row["assumptions"], row["reason"])
        table.add_row(variant, k, chance, "; ".join(note for note in notes if note))
    Console().print(table)


def plan_command(
    *,
    central_epsilon: float,
    delta: float,
    local_epsilon: float | None,
    num_reports: int | None,
    max_items: int,
    domain_size: int | None,
    as_json: bool,
) -> None:
    """Print the fewest reports per layer for a local epsilon, or the largest local epsilon."""
    if (local_epsilon is None) == (num_reports is None):
        raise InputError(
            "Expected either --local-epsilon (how many reports?) or --reports (which local "
            "epsilon?), got " + ("neither." if local_epsilon is None else "both.")
        )
    require_positive(central_epsilon=central_epsilon)
    require_at_least(1, max_items=max_items)
    names = ["clones", *([] if domain_size is None else ["blanket"])]
    answers = {
        name: _plan(
            name,
            central_epsilon=central_epsilon,
            delta=delta,
            local_epsilon=local_epsilon,
            num_reports=num_reports,
            max_items=max_items,
            domain_size=domain_size,
        )
        for name in names
    }
    content = {
        "unit": "item",
        "neighboring": "swap",
        "central_epsilon": central_epsilon,
        "delta": delta,
        "max_items": max_items,
        "answers": answers,
    }
    if as_json:
        print_json(content)
        return
    table = Table(title=f"for central epsilon {central_epsilon:g} at delta {delta:g}, item level")
    table.add_column("bound")
    if local_epsilon is not None:
        table.add_column(f"reports per layer, local epsilon {local_epsilon:g}", justify="right")
        table.add_column(f"clients, {max_items} reports each", justify="right")
    else:
        table.add_column(f"largest local epsilon, {num_reports:,} reports", justify="right")
    for name, row in answers.items():
        table.add_row(name, *(_number(value) for key, value in row.items() if key != "reason"))
    table.caption = "\n".join(row["reason"] for row in answers.values() if row["reason"]) or None
    Console().print(table)


def _plan(
    name: str,
    *,
    central_epsilon: float,
    delta: float,
    local_epsilon: float | None,
    num_reports: int | None,
    max_items: int,
    domain_size: int | None,
) -> dict[str, Any]:
    """Return what one bound answers to a planner."""
    if local_epsilon is not None:
        reports = smallest_num_reports(
            name,
            epsilon=central_epsilon,
            delta=delta,
            local_epsilon=local_epsilon,
            domain_size=domain_size,
        )
        if isinstance(reports, NotApplicable):
            return {"reports_per_layer": None, "clients_per_layer": None, "reason": str(reports)}
        clients = -(-reports // max_items)
        return {"reports_per_layer": reports, "clients_per_layer": clients, "reason": None}
    assert num_reports is not None
    largest = largest_local_epsilon(
        name,
        epsilon=central_epsilon,
        delta=delta,
        num_reports=num_reports,
        domain_size=domain_size,
    )
    if isinstance(largest, NotApplicable):
        return {"local_epsilon": None, "reason": str(largest)}
    return {"local_epsilon": largest, "reason": None}


def _selection(oracle: str, domain_size: int | None) -> int | None:
    """Return the domain of Subset Selection, or None for any other randomizer."""
    require_choice(["any", *ORACLES], oracle=oracle)
    if oracle != "ss":
        return None
    if domain_size is None:
        raise InputError("Expected --domain-size with --oracle ss, got none.")
    return domain_size


def bound_as_json(
    name: str,
    source: str,
    *,
    local_epsilon: float,
    num_reports: int,
    delta: float,
    domain_size: int | None,
) -> dict[str, Any]:
    """Return one bound as JSON values."""
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
        "source": source,
        "reason": None if applicable else str(epsilon),
    }


def round_up(epsilon: float) -> str:
    """Return an epsilon as text, rounded up."""
    if not math.isfinite(epsilon):
        return "inf"
    return f"{np.ceil(epsilon * 1e6) / 1e6:.7g}"


def _number(value: float | None) -> str:
    if value is None:
        return "none"
    return f"{value:,}" if isinstance(value, int) else f"{math.floor(value * 1e6) / 1e6:g}"
