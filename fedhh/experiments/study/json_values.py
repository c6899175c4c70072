"""Values as JSON has them."""

from __future__ import annotations

import math
from typing import Any


def plain(value: Any) -> Any:
    """Return JSON values: no infinite or missing numbers, which JSON has no words for."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value
