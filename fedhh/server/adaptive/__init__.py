"""Adaptive TrieHH: its settings, cohorts, and what it believes of a trie over all layers."""
