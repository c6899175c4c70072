"""Tables of clients, written whole or not at all."""

from __future__ import annotations

import os
import re
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa

from fedhh.clients.reading.tables import CSV, JSON, PARQUET, kind_of, literal
from fedhh.system.files import unwritable, whole_file
from fedhh.validation import reason_of


def write_rows(path: Path, rows: pa.Table) -> None:
    """Write columns user, word and count in the extension's format.

    The file appears whole or not at all; the same rows give the same bytes.

    Raises:
        InputError: The extension is unknown, or the file cannot be written.
    """
    kind = kind_of(path)
    if not path.parent.is_dir():
        raise unwritable(path, "No such file or directory")
    # The file is a temporary one already.
    options = {PARQUET: ["COMPRESSION zstd"], CSV: ["HEADER"], JSON: []}[kind]
    options += [
        "USE_TMP_FILE false",
        *(["COMPRESSION gzip"] if path.suffix.lower() == ".gz" else []),
    ]
    try:
        with whole_file(path) as temporary, closing(duckdb.connect()) as database:
            database.register("rows", rows)
            written = ", ".join([f"FORMAT {kind}", *options])
            database.execute(f"COPY rows TO {literal(str(temporary))} ({written})")
    except OSError as error:
        raise unwritable(path, str(error.strerror or error)) from None
    except duckdb.Error as error:
        # Newer versions of DuckDB give the number, older ones its text behind the temporary name.
        number = re.search(r'"errno":"(\d+)"', str(error))
        reason = reason_of(error).rpartition('": ')[2]
        raise unwritable(path, os.strerror(int(number[1])) if number else reason) from None
