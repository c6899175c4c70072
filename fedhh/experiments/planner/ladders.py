"""Which settings of a protocol are searched, and the values of each that are tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedhh.experiments.config.section import ProtocolSection

Value = int | float | str | bool

CONTRIBUTIONS, SIZES = "contributions", "sizes"

_SIZES = (50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
_LENGTHS = (4, 6, 8, 10, 12, 15)

LADDERS: Mapping[str, Mapping[str, Sequence[Value]]] = {
    CONTRIBUTIONS: {"max_items": (1, 2, 5, 10, 20, 60, 200)},
    SIZES: {"eta_max": _SIZES, "keep": _SIZES, "max_words": _SIZES},
    "lengths": {"depth": _LENGTHS, "length": _LENGTHS},
    "passes": {"passes": (1, 2), "repeats": (1, 2, 4, 8)},
    "validation": {"false_discovery_rate": (0.0, 0.05)},
    "sketches": {"fragment_oracle": ("cms", "ss")},
    "participation": {"participation": ("one-round", "every-round")},
}
"""Groups of settings by their names in any protocol, with values in an order in which a result
rises and then falls."""

ORDER = (
    CONTRIBUTIONS,
    CONTRIBUTIONS,
    SIZES,
    "lengths",
    "passes",
    "validation",
    "sketches",
    "participation",
    CONTRIBUTIONS,
)
"""Groups in the order in which they are searched; the first one a step far, then to the end."""

_FINE = (0.7, 0.85, 1.2, 1.4)
"""Of a size that was found: others near it that are tried in the end."""
_DIGITS = 2


def ladder(section: ProtocolSection, settled: ProtocolSection, group: str) -> tuple[str, list[Any]]:
    """Return a group's setting in a protocol's table, and its values with the present one.

    Args:
        section: The table.
        settled: The same with numbers in place of "auto"; what is "auto" stands at its number.
        group: A key of `LADDERS`.

    Returns:
        The name, empty if the protocol has none of the group; and the values in their order.
    """
    for name, values in LADDERS[group].items():
        if name not in type(section).model_fields:
            continue
        present = getattr(section, name)
        if present in values:
            return name, list(values)
        place = getattr(settled, name)
        if isinstance(place, str) or isinstance(values[0], str):
            return name, [present, *values]
        below = [each for each in values if float(each) < place]
        return name, [*below, present, *(each for each in values if float(each) > place)]
    return "", []


def fine_values(section: ProtocolSection, settled: ProtocolSection) -> tuple[str, list[Any]]:
    """Return the size in a protocol's table, and values near it."""
    for name in LADDERS[SIZES]:
        if name in type(section).model_fields:
            size = getattr(settled, name)
            near = [int(float(f"{size * factor:.{_DIGITS - 1}e}")) for factor in _FINE]
            return name, [*near[:2], getattr(section, name), *near[2:]]
    return "", []
