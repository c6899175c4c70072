"""Where a run goes on that was stopped: its state after each round on disk, and whose it is."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fedhh.adversary import Adversary
from fedhh.clients.populations.population import Population
from fedhh.devices import Devices
from fedhh.experiments.config.fidelity import Fidelity
from fedhh.experiments.run.layers import LayerRow
from fedhh.experiments.run.round_record import ROUND_TYPES, RoundRecord, record_of
from fedhh.protocol import AnyProtocol, Discoveries
from fedhh.simulation.checkpoint import load_checkpoint, save_checkpoint
from fedhh.simulation.engine import Round
from fedhh.validation import InputError
from fedhh.version import __version__

CHECKPOINT = Path("checkpoint") / "state.npz"
_CANDIDATES = "candidates"
"""Folder of the rounds' candidates, next to the checkpoint's state."""


class Checkpoint:
    """The checkpoint of one run, which no other run goes on from."""

    def __init__(
        self,
        directory: Path,
        protocol: AnyProtocol,
        population: Population,
        *,
        seed: int,
        clients: tuple[Fidelity, Devices | None, Adversary | None],
    ) -> None:
        """Name the run by a hash of all that decides how it goes on.

        Args:
            directory: The run's.
            protocol: The server's settings.
            population: The clients.
            seed: Of the run.
            clients: How they are simulated, when their devices are there, and who of them is fake.
        """
        self._path = directory / CHECKPOINT
        self._protocol = protocol
        fidelity, *others = clients
        parts: tuple[Any, ...] = (__version__, protocol, seed, fidelity, population.fingerprint())
        parts = (*parts, *(each for each in others if each is not None))
        self._identity = hashlib.sha256(repr(parts).encode()).hexdigest()

    @property
    def folder(self) -> Path:
        """The folder of everything that is for a resume only."""
        return self._path.parent

    def load(self) -> tuple[Any, list[LayerRow], float]:
        """Return the state to go on from, the rows of finished layers, and their seconds."""
        path = self._path
        if not path.exists():
            return self._protocol.initialize(), [], 0.0
        state, notes = load_checkpoint(path, self._protocol.checkpoint_types)
        try:
            of, seconds = notes["identity"], float(notes["seconds"])
            rows = [LayerRow(**row) for row in notes["layers"]]
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"Cannot go on from the checkpoint {path}: its notes are damaged ({error!r}). "
                "Start the run again in a new directory."
            ) from None
        if of != self._identity:
            raise InputError(
                f"The checkpoint {path} is of another run: its clients, its settings, its seed or "
                "its fedhh are not those of this one. Put back what changed, or start again in a "
                "new directory."
            )
        return state, rows, seconds

    def save(self, state: Any, rows: list[LayerRow], seconds: float) -> None:
        """Keep the state after a round, the rows of all finished layers, and what they took."""
        layers = [asdict(row) for row in rows]
        notes = {"identity": self._identity, "layers": layers, "seconds": seconds}
        save_checkpoint(self._path, state, notes)

    def round_records(self, num_rounds: int) -> RoundRecords:
        """Return the rounds' candidates, as many rounds as are finished."""
        return RoundRecords(self.folder / _CANDIDATES, num_rounds)


class RoundRecords:
    """What a server heard of the candidates, round by round, in memory and in a folder.

    Rounds whose questions are about no prefixes have none.
    """

    def __init__(self, folder: Path, num_rounds: int) -> None:
        self._folder, self._number = folder, num_rounds
        files = [self._file(number) for number in range(1, num_rounds + 1)]
        self.all: list[RoundRecord] = [
            load_checkpoint(file, ROUND_TYPES)[0] for file in files if file.exists()
        ]

    def record_of(
        self, finished: Round[Any], *, before: Discoveries, after: Discoveries
    ) -> RoundRecord | None:
        """Return the outcome of a round's candidates, and keep it, given the words found.

        None if the question is about no prefixes.
        """
        self._number += 1
        round_record = record_of(
            finished.question,
            finished.aggregate,
            finished.state.history[-1],
            kept=finished.state.kept,
            posterior=finished.state.posterior,
            before=before.words,
            after=after,
            fakes=finished.diagnostics.fakes,
        )
        if round_record is not None:
            self.all.append(round_record)
            self._folder.mkdir(parents=True, exist_ok=True)
            save_checkpoint(self._file(self._number), round_record, {})
        return round_record

    def _file(self, number: int) -> Path:
        return self._folder / f"{number}.npz"
