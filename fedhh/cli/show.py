"""`fedhh show`: all tables of what is finished, from its files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedhh.cli.options import Format, FormatOption, SecondOpinionOption

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH = 132


def show(
    directory: Annotated[Path, typer.Argument(help="What a command has left: its directory.")],
    words: Annotated[int, typer.Option(help="Discovered words to list.", min=0)] = 20,
    second_opinion: SecondOpinionOption = False,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Print all tables of what is finished, from its files: runs, sweeps, pipelines, months.

    Example: fedhh show runs/mine
    """
    from fedhh.experiments.run.stored_files import reading

    with reading(directory):
        _show(
            directory,
            words=words,
            second_opinion=second_opinion,
            as_json=output_format is Format.JSON,
        )


def _show(directory: Path, *, words: int, second_opinion: bool, as_json: bool) -> None:
    from fedhh.cli.console import open_console, print_json
    from fedhh.experiments.longitudinal.directory import is_longitudinal
    from fedhh.experiments.pipeline.directory import CHECKPOINT, is_pipeline
    from fedhh.experiments.run.directory import is_finished
    from fedhh.experiments.run.identity import IDENTITY
    from fedhh.experiments.sweep.directory import RESULTS, SWEEP_FILE
    from fedhh.system.files import is_there
    from fedhh.validation import InputError

    begun = {
        SWEEP_FILE: "sweep", IDENTITY: "longitudinal run", CHECKPOINT: "pipeline run"
    }  # fmt: skip
    console = open_console(width_unless_terminal=_WIDTH)
    if second_opinion and not is_finished(directory):
        raise InputError(
            f"Expected --second-opinion with the directory of a finished run, got {directory}."
        )
    if is_pipeline(directory):
        from fedhh.cli.pipeline import show_pipeline

        show_pipeline(directory, Format.JSON if as_json else Format.TABLE)
    elif is_longitudinal(directory):
        from fedhh.cli.longitudinal import show_longitudinal

        show_longitudinal(directory, Format.JSON if as_json else Format.TABLE)
    elif is_finished(directory):
        if as_json:
            print_json(_run_records(directory, second_opinion=second_opinion))
        else:
            _print_runs(console, directory, num_words=words, second_opinion=second_opinion)
    elif is_there(directory / RESULTS):
        if as_json:
            print_json(_sweep_rows(directory))
        else:
            _print_tables(console, directory)
    else:
        command = next((of for file, of in begun.items() if is_there(directory / file)), "run")
        raise InputError(
            f"{directory} holds nothing that is finished; go on with fedhh {command} --resume "
            "--out, if it was stopped."
        )


def _print_runs(console: Console, directory: Path, *, num_words: int, second_opinion: bool) -> None:
    from fedhh.cli.console import print_line
    from fedhh.cli.run_tables import print_run
    from fedhh.cli.safe_text import safe_text
    from fedhh.cli.second_opinions import print_opinions
    from fedhh.cli.text_tables import print_table
    from fedhh.experiments.report.comparison import comparison_of_runs
    from fedhh.experiments.run.stored_result import read_result

    stored = [read_result(folder) for folder in _folders(directory)]
    for each in stored:
        print_run(console, each.result, num_words=num_words)
        if second_opinion:
            print_opinions(each.result.second_opinion())
    if len(stored) > 1:
        runs = [(each.config, each.result) for each in stored]
        print_table(console, comparison_of_runs(runs))
    print_line(console, f"Files: {safe_text(directory, longest=None)}")


def _print_tables(console: Console, directory: Path) -> None:
    from fedhh.cli.console import print_line
    from fedhh.cli.safe_text import safe_text
    from fedhh.cli.text_tables import print_table
    from fedhh.experiments.report.tables import TABLES, make_table
    from fedhh.experiments.sweep.directory import read_results
    from fedhh.validation import InputError

    read_results(directory)  # What is damaged is an error; what a table lacks is none.
    for name in TABLES:
        try:
            table = make_table(name, directory)
        except InputError:
            continue
        print_table(console, table)
    print_line(console, f"Files: {safe_text(directory, longest=None)}")


def _run_records(directory: Path, *, second_opinion: bool) -> dict[str, Any]:
    from fedhh.experiments.run.directory import BASELINE_FOLDER
    from fedhh.experiments.run.stored_result import read_record, read_result

    records = [read_record(folder) for folder in _folders(directory)]
    if second_opinion:
        for record, folder in zip(records, _folders(directory), strict=True):
            opinions = read_result(folder).result.second_opinion()
            record["second_opinion"] = [each.to_dict() for each in opinions]
    record, *beside = records
    if beside:
        record[BASELINE_FOLDER] = beside[0]
    return {**record, "directory": str(directory)}


def _sweep_rows(directory: Path) -> Any:
    from fedhh.cli.sweep_tables import frame_rows
    from fedhh.experiments.sweep.directory import read_results

    return frame_rows(read_results(directory)[0])


def _folders(directory: Path) -> list[Path]:
    """Return a run's directory, and that of its baseline if there is one."""
    from fedhh.experiments.run.directory import BASELINE_FOLDER, is_finished

    baseline = directory / BASELINE_FOLDER
    return [directory, *([baseline] if is_finished(baseline) else [])]
