"""Printing results for programs."""

from __future__ import annotations

import json
import sys
from typing import Any


def print_json(content: dict[str, Any]) -> None:
    """Print one JSON object to standard output, whatever its width."""
    sys.stdout.write(json.dumps(content, indent=2, allow_nan=False) + "\n")
