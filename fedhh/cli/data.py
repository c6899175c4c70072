"""`fedhh data`: populations in files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    KnownOption,
    LanguageOption,
    SeparatorOption,
    changes,
)
from fedhh.validation import InputError, require_between
from fedhh.words.languages import ENGLISH

if TYPE_CHECKING:
    from fedhh.clients.clients import Clients
    from fedhh.experiments.config.schema import Config
    from fedhh.experiments.run.preflight_facts import Preflight

LONGEST_DEPTH = 1_000
"""Of `fedhh data describe`: all words are held in arrays of so many symbols."""

LEAST_MEMORY, MOST_MEMORY = 0.25, 4096.0
"""Of `fedhh data prepare`: GiB."""

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
    language: LanguageOption = None,
    known: KnownOption = None,
    alphabet: AlphabetOption = None,
    depth: DepthOption = None,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Say what a file holds, what of it a run can find, and what would help before one.

    Of a prepared directory, every byte is checked, and a million clients are described.

    Example: fedhh data describe words.parquet
    Example: fedhh data describe chat.csv --sep ';' --column user=Sender
    --column text=Message
    """
    from fedhh.cli.console import open_console, print_wrapped
    from fedhh.cli.description import described, print_description
    from fedhh.cli.text_tables import print_result
    from fedhh.clients.describe import describe as summarize
    from fedhh.clients.known_words import load_known, remove_known
    from fedhh.clients.reading.sources import name_of
    from fedhh.experiments.config.client_file import load_file, looked_at
    from fedhh.experiments.config.domain import FROM_DATA, FROM_DATA_REVEALS, written_out
    from fedhh.experiments.config.load import load_config
    from fedhh.experiments.study.parts import Line

    options = changes(
        columns=columns,
        separator=separator,
        fold_case=fold_case,
        language=language,
        known=known,
        alphabet=alphabet,
    )
    config = load_config(data=file, settings=options)
    longest = _longest_word(config, depth)
    title = name_of(file)
    population = looked_at(load_file(config.population))
    known_words = load_known(config.population.known, config.population.language)
    target = remove_known(population, known_words)
    notes = [FROM_DATA_REVEALS] if config.population.alphabet == FROM_DATA else []
    # As a run does: of the words that devices do not know.
    symbols = written_out(config.population.alphabet, target.lexicon.words)
    summary = summarize(population, known_words, alphabet=symbols, depth=longest)
    verdict = _verdict(config, depth, target)
    if output_format is Format.TABLE:
        console = open_console()
        print_description(console, title, summary, population.texts, verdict)
        for note in notes:
            print_wrapped(console, note)
        return
    record = {
        **asdict(summary),
        "texts": population.texts.number,
        "empty_texts": population.texts.empty,
        "dropped": population.texts.reasons,
        "verdict": {"refusal": verdict} if isinstance(verdict, str) else verdict.record,
        "notes": notes,
    }
    parts = (*described(title, summary, population.texts, verdict), *map(Line, notes))
    print_result(output_format, lambda: record, parts)


def _verdict(config: Config, depth: int | None, target: Clients) -> Preflight | str:
    """Return what is known before a run with the default settings, or why there can be none."""
    from fedhh.experiments.config.load import change_config
    from fedhh.experiments.run.preflight import preflight_of_configs

    try:
        if depth is not None:
            config = change_config(config, [f"protocol.depth={depth}"], "--depth")
        return preflight_of_configs([config], target)
    except InputError as refusal:
        return str(refusal)


@data.command()
def prepare(  # noqa: PLR0917 - typer makes these options, only the files are positional
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="[IN...] OUT",
            help="A file of texts or counted words, and one that is not there yet: user, word, "
            "count. Or files and directories of any size, and a directory to map, a name without "
            "extension.",
        ),
    ],
    salt: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Of a directory: the key of its order; else random, and not kept.",
        ),
    ] = None,
    memory: Annotated[
        float | None,
        typer.Option(metavar="GIB", help="Of a directory: what sorting takes of memory."),
    ] = None,
    fold_case: FoldCaseOption = False,
    separator: SeparatorOption = None,
    columns: ColumnsOption = None,
    language: LanguageOption = None,
    alphabet: AlphabetOption = None,
    depth: DepthOption = None,
) -> None:
    """Turn text into counted words; docs/populations.md states the tokenisation.

    Example: fedhh data prepare messages.jsonl words.parquet
    Example: fedhh data prepare parts/ prepared
    """
    from fedhh.cli.console import open_console, print_wrapped, print_written
    from fedhh.cli.description import dropped_lines
    from fedhh.clients.reading.columns import Layout, parse_columns
    from fedhh.clients.reading.preparing import prepare_files
    from fedhh.clients.reading.sources import STANDARD_INPUT, read_file, write_population
    from fedhh.clients.reading.tables import kind_of
    from fedhh.system.files import require_absent

    *sources, out = files
    is_directory = len(files) > 1 and _is_directory(out)
    if not is_directory and len(files) != 2:
        raise InputError(f"Expected IN and OUT, got {len(files)} files; name one of each.")
    if str(out) == STANDARD_INPUT:
        raise InputError("Expected a path as OUT, got '-', which is read; name what is written.")
    layout = Layout(
        columns=parse_columns(columns or ()),
        separator=separator,
        fold_case=fold_case,
        language=language or ENGLISH,
    )
    if is_directory:
        _require_unset("file", out, {"--alphabet": alphabet, "--depth": depth})
        if memory is not None:
            require_between(LEAST_MEMORY, MOST_MEMORY, memory=memory)
        most = None if memory is None else int(memory * 2**30)
        manifest, texts = prepare_files(sources, out, layout, salt=salt, memory=most)
        clients, words, tokens = manifest.clients, manifest.words, manifest.contributions
        rows, lost = f", {manifest.rows:,} rows", []
    else:
        _require_unset("directory", out, {"--salt": salt, "--memory": memory})
        spelling_of_words = _spelling(changes(language=language, alphabet=alphabet), depth)
        kind_of(out)
        require_absent(out)
        population = read_file(sources[0], layout)
        texts = population.texts
        write_population(population, out)
        typed = population.word_counts().typed
        clients, words, tokens = population.num_clients, len(typed), int(typed.sum())
        rows, lost = "", spelling_of_words(population)
    print_written(out)
    for line in (
        f"{clients:,} users, {words:,} words typed {tokens:,} times{rows}",
        *([f"{texts.empty:,} of {texts.number:,} texts hold no word"] if texts.empty else []),
        *dropped_lines(texts.dropped, tokens),
        *lost,
    ):
        print_wrapped(open_console(), line)


def _require_unset(kind: str, out: Path, options: Mapping[str, object]) -> None:
    """Refuse options that an OUT of one kind takes, where OUT is of the other."""
    for option, value in options.items():
        if value is not None:
            raise InputError(
                f"Expected {option} with a {kind} as OUT, got {out}; remove the option, or name a "
                f"{kind}: one {'with' if kind == 'file' else 'without'} extension."
            )


def _spelling(settings: Sequence[str], depth: int | None) -> Callable[[Clients], list[str]]:
    """Return what says which words of clients an alphabet and a depth cannot spell."""
    from fedhh.cli.description import spelling_lines
    from fedhh.clients.describe import spelling_of
    from fedhh.experiments.config.domain import FROM_DATA, FROM_DATA_REVEALS, written_out
    from fedhh.experiments.config.load import load_config

    config = load_config(settings=settings)
    longest, symbols = _longest_word(config, depth), config.population.alphabet

    def lines(population: Clients) -> list[str]:
        words, typed = population.lexicon.words, population.word_counts().typed
        alphabet = written_out(symbols, words)
        notes = [FROM_DATA_REVEALS] if symbols == FROM_DATA else []
        return spelling_lines(spelling_of(words, typed, alphabet=alphabet, depth=longest)) + notes

    return lines


def _is_directory(out: Path) -> bool:
    """Return whether OUT names a directory to be made: it has no extension."""
    return not out.suffix


@data.command()
def synthesize(
    out: Annotated[
        Path,
        typer.Argument(
            help="Parquet, CSV, CSV.gz or JSON Lines; or a directory to map, a name without "
            "extension, for more clients than memory holds."
        ),
    ],
    source: Annotated[
        str, typer.Option(help="chat, keyboard60d, tweet, post, wordfreq-tail or zipf.")
    ] = "chat",
    clients: Annotated[int, typer.Option(help="How many clients to draw.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    language: Annotated[
        str | None, typer.Option("--language", help="Of the words, by its code; en if not said.")
    ] = None,
) -> None:
    """Write a synthetic population: its clients' unknown words.

    Example: fedhh data synthesize --source tweet --clients 100000 tweets.parquet
    """
    from fedhh.cli.console import print_written
    from fedhh.clients.reading.preparing import prepare_synthetic
    from fedhh.clients.reading.sources import write_population
    from fedhh.clients.synthetic import synthetic_population
    from fedhh.experiments.config.population import synthetic_model
    from fedhh.system.files import require_absent

    model = synthetic_model(source, language or ENGLISH)
    if _is_directory(out):
        prepare_synthetic(model, clients, out, seed=seed)
    else:
        require_absent(out)
        write_population(synthetic_population(model, clients, seed=seed), out)
    print_written(out)


def _longest_word(config: Config, depth: int | None) -> int:
    """Return the symbols of the longest word, by the configuration if not said."""
    from fedhh.experiments.config.protocol import build_protocol

    if depth is None:
        return build_protocol(config).longest_word
    require_between(1, LONGEST_DEPTH, depth=depth)
    return depth
