"""What users give reaches a console as they see it, and never acts on it."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.live import Live
from rich.table import Table

from fedhh.cli.console import SafeConsole, print_directory
from fedhh.cli.safe_text import END_OF_ISOLATE, ISOLATE, safe_text
from tests.every import every


@every(
    ("text", "shown"),
    [
        ("[red]x", "[red]x"),
        ("[/]", "[/]"),
        (":smile:", ":smile:"),
        ("\x1b[2J", r"\x1b[2J"),
        ("a\u202eb", r"a\u202eb"),
        ("a\x7f\x9bb", r"a\x7f\x9bb"),
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
        ("a\u200db\xa0c", r"a\u200db\xa0c"),
        ("naïve 漢字 ±", "naïve 漢字 ±"),
        # Joiners that spell, and those that hide.
        ("👨\u200d👩\u200d👧 क्\u200dष", "👨\u200d👩\u200d👧 क्\u200dष"),
        ("👨\u200dx ক\u200c", r"👨\u200dx ক\u200c"),
        # From right to left.
        ("مرحبا", "\u2068مرحبا\u2069"),
        ("می\u200cخواهم", "\u2068می\u200cخواهم\u2069"),
        ("שלום \u202edlrow", "\u2068שלום \\u202edlrow\u2069"),
        ("fedhh show 'مرحبا'", "fedhh show 'مرحبا'"),
        ("\u2068a\u2069", "a"),
        ("a\u2068b\u2069", r"a\u2068b\u2069"),
        (None, "None"),
    ],
)
def test_what_a_terminal_would_act_on_is_an_escape(text, shown):
    assert safe_text(text) == shown


@pytest.mark.slow("::test_long_text_keeps_its_ends_and_says_how_long_it_was")
@given(st.text(st.characters(), max_size=400))
def test_every_text_ends_as_one_printable_line_and_stays_so(text):
    shown = safe_text(text)
    bare = shown.removeprefix(ISOLATE).removesuffix(END_OF_ISOLATE)
    assert bare.replace("\u200c", "").replace("\u200d", "").isprintable()
    assert safe_text(shown, longest=None) == shown
    if text.isprintable() and len(text) <= 120:
        assert bare == text


def test_long_text_keeps_its_ends_and_says_how_long_it_was():
    shown = safe_text("a" * 80 + "b" * 5_000 + "z" * 40)
    assert shown == "a" * 80 + " …[5,120 characters]… " + "z" * 40
    assert safe_text("a" * 120) == "a" * 120
    assert len(safe_text("a" * 5_000, longest=None)) == 5_000


def test_long_text_is_cut_between_what_a_reader_sees_as_characters():
    family = "👨\u200d👩\u200d👧"
    assert safe_text(family * 30, longest=3) == f"{family}{family} …[30 characters]… {family}"
    assert safe_text(family * 30) == family * 30


HOSTILE = ("[/]", "[red]x", "[link=http://x]y", ":smile:", "\x1b[2Jq", "r\u202es", "\x07bell")


@every("word", HOSTILE)
def test_a_console_shows_words_as_they_are_wherever_it_prints_them(word):
    file = io.StringIO()
    console = SafeConsole(file=file, force_terminal=True, width=100, color_system="truecolor")
    table = Table(title=f"title {word}", caption=f"caption {word}")
    table.add_column(f"head {word}")
    table.add_row(word)
    console.print(table)
    console.print(f"line {word}")
    with Live(f"live {word}", console=console, auto_refresh=False, transient=True):
        pass
    text = file.getvalue()
    shown = safe_text(word)
    for place in ("title", "caption", "head", "line", "live"):
        assert f"{place} {shown}" in text, place
    assert "\x1b[2J" not in text
    assert not set(text) & {"\u202e", "\x07"}


def test_a_directory_alone_is_raw_for_programs_and_safe_for_people(tmp_path, capsys, monkeypatch):
    directory = tmp_path / "a\x1b[2Jb"
    print_directory(directory)
    assert capsys.readouterr().out == f"{directory}\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_directory(directory)
    assert capsys.readouterr().out.endswith(r"a\x1b[2Jb" + "\n")
