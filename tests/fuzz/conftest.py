"""Prints how many cases of each kind there were, and what came out."""

from __future__ import annotations

from typing import Any


def pytest_terminal_summary(terminalreporter: Any) -> None:
    rows = [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, value in report.user_properties
        if name == "fuzz"
    ]
    if not rows:
        return
    rows.append(["in all", *(sum(row[place] for row in rows) for place in (1, 2, 3))])
    terminalreporter.section("fuzzed cases")
    for kind, accepted, refused, failed in rows:
        terminalreporter.write_line(
            f"{kind:>22}: {accepted + refused + failed:,} cases, {accepted:,} accepted, "
            f"{refused:,} refused in one line, {failed:,} failed"
        )
