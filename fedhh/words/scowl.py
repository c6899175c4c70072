"""The public list of English words that fedhh ships."""

from __future__ import annotations

import functools
import gzip
from importlib import resources

FILE = "known_scowl70_en.txt.gz"
"""SCOWL 2020.12.07 up to size 70; its notice stands next to it."""


@functools.cache
def scowl_words() -> frozenset[str]:
    """Return the 168,580 words in lower case."""
    asset = resources.files("fedhh.words").joinpath("assets", FILE)
    text = gzip.decompress(asset.read_bytes()).decode("ascii")
    return frozenset(text.split("\n")) - {""}
