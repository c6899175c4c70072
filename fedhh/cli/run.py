"""`fedhh run`: one run, and what a person sees of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedhh.cli.options import (
    DataOption,
    Format,
    FormatOption,
    KnownOption,
    LiveOption,
    QuietOption,
    RayAddressOption,
    RunPresetOption,
    SeedOption,
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


def run(  # noqa: PLR0917 - typer makes these options, none is positional
    preset: RunPresetOption = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file.")] = None,
    data: DataOption = None,
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
    from fedhh.cli.progress import LiveProgress
    from fedhh.cli.run_brief import print_brief
    from fedhh.cli.run_request import Directories, resolve
    from fedhh.experiments.config.population import build_population
    from fedhh.experiments.config.protocol import build_protocol
    from fedhh.experiments.report.comparison import comparison_of_runs
    from fedhh.experiments.run import directory as output
    from fedhh.experiments.run.run import check_cluster, check_config, open_executor, run_config
    from fedhh.experiments.run.workers import choose_workers, seconds_of_run, start_ahead

    config = resolve(request)
    baseline = config.of_baseline
    configs = [config] if baseline is None else [config, baseline]
    # Refuse what cannot work before any client is drawn.
    for each in configs:
        build_protocol(each)
    if request.out is not None and not request.resume:
        output.check_directory(request.out)
    check_cluster(config.execution.workers, config.execution.ray_address)
    directories = Directories(request)
    with ExitStack() as stack:
        ahead = stack.enter_context(start_ahead(config.execution))
        progress = LiveProgress(open_console(stderr=True), quiet=quiet)
        listener, server = _followed(stack, progress, configs, live=live)
        stack.enter_context(progress)
        started = time.perf_counter()
        population, facts = build_population(config.population, seed=config.seed)
        drawn = time.perf_counter() - started
        seconds = 0.0
        for settled, protocol in [check_config(each, population) for each in configs]:
            seconds += seconds_of_run(settled, protocol.mechanism, population)
        workers = choose_workers(config.execution, seconds)
        progress.place(workers)
        with open_executor(config, population, workers, ahead) as executor:
            runs = [
                run_config(
                    each, population, executor=executor, listener=listener, checkpoint_in=make
                )
                for each, make in zip(configs, directories.makers, strict=False)
            ]
        runs[0][1].timings["population"] = drawn
        # Figures load matplotlib, which a run that is refused does without.
        from fedhh.experiments.report.run_figures import write_figures

        # The run's own result comes last, since it says that all is done.
        for (each, result), made in reversed(list(zip(runs, directories.made, strict=True))):
            write_figures(made, result)
            output.write_result(made, result, each, facts)
        directory = directories.made[0]
        if server is not None:
            server.end_with(f"fedhh report {quoted_path(directory)} writes it with all there is.")
    if as_json:
        record, *beside = (output.result_record(result, each, facts) for each, result in runs)
        if beside:
            record[output.BASELINE_FOLDER] = beside[0]
        print_json({**record, "directory": str(directory)})
    elif quiet:
        print_directory(directory)
    else:
        table = None if baseline is None else comparison_of_runs(runs)
        print_brief(open_console(), runs[0][1], directory, beside=table)


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
