"""The rounds of a run with their candidates, in memory and beside the checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedhh.experiments.run.round_record import ROUND_TYPES, RoundRecord, hear
from fedhh.protocol import Discoveries
from fedhh.simulation.checkpoint import load_checkpoint, save_checkpoint
from fedhh.simulation.engine import Round


class HeardRounds:
    """Collects what a server heard of the candidates, round by round."""

    def __init__(self, folder: Path | None, num_rounds: int) -> None:
        """Begin, or go on.

        Args:
            folder: Where rounds are kept for a resume; None for a run that has no checkpoint.
            num_rounds: Rounds before a resume. Those that are not in the folder, since an older
                fedhh asked them, are missing in the record.
        """
        self._folder = folder
        self._number = num_rounds
        self._words: tuple[str, ...] = ()
        self.all: list[RoundRecord] = []
        if folder is not None:
            files = [self._file(number) for number in range(1, num_rounds + 1)]
            self.all = [load_checkpoint(f, ROUND_TYPES)[0] for f in files if f.exists()]

    def hear(
        self,
        finished: Round[Any],
        *,
        discoveries: Discoveries,
        before: Discoveries,
    ) -> RoundRecord | None:
        """Return what became of a round's candidates, and keep it; None without prefixes.

        Args:
            finished: The round.
            discoveries: Words found up to and including the round.
            before: Words found before it.
        """
        self._number += 1
        heard = hear(
            finished.query,
            finished.aggregate,
            finished.state.history[-1],
            kept=finished.state.kept,
            posterior=finished.state.posterior,
            before=before.words,
            after=discoveries,
        )
        if heard is None:
            return None
        self.all.append(heard)
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            save_checkpoint(self._file(self._number), heard, {})
        return heard

    def _file(self, number: int) -> Path:
        assert self._folder is not None
        return self._folder / f"{number}.npz"
