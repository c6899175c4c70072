"""Tables of text on narrow and on wide terminals."""

from __future__ import annotations

import io

import pytest

from fedhh.cli.console import SafeConsole
from fedhh.cli.text_tables import print_table
from fedhh.experiments.report.text_table import TextTable

LABELS = [f"protocol number {n} of the list" for n in range(6)]
TABLE = TextTable(
    title="Six protocols",
    columns=("", *LABELS),
    rows=tuple(
        (f"measure of a quality {i}", *(f"{i}{n}.4% ± 12.3" for n in range(6))) for i in range(3)
    ),
    note="What the numbers are.",
)


def printed(table: TextTable, width: int) -> list[str]:
    file = io.StringIO()
    print_table(SafeConsole(file=file, width=width), table)
    return file.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 80, 132, 200])
def test_no_number_is_cut_on_any_terminal(width: int):
    lines = printed(TABLE, width)
    assert all(len(line) <= width for line in lines)
    text = "\n".join(lines)
    assert "…" not in text
    for row in TABLE.rows:
        for cell in row:
            assert cell in text
    for name in ("Six protocols", "What the numbers are."):
        assert text.count(name) == 1


def test_what_fits_is_one_table_and_what_does_not_repeats_the_labels():
    for width, tables in ((200, 1), (80, 2), (60, 3)):
        text = "\n".join(printed(TABLE, width))
        assert text.count("measure of a quality 1") == tables


def test_a_table_without_rows_and_one_wider_than_the_terminal_are_printed_all_the_same():
    assert "a" in "".join(printed(TextTable(title="", columns=("a",), rows=(), note=""), 80))
    wide = TextTable(title="", columns=("a", "b"), rows=(("x" * 50, "y" * 50),), note="")
    flat = "".join("".join(printed(wide, 40)).replace("│", " ").split())
    assert flat.count("x") == flat.count("y") == 50
