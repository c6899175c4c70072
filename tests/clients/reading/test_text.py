import itertools
import json
import pickle
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from fedhh.clients.reading import tokens as tokens_module
from fedhh.clients.reading.sources import read_file, write_population
from fedhh.clients.reading.tokens import EMOJI, Tokenizer, tokenize
from tests.clients.reading.refusals import read_population, tokenize_all
from tests.every import every


@every(
    ("text", "tokens"),
    [
        ("Hello, World", ["hello", "world"]),
        ("don't DON\u2019T don\u00b4t", ["don't", "don't", "don't"]),
        ("'quoted' dogs' 'tis", ["quoted", "dogs", "tis"]),
        ("rock'n'roll o''clock", ["rock'n'roll", "o", "clock"]),
        ("see https://a.b/c?d=e#f and www.x.org/y now", ["see", "and", "now"]),
        ("mail me.too+x@mail.example.org ok", ["mail", "ok"]),
        ("@home hi @Some_One's a@b", ["hi", "s", "a", "b"]),
        ("#hashTag #2cool", ["hashtag", "2cool"]),
        ("2024 1st 3d 12:30 1,000", ["1st", "3d"]),
        ("caf\u00e9 NA\u00cfVE plain", ["caf\u00e9", "na\u00efve", "plain"]),
        ("cafe\u0301", ["caf\u00e9"]),
        ("\u041f\u0440\u0438\u0432\u0435\u0442, \u0401\u043b\u043a\u0430", ["привет", "ёлка"]),
        ("हिन्दी में @हिन्दी नमस्ते", ["हिन्दी", "में", "नमस्ते"]),  # vowels are marks
        ("می\u200cخواهم", ["میخواهم"]),
        ("漢字かな交じり文 l'été", ["漢字かな交じり文", "l'été"]),
        ("١٢٣ \u0301 \u0301abc", ["abc"]),
        ("❤\ufe0flol 1\ufe0f\u20e3", ["lol"]),
        ("&#" + "9" * 5_000 + "; x", ["x"]),
        ("a\0b", ["a", "b"]),
        ("\uff26\uff55\uff4c\uff4c \ufb01ne", ["full", "fine"]),
        ("snake_case hyphen-ated", ["snake", "case", "hyphen", "ated"]),
        ("a" * 24 + " " + "b" * 25, ["a" * 24]),
        ("fish &amp; chips &lt;3 it&#39;s", ["fish", "chips", "it's"]),
        ("", []),
        ("\U0001f600 !!!", []),
    ],
)
def test_text_is_tokenized_by_the_stated_rule(text, tokens):
    assert tokenize(text) == tokens


@every(
    ("text", "emoji"),
    [
        ("lol \U0001f602\U0001f602 so\u2764\ufe0f", ["\U0001f602", "\U0001f602", "\u2764\ufe0f"]),
        ("\U0001f469\u200d\U0001f4bb", ["\U0001f469\u200d\U0001f4bb"]),  # joined: a profession
        ("\U0001f44d\U0001f3fd", ["\U0001f44d\U0001f3fd"]),  # a tone of skin
        (
            "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7",
            ["\U0001f1e9\U0001f1ea", "\U0001f1eb\U0001f1f7"],
        ),
        ("&#128514; &amp;", ["\U0001f602"]),
        ("a\u2122 \u24b6", []),  # read as letters
        ("ab, caf\u00e9 - \u2014 1 + 1 = 2", []),
    ],
)
def test_each_picture_of_a_text_is_one_emoji(text, emoji):
    dropped: Counter[tuple[str, str]] = Counter()
    tokenize(text, dropped)
    assert {piece: n for (why, piece), n in dropped.items() if why == EMOJI} == Counter(emoji)
    assert tokenize_all([text])[1] == dropped


def test_texts_without_a_word_are_counted(tmp_path):
    (tmp_path / "in.csv").write_text("user,text\na,lol\na,\U0001f602\nb,\nb,so\n")
    clients = read_file(tmp_path / "in.csv")
    texts = clients.texts
    assert (texts.number, texts.empty, texts.kept) == (4, 2, 2)
    assert texts.dropped == {(EMOJI, "\U0001f602"): 1}
    assert texts.reasons == {EMOJI: 1}
    assert clients.keep_words(np.array([True, False])).texts is texts
    # Whoever answers needs none of them.
    assert pickle.loads(pickle.dumps(clients)).texts.number == 0


def test_tokens_of_many_texts_keep_their_text():
    texts = pa.array(["dropped", "b a", "", "a c a"]).slice(1)
    assert Tokenizer().words(texts, Counter()).to_pylist() == [["b", "a"], [], ["a", "c", "a"]]


def test_no_texts_have_no_tokens():
    assert tokenize_all([]) == ([], {})


@pytest.mark.parametrize("extension", ["parquet", "csv", "csv.gz", "jsonl"])
def test_prepared_text_is_a_population_without_names(tmp_path, extension):
    texts = [("ann", "so lol"), ("bob", "?"), ("ann", "lol")]
    source = tmp_path / "texts.jsonl"
    source.write_text("".join(json.dumps({"user": u, "text": t}) + "\n" for u, t in texts))
    out = tmp_path / f"words.{extension}"
    write_population(read_file(source), out)
    population = read_population(out)
    assert population.num_clients == 2
    assert list(population.lexicon.words) == ["lol", "so"]
    assert sorted(np.diff(population.items.offsets).tolist()) == [0, 2]
    assert population.items.counts.tolist() == [2, 1]
    if extension == "csv":
        assert out.read_text() == "user,word,count\n0,lol,2\n0,so,1\n1,,0\n"


def test_what_is_dropped_is_counted_and_addresses_are_not_kept(tmp_path):
    (tmp_path / "in.csv").write_text(
        "user,text\nu,see http://a.b and www.c.d\nv,@ann mail me@x.org 2024 2024 " + "a" * 30 + "\n"
    )
    dropped = read_file(tmp_path / "in.csv").texts.dropped
    assert dropped == {
        ("URL", ""): 2,
        ("mention", ""): 1,
        ("e-mail address", ""): 1,
        ("no letter", "2024"): 2,
        ("too long", "a" * 25): 1,
    }


@pytest.mark.parametrize("piece", ["a", "a.", "@", "a@", "a'", "&", "a@b.", "\u0301"])
def test_the_time_for_a_text_does_not_grow_with_its_square(piece: str):
    # A quadratic rule would take minutes for all of this.
    tokenize(piece * 50_000)


PIECES = (
    "word", "Word", "WORD's", "it’s", "''a''", "a_b", "2024", "1st", "x" * 24, "x" * 25, "É", "ΑΣ",
    "Σ", "ﬁn", "Ⅷ", "na\u0308ive", "\u0301a", "a\u0301", "´a", "¨a", "&amp;", "&lt", "&nbsp;b",
    "&#10;c", "&#1234567;", "&notit;", "http://a.b/c", "https://", "www.", "WWW.A", "a@b.c", "@me",
    "x@y", "a@b", ".@a", "#tag", "ไทย", "हिन्दी", "क्\u200dष", "日本語", "a\u3000b", "a\u00a0@b",
    "a\x1cb", "a\x85b", "&lt\x0bx", "\u2028", "", "…", "½", "٣", "😂", "👩\u200d💻", "🇩🇪🇫🇷",
    "™", "ª", "ß", "İ", "\ufeff",
)  # fmt: skip


@every("seed", range(20))
def test_texts_in_pieces_have_the_words_of_whole_texts(seed):
    """Nothing reaches over a blank: what `tokenize` says of a text is what its pieces say."""
    rng = np.random.default_rng(seed)
    blanks = (" ", "\n", "\t", "  ", "\r\n", "\x0b", "\f", "\u2003")
    texts = [
        "".join(
            piece + blank
            for piece, blank in zip(
                rng.choice(PIECES, size=9).tolist(), rng.choice(blanks, size=9), strict=True
            )
        )
        for _ in range(60)
    ]
    whole: list[list[str]] = []
    dropped: Counter[tuple[str, str]] = Counter()
    for text in texts:
        whole.append(tokenize(text, dropped))
    assert tokenize_all(texts) == (whole, dropped)


def test_words_between_signs_are_what_tokenize_finds():
    """Such pieces are not tokenized one by one, so every sign is tried at every place of some."""
    signs = [chr(point) for point in range(33, 127) if not chr(point).isalnum()]
    words = ["a", "Www", "7", "b7", "it's", "x" * 24, "X" * 25, "7'7", "a''b"]
    pieces = [
        piece
        for word, sign, other in itertools.product(words, signs, ["", "'", ".", "_", "!!"])
        for piece in (
            sign + other + word,
            word + sign + other,
            word + other + sign,
            f"a{sign}{word}",
        )
    ]
    dropped: Counter[tuple[str, str]] = Counter()
    whole = [tokenize(piece, dropped) for piece in pieces]
    assert tokenize_all(pieces) == (whole, dropped)


def test_pieces_are_looked_at_again_where_they_are_too_many_to_remember(monkeypatch):
    monkeypatch.setattr(tokens_module, "_MOST_KNOWN", 2)
    tokenizer, dropped = Tokenizer(), Counter()
    for text, words in [("b a 7", ["b", "a"]), ("a c 7", ["a", "c"]), ("b 7 b", ["b", "b"])]:
        assert tokenizer.words(pa.array([text]), dropped).to_pylist() == [words]
    assert dropped == {("no letter", "7"): 3}
