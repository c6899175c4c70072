"""Somebody else's oracles, protocols and population for fedhh."""
