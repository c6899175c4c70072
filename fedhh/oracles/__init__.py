"""Frequency oracles: local randomizers with their estimators."""

from fedhh.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
