"""Pipelines: devices that live for days, what they send, and what servers learn from it."""
