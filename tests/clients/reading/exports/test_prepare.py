"""From sources of every kind to a file of counted words, in which nobody is named."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from fedhh.clients.reading.exports.messages import salt_of, user_number
from fedhh.clients.reading.exports.prepare import Sources, prepare_messages
from fedhh.clients.reading.sources import read_population
from fedhh.validation import InputError
from tests.clients.reading.exports.repositories import commit, new_repository

SALT = "sixteen symbols!"
SECRETS = (b"ana", b"ivic", b"bo", b"berg", b"example", b"carla", b"keeper")


@pytest.fixture
def sources(tmp_path):
    """The same two people in an archive, a chat, and, where there is git, a clone."""
    clones = []
    if shutil.which("git"):
        clones = [new_repository(tmp_path / "clone")]
        commit(
            clones[0],
            "frob\n\nReviewed-by: Carla Keeper <carla@example.org>",
            "Ana Ivic",
            "ana@example.org",
        )
        commit(
            clones[0],
            "As Ivic says, Carla's knob frobs: ana@example.org",
            "Bo Berg",
            "bo@example.org",
        )
    mbox = tmp_path / "list.mbox"
    mbox.write_text(
        "From - x\nFrom: Ana Ivic <Ana@example.org>\n\nfrob Bo's knob\n\n"
        "From - x\nFrom: Bo Berg <bo@example.org>\n\nOn 1.1., Ana wrote:\n> a\nyes, @berg\n\n"
    )
    chat = tmp_path / "chat.txt"
    chat.write_text(
        "31.12.20, 22:15 - Ana: zonk Bo\n31.12.20, 22:15 - +49 151 2345678: zonk 3f2a9bc\n"
    )
    return Sources(git=clones, mbox=[mbox], chats=[chat])


def of_users(path) -> dict[int, dict[str, int]]:
    """Return the rows of a file of CSV, by user."""
    found: dict[int, dict[str, int]] = {}
    for row in path.read_text().splitlines()[1:]:
        user, word, count = row.split(",")
        found.setdefault(int(user), {})[word] = int(count)
    return found


def test_words_are_counted_by_author_over_all_sources(sources, tmp_path):
    out = tmp_path / "out.csv"
    prepared = prepare_messages(sources, out, salt=SALT)
    ana, bo, chatting, phone = (
        user_number(author, salt_of(SALT))
        for author in ("ana@example.org", "bo@example.org", "Ana", "+49 151 2345678")
    )
    found = of_users(out)
    with_git = bool(sources.git)
    assert found[ana] == {"frob": 1 + with_git, "knob": 1}
    assert found[bo] == ({"as": 1, "says": 1, "knob": 1, "frobs": 1} if with_git else {}) | {
        "yes": 1
    }
    assert found[chatting] == found[phone] == {"zonk": 1}
    assert list(found) == sorted(found)
    assert len(found) == prepared.population.num_clients == 4
    assert (prepared.seen, prepared.kept) == (4 + 2 * with_git, 4 + 2 * with_git)
    # Bo's, Bo; and in the clone Ivic, Carla's.
    assert prepared.no_words["part of a name", ""] == 2 + 2 * with_git


@pytest.mark.parametrize("extension", ["csv", "parquet", "jsonl", "csv.gz"])
def test_no_name_and_no_address_is_in_what_comes_out(sources, tmp_path, extension):
    out = tmp_path / f"out.{extension}"
    prepared = prepare_messages(sources, out, samples=10)
    population = read_population(out)
    content = " ".join(population.lexicon.words).encode()
    if not extension.endswith("gz"):
        content += out.read_bytes().lower()
    content += repr(prepared).lower().encode() + " ".join(prepared.samples).encode()
    # The letters of "bo" may stand in random bytes or other words.
    assert [each for each in SECRETS if len(each) > 2 and each in content] == []
    assert not set(population.lexicon.words) & {each.decode() for each in SECRETS}
    assert b"151" not in b" ".join(sample.encode() for sample in prepared.samples)
    assert population.num_clients == 4
    assert (population.word_counts == prepared.population.word_counts).all()


def test_the_same_salt_gives_the_same_users_and_another_one_others(sources, tmp_path):
    def users(name: str, chosen: Sources, salt: str | None) -> set[int]:
        prepare_messages(chosen, tmp_path / name, salt=salt)
        return set(of_users(tmp_path / name))

    all_of_them = users("a.csv", sources, SALT)
    assert users("b.csv", sources, SALT) == all_of_them
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    apart = users("c.csv", Sources(mbox=sources.mbox), SALT)
    assert len(apart) == 2
    assert apart < all_of_them
    assert not users("d.csv", sources, SALT + "x") & all_of_them
    first, second = users("e.csv", sources, None), users("f.csv", sources, None)
    assert len(first) == len(second) == 4
    assert not first & second


def test_authors_are_the_same_in_any_case_and_form():
    key = salt_of(SALT)
    assert user_number("Ana@Example.org", key) == user_number(" ana@example.org ", key)
    assert user_number("Jose\u0301", key) == user_number("Jos\u00e9", key)
    assert user_number("ana", key) != user_number("bo", key)
    numbers = np.array([user_number(str(i), key) for i in range(10_000)])
    assert (numbers >= 0).all()
    assert len(np.unique(numbers)) == 10_000
    # All 63 bits are used: of 10,000 the mean is within 6 standard deviations of the middle.
    assert abs(numbers.mean() / 2**62 - 1) < 6 / np.sqrt(3 * 10_000)


def test_words_that_names_share_with_every_text_stay(tmp_path):
    chat = tmp_path / "chat.txt"
    chat.write_text("31.12.20, 22:15 - Will K The Great: the great k will\n")
    prepare_messages(Sources(chats=[chat]), tmp_path / "out.csv", salt=SALT)
    (words,) = of_users(tmp_path / "out.csv").values()
    assert words == {"the": 1, "k": 1, "will": 1}


def test_an_author_whose_words_are_all_names_is_still_a_user(tmp_path):
    chat = tmp_path / "chat.txt"
    chat.write_text("31.12.20, 22:15 - Ana: Ana!\n")
    prepared = prepare_messages(Sources(chats=[chat]), tmp_path / "out.csv", samples=3)
    assert prepared.samples == ()
    assert (prepared.population.num_clients, len(prepared.population.lexicon.words)) == (1, 0)
    assert read_population(tmp_path / "out.csv").num_clients == 1


def test_what_cannot_be_written_or_kept_leaves_no_file(sources, tmp_path):
    with pytest.raises(InputError, match="salt of at least 16 symbols, got 5;") as refusal:
        prepare_messages(sources, tmp_path / "out.csv", salt="short")
    assert "short" not in str(refusal.value)
    with pytest.raises(InputError, match="known extensions"):
        prepare_messages(sources, tmp_path / "out.txt")
    chat = tmp_path / "bots.json"
    message = {"type": "message", "bot_id": "B", "text": "x", "ts": "1"}
    chat.write_text(json.dumps([message, message]))
    with pytest.raises(InputError, match=r"got none of 2 messages \(bot 2\)"):
        prepare_messages(Sources(chats=[chat]), tmp_path / "out.csv")
    with pytest.raises(InputError, match="existing file"):
        prepare_messages(Sources(mbox=[*sources.mbox, tmp_path / "no"]), tmp_path / "out.csv")
    assert not list(tmp_path.glob("out*"))


def test_halves_of_symbols_are_read(tmp_path):
    chat = tmp_path / "chat.json"
    chat.write_text('[{"type": "message", "user": "\\ud800", "text": "a \\ud800 bc", "ts": "1"}]')
    prepare_messages(Sources(chats=[chat]), tmp_path / "out.csv")
    assert list(of_users(tmp_path / "out.csv").values()) == [{"a": 1, "bc": 1}]
