"""Populations in files."""
