"""Live progress of a run, and an honest guess at how long it will still take."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from fedhh.clients.population import Population
from fedhh.clients.virtual import VirtualPopulation
from fedhh.protocol import DiscoveryProtocol

AFTER_LAYERS = 3.0
"""Seconds for accounting, figures and files, about."""

# A client's time in a layer, in nanoseconds on one core (docs/performance.md). Only ratios matter:
# the first layer broadcasts few prefixes, so its reports are small and cheap.
_DRAWING_NS = 3300.0
_CONTRIBUTION_NS = 35.0
_VOTE_NS = 1.4

_SIMILAR = 1.25
_RECENT = 3
_ENOUGH_OF_A_LAYER = 0.25


@dataclass(frozen=True, kw_only=True)
class _Layer:
    """A finished layer: nanoseconds per client by the model, and seconds as measured."""

    model: float
    per_client: float
    overhead: float


class TimeLeft:
    """Guesses the seconds left from the last layers' speed, not from the whole run's.

    The first layer is cheaper than the others, and slower to begin. So the next layer's speed is
    that of recent similar layers; of a layer unlike them, the model's share of theirs, until enough
    of it is done to know.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Read the time from a clock, in seconds."""
        self._clock = clock
        self._layers: list[_Layer] = []
        self._drawing = self._next_model = 0.0
        self._clients_left = self._rounds_left = 0
        self._answers: list[tuple[float, int]] = []
        self._answered = 0
        self._begin_layer()

    def start(
        self, protocol: DiscoveryProtocol[Any, Any], population: Population, clients_done: int
    ) -> None:
        """Hear that layers are about to begin, see `fedhh.experiments.run.Listener`."""
        self._protocol = protocol
        self._drawing = _DRAWING_NS if isinstance(population, VirtualPopulation) else 0.0
        self._layers = []
        self._clients_left = protocol.answers_expected - clients_done
        share = self._clients_left / max(protocol.answers_expected, 1)
        self._rounds_left = round(protocol.rounds_expected * share)
        self._begin_layer()

    def advance(self, num_clients: int) -> None:
        """Hear that clients have answered."""
        self._last = self._clock()
        self._answered += num_clients
        self._clients_left -= num_clients
        self._answers.append((self._last, self._answered))

    def finish_round(self, layer: dict[str, Any]) -> None:
        """Hear a finished layer's row."""
        now = self._clock()
        clients = max(layer["num_clients"], 1)
        per_client = self._pace() or (now - self._begun) / clients
        # What the first layer waits for besides its clients, later ones do not wait for.
        overhead = now - self._begun - per_client * clients if self._layers else 0.0
        model = self._model(layer, float(layer["subset_size"]))
        self._layers.append(_Layer(model=model, per_client=per_client, overhead=max(overhead, 0.0)))
        self._next_model = self._model(layer, self._next_votes(layer))
        self._rounds_left -= 1
        self._begin_layer()

    def seconds(self) -> float | None:
        """Return the seconds left, or None before the first of several layers is over."""
        if not self._layers and self._rounds_left > 1:
            return None
        pace, overhead = self._expected_pace(), 0.0
        if pace is None:
            return None
        if self._layers:
            recent = self._layers[1:][-_RECENT:]
            overhead = sum(layer.overhead for layer in recent) / max(len(recent), 1)
        at_last = self._clients_left * pace + self._rounds_left * overhead + AFTER_LAYERS
        return max(at_last - (self._clock() - self._last), 0.0)

    def _begin_layer(self) -> None:
        self._begun = self._last = self._clock()
        self._answers = []
        self._answered = 0

    def _pace(self) -> float | None:
        """Return the current layer's seconds per client, from the later half of its answers.

        By then all workers are at it: in the first layer, they begin one after the other.
        """
        since, before = next(
            ((t, n) for t, n in self._answers if 2 * n >= self._answered), (self._last, 0)
        )
        clients = self._answered - before
        return (self._last - since) / clients if clients and self._last > since else None

    def _expected_pace(self) -> float | None:
        here = self._pace()
        if not self._layers:
            return here
        size = (self._clients_left + self._answered) / max(self._rounds_left, 1)
        if here is not None and self._answered >= _ENOUGH_OF_A_LAYER * size:
            return here
        recent = self._layers[-_RECENT:]
        lowest, highest = self._next_model / _SIMILAR, self._next_model * _SIMILAR
        similar = [layer for layer in recent if lowest <= layer.model <= highest] or recent
        scale = sum(layer.per_client / layer.model for layer in similar) / len(similar)
        return scale * self._next_model

    def _model(self, layer: dict[str, Any], votes: float) -> float:
        contributions: float = layer["num_reports"] / max(layer["num_clients"], 1)
        return self._drawing + contributions * (_CONTRIBUTION_NS + votes * _VOTE_NS)

    def _next_votes(self, layer: dict[str, Any]) -> float:
        """Return the size of the next layer's reports: Subset Selection's grow with the trie."""
        if not layer["subset_size"]:
            return 0.0
        domain = (layer["num_kept"] - layer["num_finished"]) * self._protocol.symbols.size
        grown: float = layer["subset_size"] * domain / layer["domain_size"]
        if layer["subset_size"] == 1:
            # Of one value out of a small domain: what more values make of it, epsilon says.
            grown = domain * math.exp(-self._protocol.contribution_epsilon)
        return max(grown, 1.0)


class _TwoLines(Progress):
    """A bar, and below it a line of text."""

    text = ""

    def get_renderables(self) -> Iterator[RenderableType]:
        """Yield the bar and the text."""
        yield self.make_tasks_table(self.tasks)
        yield Text(self.text, style="dim", no_wrap=True, overflow="ellipsis")


class _LeftColumn(ProgressColumn):
    """The seconds left, as the run's own estimate has them."""

    def __init__(self, seconds: Callable[[], float | None]) -> None:
        self._seconds = seconds
        super().__init__()

    def render(self, task: Task) -> Text:
        """Return the time left as text; a dash as long as nobody can know."""
        seconds = self._seconds()
        if seconds is None:
            return Text("-:--:--", style="progress.remaining")
        minutes, rest = divmod(round(seconds), 60)
        return Text(f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}", style="progress.remaining")


class LiveProgress:
    """Shows a run by pass and layer on a terminal; says nothing elsewhere. A run's listener.

    The time left is that of the protocol named beside it: a baseline that follows is not in it.
    """

    def __init__(self, console: Console) -> None:
        """Draw on this console."""
        self._progress = _TwoLines(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("left"),
            _LeftColumn(self._seconds_left),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = TaskID(0)
        self._title = ""
        self._shape = (0, 0)
        self._left: Callable[[], float | None] = lambda: None
        self._layers = TimeLeft()
        self._counting_since = 0.0

    def __enter__(self) -> LiveProgress:
        self._progress.start()
        self._task = self._progress.add_task("drawing clients", total=None)
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def count(self, counted: int, of: int) -> None:
        """Show how far the count of the true words is, and what is left of it alone."""
        now = time.monotonic()
        if not counted:
            self._counting_since = now
        else:
            pace = (now - self._counting_since) / counted
            self._left = lambda: max(pace * of - (time.monotonic() - self._counting_since), 0.0)
        self._progress.update(
            self._task, description="counting true words", completed=counted, total=of
        )

    def start(
        self, protocol: DiscoveryProtocol[Any, Any], population: Population, clients_done: int
    ) -> None:
        """Show that clients are about to be asked."""
        self._title = protocol.title
        self._shape = protocol.shape
        self._layers.start(protocol, population, clients_done)
        self._left = self._layers.seconds
        self._progress.update(
            self._task,
            total=protocol.answers_expected,
            completed=clients_done,
            description=f"{self._title}: asking {population.num_clients:,} clients",
        )

    def advance(self, num_clients: int) -> None:
        """Move the bar by some clients."""
        self._layers.advance(num_clients)
        self._progress.advance(self._task, num_clients)

    def finish_round(self, layer: dict[str, Any]) -> None:
        """Show what the layer decided."""
        self._layers.finish_round(layer)
        passes, layers = self._shape
        self._progress.update(
            self._task,
            description=f"{self._title}: pass {layer['pass']}/{passes} "
            f"layer {layer['layer']}/{layers}",
        )
        self._progress.text = (
            f"  {layer['num_reports']:,} reports, {layer['num_candidates']:,} prefixes, "
            f"{layer['num_kept']:,} with {layer['threshold']:,} votes or more, "
            f"coverage {layer['coverage']:.1%}"
        )

    def _seconds_left(self) -> float | None:
        return self._left()
