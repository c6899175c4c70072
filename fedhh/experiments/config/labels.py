"""What figures and tables call settings and metrics, with units."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from numbers import Real
from typing import Any

_SETTINGS = {
    "privacy.local_epsilon": ("epsilon", "local epsilon per contribution"),
    "protocol.clients_per_layer": ("clients per layer", "clients per layer"),
    "protocol.eta_max": ("eta_max", "prefixes kept per layer (eta_max)"),
    "protocol.max_items": ("max items", "contributions per client (B)"),
    "protocol.depth": ("depth", "layers of the trie (symbols)"),
    "protocol.passes": ("passes", "passes"),
    "protocol.sampler": ("sampler", "sampling on the device"),
    "protocol.oracle": ("oracle", "local randomizer"),
    "protocol.name": ("protocol", "protocol"),
    "total_clients": ("clients in all", "clients asked in all layers together"),
    "item_central_epsilon": (
        "central epsilon, item",
        "central epsilon per contribution, before the run",
    ),
    "user_central_epsilon": ("central epsilon, user", "central epsilon per client, before the run"),
    "population.clients": ("clients", "clients in the population"),
    "population.source": ("population", "population"),
}

METRICS = {
    "coverage": "coverage of new-word contributions",
    "coverage_significant": "coverage, significant discoveries",
    "item_coverage": "share of distinct new words found",
    "precision": "precision (share of discoveries that are held)",
    "precision_significant": "precision, significant discoveries",
    "recall": "recall (share of widely held words found)",
    "recall_significant": "recall, significant discoveries",
    "f1": "F1 of precision and recall",
    "f1_significant": "F1, significant discoveries",
    "central_epsilon_before_run": "central epsilon per contribution, before the run",
    "central_epsilon_user_before_run": "central epsilon per client, before the run",
    "central_epsilon": "central epsilon per contribution, after the run",
    "central_epsilon_user": "central epsilon per client, after the run",
    "claimed_k": "claimed k of approximate k-anonymity",
    "noise_share": "share of nulls among kept prefixes",
    "discovered": "discovered words",
    "discovered_real": "discovered words that are held",
    "discovered_false": "discovered words that no client holds",
    "discovered_truncated": "discovered words cut to the longest length",
    "significant": "significant discoveries",
    "target_words": "distinct new words",
    "target_contributions": "new-word contributions",
    "reachable_mass": "reachable share of new-word contributions",
    "min_clients": "clients that make a word widely held",
    "words_with_min_clients": "widely held words",
    "count_error_mean": "count error, mean (clients)",
    "count_error_relative": "count error, relative",
    "within_two_std": "estimates within 2 standard errors",
    "count_error_mean_significant": "count error, mean, significant discoveries (clients)",
    "count_error_relative_significant": "count error, relative, significant discoveries",
    "within_two_std_significant": "estimates within 2 standard errors, significant discoveries",
    "interval_coverage": "intervals that hold the clients that contribute the word",
    "lower_bound_coverage": "words with at least clients_low holders",
    "fewest_holders": "clients that hold the rarest discovery",
    "fewest_holders_significant": "clients that hold the rarest significant discovery",
    "share_held_by_at_most_k": "share of discoveries held by at most k clients",
    "ceiling_coverage": "known-dictionary upper bound on coverage",
    "ceiling_words": "words at the known-dictionary upper bound",
    "share_of_ceiling": "coverage, fraction of the known-dictionary upper bound",
    "alphabet_size": "symbols of the alphabet",
    "mean_word_length": "symbols of a contributed word, mean",
    "local_epsilon_user": "local epsilon per client",
    "clients_asked": "clients asked",
    "days": "days to the result",
    "share_served": "clients that served",
    "missed_layer": "layer with too few answers",
    "upload_bits_per_client_max": "upload per client, at most (bits)",
    "download_bits_per_client_max": "download per client, at most (bits)",
    "local_epsilon": "local epsilon per contribution",
    "sampling_gain": "coverage, random over greedy (points)",
}
"""What figures call columns of results."""

_TOP = re.compile(r"([a-z0-9]+)_top_(\d+)")

# Metrics that are shares, to be shown in percent.
_SHARES = (
    "coverage", "precision", "recall", "f1", "found", "item_coverage", "reachable", "noise_share",
)  # fmt: skip


def short_label(path: str) -> str:
    """Return a setting's name for a table's head or a legend.

    >>> short_label("privacy.local_epsilon"), short_label("population.model.adoption")
    ('epsilon', 'adoption')
    """
    if path in _SETTINGS:
        return _SETTINGS[path][0]
    return path.rsplit(".", maxsplit=1)[-1].replace("_", " ")


def axis_label(path: str) -> str:
    """Return a setting's or metric's name for a figure's axis, with its unit."""
    if path in _SETTINGS:
        return _SETTINGS[path][1]
    return METRICS.get(path, short_label(path))


def metric_label(metric: str) -> str:
    """Return a metric's name for a page's choice.

    >>> metric_label("precision_top_500"), metric_label("upload_bits_per_client_max")
    ('precision of the top 500', 'upload per client, at most (bits)')
    """
    if match := _TOP.fullmatch(metric):
        name = {"f1": "F1", "found": "share found"}.get(match[1], match[1])
        return f"{name} of the top {int(match[2]):,}"
    return axis_label(metric)


def is_share(metric: str) -> bool:
    """Return whether a metric is a share, shown in percent."""
    return metric.startswith(_SHARES)


def listed(parts: Sequence[str]) -> str:
    """Return some parts as they stand in a sentence.

    >>> listed(["SFP", "PEM", "TrieHH"]), listed(["SFP"])
    ('SFP, PEM and TrieHH', 'SFP')
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def round_up(epsilon: float) -> str:
    """Return an epsilon as text of three decimals, never smaller than it is; "none" without one.

    >>> round_up(0.44621), round_up(8.0), round_up(float("inf"))
    ('0.447', '8', 'none')
    """
    # A mean of equal numbers may lie above them by its last digit.
    return f"{math.ceil(epsilon * 1e3 * (1 - 1e-12)) / 1e3:g}" if math.isfinite(epsilon) else "none"


def value_text(value: Any) -> str:
    """Return a setting's value as text.

    >>> value_text(200000), value_text(8.0), value_text("greedy"), value_text(float("nan"))
    ('200,000', '8', 'greedy', '-')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, Real):
        number = float(value)
        return f"{int(number):,}" if number.is_integer() else f"{number:,}"
    return str(value)


def protocol_labels(titles: Sequence[str], participations: Sequence[str]) -> list[str]:
    """Return protocols' titles, told apart by who takes part when; what is still alike is numbered.

    >>> protocol_labels(["PEM", "PEM", "SFP"], ["every-round", "one-round", "one-round"])
    ['PEM, every round', 'PEM, one round', 'SFP']
    >>> protocol_labels(["PEM", "PEM"], ["one-round"] * 2)
    ['PEM', 'PEM (2)']
    """
    labels: list[str] = []
    for title, own in zip(titles, participations, strict=True):
        others = zip(titles, participations, strict=True)
        differ = any(other == title and each != own for other, each in others)
        label = name = f"{title}, {own.replace('-', ' ')}" if differ else title
        number = 1
        while label in labels:
            number += 1
            label = f"{name} ({number})"
        labels.append(label)
    return labels
