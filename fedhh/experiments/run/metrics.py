"""Metrics of a run against the truth; each number says what it counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import pandas as pd

from fedhh.arrays import Floats
from fedhh.experiments.run.truth import Truth
from fedhh.protocol import Discoveries


@dataclass(frozen=True, kw_only=True)
class TopK:
    """The K largest estimates against the K words held by most clients.

    Attributes:
        k: K.
        precision: Share of those estimates whose word is among those words; None without any.
        recall: Share of those words among those estimates.
        f1: Of these two.
        found: Share of those words among all discoveries.
    """

    k: int
    precision: float | None
    recall: float
    f1: float
    found: float


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """How good a run is, against the truth.

    Those that end in ``_significant`` are over significant discoveries alone. Errors of counts are
    those of estimated clients as estimates of holders, over discoveries that somebody holds: noise,
    and what clients with more than B candidates leave unsaid. Among all of them, words that noise
    chose have far too large an estimate; the significant ones say more.

    Attributes:
        target_words: Held words of the lexicon.
        target_contributions: All contributions.
        reachable_mass: Share of contributions for words that the protocol could spell.
        discovered: Discovered words.
        discovered_real: Those that somebody holds.
        discovered_false: Those that no client holds.
        discovered_truncated: How many of the latter are beginnings of longer held words.
        significant: Discovered words that are significant.
        min_clients: Holders of a word that is to be found, at least.
        words_with_min_clients: Words with so many holders.
        item_coverage: Share of ``target_words`` that were discovered.
        coverage: Share of all contributions that fall on discovered words, the paper's figure.
        precision: Share of discoveries that somebody holds; None where nothing was discovered.
        recall: Share of ``words_with_min_clients`` that were discovered.
        f1: Of precision and recall.
        coverage_significant: Likewise of coverage.
        precision_significant: Likewise of precision.
        recall_significant: Likewise of recall.
        f1_significant: Of the two before.
        top: For each K, see `TopK`; in files they are ``precision_top_K`` and so on.
        count_error_mean: Mean of the absolute error; None where there is nothing to err about.
        count_error_relative: Mean of the error over the true number of clients.
        within_two_std: Share of estimates that are off by at most two of their standard errors from
            the number of holders.
        count_error_mean_significant: Likewise of count_error_mean.
        count_error_relative_significant: Likewise of count_error_relative.
        within_two_std_significant: Likewise of within_two_std.
        interval_coverage: Share of discoveries with ``clients_low`` to ``clients_high`` around
            their ``contributing_clients``, which the interval is about; None where the run states
            no interval. At least .95 in expectation over runs.
        lower_bound_coverage: Share of discoveries with at least ``clients_low`` holders; likewise.
        fewest_holders: Fewest clients that hold a discovered word, 0 for an invented one.
        fewest_holders_significant: Likewise of a significant one.
        share_held_by_at_most_k: Of all discoveries; None where the run claims no k-anonymity.
        ceiling_coverage: Coverage of one round of Subset Selection that knows every held word, see
            `fedhh.experiments.run.ceiling`; None unless ``metrics.ceiling`` asks for it, and for
            protocols without local privacy.
        ceiling_words: How many words that round finds.
        share_of_ceiling: ``coverage`` over ``ceiling_coverage``; None where that is None or 0.
        alphabet_size: Symbols of the protocol's alphabet, the end symbol included.
        mean_word_length: Mean over contributions of the symbols of their words, of those that the
            protocol could spell; None where there is none.
    """

    target_words: int
    target_contributions: int
    reachable_mass: float
    discovered: int
    discovered_real: int
    discovered_false: int
    discovered_truncated: int
    significant: int
    min_clients: int
    words_with_min_clients: int
    item_coverage: float
    coverage: float
    precision: float | None
    recall: float
    f1: float
    coverage_significant: float
    precision_significant: float | None
    recall_significant: float
    f1_significant: float
    top: tuple[TopK, ...] = ()
    count_error_mean: float | None = None
    count_error_relative: float | None = None
    within_two_std: float | None = None
    count_error_mean_significant: float | None = None
    count_error_relative_significant: float | None = None
    within_two_std_significant: float | None = None
    interval_coverage: float | None = None
    lower_bound_coverage: float | None = None
    fewest_holders: int | None = None
    fewest_holders_significant: int | None = None
    share_held_by_at_most_k: float | None = None
    ceiling_coverage: float | None = None
    ceiling_words: int | None = None
    share_of_ceiling: float | None = None
    alphabet_size: int
    mean_word_length: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics by name, as ``result.json`` and results of sweeps have them."""
        flat: dict[str, Any] = {}
        for field in fields(self):
            if field.name != "top":
                flat[field.name] = getattr(self, field.name)
                continue
            for each in self.top:
                entry = asdict(each)
                flat |= {f"{name}_top_{each.k}": x for name, x in entry.items() if name != "k"}
        return flat

    @classmethod
    def from_dict(cls, flat: dict[str, Any]) -> Metrics:
        """Return the metrics whose `to_dict` this is."""
        names = [field.name for field in fields(cls) if field.name != "top"]
        of_top = [field.name for field in fields(TopK) if field.name != "k"]
        sizes = [int(name.rpartition("_")[2]) for name in flat if name.startswith("found_top_")]
        top = tuple(TopK(k=k, **{name: flat[f"{name}_top_{k}"] for name in of_top}) for k in sizes)
        return cls(top=top, **{name: flat[name] for name in names})


def discoveries_table(
    discoveries: Discoveries,
    truth: Truth,
    *,
    significance_z: float,
    truncated_at: int | None = None,
    contributing: Floats | None = None,
) -> pd.DataFrame:
    """Return one row per discovered word, the largest estimate first.

    A vote counts a client once per word, however often the client typed it, so estimates are about
    clients: ``estimated_clients`` scales the cohort's estimate to the population, and
    ``std_error`` covers the randomizer's noise and the draw of the cohort, and after a validation
    round also what its clients sample. Both are about the clients that contribute the word when
    asked. A holder with more than B candidates may leave it unsaid, so that an estimate is a lower
    bound on the holders, up to its error.

    Args:
        discoveries: The words.
        truth: What clients hold.
        significance_z: See ``metrics.significance_z``.
        truncated_at: Symbols that the protocol cut words to, if it does.
        contributing: ``(h,) float64``, see ``contributing_clients``; None where nothing was
            validated.

    Columns:
        word: The word.
        pass: In which pass it was found, from 1.
        layer: In which layer, from 1.
        estimated_clients: Unbiased estimate of how many clients contribute it when asked, not of
            how many hold it: a lower bound on these. Not cut at 0; after a validation round, from
            the votes of that round alone. Where clients say one member of a padded set (SVIM,
            LDPMiner), of its holders.
        std_error: Standard error of that; it leaves out what holders leave unsaid.
        z: How far above the noise its votes lie, see `protocol.Discoveries`; of Adaptive TrieHH
            those of the validation round and of all layers after it became a candidate.
        is_significant: Whether ``z`` is above ``metrics.significance_z``.
        true_count: How often clients typed it.
        true_clients: How many clients hold it.
        is_target: Whether somebody holds it.
        clients_low: Only where words were validated: the lower end of an interval around
            ``estimated_clients`` for ``contributing_clients``, and so a lower bound on the holders.
            Of the intervals of all returned words at most 5 % miss, in expectation, although the
            same votes chose the words (Benjamini and Yekutieli 2005).
        clients_high: Likewise its upper end, which is no upper bound on the holders.
        contributing_clients: Only where words were validated: how many clients would contribute it
            to the validation round if all were asked, in expectation over what they sample: of a
            holder with m candidates, min(1, B / m). Of populations that are drawn when asked, from
            the first 262,144 clients.
        is_truncated: Only where the protocol cut words ``truncated_at`` so many symbols: nobody
            holds it, but it is the beginning of a word that somebody holds.
    """
    ids = truth.ids(discoveries)
    real = ids >= 0
    counts, clients = np.zeros(len(ids), dtype=np.int64), np.zeros(len(ids), dtype=np.int64)
    counts[real], clients[real] = truth.counts[ids[real]], truth.clients[ids[real]]

    cohort = discoveries.num_clients
    scale = truth.num_clients / np.maximum(cohort, 1)
    fraction = np.clip(discoveries.estimate / np.maximum(cohort, 1), 0, 1)
    reach = discoveries.interval_z
    states_intervals = reach is not None and len(reach) > 0 and bool(np.isfinite(reach).all())
    # The cohort is drawn without replacement, but what its clients sample of their candidates is
    # random however many are asked: intervals take the whole variance of independent clients,
    # which bounds that of both (with a chance c of each client to contribute, the mean of c (1 - c)
    # and the variance of c add up to f (1 - f)).
    # With fake clients, a cohort may have more than the population.
    left = 1.0 if states_intervals else np.maximum(1 - cohort / truth.num_clients, 0.0)
    drawn = cohort * fraction * (1 - fraction) * left
    table = pd.DataFrame(
        {
            "word": list(discoveries.words),
            "pass": discoveries.pass_index + 1,
            "layer": discoveries.layer,
            "estimated_clients": discoveries.estimate * scale,
            "std_error": np.sqrt(discoveries.variance + drawn) * scale,
            "z": discoveries.z,
            "is_significant": discoveries.z > significance_z,
            "true_count": counts,
            "true_clients": clients,
            "is_target": real,
        }
    )
    if reach is not None and states_intervals:
        either_side = reach * table["std_error"]
        table["clients_low"] = (table["estimated_clients"] - either_side).clip(lower=0)
        table["clients_high"] = table["estimated_clients"] + either_side
        if contributing is not None:
            table["contributing_clients"] = contributing
    if truncated_at is not None:
        cut = table["word"].isin(truth.beginnings(truncated_at, discoveries.words))
        table["is_truncated"] = cut & ~table["is_target"]
    return table.sort_values(
        ["estimated_clients", "word"], ascending=[False, True], ignore_index=True
    )


def measure(
    table: pd.DataFrame, truth: Truth, *, top_k: Sequence[int], min_clients: int
) -> Metrics:
    """Return a run's metrics; what its claims say of anonymity is left open.

    Args:
        table: See `discoveries_table`.
        truth: What there was to find.
        top_k: Sizes of the true top to compare with; those beyond the lexicon are left out.
        min_clients: Words with so many holders are the ones to find.
    """
    significant = table[table["is_significant"]]
    wanted = {truth.words[i] for i in np.flatnonzero(truth.clients >= min_clients).tolist()}
    num_words = int((truth.clients > 0).sum())
    shares: dict[str, Any] = {}
    for suffix, rows in (("", table), ("_significant", significant)):
        found = int((rows["true_clients"] >= min_clients).sum())
        precision = _precision(int(rows["is_target"].sum()), len(rows))
        recall = _ratio(found, len(wanted))
        shares |= {
            f"coverage{suffix}": _ratio(int(rows["true_count"].sum()), truth.mass),
            f"precision{suffix}": precision,
            f"recall{suffix}": recall,
            f"f1{suffix}": _f1(precision, recall),
            **_count_errors(rows[rows["is_target"]], suffix),
        }
    shares |= _interval_coverage(table)
    return Metrics(
        target_words=num_words,
        target_contributions=truth.mass,
        reachable_mass=truth.reachable_mass,
        discovered=len(table),
        discovered_real=int(table["is_target"].sum()),
        discovered_false=int((~table["is_target"]).sum()),
        discovered_truncated=int(table.get("is_truncated", pd.Series(dtype=bool)).sum()),
        significant=len(significant),
        min_clients=min_clients,
        words_with_min_clients=len(wanted),
        item_coverage=_ratio(int(table["is_target"].sum()), num_words),
        alphabet_size=truth.alphabet.size,
        mean_word_length=truth.mean_word_length,
        top=_top(table, truth, [k for k in top_k if k <= len(truth.words)]),
        **shares,
    )


def _top(table: pd.DataFrame, truth: Truth, sizes: Sequence[int]) -> tuple[TopK, ...]:
    if not sizes:
        return ()
    # Only words that may be in a top are sorted, in place of millions.
    least = np.partition(truth.clients, -max(sizes))[-max(sizes)]
    order = np.flatnonzero(truth.clients >= least)
    order = order[np.argsort(-truth.clients[order], kind="stable")]
    entries = []
    for k in sizes:
        best = {truth.words[i] for i in order[:k].tolist()}
        chosen = table["word"].head(k)
        hits = int(chosen.isin(best).sum())
        precision, recall = _precision(hits, len(chosen)), _ratio(hits, k)
        found = _ratio(int(table["word"].isin(best).sum()), k)
        entries.append(
            TopK(k=k, precision=precision, recall=recall, f1=_f1(precision, recall), found=found)
        )
    return tuple(entries)


def _count_errors(real: pd.DataFrame, suffix: str) -> dict[str, float]:
    """Return how far estimates are off, and how often within two of their standard errors."""
    if real.empty:
        return {}
    error = (real["estimated_clients"] - real["true_clients"]).abs()
    means = {
        "count_error_mean": error,
        "count_error_relative": error / real["true_clients"],
        "within_two_std": error <= 2 * real["std_error"],
    }
    return {f"{name}{suffix}": float(values.mean()) for name, values in means.items()}


def _interval_coverage(table: pd.DataFrame) -> dict[str, float]:
    """Return how often stated intervals hold contributors, and their lower ends bound holders."""
    if table.empty or "contributing_clients" not in table:
        return {}
    known = table[table["contributing_clients"].notna()]
    if known.empty:
        return {}
    low, high = known["clients_low"], known["clients_high"]
    return {
        "interval_coverage": float(known["contributing_clients"].between(low, high).mean()),
        "lower_bound_coverage": float((low <= known["true_clients"]).mean()),
    }


def _ratio(part: int, whole: int) -> float:
    """Return part / whole, and 0 where there is nothing to divide by."""
    return part / whole if whole else 0.0


def _precision(hits: int, chosen: int) -> float | None:
    """Return hits / chosen, and None where nothing was chosen, which is neither right nor wrong."""
    return hits / chosen if chosen else None


def _f1(precision: float | None, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision and recall else 0.0
