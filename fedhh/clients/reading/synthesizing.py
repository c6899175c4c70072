"""Writes synthetic populations as prepared directories, block by block of their clients."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedhh.clients.prepared import Manifest
from fedhh.clients.reading.columns import Layout
from fedhh.clients.reading.preparing import prepare_rows
from fedhh.clients.reading.rows import Rows
from fedhh.clients.synthetic import CLIENTS_AT_ONCE, PopulationModel, RankDrawer
from fedhh.validation import require_at_least
from fedhh.words.languages import ENGLISH


def prepare_synthetic(
    model: PopulationModel, num_clients: int, out: Path, *, seed: int
) -> Manifest:
    """Prepare the clients of `fedhh.clients.synthetic.synthetic_population`.

    Args:
        model: What they type.
        num_clients: How many.
        out: Where the directory goes, and nothing stands.
        seed: Of the draw, and of the order in which they are stored.

    Raises:
        InputError: There is no client, or the directory cannot be written.
    """
    require_at_least(1, num_clients=num_clients)
    drawer = RankDrawer(model=model, seed=seed)
    language = ENGLISH if model.known is None else model.known.language
    return prepare_rows(
        lambda rows: _add(rows, drawer, num_clients),
        out,
        name=f"{model.name}, {num_clients:,} clients, seed {seed}",
        unit=model.unit,
        layout=Layout(language=language),
        salt=f"seed {seed}",
        made={"from": [model.name], "clients": num_clients, "seed": seed},
    )


def _add(rows: Rows, drawer: RankDrawer, num_clients: int) -> None:
    for first in range(0, num_clients, CLIENTS_AT_ONCE):
        clients = np.arange(first, min(first + CLIENTS_AT_ONCE, num_clients))
        drawn = drawer.draw(clients)
        sizes = np.diff(drawn.offsets)
        distinct, word_ids = np.unique(drawn.ranks, return_inverse=True)
        empty = clients[sizes == 0]
        ids = pa.array(np.concatenate([word_ids, np.full(len(empty), -1)]).astype(np.int32))
        words = pa.array(drawer.model.strings(distinct), pa.string())
        rows.add_piece(
            pa.array(np.concatenate([np.repeat(clients, sizes), empty])).cast(pa.string()),
            pa.DictionaryArray.from_arrays(pc.if_else(pc.less(ids, 0), None, ids), words),
            pa.array(np.concatenate([drawn.counts, np.zeros(len(empty), dtype=np.int64)])),
        )
