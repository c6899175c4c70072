"""`fedhh data`: populations in files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedhh.cli.options import AlphabetOption, DepthOption, Format, FormatOption
from fedhh.validation import printable, require_between, shown

if TYPE_CHECKING:
    from rich.table import Table

    from fedhh.clients.populations.spelling import Spelling

LONGEST_DEPTH = 1_000
"""Of `fedhh data describe`: all words are held in arrays of so many symbols."""

_EXAMPLES = 5

data = typer.Typer(
    help="Describe, prepare and synthesize populations.\n\n"
    "Example: fedhh data describe words.parquet",
    no_args_is_help=True,
)


@data.command()
def describe(
    file: Annotated[Path, typer.Argument(help="Parquet, CSV, CSV.gz or JSON Lines.")],
    known: Annotated[str, typer.Option(help="Known words: scowl70, none, or a file.")] = "scowl70",
    alphabet: AlphabetOption = None,
    depth: DepthOption = None,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Print users, words, their concentration, how many are unknown, and which cannot be spelled.

    Example: fedhh data describe words.parquet
    """
    from fedhh.cli.console import open_console, print_json
    from fedhh.clients.populations.describe import describe as summarize
    from fedhh.clients.populations.known_words import load_known, remove_known
    from fedhh.clients.reading.sources import read_population
    from fedhh.experiments.config.alphabet import FROM_DATA, FROM_DATA_REVEALS, written_out

    spelled = _spelled_with(alphabet, depth, known=known)
    population, known_words = read_population(file), load_known(known)
    notes = [FROM_DATA_REVEALS] if spelled["alphabet"] == FROM_DATA else []
    if notes:
        # As a run does: of the words that devices do not know.
        words = remove_known(population, known_words)[0].lexicon.words
        spelled["alphabet"] = written_out(FROM_DATA, words)
    facts = asdict(summarize(population, known_words, **spelled))
    if output_format is Format.JSON:
        print_json({**facts, "notes": notes})
    else:
        console = open_console()
        console.print(_facts_table(str(file), facts))
        for note in notes:
            console.print(note, soft_wrap=True)


@data.command()
def prepare(
    source: Annotated[Path, typer.Argument(help="A file with columns user and text.")],
    out: Annotated[Path, typer.Argument(help="Counted words: user, word, count.")],
    alphabet: AlphabetOption = None,
    depth: DepthOption = None,
) -> None:
    """Turn text into counted words; docs/populations.md states the tokenisation.

    Example: fedhh data prepare messages.jsonl words.parquet
    """
    from fedhh.cli.console import open_console, print_written
    from fedhh.cli.safe_text import safe_text
    from fedhh.clients.populations.spelling import spelling_of
    from fedhh.clients.reading.text import prepare_text
    from fedhh.experiments.config.alphabet import FROM_DATA, FROM_DATA_REVEALS, written_out

    spelled = _spelled_with(alphabet, depth, known="scowl70")
    prepared = prepare_text(source, out)
    print_written(out)
    population = prepared.population
    notes = [FROM_DATA_REVEALS] if spelled["alphabet"] == FROM_DATA else []
    spelled["alphabet"] = written_out(spelled["alphabet"], population.lexicon.words)
    spelling = spelling_of(population.lexicon.words, population.word_counts, **spelled)
    for line in (
        f"{population.num_clients:,} users, {spelling.words:,} words typed {spelling.tokens:,} "
        "times",
        *dropped_lines(prepared.dropped),
        *spelling_lines(spelling),
        *notes,
    ):
        open_console().print(safe_text(line), soft_wrap=True)


@data.command()
def synthesize(
    out: Annotated[Path, typer.Argument(help="Parquet, CSV, CSV.gz or JSON Lines.")],
    preset: Annotated[str, typer.Option(help="chat, keyboard60d, tweet or post.")] = "chat",
    clients: Annotated[int, typer.Option(help="How many clients to draw.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
) -> None:
    """Write a synthetic population: its clients' unknown words.

    Example: fedhh data synthesize --preset tweet --clients 100000 tweets.parquet
    """
    from fedhh.cli.console import print_written
    from fedhh.clients.populations.synthetic import synthetic_population
    from fedhh.clients.reading.sources import write_population

    write_population(synthetic_population(preset, clients, seed=seed), out)
    print_written(out)


def dropped_lines(dropped: Counter[tuple[str, str]]) -> list[str]:
    """Return what the preparation of texts dropped, a line for each reason that there was."""
    from fedhh.clients.reading.tokens import DROPPED

    lines = []
    for reason in DROPPED:
        pieces = {piece: times for (why, piece), times in dropped.items() if why == reason}
        if pieces:
            most = sorted(pieces, key=lambda piece: (-pieces[piece], piece))[:_EXAMPLES]
            named = ", ".join(shown(piece) for piece in most if piece)
            examples = f", such as {named}" if named else ""
            lines.append(f"dropped {sum(pieces.values()):,} ({reason}{examples})")
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


def _spelled_with(alphabet: str | None, depth: int | None, *, known: str) -> dict[str, Any]:
    """Return what words are to be spelled with, by the default configuration if not said."""
    from fedhh.experiments.config.alphabet import named_or_settled
    from fedhh.experiments.config.protocol import build_protocol
    from fedhh.experiments.config.schema import load_config

    default = load_config()
    if depth is None:
        protocol = build_protocol(default)
        depth = protocol.longest_word
    require_between(1, LONGEST_DEPTH, depth=depth)
    return {
        "alphabet": named_or_settled(alphabet or default.population.alphabet, known=known),
        "depth": depth,
    }


def _facts_table(title: str, facts: dict[str, Any]) -> Table:
    from rich.table import Table

    from fedhh.cli.safe_text import safe_text

    table = Table(title=safe_text(title), show_header=False)
    table.add_column("what")
    table.add_column("value", justify="right")
    for name, value in _flat(facts):
        table.add_row(safe_text(name), safe_text(value))
    return table


def _flat(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield rows of a nested dictionary: its path in words, and its value as text."""
    for name, value in facts.items():
        words = str(name).replace("_", " ")
        if isinstance(value, dict):
            yield from ((f"{words}: {path}", text) for path, text in _flat(value))
        elif isinstance(value, tuple):
            yield words, ", ".join(map(shown, value))
        elif isinstance(value, float):
            yield words, f"{value:,.4f}" if value < 1 else f"{value:,.1f}"
        else:
            yield words, f"{value:,}" if isinstance(value, int) else str(value)
