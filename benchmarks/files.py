"""What it takes to count the words of a large file of texts, and to read the counts again.

The file has 110 MB of JSON Lines, 1.3 million texts of 1 million users: words by Zipf's law over
300,000, some with a capital or a sign behind, and addresses and mentions that stand there once.
`prepare_text` is held against Python's plain way through the same file, `json.loads` and
`str.split` of each line; reading what it wrote, against reading the columns of that file by
pyarrow alone. Processor seconds of all threads.

Run: python -m benchmarks.files [--texts N] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from benchmarks.measuring import add_options, save
from fedhh.clients.reading.sources import prepare_text, read_population

WORDS, PER_TEXT, TEXTS_AT_ONCE = 300_000, 8, 250_000
_USERS_PER_TEXT = 0.76


def write_texts(path: Path, texts: int) -> None:
    """Write JSON Lines."""
    rng = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    distribution = np.exp(-np.arange(len(letters)) / 8)
    spelled = rng.choice(letters, size=(2 * WORDS, 9), p=distribution / distribution.sum())
    lengths = rng.integers(2, 10, size=len(spelled)).tolist()
    words = list(dict.fromkeys("".join(row[:n]) for row, n in zip(spelled, lengths, strict=True)))[
        :WORDS
    ]
    pieces = pa.array(
        [form for word in words for form in (word, word.capitalize(), f"{word},", f"{word}.")]
    )
    ranks = 1 / np.arange(1, len(words) + 1) ** 1.05
    ends = np.cumsum(ranks / ranks.sum())
    with path.open("wb") as file:
        for first in range(0, texts, TEXTS_AT_ONCE):
            size = min(TEXTS_AT_ONCE, texts - first)
            sizes = rng.integers(1, 2 * PER_TEXT, size=size)
            offsets = np.r_[0, np.cumsum(sizes)].astype(np.int32)
            drawn = np.searchsorted(ends, rng.random(offsets[-1])).clip(max=len(words) - 1)
            forms = rng.choice(4, size=len(drawn), p=[0.8, 0.1, 0.05, 0.05])
            taken = pieces.take(pa.array(4 * drawn + forms))
            joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), taken), " ")
            numbers = np.arange(first, first + size)
            kinds = rng.choice(3, size=size, p=[0.96, 0.02, 0.02])
            more = pc.choose(
                pa.array(kinds),
                pa.array([""] * size),
                pa.array([f" https://example.org/{n:x}" for n in numbers.tolist()]),
                pa.array([f" @user{n}" for n in numbers.tolist()]),
            )
            users = pa.array((numbers * _USERS_PER_TEXT).astype(np.int64)).cast(pa.string())
            lines = pc.binary_join_element_wise(
                '{"user": ', users, ', "text": "', joined, more, '"}\n', ""
            )
            file.write("".join(lines.to_pylist()).encode())


def plainly(path: Path) -> int:
    """Go through a file of texts as Python does without a library; return the pieces."""
    with path.open(encoding="utf-8") as file:
        return sum(len(json.loads(line)["text"].lower().split()) for line in file)


def seconds_of(task: Callable[[], object]) -> float:
    """Return the processor seconds of all threads."""
    started = time.process_time()
    task()
    return time.process_time() - started


def main() -> None:
    """Print the table; save it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--texts", type=int, default=1_300_000)
    add_options(parser)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        texts, words = Path(folder) / "texts.jsonl", Path(folder) / "words.parquet"
        write_texts(texts, options.texts)
        size = texts.stat().st_size
        prepare = seconds_of(lambda: prepare_text(texts, words))
        plain = seconds_of(lambda: plainly(texts))
        bare = seconds_of(lambda: pa.parquet.read_table(words))
        read = seconds_of(lambda: read_population(words))
        written = words.stat().st_size
    print(f"{size / 1e6:.0f} MB of texts, {written / 1e6:.0f} MB of counts")
    print(f"{'task':<24}{'CPU s':>8}{'plain s':>9}{'ratio':>7}")
    for task, taken, other in (("prepare texts", prepare, plain), ("read counts", read, bare)):
        rows.append({"task": task, "cpu_s": taken, "plain_s": other, "ratio": taken / other})
        print(f"{task:<24}{taken:8.2f}{other:9.2f}{taken / other:7.1f}")
    save(options, "files", [{"bytes": size, "written_bytes": written}, *rows])


if __name__ == "__main__":
    main()
