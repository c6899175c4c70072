"""Prepared directories: the same clients wherever they lie, and nothing damaged is read."""

import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import fedhh
from fedhh.clients.clients import Clients, Table
from fedhh.clients.population import client_order
from fedhh.clients.prepared import (
    MANIFEST,
    SCHEMAS,
    MappedTable,
    clients_of,
    open_prepared,
    verify,
)
from fedhh.clients.reading.preparing import prepare_synthetic
from fedhh.clients.synthetic import population_presets
from fedhh.questions.cohort import Cohort
from fedhh.simulation import roster
from fedhh.validation import InputError

CLIENTS = 3_000


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    out = tmp_path_factory.mktemp("prepared") / "chat"
    prepare_synthetic(population_presets()["chat"], CLIENTS, out, seed=0)
    return out


@pytest.fixture
def copy(directory, tmp_path):
    return Path(shutil.copytree(directory, tmp_path / "copy"))


def in_memory(population: Clients) -> Clients:
    """Return the same clients with the same numbers, held."""
    items = population.items
    return Clients(
        Table(population.lexicon, items.offsets, items.word_ids, items.counts),
        name=population.name,
        unit=population.unit,
    )


def contents(block, words):
    return [
        {words[i]: n for i, n in zip(block.word_ids[a:b], block.counts[a:b].tolist(), strict=True)}
        for a, b in zip(block.offsets[:-1], block.offsets[1:], strict=True)
    ]


def same(a, b):
    assert list(a.lexicon.words) == list(b.lexicon.words)
    assert contents(a.items, a.lexicon.words) == contents(b.items, b.lexicon.words)
    assert np.array_equal(a.word_counts().typed, b.word_counts().typed)
    assert np.array_equal(a.word_counts().holders, b.word_counts().holders)


@pytest.mark.slow("::test_words_are_left_out_as_of_a_population_in_memory")
def test_it_has_the_clients_of_the_synthetic_population_in_another_order(directory):
    population = open_prepared(directory)
    drawn = fedhh.synthetic_population("chat", CLIENTS, seed=0)
    key = lambda words: sorted(words.items())  # noqa: E731
    ours, theirs = (contents(each.items, each.lexicon.words) for each in (population, drawn))
    assert ours != theirs
    assert sorted(ours, key=key) == sorted(theirs, key=key)
    same(population, in_memory(population))
    assert list(population.lexicon.words) == sorted(drawn.lexicon.words)


def test_blocks_are_the_same_whether_clients_follow_each_other_or_not(directory):
    population = open_prepared(directory)
    held = in_memory(population)
    words = list(population.lexicon.words)
    for clients in (np.arange(10, 500), np.array([7, 3, 2_999, 3, 0]), np.arange(0)):
        block, expected = population.block(clients), held.block(clients)
        assert contents(block, words) == contents(expected, words)
        assert np.array_equal(block.clients, clients)


def test_words_are_left_out_as_of_a_population_in_memory(directory):
    population = open_prepared(directory)
    rng = np.random.default_rng(0)
    first = rng.random(len(population.lexicon)) < 0.5
    once = population.keep_words(first)
    same(once, in_memory(population).keep_words(first))
    second = rng.random(len(once.lexicon)) < 0.5
    same(once.keep_words(second), in_memory(once).keep_words(second))


@pytest.mark.slow("::test_blocks_are_the_same_whether_clients_follow_each_other_or_not")
def test_samples_follow_each_other_and_hold_each_other(directory):
    population = open_prepared(directory)
    whole = 2 * contents(population.items, population.lexicon.words)
    starts = set()
    for seed in range(20):
        found = []
        for size in (100, 1_000, 2_999):
            sample = population.sample_clients(size, rng=np.random.default_rng(seed))
            assert sample.num_clients == size
            assert sample.drawn_from == CLIENTS
            assert (sample.word_counts().holders > 0).all()
            same(sample, in_memory(sample))
            found.append(contents(sample.items, sample.lexicon.words))
            starts.add(next(i for i in range(CLIENTS) if whole[i : i + size] == found[-1]))
        small, middle, large = ("".join(map(repr, each)) for each in found)
        assert small in middle
        assert middle in large
    assert len(starts) == 20
    with pytest.raises(InputError, match=r"1 <= population\.clients <= 3,000, the nicks of"):
        population.sample_clients(3_001, rng=np.random.default_rng(0))


def test_it_is_pickled_as_its_place_and_its_words(directory, copy):
    population = open_prepared(directory)
    sample = population.sample_clients(500, rng=np.random.default_rng(0))
    assert len(pickle.dumps(population)) < 500
    assert len(pickle.dumps(sample)) < 600 + len(population.lexicon)
    again = pickle.loads(pickle.dumps(sample))
    same(again, sample)
    assert again.fingerprint() == sample.fingerprint() != population.fingerprint()
    stored = pickle.dumps(open_prepared(copy))
    manifest = json.loads((copy / MANIFEST).read_text())
    (copy / MANIFEST).write_text(json.dumps({**manifest, "name": "other"}))
    with pytest.raises(InputError, match="the same prepared population on every node, got another"):
        pickle.loads(stored)
    shutil.rmtree(copy)
    with pytest.raises(InputError, match=r"got no population\.json there; make one with"):
        pickle.loads(stored)


@pytest.mark.slow("::test_words_are_left_out_as_of_a_population_in_memory")
def test_a_run_has_the_bits_of_one_in_memory(directory):
    population = open_prepared(directory)
    protocol = fedhh.LdpTrieHH(depth=4, passes=1, eta_max=50, max_items=2)
    mapped, held = (
        fedhh.simulate(protocol, each, seed=3) for each in (population, in_memory(population))
    )
    assert len(mapped.discoveries)
    assert mapped.discoveries.equals(held.discoveries)
    assert mapped.layers.equals(held.layers)


def test_a_large_population_is_asked_by_chunks_each_client_once(monkeypatch):
    monkeypatch.setattr(roster, "LARGEST_SHUFFLED", 100)
    monkeypatch.setattr(roster, "CHUNK", 16)
    size = 1_003
    population = Clients(
        Table(
            fedhh.synthetic_population("chat", 10, seed=0).lexicon,
            np.zeros(size + 1, dtype=np.int64),
            np.zeros(0, dtype=np.int32),
            np.zeros(0, dtype=np.int32),
        ),
        name="n",
        arrangement="random",
    )
    cohort = Cohort(start=0, size=size)
    orders = []
    for seed in (0, 1):
        asked = client_order(population, seed=seed)
        blocks = [asked.clients(cohort, block) for block in range(cohort.num_blocks)]
        orders.append(np.concatenate(blocks))
        assert np.array_equal(np.sort(orders[-1]), np.arange(size))
        # All but the ends of chunks are followed by their neighbors.
        jumps = (np.diff(orders[-1]) % size != 1).sum()
        assert size // 16 - 3 <= jumps <= size // 16 + 1
    assert not np.array_equal(*orders)
    redrawn = client_order(population, seed=0).clients(Cohort(start=0, size=size - 1, redraw=7), 0)
    assert (np.diff(redrawn) % size != 1).sum() > len(redrawn) // 2


def replaced(path: Path, **columns):
    """Write one of a directory's files with other columns of the same sizes, and its size."""
    schema = SCHEMAS[path.name]
    with pa.memory_map(str(path)) as source:
        batch = pa.ipc.open_file(source).get_batch(0)
    arrays = [pa.array(columns.get(name, batch[name].to_pylist()), type=schema.field(name).type)
              for name in schema.names]  # fmt: skip
    del batch
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_a_file_of_another_size_is_refused_before_it_is_mapped(copy, name):
    path = copy / name
    content = path.read_bytes()
    for damaged in (content[:-8], content + b"12345678", b""):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=f"{name} as fedhh data prepare wrote it, got a damag"):
            open_prepared(copy)
    path.unlink()
    with pytest.raises(InputError, match=f"Expected the file {name} of a prepared population in"):
        open_prepared(copy)


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_a_file_of_the_same_size_with_another_content_is_refused_unless_it_is_large(
    copy, name, monkeypatch
):
    path = copy / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"{name} as fedhh data prepare wrote it, got a damag"):
        open_prepared(copy)
    monkeypatch.setattr("fedhh.clients.prepared._LARGEST_CHECKED", len(content) - 1)
    assert open_prepared(copy).num_clients == CLIENTS
    with pytest.raises(InputError, match=f"{name} as fedhh data prepare wrote it, got a damag"):
        verify(copy)


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_verification_sees_every_byte(copy, name):
    verify(copy)
    path = copy / name
    content = bytearray(path.read_bytes())
    rng = np.random.default_rng(0)
    for place in rng.integers(len(content), size=10).tolist():
        damaged = content.copy()
        damaged[place] ^= 255
        path.write_bytes(damaged)
        with pytest.raises(InputError, match="got a damaged file"):
            verify(copy)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("rows.arrow", {"word": lambda n: [10**6] * n}),
        ("rows.arrow", {"word": lambda n: [-1] * n}),
        ("rows.arrow", {"count": lambda n: [0] * n}),
        ("clients.arrow", {"offsets": lambda n: [10**12] * n}),
        ("clients.arrow", {"offsets": lambda n: [-5] * n}),
        ("clients.arrow", {"offsets": lambda n: list(range(n, 0, -1))}),
    ],
)
def test_columns_that_contradict_each_other_are_refused_where_they_are_read(copy, name, changes):
    with pa.memory_map(str(copy / name)) as source:
        size = pa.ipc.open_file(source).get_batch(0).num_rows
    replaced(copy / name, **{column: make(size) for column, make in changes.items()})
    with pytest.raises(InputError, match=f"{name} as fedhh data prepare wrote it, got a damaged"):
        open_prepared(copy)
    # As nodes open it, and everybody opens large files.
    population = clients_of(MappedTable(copy))
    with pytest.raises(InputError, match=f"{name} as fedhh data prepare wrote it, got a damaged"):
        population.block(np.arange(100))
    with pytest.raises(InputError, match=f"{name} as fedhh data prepare wrote it, got a damaged"):
        population.block(np.array([5, 1, 9]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "other"}, "got a damaged file"),
        ({"version": 2}, "Expected a prepared population of version 1, got version 2"),
        ({"clients": 5}, "got a damaged file"),
        ({"clients": 0}, "got a damaged file"),
        ({"clients": True}, "got a damaged file"),
        ({"rows": -1}, "got a damaged file"),
        ({"words": "many"}, "got a damaged file"),
        ({"name": 3}, "got a damaged file"),
        ({"files": {}}, "got a damaged file"),
        ({"files": dict.fromkeys(SCHEMAS, 3)}, "got a damaged file"),
        ({"more": 1}, "got a damaged file"),
        ({"language": "tr"}, "population.language = 'en': expected 'tr', by whose rules"),
    ],
)
def test_a_manifest_that_is_none_is_refused(copy, changes, message):
    manifest = json.loads((copy / MANIFEST).read_text())
    (copy / MANIFEST).write_text(json.dumps({**manifest, **changes}))
    with pytest.raises(InputError, match=message) as caught:
        open_prepared(copy)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b"null"])
def test_a_manifest_that_is_no_table_is_refused(copy, content):
    (copy / MANIFEST).write_bytes(content)
    with pytest.raises(InputError, match="got a damaged file"):
        open_prepared(copy)


@pytest.mark.slow("::test_columns_that_contradict_each_other_are_refused_where_they_are_read")
def test_flipped_bytes_are_refused_or_read_as_numbers(copy):
    rng = np.random.default_rng(0)
    refused = 0
    for name in SCHEMAS:
        path = copy / name
        content = path.read_bytes()
        # The metadata at both ends, and what is between them.
        ends = [*range(200), *range(len(content) - 200, len(content))]
        for place in [*rng.choice(ends, 60), *rng.integers(len(content), size=20)]:
            damaged = bytearray(content)
            damaged[place] ^= int(rng.integers(1, 256))
            path.write_bytes(damaged)
            try:
                population = clients_of(MappedTable(copy))
                population.block(np.arange(CLIENTS))
                population.lexicon.ids(["lol"])
            except InputError:
                refused += 1
        path.write_bytes(content)
    assert 50 < refused < 240
