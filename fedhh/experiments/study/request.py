"""What a user asks to run, and what that names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedhh import plugins
from fedhh.experiments.study.callbacks import Callbacks

if TYPE_CHECKING:
    from fedhh.experiments.config.schema import Config


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a user asks for.

    Attributes:
        source: A preset's name, a TOML file (a path, or a text that ends in .toml or has a slash),
            or None for what ``out`` holds, or for the default of the kind.
        settings: ``section.key=value`` each.
        data: A file of clients, in place of the configured ones.
        out: The directory; None for a new one that fedhh names.
        resume: Whether ``out`` holds what goes on.
        options: What only some kinds know, by name.
        callbacks: Hear how far it is with what is computed to check it.
    """

    source: str | Path | None = None
    settings: Sequence[str] = ()
    data: Path | None = None
    out: Path | None = None
    resume: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    callbacks: Sequence[Callbacks] = ()

    @property
    def file(self) -> Path | None:
        """The TOML file, if it is one."""
        source = self.source
        is_file = isinstance(source, Path) or (
            source is not None and (source.endswith(".toml") or "/" in source)
        )
        return Path(source) if is_file and source is not None else None

    @property
    def is_stored(self) -> bool:
        """Whether it names nothing but the directory to go on with."""
        return self.resume and self.source is None and self.data is None

    def search_modules(self) -> None:
        """Find modules next to what it names; see `fedhh.plugins.search`."""
        if self.is_stored and self.out is not None:
            plugins.search(self.out)
        else:
            plugins.search(Path() if self.file is None else self.file.parent)

    @property
    def name(self) -> str:
        """A short name of the source, for directories; empty without one."""
        return str(self.source or "") if self.file is None else self.file.stem

    def run_config(self) -> Config:
        """Return the configuration of a run, for those who make runs of it by themselves."""
        # Other kinds of experiments read the source in their own way.
        from fedhh.experiments.config.load import load_config

        preset = None if self.source is None or self.file is not None else str(self.source)
        return load_config(preset=preset, file=self.file, settings=self.settings, data=self.data)


@dataclass(frozen=True, kw_only=True)
class Source:
    """What a request names, read, changed and not checked yet.

    Attributes:
        kind: Its word in `KINDS`.
        table: The content.
        origin: Names it in errors.
    """

    kind: str
    table: dict[str, Any]
    origin: str
