"""An honest guess at how long a run will still take."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from fedhh.clients.drawn import DrawnClients
from fedhh.clients.population import Population
from fedhh.experiments.run.layers import LayerRow
from fedhh.experiments.run.round_record import RoundRecord
from fedhh.experiments.study.callbacks import Callbacks, Work
from fedhh.protocol import DiscoveryProtocol
from fedhh.simulation.fidelity import EXACT_TALLY

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


@dataclass(frozen=True, kw_only=True, eq=False)
class RunWork(Work):
    """The rounds of a run, whose steps are answers of clients.

    Attributes:
        protocol: The server's settings.
        population: The clients.
    """

    protocol: DiscoveryProtocol
    population: Population


def work_of(
    protocol: DiscoveryProtocol,
    population: Population,
    *,
    done: int = 0,
    clients_done: int = 0,
    seconds_left: Callable[[], float | None] | None = None,
) -> RunWork:
    """Return what a run is about to do, after rounds and answers that were done before."""
    plan = protocol.plan
    return RunWork(
        title=protocol.title,
        noun="rounds",
        total=len(plan.layers),
        done=done,
        steps=plan.most_answers,
        steps_done=clients_done,
        seconds_left=seconds_left,
        protocol=protocol,
        population=population,
    )


class FinishedRound(NamedTuple):
    """What came out of a round.

    Attributes:
        row: Its row of the layers table.
        round_record: The outcome of its candidates; None for a run without a directory.
    """

    row: LayerRow
    round_record: RoundRecord | None


@dataclass(frozen=True, kw_only=True)
class _Layer:
    """A finished layer: nanoseconds per client by the model, and seconds as measured."""

    model: float
    per_client: float
    overhead: float


class TimeLeft(Callbacks):
    """Guesses the seconds left from the last layers' speed, not from the whole run's.

    The first layer is cheaper than the others, and slower to begin. So the next layer's speed is
    that of recent similar layers; of a layer unlike them, the model's share of theirs, until enough
    of it is done to know.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._layers: list[_Layer] = []
        self._drawing = self._next_model = 0.0
        self._clients_left = self._rounds_left = 0
        self._answers: list[tuple[float, int]] = []
        self._answered = 0
        self._begin_layer()

    def start(self, work: Work) -> None:
        assert isinstance(work, RunWork)
        self._protocol = work.protocol
        self._drawing = _DRAWING_NS if isinstance(work.population, DrawnClients) else 0.0
        self._layers = []
        self._clients_left = work.steps - work.steps_done
        self._rounds_left = round(work.total * self._clients_left / max(work.steps, 1))
        self._begin_layer()

    def advance(self, steps: int) -> None:
        self._last = self._clock()
        self._answered += steps
        self._clients_left -= steps
        self._answers.append((self._last, self._answered))

    def finish(self, unit: str, result: Any) -> None:
        layer: LayerRow = result.row
        now = self._clock()
        clients = max(layer.num_clients, 1)
        per_client = self._pace() or (now - self._begun) / clients
        # What the first layer waits for besides its clients, later ones do not wait for.
        overhead = now - self._begun - per_client * clients if self._layers else 0.0
        votes = 0.0 if layer.fidelity == EXACT_TALLY else float(layer.subset_size or 0)
        model = self._model(layer, votes)
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

    def _model(self, layer: LayerRow, votes: float) -> float:
        contributions: float = layer.num_reports / max(layer.num_clients, 1)
        return self._drawing + contributions * (_CONTRIBUTION_NS + votes * _VOTE_NS)

    def _next_votes(self, layer: LayerRow) -> float:
        """Return the size of the next layer's reports: Subset Selection's grow with the trie.

        Tallies that are drawn at once have no votes to wait for, and larger ones are, too.
        """
        if not layer.subset_size or layer.fidelity == EXACT_TALLY:
            return 0.0
        domain = (layer.num_kept - layer.num_finished) * self._protocol.symbols.size
        grown: float = layer.subset_size * domain / layer.domain_size
        if layer.subset_size == 1:
            # Of one value out of a small domain: what more values make of it, epsilon says.
            grown = domain * math.exp(-self._protocol.plan.local_epsilon)
        return max(grown, 1.0)
