"""`fedhh run`: one run, and what a person sees of it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedhh.cli.options import (
    ColumnsOption,
    DataOption,
    FoldCaseOption,
    Format,
    FormatOption,
    KnownOption,
    LiveOption,
    QuietOption,
    RayAddressOption,
    RunPresetOption,
    SeedOption,
    SeparatorOption,
    SettingsOption,
    TrustOption,
    VerboseOption,
    changes,
)

if TYPE_CHECKING:
    from fedhh.cli.progress import LiveProgress
    from fedhh.cli.run_request import RunRequest
    from fedhh.experiments.config.schema import Config
    from fedhh.experiments.report.explorer.server import LiveServer
    from fedhh.experiments.run.listener import Listener
    from fedhh.experiments.run.result import RunResult


def run(  # noqa: PLR0917 - typer makes these options, none is positional
    preset: RunPresetOption = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file.")] = None,
    data: DataOption = None,
    separator: SeparatorOption = None,
    columns: ColumnsOption = None,
    fold_case: FoldCaseOption = False,
    known: KnownOption = None,
    settings: SettingsOption = None,
    seed: SeedOption = None,
    workers: Annotated[
        str | None,
        typer.Option(
            metavar="N|auto",
            help="Ray actors that hold clients; 0: no Ray; auto: what is sooner done.",
        ),
    ] = None,
    ray_address: RayAddressOption = None,
    delta: Annotated[
        float | None, typer.Option(help="Delta of central guarantees, 1e-14 to 0.1.")
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="Alpha of approximate k-anonymity.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run's directory.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    trust: TrustOption = False,
    live: LiveOption = False,
    output_format: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Discover words: one run, with its tables and figures.

    Example: fedhh run --data words.parquet --set privacy.local_epsilon=6
    """
    from fedhh.cli.run_request import RunRequest

    request = RunRequest(
        preset=preset,
        config=config,
        settings=changes(
            settings,
            known=known,
            columns=columns,
            separator=separator,
            fold_case=fold_case or None,
            delta=delta,
            alpha=alpha,
            seed=seed,
            workers=workers,
            ray_address=ray_address,
        ),
        data=data,
        out=out,
        resume=resume,
    )
    _run(request, live=live, as_json=output_format is Format.JSON, quiet=quiet)


def _run(request: RunRequest, *, live: bool, as_json: bool, quiet: bool) -> None:
    """Run, print what came out, and leave the run's directory."""
    from fedhh.cli.console import open_console, print_directory, print_json, quoted_path
    from fedhh.cli.preflight import print_before_run
    from fedhh.cli.progress import LiveProgress
    from fedhh.cli.run_brief import print_brief
    from fedhh.cli.run_request import Directories, resolve
    from fedhh.experiments.config.client_file import KeptFile
    from fedhh.experiments.config.population import build_population
    from fedhh.experiments.config.protocol import build_protocol
    from fedhh.experiments.report.comparison import comparison_of_runs
    from fedhh.experiments.run import directory as output
    from fedhh.experiments.run.run import check_cluster, check_config, open_executor, run_config
    from fedhh.experiments.run.workers import choose_workers, seconds_of_run, start_ahead

    config = resolve(request)
    configs = [config, *config.of_baselines]
    # Refuse what cannot work before any client is drawn.
    for each in configs:
        build_protocol(each)
    directories = Directories(request, config.output.directory)
    check_cluster(config.execution.workers, config.execution.ray_address)
    with ExitStack() as stack:
        progress = LiveProgress(open_console(stderr=True), quiet=quiet)
        listener, server = _followed(stack, progress, configs, live=live)
        stack.enter_context(progress)
        ahead = stack.enter_context(start_ahead(config.execution))
        started = time.perf_counter()
        file = KeptFile()
        population, facts = build_population(config.population, seed=config.seed, read=file.read)
        drawn = time.perf_counter() - started
        checked = [check_config(each, population) for each in configs]
        if not quiet:
            print_before_run(progress.console, configs, population, file)
        seconds = sum(
            seconds_of_run(settled, protocol.mechanism, population) for settled, protocol in checked
        )
        workers = choose_workers(config.execution, seconds)
        progress.place(workers)
        with open_executor(config, population, workers, ahead) as executor:
            runs = [
                run_config(
                    each, population, executor=executor, listener=listener, checkpoint_in=make
                )
                for each, make in zip(configs, directories.makers(len(configs)), strict=True)
            ]
        runs[0][1].timings["population"] = drawn
        _write(runs, directories.made, facts)
        directory = directories.made[0]
        if server is not None:
            server.end_with(f"fedhh report {quoted_path(directory)} writes it with all there is.")
    if as_json:
        record, *beside = (output.result_record(result, each, facts) for each, result in runs)
        if beside:
            record[output.BASELINES] = beside
        print_json({**record, "directory": str(directory)})
    elif quiet:
        print_directory(directory)
    else:
        print_brief(
            open_console(),
            runs[0][1],
            directory,
            beside=comparison_of_runs(runs) if len(runs) > 1 else None,
        )


def _write(
    runs: Sequence[tuple[Config, RunResult]], made: Sequence[Path], facts: Mapping[str, Any]
) -> None:
    """Write the figures and results of a run and its baselines."""
    # Figures load matplotlib, which a run that is refused does without.
    from fedhh.experiments.report.run_figures import write_figures
    from fedhh.experiments.run import directory as output

    # The run's own result comes last, since it says that all is done; then nothing is resumed.
    for (each, result), directory in reversed(list(zip(runs, made, strict=True))):
        write_figures(directory, result)
        output.write_result(directory, result, each, facts)
    for (each, _), directory in zip(runs, made, strict=True):
        output.drop_checkpoint(directory, each)


def _followed(
    stack: ExitStack, progress: LiveProgress, configs: Sequence[Config], *, live: bool
) -> tuple[Listener, LiveServer | None]:
    """Return who hears of the run, and the server of its live page if there is to be one."""
    if not live:
        return progress, None
    # Who serves nothing loads no server.
    from fedhh.cli.live import followed_run

    return stack.enter_context(followed_run(progress, _title(configs)))


def _title(configs: Sequence[Config]) -> str:
    """Return what a live page is called."""
    names = " and ".join(each.protocol.name for each in configs)
    return f"{names} on {configs[0].population.source}"
