"""`fedhh data`: populations in files."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedhh.cli.options import (
    AlphabetOption,
    ColumnsOption,
    DepthOption,
    FileArgument,
    FoldCaseOption,
    Format,
    FormatOption,
    ListOption,
    SeparatorOption,
    changes,
)
from fedhh.validation import InputError, require_between

if TYPE_CHECKING:
    from fedhh.clients.populations.population import StoredPopulation
    from fedhh.clients.reading.sources import FileContent
    from fedhh.experiments.config.schema import Config
    from fedhh.experiments.run.preflight_facts import Preflight

LONGEST_DEPTH = 1_000
"""Of `fedhh data describe`: all words are held in arrays of so many symbols."""

data = typer.Typer(
    help="Describe, prepare and synthesize populations.\n\n"
    "Example: fedhh data describe words.parquet",
    no_args_is_help=True,
)


@data.command()
def describe(  # noqa: PLR0917 - typer makes these options, only the file is positional
    file: FileArgument,
    separator: SeparatorOption = None,
    columns: ColumnsOption = None,
    fold_case: FoldCaseOption = False,
    known: ListOption = "scowl70",
    alphabet: AlphabetOption = None,
    depth: DepthOption = None,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Say what a file holds, what of it a run can find, and what would help before one.

    Example: fedhh data describe words.parquet
    Example: fedhh data describe chat.csv --sep ';' --column user=Sender
    --column text=Message
    """
    from fedhh.cli.console import open_console, print_wrapped
    from fedhh.cli.description import described, print_description
    from fedhh.cli.text_tables import print_result
    from fedhh.clients.populations.describe import describe as summarize
    from fedhh.clients.populations.known_words import load_known, remove_known
    from fedhh.experiments.config.client_file import load_content
    from fedhh.experiments.config.domain import FROM_DATA, FROM_DATA_REVEALS, written_out
    from fedhh.experiments.config.load import load_config
    from fedhh.experiments.study.parts import Line

    options = changes(
        columns=columns, separator=separator, fold_case=fold_case, known=known, alphabet=alphabet
    )
    config = load_config(data=file, settings=options)
    longest = _longest_word(config, depth)
    content, known_words = load_content(config.population), load_known(known)
    target = remove_known(content.population, known_words)[0]
    notes = [FROM_DATA_REVEALS] if config.population.alphabet == FROM_DATA else []
    # As a run does: of the words that devices do not know.
    symbols = written_out(config.population.alphabet, target.lexicon.words)
    summary = summarize(content.population, known_words, alphabet=symbols, depth=longest)
    verdict = _verdict(config, depth, target, content)
    if output_format is Format.TABLE:
        console = open_console()
        print_description(console, str(file), summary, content, verdict)
        for note in notes:
            print_wrapped(console, note)
        return
    dropped: Counter[str] = Counter()
    for (reason, _), times in content.dropped.items():
        dropped[reason] += times
    record = {
        **asdict(summary),
        "texts": content.texts,
        "empty_texts": content.empty_texts,
        "dropped": dropped,
        "verdict": {"refusal": verdict} if isinstance(verdict, str) else verdict.record,
        "notes": notes,
    }
    parts = (*described(str(file), summary, content, verdict), *map(Line, notes))
    print_result(output_format, lambda: record, parts)


def _verdict(
    config: Config, depth: int | None, target: StoredPopulation, content: FileContent
) -> Preflight | str:
    """Return what is known before a run with the default settings, or why there can be none."""
    from fedhh.experiments.config.load import change_config
    from fedhh.experiments.run.preflight import preflight_of_configs

    try:
        if depth is not None:
            config = change_config(config, [f"protocol.depth={depth}"], "--depth")
        return preflight_of_configs([config], target, content)
    except InputError as refusal:
        return str(refusal)


@data.command()
def prepare(  # noqa: PLR0917 - typer makes these options, only the files are positional
    source: Annotated[Path, typer.Argument(help="A file with columns user and text.")],
    out: Annotated[Path, typer.Argument(help="Counted words: user, word, count.")],
    separator: SeparatorOption = None,
    columns: ColumnsOption = None,
    alphabet: AlphabetOption = None,
    depth: DepthOption = None,
) -> None:
    """Turn text into counted words; docs/populations.md states the tokenisation.

    Example: fedhh data prepare messages.jsonl words.parquet
    """
    from fedhh.cli.console import open_console, print_wrapped, print_written
    from fedhh.cli.description import dropped_lines, spelling_lines
    from fedhh.clients.populations.describe import spelling_of
    from fedhh.clients.reading.columns import parse_columns
    from fedhh.clients.reading.sources import prepare_text
    from fedhh.experiments.config.domain import FROM_DATA, FROM_DATA_REVEALS, written_out
    from fedhh.experiments.config.load import load_config

    config = load_config(settings=changes(alphabet=alphabet))
    longest, symbols = _longest_word(config, depth), config.population.alphabet
    prepared = prepare_text(source, out, columns=parse_columns(columns or ()), separator=separator)
    print_written(out)
    population = prepared.population
    words = population.lexicon.words
    notes = [FROM_DATA_REVEALS] if symbols == FROM_DATA else []
    spelling = spelling_of(
        words, population.word_counts, alphabet=written_out(symbols, words), depth=longest
    )
    empty = f"{prepared.empty_texts:,} of {prepared.texts:,} texts hold no word"
    for line in (
        f"{population.num_clients:,} users, {spelling.words:,} words typed {spelling.tokens:,} "
        "times",
        *([empty] if prepared.empty_texts else []),
        *dropped_lines(prepared.dropped, spelling.tokens),
        *spelling_lines(spelling),
        *notes,
    ):
        print_wrapped(open_console(), line)


@data.command()
def synthesize(
    out: FileArgument,
    source: Annotated[str, typer.Option(help="chat, keyboard60d, tweet or post.")] = "chat",
    clients: Annotated[int, typer.Option(help="How many clients to draw.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
) -> None:
    """Write a synthetic population: its clients' unknown words.

    Example: fedhh data synthesize --source tweet --clients 100000 tweets.parquet
    """
    from fedhh.cli.console import print_written
    from fedhh.clients.populations.synthetic import synthetic_population
    from fedhh.clients.reading.sources import write_population

    write_population(synthetic_population(source, clients, seed=seed), out)
    print_written(out)


def _longest_word(config: Config, depth: int | None) -> int:
    """Return the symbols of the longest word, by the configuration if not said."""
    from fedhh.experiments.config.protocol import build_protocol

    if depth is None:
        return build_protocol(config).longest_word
    require_between(1, LONGEST_DEPTH, depth=depth)
    return depth
