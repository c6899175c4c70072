"""Repeated collection: runs on a population with time, under a cap for each device."""
