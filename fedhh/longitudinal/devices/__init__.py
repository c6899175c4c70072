"""Devices: what happens on them day by day, what they store, and what they send."""
