"""Configs, runs, metrics, tables and figures."""
