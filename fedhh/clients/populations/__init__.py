"""Populations: who holds which words."""
