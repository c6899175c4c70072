"""What a page to explore is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

REPORT = "report.html"
"""Name of a page in the directory that it is about."""


@dataclass(frozen=True, kw_only=True)
class PageData:
    """What a page is made of.

    Attributes:
        title: Of the page.
        manifest: What it shows, see ``web/src/types.js``.
        chunks: Further pieces by name.
    """

    title: str
    manifest: dict[str, Any]
    chunks: dict[str, Any]
