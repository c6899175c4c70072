"""Addresses in object storage, against a server in this process."""

import pickle
import shutil
import time

import numpy as np
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from moto.server import ThreadedMotoServer

from fedhh.clients.prepared import open_prepared
from fedhh.clients.reading.columns import Layout
from fedhh.clients.reading.preparing import prepare_files
from fedhh.experiments.config.load import load_config
from fedhh.experiments.config.population import build_population
from fedhh.system import object_storage
from fedhh.system.object_storage import as_address, local_copy
from fedhh.validation import InputError
from tests.clients.reading.refusals import read_population
from tests.processes import start


@pytest.fixture(scope="module")
def server():
    """Return what an address in a bucket is followed by."""
    running = ThreadedMotoServer(port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "some")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "thing")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        options = f"endpoint_override={host}:{port}&scheme=http&allow_bucket_creation=true"
        system, _ = pa.fs.FileSystem.from_uri(f"s3://words?{options}")
        system.create_dir("words")
        yield system, options
    running.stop()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def parts(tmp_path_factory, server):
    """Files here, and the same ones in the bucket."""
    folder = tmp_path_factory.mktemp("files") / "parts"
    folder.mkdir()
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "user": rng.integers(200, size=3_000),
            "word": pa.array([f"qz{chr(97 + i)}" for i in range(26)]).take(
                rng.integers(26, size=3_000)
            ),
        }
    )
    for number in range(3):
        pq.write_table(table.slice(1_000 * number, 1_000), folder / f"{number}.parquet")
    system, _ = server
    pa.fs.copy_files(str(folder), "words/parts", destination_filesystem=system)
    pq.write_table(table, folder.parent / "all.parquet")
    return folder


def test_files_of_a_bucket_are_prepared_as_those_here(server, parts, tmp_path):
    address = f"s3://words/parts?{server[1]}"
    prepare_files([parts], tmp_path / "here", Layout(), salt="s", memory=None)
    prepare_files([address], tmp_path / "there", Layout(), salt="s", memory=None)
    assert {path.name for path in tmp_path.iterdir()} == {"here", "there"}
    for name in ("clients.arrow", "rows.arrow", "words.arrow"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()


@pytest.mark.slow("::test_a_copy_is_made_once_for_each_content")
def test_clients_of_an_address_are_those_of_its_copy(server, parts, tmp_path, cache):
    system, options = server
    read = read_population(parts.parent / "all.parquet")
    single = f"s3://words/parts/0.parquet?{options}"
    config = load_config(data=single)
    assert config.population.source == single
    first = build_population(config.population, seed=0)
    assert first.num_clients <= 200
    prepare_files([parts], tmp_path / "out", Layout(), salt="s", memory=None)
    pa.fs.copy_files(str(tmp_path / "out"), "words/out", destination_filesystem=system)
    address = f"s3://words/out?{options}"
    population = build_population(load_config(data=address).population, seed=0)
    assert population.table.is_mapped
    assert np.array_equal(population.word_counts().typed, read.word_counts().typed)
    # Who gets it has an own copy.
    assert address in pickle.dumps(population).decode("latin-1")
    shutil.rmtree(cache)
    again = pickle.loads(pickle.dumps(population))
    assert again.fingerprint() == population.fingerprint()
    assert str(again.table.directory).startswith(str(cache))
    assert np.array_equal(again.items.word_ids, open_prepared(tmp_path / "out").items.word_ids)


def test_a_copy_is_made_once_for_each_content(server, parts, cache):
    system, options = server
    address = f"s3://words/changing?{options}"

    def write(text):
        with system.open_output_stream("words/changing/a.csv") as file:
            file.write(text)

    write(b"user,word\n1,lol\n")
    copy = local_copy(address)
    (copy / "a.csv").write_text("mine")
    assert local_copy(address) == copy
    assert (copy / "a.csv").read_text() == "mine"
    write(b"user,word\n1,lol\n2,lol\n")
    fresh = local_copy(address)
    assert fresh != copy
    assert (fresh / "a.csv").read_bytes() == b"user,word\n1,lol\n2,lol\n"


def test_what_is_wrong_is_one_line_that_names_the_address(server, tmp_path, cache):
    system, options = server
    with system.open_output_stream("words/bad/b.csv") as file:
        file.write(b"user,word\n1,lol\n,lol\n")
    with pytest.raises(InputError, match=r"got none in row 2 of s3://words/bad/b\.csv"):
        prepare_files(
            [f"s3://words/bad?{options}"], tmp_path / "out", Layout(), salt=None, memory=None
        )
    for address, message in (
        (f"s3://words/nothing?{options}", "found none; check the address"),
        (f"s3://nobucket/x?{options}", "Expected "),
        ("s3://words/x?nonsense=1", "Unexpected query parameter in S3 URI: 'nonsense'"),
        ("nowhere://x", "Expected an address"),
        (f"s3://me:secret@words/x?{options}", "Expected an address without a password"),
    ):
        with pytest.raises(InputError, match=message.replace("?", r"\?")) as caught:
            local_copy(address)
        assert "\n" not in str(caught.value)
        assert "secret" not in str(caught.value)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.slow("::test_files_of_a_bucket_are_prepared_as_those_here")
def test_the_command_takes_addresses(server, parts, tmp_path):
    address = f"s3://words/parts?{server[1]}"
    process = start("data", "prepare", address, "out", cwd=tmp_path)
    said, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "200 users, 26 words typed 3,000 times" in said
    process = start("data", "describe", f"s3://words/parts/1.parquet?{server[1]}", cwd=tmp_path)
    said, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "words typed" in said


def test_googles_storage_that_does_not_answer_is_one_line_after_some_seconds(monkeypatch):
    monkeypatch.setattr(object_storage, "_RETRIED_SECONDS", 1)
    started = time.monotonic()
    with pytest.raises(InputError, match="an address that can be read, got 'gs://") as said:
        local_copy("gs://anonymous@words/x?endpoint_override=127.0.0.1:9&scheme=http")
    assert "\n" not in str(said.value)
    assert time.monotonic() - started < 30


def test_paths_are_no_addresses():
    for path in ("words.csv", "/a/b.parquet", "mine:Clients", "C:/x", "s3:", "a://", "dir/s3://x"):
        assert as_address(path) is None
    assert as_address("gs://b/c d") == "gs://b/c d"
    assert as_address("S3://Bucket/Words") == "s3://Bucket/Words"
