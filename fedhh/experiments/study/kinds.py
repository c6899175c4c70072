"""Kinds of experiments: how one is read and run, and what is made of a finished directory.

A kind is a class below `Kind` and a line in `KINDS`. The commands ask here, and know no kind by its
name.
"""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from fedhh.experiments.config.built_in import LONGITUDINAL, PIPELINES, RUNS, SWEEPS
from fedhh.experiments.config.load import apply_settings
from fedhh.experiments.study.callbacks import Callbacks
from fedhh.experiments.study.directory import CONFIG, RESULT
from fedhh.experiments.study.look import Look
from fedhh.experiments.study.page import PageData
from fedhh.experiments.study.parts import Line, Part
from fedhh.experiments.study.request import Request, Source
from fedhh.experiments.study.stored_files import read_json
from fedhh.experiments.study.study import Study
from fedhh.experiments.study.text_table import TextTable
from fedhh.system.files import is_there
from fedhh.validation import InputError, shown


class Registered(NamedTuple):
    """A line of `KINDS`.

    Attributes:
        home: Where the class is, "module:Class"; loaded when it is asked.
        section: The table by which its TOML files are known; of several, the deepest one decides.
        config: Its file in its directories.
        presets: The folder of its built-in configurations.
    """

    home: str
    section: str = ""
    config: str = CONFIG
    presets: str = ""


_SWEEPS = "fedhh.experiments.report.sweep_kind"
KINDS: dict[str, Registered] = {
    "run": Registered("fedhh.experiments.report.run_kind:RunKind", presets=RUNS),
    "sweep": Registered(f"{_SWEEPS}:SweepKind", "sweep", "sweep.toml", SWEEPS),
    "comparison": Registered(f"{_SWEEPS}:ComparisonKind", "sweep.protocols", "sweep.toml", SWEEPS),
    "pipeline": Registered(
        "fedhh.longitudinal.report.pipeline_kind:PipelineKind", "pipeline", presets=PIPELINES
    ),
    "repeated-collection": Registered(
        "fedhh.longitudinal.report.repeated_kind:RepeatedKind", "longitudinal", presets=LONGITUDINAL
    ),
}
"""All kinds, by the word that their directories say."""

KIND = "kind"
"""In `RESULT`, or what takes its place, the word of `KINDS`."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a user asks of the tables.

    Attributes:
        everything: Whether all tables are printed, not the main one alone.
        words: Discovered words to list.
    """

    everything: bool = False
    words: int = 20


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """What a user wants the main table to have.

    Attributes:
        metrics: Columns of results; the usual ones if empty.
        rows: Settings, "protocol" or "metric", whose values name the rows, the first outermost.
        columns: What has a column for each value; "metric" if None.
    """

    metrics: Sequence[str] = ()
    rows: Sequence[str] = ()
    columns: str | None = None

    @property
    def is_asked(self) -> bool:
        """Whether anything is chosen."""
        return bool(self.metrics or self.rows or self.columns)


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """What a user asks of the figures.

    Attributes:
        out: Where they go; None: where the kind keeps them.
        look: How all look.
        x: The setting along the horizontal axis, if asked.
        by: The setting with a line for each value, if asked.
        facet: Settings with a panel for each value.
        where: ``KEY=VALUE`` of what is drawn.
        metrics: Columns to draw; the kind's own if empty.
    """

    out: Path | None = None
    look: Look = field(default_factory=Look)
    x: str | None = None
    by: str | None = None
    facet: Sequence[str] = ()
    where: Sequence[str] = ()
    metrics: Sequence[str] = ()

    @property
    def names_settings(self) -> bool:
        """Whether it asks for anything that only a table of many settings has."""
        return bool(self.x or self.by or self.facet or self.where or self.metrics)


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """What has been drawn.

    Attributes:
        paths: The first file of each figure.
        missing: Why there is no figure of a name.
    """

    paths: Sequence[Path]
    missing: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class LivePage:
    """A page that follows an experiment.

    Attributes:
        server: Serves it; a context manager.
        callbacks: Tells it what goes on.
        failed: Returns how many units have failed.
    """

    server: Any
    callbacks: Callbacks
    failed: Callable[[], int] = lambda: 0

    def end(self, directory: Path) -> None:
        """Say on the page, when its server ends, what came out and where it is."""
        failures = f"{self.failed():,} of its runs failed. " if self.failed() else ""
        place = shlex.quote(str(directory))
        self.server.end_with(f"{failures}fedhh report {place} writes it with all there is.")


class Kind(ABC):
    """A kind of experiment: how it is read and run, and how its finished directories are shown.

    An instance holds nothing. Methods on directories raise `InputError` where files
    are missing or damaged, and read nothing but files.

    Attributes:
        noun: What a directory holds, after "a".
        command: The command that resumes it, without ``fedhh``.
        default_source: The preset that runs where no source is named; empty if one has to be.
        also_presets: A folder of built-in configurations that it takes besides its own.
        begun: A file that stands in its directory from the beginning; empty if none tells.
        width: Cells of a line of its tables where no terminal says how wide it is.
        brief_width: The same of what is printed at the end of a run; 80, for tables too, if None.
        has_more: Whether more is printed of it than its main table, if all is asked for.
        has_settings: Whether its figures can be chosen by settings and metrics.
        is_laid_over: Whether two of its directories have a page together.
    """

    noun: ClassVar[str]
    command: ClassVar[str]
    default_source: ClassVar[str] = ""
    also_presets: ClassVar[str] = ""
    begun: ClassVar[str] = ""
    width: ClassVar[int] = 132
    brief_width: ClassVar[int | None] = None
    has_more: ClassVar[bool] = False
    has_settings: ClassVar[bool] = False
    is_laid_over: ClassVar[bool] = False

    def takes(self, table: dict[str, Any]) -> bool:
        """Return whether a TOML file's content has no other kind's section."""
        said = kind_of_table(table)
        return said == "run" or type(find(said)) is type(self)

    def changed(self, table: dict[str, Any], request: Request, origin: str) -> dict[str, Any]:
        """Return a file's content with what a request changes: data, settings, own options."""
        if request.data is not None:
            raise InputError(f"Expected --data with clients to replace; a {self.noun} has none.")
        apply_settings(table, request.settings)
        return table

    def study(self, source: Source, request: Request) -> Study:
        """Return what is about to run, every setting of it checked."""
        raise InputError(f"A {self.noun} does not run from a file.")

    def live(self, study: Study) -> LivePage:
        """Return the page that follows it."""
        raise InputError(f"A {self.noun} has no live page; run it without --live.")

    def brief(self, directory: Path) -> Iterable[Part]:
        """Return what is printed at the end of a run, with the lines on its files."""
        return self.whole(directory, Asked())

    def whole(self, directory: Path, asked: Asked) -> Iterable[Part]:
        """Yield what is printed of it, and the lines on its files."""
        yield from self.shown(directory, asked)
        yield Line(f"Files: {directory}", is_whole=True)
        if self.has_more and not asked.everything:
            yield all_tables(directory)
        for line in self.closing_lines(directory):
            yield Line(line, is_whole=True)

    def is_finished(self, directory: Path) -> bool:
        """Return whether a directory without `RESULT` holds a finished one."""
        return False

    @abstractmethod
    def table(self, directory: Path) -> TextTable:
        """Return the table that says most."""

    def chosen_table(self, directory: Path, chosen: Chosen) -> TextTable:
        """Return the table of what is chosen; InputError if the results have no such thing."""
        raise InputError(
            "Expected --metric, --rows and --columns with the directory of a run or a sweep, got "
            f"{directory}, which holds a {self.noun}."
        )

    def named_table(self, directory: Path, name: str) -> TextTable:
        """Return the table of a name."""
        raise InputError(
            f"Expected a table's name with a sweep's directory only, got {shown(name)} with "
            f"{directory}, which has one table: main."
        )

    def shown(self, directory: Path, asked: Asked) -> Iterable[Part]:
        """Return its main table, or all that there is, as asked."""
        has_less = self.has_more and not asked.everything
        return (self.table(directory),) if has_less else self.parts(directory, asked)

    def parts(self, directory: Path, asked: Asked) -> Iterable[Part]:
        """Return all that is printed of it, in order."""
        return (self.table(directory),)

    def closing_lines(self, directory: Path) -> Iterable[str]:
        """Return lines on its files, after the one that names the directory."""
        return ()

    def record(self, directory: Path, asked: Asked) -> Any:
        """Return it as JSON values."""
        return {**read_json(directory / RESULT), "directory": str(directory)}

    def plot(self, directory: Path, drawing: Drawing) -> Drawn:
        """Write its figures as PNG, PDF and SVG."""
        raise InputError(f"{directory} holds a {self.noun}, which has no figures.")

    def page(self, directory: Path) -> PageData:
        """Return its page to explore."""
        raise InputError(f"{directory} holds a {self.noun}, which has no page to explore.")

    def page_of_two(self, directory: Path, other: Path) -> PageData:
        """Return the page of two, laid over each other; of a kind that `is_laid_over`."""
        raise NotImplementedError

    def opened_from_page(self, directory: Path) -> Sequence[Path]:
        """Return the directories below it to whose pages its own page leads."""
        return ()


def places(directory: Path, *, has_settings: bool = False) -> Iterator[Line]:
    """Yield where a result's files are, and how to see all of it.

    Args:
        directory: The result's.
        has_settings: Whether it is of many settings, which figures show in more than one way.
    """
    quoted = shlex.quote(str(directory))
    yield Line(f"Files: {directory}", is_whole=True)
    yield all_tables(directory)
    if has_settings:
        yield Line(f"Figures by other settings: fedhh plot {quoted}", is_whole=True)
    yield Line(f"A page to explore: fedhh report {quoted}", is_whole=True)


def all_tables(directory: Path) -> Line:
    """Return how to see all tables of a result."""
    return Line(f"All tables: fedhh show {shlex.quote(str(directory))} --all", is_whole=True)


def find(name: str) -> Kind:
    """Return the kind of a word in `KINDS`."""
    module, _, kind = KINDS[name].home.partition(":")
    found: Kind = getattr(import_module(module), kind)()
    return found


def all_kinds() -> Iterator[Kind]:
    """Yield all kinds, in the order of `KINDS`."""
    return map(find, KINDS)


def kind_of_table(table: Mapping[str, Any]) -> str:
    """Return the word of the kind that the content of a TOML file is of."""

    def has(section: str) -> bool:
        inner: Any = table
        for key in section.split(".") if section else ():
            inner = inner.get(key) if isinstance(inner, Mapping) else None
        return inner is not None

    fitting = [word for word, each in KINDS.items() if has(each.section)]
    return max(fitting, key=lambda word: len(KINDS[word].section))


def kind_of(directory: Path) -> Kind | None:
    """Return the kind of what is finished in a directory; None if nothing is."""
    path = directory / RESULT
    if not is_there(path):
        return next((kind for kind in all_kinds() if kind.is_finished(directory)), None)
    word = read_json(path).get(KIND)
    if word not in list(KINDS):
        raise InputError(
            f"{path} is of the kind {shown(word)}, expected one of {', '.join(KINDS)}; it is "
            "damaged, or of another version of fedhh."
        )
    return find(word)


def finished_kind(directory: Path) -> Kind:
    """Return the kind of what is finished in a directory."""
    kind = kind_of(directory)
    if kind is None:
        raise nothing_finished(directory)
    return kind


def nothing_finished(directory: Path) -> InputError:
    """Return the error for a directory that holds nothing that is finished."""
    begun = (kind for kind in all_kinds() if kind.begun and is_there(directory / kind.begun))
    kind = next(begun, None)
    return InputError(
        f"{directory} holds nothing that is finished; go on with fedhh "
        f"{'run' if kind is None else kind.command} --resume --out, if it was stopped."
    )
