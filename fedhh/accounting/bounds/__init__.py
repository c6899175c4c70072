"""Bounds on central epsilon, and their numerics."""
