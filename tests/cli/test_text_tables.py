"""Tables of text on narrow and on wide terminals."""

from __future__ import annotations

import io

import pytest
from rich.table import Table

from fedhh.cli.console import SafeConsole, open_console
from fedhh.cli.line_width import says_width
from fedhh.cli.table_widths import shared
from fedhh.cli.text_tables import print_table
from fedhh.experiments.study.text_table import TextTable

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


def test_a_note_of_any_length_is_printed_whole():
    note = " ".join(f"word{n}" for n in range(400))
    table = TextTable(title="", columns=("a",), rows=(("1",),), note=note)
    assert " ".join(" ".join(printed(table, 80)).split()).endswith(note)


def test_a_table_without_rows_and_one_wider_than_the_terminal_are_printed_all_the_same():
    assert "a" in "".join(printed(TextTable(title="", columns=("a",), rows=(), note=""), 80))
    wide = TextTable(title="", columns=("a", "b"), rows=(("x" * 50, "y" * 50),), note="")
    flat = "".join("".join(printed(wide, 40)).replace("│", " ").split())
    assert flat.count("x") == flat.count("y") == 50


def drawn(table: Table, width: int) -> str:
    file = io.StringIO()
    SafeConsole(file=file, width=width).print(table)
    return file.getvalue()


@pytest.mark.parametrize("width", [20, 40, 60, 80])
def test_no_head_and_no_number_of_any_table_is_cut(width: int):
    heads = ("word", "estimated clients", "± 2 std. errors", "threshold", "coverage", "prefixes")
    table = Table(title="a title")
    for head in heads:
        table.add_column(head, justify="right")
    table.add_row("lol", "8,046 ± 904", "123,456,789", "18", "33.8%", "1,000,000,000")
    text = drawn(table, width)
    assert "…" not in text
    for word in ("threshold", "estimated", "coverage", "8,046 ± 904", "123,456,789", "1,000,000,"):
        assert word in text
    longest = max(len(line.rstrip()) for line in text.splitlines())
    # What it needs at least: five words of heads, two long numbers, and lines between them.
    assert longest <= max(width, 3 * 6 + 1 + 4 + 11 + 11 + 9 + 8 + 13)


def test_a_table_takes_no_more_than_it_wishes_and_no_less_than_it_needs():
    assert shared([3, 5], [4, 9], 100) == [4, 9]
    assert shared([3, 5], [4, 9], 8) == [3, 5]
    assert shared([3, 5], [4, 9], 2) == [3, 5]
    assert shared([3, 5], [4, 9], 11) == [4, 7]
    assert shared([2, 2, 2], [9, 9, 3], 13) == [5, 5, 3]


def test_a_console_is_as_wide_as_its_terminal_or_as_columns_says(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    piped = open_console(width_unless_terminal=132)
    assert (piped.width, piped.room > 1_000) == (132, True)
    assert open_console().room == 80
    for said in ("19", "0", "-60", "6O", "²", "", "9" * 5_000):
        monkeypatch.setenv("COLUMNS", said)
        assert not says_width()
    for width in (60, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        console = open_console(width_unless_terminal=132)
        assert (console.width, console.room) == (width, width)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert open_console(width_unless_terminal=132).width == 200
