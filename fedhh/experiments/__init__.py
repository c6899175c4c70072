"""Configs, runs, metrics, tables and figures.

What is wrong with a setting, a file or a directory raises `fedhh.validation.InputError`, whose
one line says what was expected; docstrings say so only where it is not plain.
"""
