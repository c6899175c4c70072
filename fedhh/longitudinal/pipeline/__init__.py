"""Pipelines: devices over days, what they send, and what servers learn from it."""
