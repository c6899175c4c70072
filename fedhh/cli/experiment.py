"""Runs an experiment of any kind, and prints what comes of it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import typer

from fedhh.cli.console import open_console, print_directory
from fedhh.cli.options import Format
from fedhh.cli.progress import LiveProgress
from fedhh.cli.text_tables import print_as, print_parts, print_result
from fedhh.experiments.study.callbacks import Callbacks
from fedhh.experiments.study.kinds import Asked, Chosen
from fedhh.experiments.study.request import Request
from fedhh.experiments.study.source import open_study
from fedhh.experiments.study.stored_files import reading


def run_experiment(
    request: Request,
    *,
    kind: str | None = None,
    dry_run: bool = False,
    live: bool = False,
    output_format: Format = Format.TABLE,
    quiet: bool = False,
    chosen: Chosen | None = None,
) -> None:
    """Run what is asked for, of any kind or of one, and print the result, or what is chosen of it.

    Raises:
        typer.Exit: Parts of it have failed.
    """
    with LiveProgress(open_console(stderr=True), quiet=quiet) as checking:
        found, study = open_study(replace(request, callbacks=(checking,)), kind=kind)
    if dry_run:
        wide = open_console(width_unless_terminal=found.width)
        print_result(output_format, study.plan_record, study.plan(), console=wide)
        return
    with ExitStack() as stack:
        progress = LiveProgress(open_console(stderr=True), quiet=quiet)
        callbacks: list[Callbacks] = [progress]
        page = None
        if live:
            # Who serves nothing loads no server.
            from fedhh.cli.live import followed

            page = stack.enter_context(followed(found.live(study)))
            callbacks.append(page.callbacks)
        stack.enter_context(progress)
        directory = study.run(callbacks)
        if page is not None:
            page.end(directory)
    with reading(directory):
        if chosen is not None and chosen.is_asked and not quiet:
            print_as(found.chosen_table(directory, chosen), output_format)
        elif output_format is not Format.TABLE:
            record = partial(found.record, directory, Asked())
            print_result(output_format, record, found.shown(directory, Asked()))
        elif quiet:
            print_directory(directory)
        else:
            console = open_console(width_unless_terminal=found.brief_width)
            print_parts(console, found.brief(directory))
    if not study.is_complete:
        raise typer.Exit(1)
