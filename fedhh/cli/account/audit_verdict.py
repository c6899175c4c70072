"""What `fedhh account audit` prints: a lower bound beside each claim, and a verdict."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedhh.accounting import AuditResult


@dataclass(frozen=True, kw_only=True)
class Part:
    """One thing that was audited, and the smallest claim about it that is no mere comparison."""

    audited: str
    found: AuditResult
    claim: float

    @property
    def refuted(self) -> bool:
        """Whether the audit found more than is claimed."""
        return self.found.epsilon > self.claim

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "audited": self.audited,
            "at_least": self.found.epsilon,
            "claimed": _finite(self.claim),
            "largest_detectable": _finite(self.found.largest_detectable),
            "event": self.found.event,
            "num_samples": self.found.num_samples,
            "verdict": _verdict(self.refuted),
        }


def print_audit(
    facts: dict[str, Any],
    parts: list[Part],
    upper_bounds: dict[str, float | None],
    *,
    confidence: float,
    as_json: bool,
) -> bool:
    """Print what was audited, found and claimed, and the verdict; return whether they agree.

    The last part is the one that the command was asked for; it is shown in full.
    """
    from rich.table import Table

    from fedhh.cli.account.bounds import round_up
    from fedhh.cli.console import open_console, print_json, print_line
    from fedhh.cli.safe_text import safe_text

    refuted = any(part.refuted for part in parts)
    asked = parts[-1]
    content = {
        "audited": asked.audited,
        **facts,
        "unit": "item",
        "neighboring": "swap",
        **asdict(asked.found),
    }
    content["at_least"] = content.pop("epsilon")
    content["confidence"] = confidence
    if as_json:
        print_json(
            {
                **content,
                "estimate": _finite(asked.found.estimate),
                "upper_bounds": {
                    key: None if each is None else _finite(each)
                    for key, each in upper_bounds.items()
                },
                "parts": [part.to_dict() for part in parts],
                "verdict": _verdict(refuted),
            }
        )
        return not refuted
    table = Table(title="audit: a lower bound by sampling, and what is claimed", show_header=False)
    table.add_column("what", no_wrap=True)
    table.add_column("value", overflow="fold")
    for name, value in content.items():
        text = f"{value:.6g}" if isinstance(value, float) else str(value)
        table.add_row(name.replace("_", " "), safe_text(text))
    for key, bound in upper_bounds.items():
        text = "not applicable" if bound is None else round_up(bound)
        table.add_row(f"upper bound, {key.replace('_', ' ')}", text)
    console = open_console()
    console.print(table)
    for part in parts:
        row = part.to_dict()
        print_line(
            console,
            f"{part.audited}: at least {row['at_least']:.6g}, claimed {round_up(part.claim)}, "
            f"{row['verdict']} (so many samples can expose an epsilon of up to "
            f"{part.found.largest_detectable:.3g})",
        )
    end = f"refuted at confidence {confidence:g}" if refuted else "consistent"
    print_line(console, f"verdict: {end}")
    return not refuted


def _verdict(refuted: bool) -> str:
    return "refuted" if refuted else "consistent"


def _finite(value: float) -> float | str:
    """Return a number that JSON can hold: no randomizer, or an event never seen, is infinite."""
    return value if math.isfinite(value) else "inf"
