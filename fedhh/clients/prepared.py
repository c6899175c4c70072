"""Prepared populations: directories of columns that whoever answers maps into memory.

A directory has a manifest and three files of Apache Arrow's IPC format, each one record batch that
is not compressed, so that a column is read where it lies:

- ``clients.arrow``: ``offsets``, ``(num_clients + 1,) int64``;
- ``rows.arrow``: ``word`` and ``count``, ``(rows,) int32``; client i's rows are
  ``offsets[i] : offsets[i + 1]``, its words ascending;
- ``words.arrow``: ``word``, sorted; ``contributions`` and ``holders``, ``int64``: how often all
  clients typed it, and how many hold it.

Clients are stored in a random order, that of a keyed hash of what they are called: any of them that
follow each other are a random sample. What is held in memory grows with the distinct words alone:
their codes and what is counted of each.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy.typing as npt
import pyarrow as pa
from annotated_types import Ge
from pydantic import ConfigDict, TypeAdapter, ValidationError

from fedhh.arrays import Ints, SmallInts
from fedhh.clients.clients import Clients, Table
from fedhh.system.object_storage import as_address, local_copy
from fedhh.system.reading import require_regular
from fedhh.validation import InputError, shown
from fedhh.words.languages import ENGLISH
from fedhh.words.stored_words import StoredLexicon, StoredWords

MANIFEST = "population.json"
FORMAT, VERSION = "fedhh prepared population", 1
SCHEMAS = {
    "clients.arrow": pa.schema([("offsets", pa.int64())]),
    "rows.arrow": pa.schema([("word", pa.int32()), ("count", pa.int32())]),
    "words.arrow": pa.schema(
        [("word", pa.large_string()), ("contributions", pa.int64()), ("holders", pa.int64())]
    ),
}
"""The columns of each file."""

LARGEST_MANIFEST = 2**20
"""Bytes, as it is read and written."""
_LARGEST_CHECKED = 2**26
"""Bytes of a file whose digest is checked before a run, within a second."""

_Number = Annotated[int, Ge(0)]


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a directory's manifest says.

    Attributes:
        name: What a report calls the population.
        unit: What one client stands for.
        language: By whose rules its words were brought to their form.
        clients, rows, words: How many there are.
        contributions: How often all words were typed.
        files: Each file's bytes and SHA-256, as ``[bytes, hexadecimal]``.
        made: How it was made: fedhh's version, and what the maker says.
        format, version: `FORMAT` and `VERSION`.
    """

    name: str
    unit: str
    clients: Annotated[int, Ge(1)]
    rows: _Number
    words: _Number
    contributions: _Number
    files: dict[str, tuple[int, str]]
    made: dict[str, Any]
    language: str = ENGLISH
    format: str = FORMAT
    version: int = VERSION

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"


def is_prepared(path: Path) -> bool:
    """Return whether a path is a directory with a manifest."""
    try:
        return (path / MANIFEST).is_file()
    except (OSError, ValueError):
        return False


class MappedTable(Table):
    """The rows of a prepared directory, where they lie on disk, and its manifest.

    It is pickled as its path: every node maps a directory of the same content at that path, its own
    or one of a file system that they share. Of an address in object storage, every node has a copy.
    """

    is_mapped = True

    def __init__(self, directory: Path, *, address: str | None = None) -> None:
        """Map the files, whose sizes and columns have to be what the manifest says.

        Args:
            directory: Where they are.
            address: In object storage, of which the directory is a copy.

        Raises:
            InputError: A file is missing, damaged, or of another version.
        """
        self.directory, self.address = directory, address
        content = _read(directory / MANIFEST)
        self.digest = hashlib.sha256(content).hexdigest()
        self.manifest = _manifest(content, directory)
        (offsets,) = self._mapped("clients.arrow", self.manifest.clients + 1)
        rows = self._mapped("rows.arrow", self.manifest.rows)
        texts, *totals = self._batch("words.arrow", self.manifest.words)
        self._totals = (totals[0].to_numpy(), totals[1].to_numpy())
        try:
            lexicon = StoredLexicon(words=StoredWords(texts))
        except ValueError:  # Arrow's errors are some, too.
            raise _damaged(directory / "words.arrow") from None
        super().__init__(lexicon, offsets, *rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self.address or str(self.directory.resolve()), self.digest)

    def totals(self) -> tuple[Ints, Ints]:
        return self._totals

    def rows(self, places: Ints) -> tuple[Ints, SmallInts, SmallInts]:
        # Anybody may have written them.
        starts, ends = self.offsets[places], self.offsets[places + 1]
        if not ((starts >= 0) & (starts <= ends) & (ends <= len(self.word_ids))).all():
            raise _damaged(self.directory / "clients.arrow")
        offsets, word_ids, counts = super().rows(places)
        if len(word_ids) and not (
            0 <= word_ids.min() <= word_ids.max() < self.manifest.words and counts.min() >= 1
        ):
            raise _damaged(self.directory / "rows.arrow")
        return offsets, word_ids, counts

    def _mapped(self, name: str, length: int) -> list[npt.NDArray[Any]]:
        return [each.to_numpy(zero_copy_only=True) for each in self._batch(name, length)]

    def _batch(self, name: str, length: int) -> list[pa.Array]:
        path = self.directory / name
        try:
            size = path.stat().st_size
        except OSError:
            raise InputError(
                f"Expected the file {name} of a prepared population in {self.directory}; copy the "
                "whole directory, or prepare it again."
            ) from None
        require_regular(path)
        # Of a file that is shorter than its columns, a page beyond its end would end the process.
        if size != self.manifest.files.get(name, (-1, ""))[0]:
            raise _damaged(path)
        try:
            with pa.memory_map(str(path)) as source:
                batch = pa.ipc.open_file(source).get_batch(0)
            # That columns lie within the file, and not what they hold.
            batch.validate()
            is_right = batch.schema == SCHEMAS[name] and batch.num_rows == length
            columns: list[pa.Array] = batch.columns
        except (OSError, ValueError, pa.ArrowException):
            raise _damaged(path) from None
        if not is_right or any(column.null_count for column in columns):
            raise _damaged(path)
        return columns


def open_prepared(
    directory: Path, language: str = ENGLISH, *, address: str | None = None
) -> Clients:
    """Return the clients of a prepared directory, whose files of up to 64 MiB are read once.

    Args:
        directory: As `fedhh data prepare` writes it.
        language: Of the words, which has to be that of the directory.
        address: In object storage, of which the directory is a copy.

    Raises:
        InputError: The directory is damaged, or of another version or language.
    """
    table = MappedTable(directory, address=address)
    manifest = table.manifest
    if manifest.language != language:
        raise InputError(
            f"population.language = {shown(language)}: expected "
            f"{shown(manifest.language)}, by whose rules {directory} was prepared."
        )
    _check_digests(table, largest=_LARGEST_CHECKED)
    return clients_of(table)


def clients_of(table: MappedTable) -> Clients:
    """Return all clients of an open directory."""
    manifest = table.manifest
    return Clients(table, name=manifest.name, unit=manifest.unit, arrangement="random")


def verify(directory: Path) -> None:
    """Raise InputError unless every byte of a directory's files is what the manifest says."""
    _check_digests(MappedTable(directory), largest=None)


def _check_digests(table: MappedTable, *, largest: int | None) -> None:
    for name, (size, expected) in table.manifest.files.items():
        is_checked = largest is None or size <= largest
        if is_checked and file_digest(table.directory / name) != expected:
            raise _damaged(table.directory / name)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file of any size, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _reopened(place: str, digest: str) -> MappedTable:
    address = as_address(place)
    table = MappedTable(Path(place) if address is None else local_copy(address), address=address)
    if table.digest != digest:
        raise InputError(
            f"Expected the same prepared population on every node, got another one at {place}; "
            "copy the directory of the machine where fedhh runs."
        )
    return table


def _read(path: Path) -> bytes:
    if not is_prepared(path.parent):
        raise InputError(
            f"Expected a prepared population in {path.parent}, got no {path.name} there; make one "
            "with fedhh data prepare, at the same path on every node."
        )
    require_regular(path)
    try:
        with path.open("rb") as file:
            return file.read(LARGEST_MANIFEST)
    except OSError as error:
        raise InputError(f"Expected a readable {path}: {error.strerror}.") from None


def _manifest(content: bytes, directory: Path) -> Manifest:
    path = directory / MANIFEST
    try:
        manifest = TypeAdapter(Manifest).validate_json(content, strict=True)
    except ValidationError:
        raise _damaged(path) from None
    if manifest.format != FORMAT or manifest.files.keys() != SCHEMAS.keys():
        raise _damaged(path)
    if manifest.version != VERSION:
        raise InputError(
            f"Expected a prepared population of version {VERSION}, got version "
            f"{shown(manifest.version)} in {directory}; prepare it again."
        )
    return manifest


def _damaged(path: Path) -> InputError:
    return InputError(
        f"Expected {path} as fedhh data prepare wrote it, got a damaged file; prepare it again."
    )
