"""Compiled kernels: the only package that imports numba. Each has a slow reference in the tests."""
