"""What a population holds, for people: labels, percents, and a verdict. No number is computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.table import Table

from fedhh.cli.console import print_wrapped
from fedhh.cli.safe_text import LONGEST_LINE, safe_text
from fedhh.cli.text_tables import print_parts
from fedhh.clients.reading.tokens import DROPPED
from fedhh.experiments.run.preflight_facts import alphabet_label
from fedhh.experiments.study.parts import Line, Part
from fedhh.experiments.study.text_table import TextTable
from fedhh.validation import printable, shown

if TYPE_CHECKING:
    from fedhh.cli.console import SafeConsole
    from fedhh.clients.clients import Texts
    from fedhh.clients.describe import PopulationSummary, Spelling, Spread
    from fedhh.experiments.run.preflight_facts import Preflight

_EXAMPLES = 5
_VERDICT = "Verdict, for a run with the default settings"
_TO_RUN = "Nothing stands in the way of a run: words can be spelled, and shuffling amplifies."


def print_description(
    console: SafeConsole,
    title: str,
    summary: PopulationSummary,
    texts: Texts,
    verdict: Preflight | str,
) -> None:
    """Print what a file holds, and the verdict.

    Args:
        console: Where to.
        title: The file's name.
        summary: Its figures.
        texts: What its texts were.
        verdict: What is known before a run, or why there can be none.
    """
    table = Table(title=safe_text(title), title_justify="left", show_header=False)
    table.add_column("what")
    table.add_column("value", overflow="fold")
    for rows in _sections(summary, texts):
        for label, value in rows:
            table.add_row(label, safe_text(value, longest=LONGEST_LINE))
        table.add_section()
    console.print(table)
    print_wrapped(console, _VERDICT, style="bold")
    if isinstance(verdict, str):
        print_wrapped(console, f"No run: {verdict}")
        return
    print_parts(console, (*verdict.plan_parts, *verdict.advice_parts))
    if not verdict.advice:
        print_wrapped(console, _TO_RUN)


def described(
    title: str, summary: PopulationSummary, texts: Texts, verdict: Preflight | str
) -> Iterator[Part]:
    """Yield what `print_description` prints, as a table and lines."""
    rows = tuple(row for rows in _sections(summary, texts) for row in rows)
    yield TextTable(title=title, columns=("what", "value"), rows=rows, note="", labels=2)
    yield Line(_VERDICT)
    if isinstance(verdict, str):
        yield Line(f"No run: {verdict}")
    else:
        yield from verdict.plan_parts
        yield from map(Line, verdict.advice or (_TO_RUN,))


def dropped_lines(dropped: Counter[tuple[str, str]], kept: int) -> list[str]:
    """Return what the tokenisation of texts dropped, a line for each reason that there was.

    Args:
        dropped: See `tokens.tokenize`.
        kept: Tokens that are words.
    """
    lines = []
    total = max(kept + dropped.total(), 1)
    for reason in DROPPED:
        pieces = {piece: times for (why, piece), times in dropped.items() if why == reason}
        if pieces:
            most = sorted(pieces, key=lambda piece: (-pieces[piece], piece))[:_EXAMPLES]
            named = ", ".join(shown(piece) for piece in most if piece)
            examples = f", such as {named}" if named else ""
            times = sum(pieces.values())
            lines.append(f"dropped {times:,} ({times / total:.1%}, {reason}{examples})")
    return lines


def spelling_lines(spelling: Spelling) -> list[str]:
    """Return what an alphabet and a depth cannot spell, and the cure; nothing if they spell all."""
    if not spelling.lost_words:
        return []
    examples = ", ".join(map(shown, spelling.examples))
    other = f", with other symbols ({printable(spelling.other_symbols)})"
    return [
        f"The alphabet {shown(spelling.alphabet)} and {spelling.depth} layers cannot spell "
        f"{spelling.lost_words:,} of {spelling.words:,} words, {spelling.lost_tokens:,} of "
        f"{spelling.tokens:,} tokens ({spelling.lost_token_share:.1%}), such as {examples}:",
        f"{spelling.words_with_other_symbols:,} words{other if spelling.other_symbols else ''}; "
        f"{spelling.longer_words:,} longer ones. A run never finds them; set population.alphabet "
        "(docs/populations.md) and protocol.depth.",
    ]


def _sections(summary: PopulationSummary, texts: Texts) -> tuple[Iterator[tuple[str, str]], ...]:
    return _held(summary), _unknown(summary), _spelled(summary.spelling), _texts(texts)


def _held(summary: PopulationSummary) -> Iterator[tuple[str, str]]:
    yield f"{summary.unit}s", f"{summary.clients:,}"
    if summary.empty_clients:
        yield f"{summary.unit}s without a word", _part(summary.empty_clients, summary.clients)
    yield "words typed", f"{summary.tokens:,}"
    yield f"words typed by a {summary.unit}", _spread(summary.tokens_per_client)
    yield "distinct words", f"{summary.words:,}"
    yield f"distinct words of a {summary.unit}", _spread(summary.words_per_client)
    for top, share in summary.top_token_share.items():
        if top < summary.words:
            yield f"share of the {top:,} most typed words", f"{share:.1%} of words typed"


def _unknown(summary: PopulationSummary) -> Iterator[tuple[str, str]]:
    yield "known words", safe_text(summary.known)
    yield "new words typed", _part(summary.unknown_tokens, summary.tokens)
    yield "distinct new words", _part(summary.unknown_words, summary.words)
    yield f"distinct new words of a {summary.unit}", _spread(summary.unknown_words_per_client)
    for least, words in summary.unknown_words_held_by.items():
        yield f"new words held by at least {least:,} {summary.unit}s", f"{words:,}"


def _spelled(spelling: Spelling) -> Iterator[tuple[str, str]]:
    spelled = spelling.tokens - spelling.lost_tokens
    yield "spelled with", f"{alphabet_label(spelling.alphabet)}, {spelling.depth} symbols at most"
    yield "new words typed that can be spelled", _part(spelled, spelling.tokens)
    if not spelling.lost_words:
        return
    lost = _part(spelling.lost_words, spelling.words)
    yield "distinct new words that cannot be spelled", lost
    yield "such as", ", ".join(map(shown, spelling.examples[:_EXAMPLES]))
    if spelling.words_with_other_symbols:
        symbols = printable(spelling.other_symbols)
        yield (
            "with other symbols",
            f"{spelling.words_with_other_symbols:,}{f' ({symbols})' if symbols else ''}",
        )
    if spelling.longer_words:
        yield "longer", f"{spelling.longer_words:,}"


def _texts(texts: Texts) -> Iterator[tuple[str, str]]:
    if texts.number:
        yield "texts", f"{texts.number:,}"
        yield "texts without a word", _part(texts.empty, texts.number)
        yield (
            "tokens that are no words",
            _part(texts.dropped.total(), texts.kept + texts.dropped.total()),
        )
        for line in dropped_lines(texts.dropped, texts.kept):
            yield "of these", line


def _part(number: int, of: int) -> str:
    return f"{number:,} ({number / max(of, 1):.1%})"


def _spread(spread: Spread) -> str:
    return f"{spread.p50:,.0f} in the median, {spread.p95:,.0f} at 95%, {spread.max:,} at most"
