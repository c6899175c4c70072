"""One loader for all kinds: a preset's name or a TOML file, changed as asked; it says its kind."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

from fedhh.experiments.config.built_in import COMMANDS, preset_names, preset_text
from fedhh.experiments.config.toml_file import read_toml
from fedhh.experiments.study.callbacks import Callbacks
from fedhh.experiments.study.kinds import KINDS, Kind, find, kind_of_table
from fedhh.experiments.study.request import Request, Source
from fedhh.experiments.study.resume import resumed_directory, stored_toml
from fedhh.experiments.study.study import Study
from fedhh.system.files import is_there
from fedhh.validation import InputError, did_you_mean


def load_source(request: Request, *, kind: str | None = None) -> Source:
    """Return what a request names, with the changes that it asks for.

    Args:
        request: The request; a resume that names no source goes on with what its directory holds.
        kind: A word of `KINDS` that it has to be of; None for any, which the content says.
    """
    request.search_modules()
    of_kind = find(kind or "run")
    what = of_kind.noun if kind else "experiment"
    directory = resumed_directory(request.out, what=what) if request.resume else None
    if directory is not None and request.is_stored:
        names = [KINDS[kind].config] if kind else sorted({each.config for each in KINDS.values()})
        name = next((each for each in names if is_there(directory / each)), names[0])
        table, origin = stored_toml(directory, name, what=of_kind.noun), str(directory)
    elif request.file is not None:
        table, origin = read_toml(request.file), str(request.file)
    else:
        name = str(request.source or of_kind.default_source)
        if not name:
            listed = ", ".join(preset_names(KINDS[kind or "run"].presets))
            raise InputError(
                f"Expected a {of_kind.noun}: a TOML file, or a preset's name, one of {listed}."
            )
        table, origin = tomllib.loads(_preset(name, kind)), f"preset {name}"
    said = kind_of_table(table)
    if kind is None:
        of_kind = find(said)
    elif not of_kind.takes(table):
        raise InputError(
            f"{origin} is of the kind {said}, expected a {of_kind.noun}; fedhh run takes any kind."
        )
    return Source(kind=kind or said, table=of_kind.changed(table, request, origin), origin=origin)


def run(
    source: str | Path | None = None,
    *,
    settings: Sequence[str] = (),
    data: Path | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    callbacks: Sequence[Callbacks] = (),
) -> Path:
    """Run an experiment of any kind, as `fedhh run` does, and return its directory.

    Args:
        source: A preset's name or a TOML file, see `Request.source`; "default" if None.
        settings: ``section.key=value`` each.
        data: A file of clients, in place of the configured ones.
        out: The directory; a new one if None.
        resume: Go on with what ``out`` holds.
        callbacks: Hear how it goes on.

    Raises:
        InputError: It cannot run as it is; nothing has run.
    """
    place = None if out is None else Path(out)
    request = Request(source=source, settings=settings, data=data, out=place, resume=resume)
    return open_study(request)[1].run(callbacks)


def open_study(request: Request, *, kind: str | None = None) -> tuple[Kind, Study]:
    """Return what a request asks for, every setting of it checked, and its kind."""
    source = load_source(request, kind=kind)
    found = find(source.kind)
    return found, found.study(source, request)


def _preset(name: str, kind: str | None) -> str:
    if kind is not None:
        also = find(kind).also_presets
        is_other = also != "" and name in preset_names(also)
        return preset_text(name, also if is_other else KINDS[kind].presets)
    homes = {each: folder for folder in COMMANDS for each in preset_names(folder)}
    if name not in homes:
        raise InputError(f"Unknown preset {name!r}{did_you_mean(name, homes)}")
    return preset_text(name, homes[name])
