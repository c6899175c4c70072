"""`fedhh pipeline`: devices that live for days, what they send, and what is learned from it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedhh.cli.options import (
    Format,
    FormatOption,
    QuietOption,
    RayAddressOption,
    SeedOption,
    SettingsOption,
    TrustOption,
    VerboseOption,
    changes,
)

if TYPE_CHECKING:
    from fedhh.longitudinal.pipeline.config import PipelineConfig

pipeline = typer.Typer(
    help="Devices over days: caps, an ingestor, an aggregator, and what devices lose.\n\n"
    "Example: fedhh pipeline run --preset pipeline-small",
    no_args_is_help=True,
)


def _presets(incomplete: str) -> list[str]:
    from fedhh.experiments.config.built_in import PIPELINES, preset_names

    return [name for name in preset_names(PIPELINES) if name.startswith(incomplete)]


@pipeline.command("run")
def run_pipeline(  # noqa: PLR0917 - typer makes these options, none is positional
    preset: Annotated[
        str | None, typer.Option(autocompletion=_presets, help="A built-in pipeline.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file.")] = None,
    days: Annotated[int | None, typer.Option(help="How many days.")] = None,
    devices: Annotated[int | None, typer.Option(help="How many devices.")] = None,
    use_cases: Annotated[
        list[str] | None, typer.Option("--use-case", help="Keep only this one; repeatable.")
    ] = None,
    settings: SettingsOption = None,
    seed: SeedOption = None,
    workers: Annotated[
        str | None,
        typer.Option(
            metavar="N|auto",
            help="Ray actors that hold devices; 0: no Ray; auto: what is sooner done.",
        ),
    ] = None,
    ray_address: RayAddressOption = None,
    out: Annotated[Path | None, typer.Option(help="The pipeline's directory.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the one in --out.")] = False,
    trust: TrustOption = False,
    output_format: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Let devices live for some days, and print what was learned and what it cost them.

    Example: fedhh pipeline run --preset apple --days 30 --devices 100000
    """
    given = [f"pipeline.{k}={json.dumps(v)}" for k, v in (("days", days), ("devices", devices))
             if v is not None]  # fmt: skip
    changed = (
        *changes(settings, seed=seed, workers=workers, ray_address=ray_address),
        *given,
    )
    chosen = _resolve(
        preset=preset,
        file=config,
        settings=changed,
        use_cases=tuple(use_cases or ()),
        out=out,
        resume=resume,
    )
    _run(chosen, preset or (config.stem if config else ""), out, resume=resume,
         as_json=output_format is Format.JSON, quiet=quiet)  # fmt: skip


def _resolve(
    *,
    preset: str | None,
    file: Path | None,
    settings: tuple[str, ...],
    use_cases: tuple[str, ...],
    out: Path | None,
    resume: bool,
) -> PipelineConfig:
    """Return the configuration; a resumed pipeline's is the one in its directory."""
    from fedhh.experiments.study.resume import require_same, require_unfinished, resumed_directory
    from fedhh.longitudinal.pipeline.config import change_pipeline, load_pipeline
    from fedhh.longitudinal.pipeline.directory import NAME, stored_config

    if not resume:
        return load_pipeline(preset=preset, file=file, settings=settings, use_cases=use_cases)
    directory = resumed_directory(out, what=NAME)
    stored = stored_config(directory)
    require_unfinished(directory, what=NAME)
    if preset is not None or file is not None or use_cases:
        asked = load_pipeline(preset=preset, file=file, settings=settings, use_cases=use_cases)
    else:
        asked = change_pipeline(stored, settings, str(directory))
    require_same(
        directory,
        {"configuration": asked.result_key},
        {"configuration": stored.result_key},
        what=NAME,
    )
    return stored.model_copy(update={"execution": asked.execution})


def _run(
    config: PipelineConfig, name: str, out: Path | None, *, resume: bool, as_json: bool, quiet: bool
) -> None:
    from fedhh.cli.console import open_console, print_directory, print_json
    from fedhh.cli.finished import print_finished
    from fedhh.cli.pipeline_progress import DaysProgress
    from fedhh.experiments.run.run import check_cluster, open_workers
    from fedhh.experiments.run.workers import choose_workers
    from fedhh.experiments.study.directory import check_output
    from fedhh.longitudinal.devices.worker import DeviceWorker
    from fedhh.longitudinal.pipeline.build import build_model, build_use_cases
    from fedhh.longitudinal.pipeline.directory import (
        CHECKPOINT,
        make_directory,
        result_record,
        write_pipeline,
    )
    from fedhh.longitudinal.pipeline.run import Run, opted_in, seconds_of_devices
    from fedhh.longitudinal.report.pipeline_kind import PipelineKind
    from fedhh.system.stopping import before_leaving

    check_output(out, config.output.directory, resume=resume)
    check_cluster(config.execution.workers, config.execution.ray_address)
    days = config.pipeline
    progress = DaysProgress(
        open_console(stderr=True),
        days=days.days,
        steps_per_day=days.devices * len(days.use_cases),
        quiet=quiet,
    )
    with progress:
        use_cases = build_use_cases(config)
        model = build_model(config, use_cases)
        opted_in(model, config.seed)
        workers = choose_workers(config.execution, seconds_of_devices(config))
        worker = DeviceWorker(model, seed=config.seed)
        with open_workers(worker, workers.number, config.execution.ray_address) as executor:
            if resume:
                assert out is not None
                directory = out
            else:
                label = f"pipeline_{name}_seed{config.seed}"
                directory = make_directory(config, out, name=label)
            checkpoint = directory / CHECKPOINT
            before_leaving(lambda: say_state(checkpoint))
            run = Run(config, use_cases, executor, checkpoint=checkpoint)
            progress.start(run.days_done)
            result = run.finish(
                progress=progress.advance, after_day=progress.finish_day, phase=progress.phase
            )
        record = result_record(result)
        # Figures load matplotlib and pandas, which what is refused does without.
        import pandas as pd

        from fedhh.longitudinal.report.pipeline_figures import FOLDER, write_pipeline_figures

        progress.phase("drawing figures")
        # The result comes last: where a figure does not fit on the disk, --resume goes on.
        write_pipeline_figures(pd.DataFrame(result.tables.days), record, directory / FOLDER)
        progress.phase("writing tables")
        write_pipeline(directory, result)
    if as_json:
        print_json({**record, "directory": str(directory)})
    elif quiet:
        print_directory(directory)
    else:
        print_finished(directory, PipelineKind())


def say_state(checkpoint: Path) -> None:
    """Say on standard error what a pipeline that is stopped leaves to go on with."""
    from fedhh.cli.safe_text import safe_text
    from fedhh.longitudinal.pipeline.directory import state_line

    if state := safe_text(state_line(checkpoint), longest=None):
        os.write(2, f"Left to go on with: {state}; a finished pipeline removes it.\n".encode())
