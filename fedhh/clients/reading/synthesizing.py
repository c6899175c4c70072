"""Writes synthetic populations as prepared directories, block by block of their clients."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from fedhh.clients.populations.prepared import Manifest
from fedhh.clients.populations.synthetic import CLIENTS_AT_ONCE, PopulationModel, RankDrawer
from fedhh.clients.reading.preparing import Piece, prepare_pieces
from fedhh.validation import require_at_least
from fedhh.words.languages import ENGLISH


def prepare_synthetic(
    model: PopulationModel, num_clients: int, out: Path, *, seed: int
) -> Manifest:
    """Prepare the clients of `fedhh.clients.populations.synthetic.synthetic_population`.

    Args:
        model: What they type.
        num_clients: How many.
        out: Where the directory goes, and nothing stands.
        seed: Of the draw, and of the order in which they are stored.

    Raises:
        InputError: There is no client, or the directory cannot be written.
    """
    require_at_least(1, num_clients=num_clients)
    return prepare_pieces(
        _pieces(RankDrawer(model=model, seed=seed), num_clients),
        out,
        name=f"{model.name}, {num_clients:,} clients, seed {seed}",
        unit=model.unit,
        language=ENGLISH if model.known is None else model.known.language,
        salt=f"seed {seed}",
        made={"from": [model.name], "clients": num_clients, "seed": seed},
    )


def _pieces(drawer: RankDrawer, num_clients: int) -> Iterator[Piece]:
    for first in range(0, num_clients, CLIENTS_AT_ONCE):
        clients = np.arange(first, min(first + CLIENTS_AT_ONCE, num_clients))
        rows = drawer.draw(clients)
        sizes = np.diff(rows.offsets)
        distinct, word_ids = np.unique(rows.ranks, return_inverse=True)
        empty = clients[sizes == 0]
        yield Piece(
            users=pa.array(np.concatenate([np.repeat(clients, sizes), empty])).cast(pa.string()),
            words=drawer.model.strings(distinct),
            word_ids=np.concatenate([word_ids, np.full(len(empty), -1)]),
            counts=np.concatenate([rows.counts, np.zeros(len(empty), dtype=np.int64)]),
        )
