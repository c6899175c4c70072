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
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fedhh.clients.clients import Clients
from fedhh.clients.population import Ids
from fedhh.questions.clients import ClientBlock
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
_CLIENTS_AT_ONCE = 2**14
_BYTES_AT_ONCE = 2**24


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
    clients: int
    rows: int
    words: int
    contributions: int
    files: dict[str, tuple[int, str]]
    made: dict[str, Any]
    language: str = ENGLISH
    format: str = FORMAT
    version: int = VERSION

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"


def is_prepared(path: Path) -> bool:
    """Return whether a path is a directory with a manifest."""
    try:
        return (path / MANIFEST).is_file()
    except (OSError, ValueError):
        return False


class Columns:
    """A prepared directory, opened: its manifest, and its columns where they lie on disk."""

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
        counts = self.manifest
        (self.offsets,) = self._mapped("clients.arrow", counts.clients + 1)
        self.word_ids, self.counts = self._mapped("rows.arrow", counts.rows)
        texts, *totals = self._batch("words.arrow", counts.words)
        self.contributions, self.holders = (each.to_numpy() for each in totals)
        try:
            self.words = StoredWords(texts)
        except ValueError:  # Arrow's errors are some, too.
            raise _damaged(directory / "words.arrow") from None

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


class PreparedPopulation(Clients):
    """The clients of a prepared directory; who holds a copy of it answers for them.

    It is pickled as its path: every node maps a directory of the same content at that path, its own
    or one of a file system that they share. Of an address in object storage, every node has a copy.
    """

    is_shuffled = True
    is_held = False

    def __init__(
        self,
        columns: Columns,
        *,
        first: int = 0,
        num_clients: int | None = None,
        kept: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        """Take the clients of a directory, or some that follow each other, and their words.

        Args:
            columns: The directory.
            first: Number of the first client.
            num_clients: How many; None for all.
            kept: ``(V,) bool``: which words of the directory; None for all.
        """
        manifest = columns.manifest
        size = manifest.clients if num_clients is None else num_clients
        words, name = columns.words, manifest.name
        if kept is not None:
            words = words.only(kept)
        if size < manifest.clients:
            name = f"{name}, a random {size:,} of {manifest.clients:,} {manifest.unit}s"
        super().__init__(
            name=name,
            lexicon=StoredLexicon(words=words),
            offsets=columns.offsets[first : first + size + 1],
            word_ids=columns.word_ids,
            counts=columns.counts,
            unit=manifest.unit,
            drawn_from=manifest.clients if size < manifest.clients else None,
        )
        self._columns, self._first, self._kept = columns, first, kept
        self._number: npt.NDArray[np.int32] | None = None
        if kept is not None:
            self._number = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
        self._sampled_totals: tuple[Ids, Ids] | None = None

    @property
    def directory(self) -> Path:
        """Where its files are."""
        return self._columns.directory

    def __reduce__(self) -> tuple[Any, ...]:
        kept = None if self._kept is None else np.packbits(self._kept)
        columns = self._columns
        place = columns.address or str(columns.directory.resolve())
        return _reopened, (place, columns.digest, self._first, self.num_clients, kept)

    def fingerprint(self) -> str:
        kept = b"" if self._kept is None else np.packbits(self._kept).tobytes()
        view = repr((self._columns.digest, self._first, self.num_clients)).encode()
        return hashlib.sha256(view + kept).hexdigest()

    @property
    def items(self) -> ClientBlock:
        return self.block(np.arange(self.num_clients))

    def block(self, clients: Ids) -> ClientBlock:
        starts = self._offsets[clients]
        ends = self._offsets[clients + 1]
        sizes = ends - starts
        if not ((starts >= 0) & (sizes >= 0) & (ends <= len(self._word_ids))).all():
            raise _damaged(self._columns.directory / "clients.arrow")
        offsets = np.r_[0, np.cumsum(sizes)]
        if (starts[1:] == ends[:-1]).all():
            # Clients that follow each other are read where they lie.
            rows: Any = slice(int(starts[0]), int(ends[-1])) if len(starts) else slice(0, 0)
        else:
            rows = np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])
        word_ids, counts = self._word_ids[rows], self._counts[rows]
        num_words = self._columns.manifest.words
        if len(word_ids) and not (
            0 <= word_ids.min() <= word_ids.max() < num_words and counts.min() >= 1
        ):
            raise _damaged(self._columns.directory / "rows.arrow")
        if self._number is not None:
            word_ids = self._number[word_ids]
            is_kept = word_ids >= 0
            offsets = np.r_[0, np.cumsum(is_kept)][offsets]
            word_ids, counts = word_ids[is_kept], counts[is_kept]
        return ClientBlock(clients=clients, offsets=offsets, word_ids=word_ids, counts=counts)

    @property
    def word_counts(self) -> Ids:
        return self._whole_totals[0]

    @property
    def word_clients(self) -> Ids:
        return self._whole_totals[1]

    @property
    def _whole_totals(self) -> tuple[Ids, Ids]:
        """The manifest's own, or of a sample, counted once."""
        columns = self._columns
        if self.num_clients == columns.manifest.clients:
            kept = slice(None) if self._kept is None else self._kept
            return columns.contributions[kept], columns.holders[kept]
        if self._sampled_totals is None:
            typed, holders = (np.zeros(len(self.lexicon), dtype=np.int64) for _ in range(2))
            for first in range(0, self.num_clients, _CLIENTS_AT_ONCE):
                rows = self.block(np.arange(first, min(first + _CLIENTS_AT_ONCE, self.num_clients)))
                np.add.at(typed, rows.word_ids, rows.counts)
                np.add.at(holders, rows.word_ids, 1)
            self._sampled_totals = typed, holders
        return self._sampled_totals

    def keep_words(self, keep: npt.NDArray[np.bool_]) -> PreparedPopulation:
        """Return the population with only some words, which leaves the rows where they lie."""
        kept = keep
        if self._kept is not None:
            kept = self._kept.copy()
            kept[self._kept] = keep
        return self._view(first=self._first, num_clients=self.num_clients, kept=kept)

    def _sampled(self, size: int, rng: np.random.Generator) -> PreparedPopulation:
        """Return clients that follow each other from a random place on, with all words.

        They are a random sample, since clients are stored in a random order.
        """
        place = int(rng.integers(self.num_clients))
        first = self._first + place * (self.num_clients - size) // self.num_clients
        return self._view(first=first, num_clients=size, kept=self._kept)

    def _view(
        self, *, first: int, num_clients: int, kept: npt.NDArray[np.bool_] | None
    ) -> PreparedPopulation:
        return PreparedPopulation(self._columns, first=first, num_clients=num_clients, kept=kept)


def open_prepared(
    directory: Path, language: str = ENGLISH, *, address: str | None = None
) -> PreparedPopulation:
    """Return the clients of a prepared directory, whose files of up to 64 MiB are read once.

    Args:
        directory: As `fedhh data prepare` writes it.
        language: Of the words, which has to be that of the directory.
        address: In object storage, of which the directory is a copy.

    Raises:
        InputError: The directory is damaged, or of another version or language.
    """
    columns = Columns(directory, address=address)
    if columns.manifest.language != language:
        raise InputError(
            f"population.language = {shown(language)}: expected "
            f"{shown(columns.manifest.language)}, by whose rules {directory} was prepared."
        )
    _check_digests(columns, largest=_LARGEST_CHECKED)
    return PreparedPopulation(columns)


def verify(directory: Path) -> None:
    """Raise InputError unless every byte of a directory's files is what the manifest says."""
    _check_digests(Columns(directory), largest=None)


def _check_digests(columns: Columns, *, largest: int | None) -> None:
    for name, (size, expected) in columns.manifest.files.items():
        is_checked = largest is None or size <= largest
        if is_checked and file_digest(columns.directory / name) != expected:
            raise _damaged(columns.directory / name)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file of any size, hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_BYTES_AT_ONCE):
            digest.update(piece)
    return digest.hexdigest()


def _reopened(
    place: str, digest: str, first: int, num_clients: int, kept: npt.NDArray[np.uint8] | None
) -> PreparedPopulation:
    address = as_address(place)
    columns = Columns(Path(place) if address is None else local_copy(address), address=address)
    if columns.digest != digest:
        raise InputError(
            f"Expected the same prepared population on every node, got another one at {place}; "
            "copy the directory of the machine where fedhh runs."
        )
    words = None
    if kept is not None:
        words = np.unpackbits(kept, count=columns.manifest.words).astype(np.bool_)
    return PreparedPopulation(columns, first=first, num_clients=num_clients, kept=words)


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
        table = json.loads(content)
        manifest = Manifest(**table)
        files = {str(name): (int(size), str(sha)) for name, (size, sha) in table["files"].items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise _damaged(path) from None
    numbers = (manifest.clients, manifest.rows, manifest.words, manifest.contributions)
    texts = (manifest.name, manifest.unit, manifest.language)
    if manifest.format == FORMAT and manifest.version != VERSION:
        raise InputError(
            f"Expected a prepared population of version {VERSION}, got version "
            f"{shown(manifest.version)} in {directory}; prepare it again."
        )
    is_right = (
        manifest.format == FORMAT
        and all(type(number) is int and number >= 0 for number in numbers)
        and all(type(text) is str for text in texts)
        and files.keys() == SCHEMAS.keys()
        and isinstance(manifest.made, dict)
    )
    if not is_right or manifest.clients < 1:
        raise _damaged(path)
    return Manifest(**{**table, "files": files})


def _damaged(path: Path) -> InputError:
    return InputError(
        f"Expected {path} as fedhh data prepare wrote it, got a damaged file; prepare it again."
    )
