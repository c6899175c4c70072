"""Files of clients and of known words, damaged: read, or refused in one line."""

from __future__ import annotations

import gzip
import io
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedhh.clients.known_words import load_known
from tests.clients.reading.refusals import read_population
from tests.fuzz.cases import Record, feed, survives
from tests.fuzz.mutation import mutate_bytes

ROWS = [("u1", "lol", 2), ("u2", "naïve", 1), ("u1", "a,b", 7), ("", "x", 1), ("u3", "", 0)]


def parquet(**columns: list[object]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


CSV = 'user,word,count\nu1,lol,2\nu2,naïve,1\nu1,"a,b",7\nu3,,0\n'.encode()
JSON = (
    '{"user":"u1","word":"lol","count":2}\n{"user":"u2","word":"naïve","count":1,"x":[1]}\n'
    '{"user":"u3","word":null,"count":0}\n'
).encode()
EXAMPLES: dict[str, tuple[str, tuple[bytes, ...]]] = {
    "csv": ("p.csv", (CSV, b'user,text\nu1,"so, lol\nit\'s"\nu2,@me http://a.b x\n')),
    "csv.gz": ("p.csv.gz", (gzip.compress(CSV, mtime=0),)),
    "json": ("p.jsonl", (JSON, b'{"user":7,"text":"so \\u00e9 lol"}\n{"user":8,"text":""}\n')),
    "json.gz": ("p.ndjson.gz", (gzip.compress(JSON, mtime=0),)),
    "parquet": (
        "p.parquet",
        (
            parquet(user=["u1", "u2"], word=["lol", "naïve"], count=[2, 1]),
            parquet(user=[7, 8], text=["so lol", "x y"]),
        ),
    ),
    "words": ("w.txt", ("lol\nnaïve\nDog's\n".encode(),)),
    "words.gz": ("w.txt.gz", (gzip.compress(b"lol\nim\n", mtime=0),)),
}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_damaged_files_are_read_or_refused_in_one_line(
    tmp_path: Path, kind: str, record_property: Record
):
    name, examples = EXAMPLES[kind]
    path = tmp_path / name
    read = load_known if kind.startswith("words") else read_population

    def run(rng: random.Random) -> bool:
        data = rng.choice(examples)
        if name.endswith(".gz") and rng.random() < 0.6:
            # What is inside is damaged, or the archive itself.
            data = gzip.compress(mutate_bytes(gzip.decompress(data), rng), 1, mtime=0)
        else:
            data = mutate_bytes(data, rng)
        path.write_bytes(data)
        options = {}
        if kind.startswith("csv") and rng.random() < 0.2:
            options = {"separator": rng.choice((";", "tab", "|")), "fold_case": True}
        return survives(lambda: read(path, **options), data)

    feed(kind, run, record_property)
