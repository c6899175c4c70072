"""Ray's actors: they hold clients, answer for blocks of them, and merge answers in a tree.

An actor is a shell around the same worker object that the in-process executor uses. It gets the
worker after it was started, so that actors get ready while the clients are still made. Answers of a
node are merged there, by its actors, before those of several nodes are.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import ray
from ray.exceptions import GetTimeoutError
from ray.util.placement_group import (
    PlacementGroup,
    placement_group,
    placement_group_table,
    remove_placement_group,
)
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from fedhh.plugin_errors import naming_plugins
from fedhh.questions.answer import Answer
from fedhh.simulation.executor import Worker, merged
from fedhh.simulation.ray.connection import (
    alive_nodes,
    all_cores,
    free_cores,
    require_same_fedhh,
    start_ray,
    stop_ray,
)
from fedhh.simulation.ray.watch import LOST, stored, watch_ray
from fedhh.validation import InputError, require_at_least

MERGED_HERE = 2
"""So many answers are as soon fetched as merged elsewhere and then fetched."""

FAN_IN = 8
"""Most answers that an actor merges at once."""

_PLACE_SECONDS = 10.0
"""In which cores that are free are given to those who ask for them."""

_GET_SECONDS = 30.0

_log = logging.getLogger(__name__)

_Placed = tuple[str, int, Any]
"""A node, an actor on it, and the reference of an answer that is there."""


class _ClientActor:
    """Holds clients; adds up the answers of its blocks until they are handed over."""

    def __init__(self) -> None:
        self._worker: Worker | None = None
        self._broadcast: Any = None
        self._answers: list[Answer] | None = None

    def warm_up(self, warm_up: Callable[[], None]) -> None:
        """Load what answers take; what fails here fails again where it is asked for."""
        with suppress(Exception):
            warm_up()

    def hold(self, worker: Worker) -> int:
        self._worker = worker
        return 0

    def begin(self, broadcast: Any, blocks: Sequence[int]) -> int:
        """Do what `absorb` does, for the first blocks of a round."""
        self._broadcast, self._answers = broadcast, None
        return self.absorb(blocks)

    def absorb(self, blocks: Sequence[int]) -> int:
        """Answer for some blocks, and return how many clients they hold."""
        assert self._worker is not None
        assert self._broadcast is not None
        # A plug-in that exits would end the actor, and each of those in its place.
        with naming_plugins():
            self._answers = self._worker.answer(self._broadcast, blocks, onto=self._answers)
        return sum(self._broadcast.cohort.size_of(block) for block in blocks)

    def hand_over(self) -> tuple[list[Answer] | None, int]:
        """Return the merged answers of the round, with who answered, and forget them."""
        answers, self._answers = self._answers, None
        return answers, 0 if answers is None else answers[0].aggregate.num_clients

    def merge(self, *answers: list[Answer]) -> list[Answer]:
        """Return the merged answers of several, of this actor's and others'."""
        return merged(answers)

    def is_there(self) -> None:
        """Say nothing."""


class RayActors:
    """Client actors on a Ray that was there or is started for them.

    Attributes:
        clients: Handles of the client actors, replaced when one dies.
        seats: Numbers of those that have a core; the others were lost, and nobody had room.
        watch: Knows whether Ray is there.
        held: The calls by which clients got their worker. One that cannot be read there is reported
            by the result alone.
    """

    def __init__(
        self,
        num_workers: int | None,
        address: str,
        *,
        warm_up: Callable[[], None] | None = None,
    ) -> None:
        """Start or join Ray, and place the actors; close them after use.

        Args:
            num_workers: How many client actors at most; fewer, with a warning, where fewer cores
                are free. None for one on each core that is free.
            address: A running cluster's address; a local Ray of our own if empty.
            warm_up: Importable on every node; each client actor calls it before all else.

        Raises:
            InputError: The cluster cannot be joined, see `connection.start_ray`; or none of its
                cores is free.
        """
        if num_workers is not None:
            require_at_least(1, num_workers=num_workers)
        self._owns_ray = not ray.is_initialized()
        if self._owns_ray:
            start_ray(num_workers, address)
        self.watch = watch_ray(address)
        self._nodes = alive_nodes()
        self._worker: Any = None
        self._node_of_core: dict[Any, str] = {}
        self._client_class = ray.remote(num_cpus=1)(_ClientActor)
        try:
            self._cores = _reserve(num_workers or free_cores())
        except BaseException:
            if self._owns_ray:
                stop_ray()
            raise
        self.seats = list(range(len(self._cores)))
        self.clients = [self._client_on(core) for core in self._cores]
        self.held: list[Any] = [None] * len(self.clients)
        if warm_up is not None:
            for actor in self.clients:
                actor.warm_up.remote(warm_up)

    def hold(self, worker: Worker) -> None:
        """Copy a worker to every actor."""
        self.watch.check()
        self._worker = stored(worker)
        for index in self.seats:
            self._hand(index)

    def replace_client(self, index: int) -> None:
        """Put a new client actor in the place of one that is lost; if no core is free, nobody."""
        ray.kill(self.clients[index])
        remove_placement_group(self._cores[index])
        core = placement_group([{"CPU": 1}])
        if core.wait(_PLACE_SECONDS):
            _log.info("client actor %d was lost; another takes over its blocks", index)
            self._cores[index] = core
            self.clients[index] = self._client_on(core)
            self._hand(index)
            return
        remove_placement_group(core)
        self.seats.remove(index)
        _log.warning(
            "a Ray worker was lost, and the cluster has no core for another: %d workers go on, "
            "also with its clients",
            len(self.seats),
        )

    def merge(self, answers: Sequence[tuple[int, Any]]) -> list[Answer]:
        """Return the answers of all shares, of the actors that have them and references to them.

        No actor takes more than `FAN_IN` at once, and this process `MERGED_HERE`. What goes from
        node to node is one answer of each node.
        """
        level = [(self._node_of(index), index, answer) for index, answer in answers]
        level.sort(key=lambda placed: placed[:2])
        while len(level) > MERGED_HERE:
            groups = _groups(level)
            if len(groups) == len(level):
                # One answer is left of each node.
                groups = [level[at : at + FAN_IN] for at in range(0, len(level), FAN_IN)]
            level = [self._merged(group) for group in groups]
        return merged(self._get([answer for *_, answer in level]))

    def lost(self) -> set[int]:
        """Return the numbers of those that are lost and not replaced yet; who is busy is not."""
        asked = {self.clients[index].is_there.remote(): index for index in self.seats}
        done, _ = ray.wait(list(asked), num_returns=len(asked), timeout=_GET_SECONDS)
        lost = set()
        for reference in done:
            try:
                ray.get(reference)
            except LOST:
                lost.add(asked[reference])
        return lost

    def check_new_nodes(self) -> None:
        """Refuse nodes that joined since and hold another fedhh, before an actor is placed."""
        joined = {n: at for n, at in alive_nodes().items() if n not in self._nodes}
        require_same_fedhh(joined)
        self._nodes |= joined

    def close(self) -> None:
        """Stop the actors, and Ray if it was started for them; once is enough."""
        if not self.clients:
            return
        if self.watch.is_there():
            for actor in self.clients:
                ray.kill(actor)
            for core in self._cores:
                remove_placement_group(core)
        self.clients = []
        if self._owns_ray:
            stop_ray()

    def _get(self, references: Any) -> Any:
        """Return what is there soon, for as long as Ray is."""
        while True:
            self.watch.check()
            with suppress(GetTimeoutError):
                return ray.get(references, timeout=_GET_SECONDS)

    def _client_on(self, core: PlacementGroup) -> Any:
        place = PlacementGroupSchedulingStrategy(placement_group=core)
        return self._client_class.options(scheduling_strategy=place).remote()

    def _node_of(self, index: int) -> str:
        """Return the node of an actor's core."""
        core = self._cores[index]
        if core.id not in self._node_of_core:
            table = placement_group_table(core)
            self._node_of_core[core.id] = str(table["bundles_to_node_id"][0])
        return self._node_of_core[core.id]

    def _merged(self, group: Sequence[_Placed]) -> _Placed:
        node, index, answer = group[0]
        if len(group) == 1:
            return node, index, answer
        return node, index, self.clients[index].merge.remote(*(each for *_, each in group))

    def _hand(self, index: int) -> None:
        self.held[index] = self.clients[index].hold.remote(self._worker)


def _groups(level: Sequence[_Placed]) -> list[Sequence[_Placed]]:
    """Return the answers of each node, at most `FAN_IN` together."""
    groups: list[Sequence[_Placed]] = []
    for _, of_node in itertools.groupby(level, key=lambda placed: placed[0]):
        placed = list(of_node)
        groups.extend(placed[at : at + FAN_IN] for at in range(0, len(placed), FAN_IN))
    return groups


def _reserve(num_workers: int) -> list[PlacementGroup]:
    """Return a free core for each worker, for fewer where fewer are free.

    An actor without one would wait for ever.

    Raises:
        InputError: None is free.
    """
    asked = [placement_group([{"CPU": 1}]) for _ in range(num_workers)]
    end = time.monotonic() + _PLACE_SECONDS
    cores = [core for core in asked if core.wait(max(end - time.monotonic(), 0.01))]
    for core in asked:
        if core not in cores:
            remove_placement_group(core)
    if not cores:
        raise InputError(
            f"None of the {all_cores()} cores of the Ray cluster is free; wait until others are "
            "done, start a node (`ray start --address`), or use --workers 0."
        )
    if len(cores) < num_workers:
        _log.warning(
            "%d workers were asked for, and the Ray cluster has free cores for %d: %d answer for "
            "all clients, with the same result",
            num_workers,
            len(cores),
            len(cores),
        )
    return cores
