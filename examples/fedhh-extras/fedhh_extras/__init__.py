"""Somebody else's oracle, protocol and population for fedhh."""
