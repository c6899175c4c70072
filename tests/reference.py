"""Slow, obvious versions of the fast paths: plain strings, dictionaries, one client at a time."""

from __future__ import annotations

from collections import Counter

END = "$"


def client_prefixes(
    words: dict[str, int], candidates: set[str], excluded: set[str], length: int
) -> Counter[str]:
    """Gboard paper, Algorithm 2, line 12: prefixes with their local counts."""
    prefixes: Counter[str] = Counter()
    for word, count in words.items():
        if word in excluded:
            continue
        prefix = (word + END)[:length]
        if prefix in candidates:
            prefixes[prefix] += count
    return prefixes


def trie_hh_without_noise(
    cohorts: list[list[dict[str, int]]], symbols: str, *, depth: int, eta_max: int
) -> list[str]:
    """One pass of Algorithm 2 with true votes, every prefix reported and ties kept.

    Where fewer than eta prefixes have a vote, those without one are left out, as in `top_eta`.
    """
    kept = set(symbols)
    found: list[str] = []
    for layer in range(1, depth + 1):
        candidates = {z + x for z in kept for x in symbols + END}
        votes: Counter[str] = Counter(dict.fromkeys(candidates, 0))
        for client in cohorts[layer - 1]:
            votes.update(set(client_prefixes(client, candidates, set(), layer + 1)))
        order = sorted(votes.values(), reverse=True)
        threshold = max(order[eta_max - 1], 1) if len(order) > eta_max else 0
        kept = {z for z, count in votes.items() if count >= threshold}
        found += sorted(z[:-1] for z in kept if z.endswith(END))
        kept = {z for z in kept if not z.endswith(END)}
    return found
