from __future__ import annotations

import pandas as pd
import pytest

import fedhh
from fedhh.clients.reading.columns import Layout
from fedhh.clients.reading.sources import read_file
from fedhh.experiments.config.load import load_config
from fedhh.experiments.config.population import build_population
from fedhh.experiments.run.run import run_config
from tests.clients.reading.refusals import read_population, tokenize_all

ACUTE, COMPOSED = "cafe\u0301", "caf\u00e9"
KSHI = "\u0915\u094d\u0937\u093f"


def _counts(population):
    words, typed = population.lexicon.words, population.word_counts().typed.tolist()
    return dict(zip(words, typed, strict=True))


def test_two_spellings_of_the_same_symbols_are_one_word(tmp_path):
    path = tmp_path / "words.csv"
    path.write_text(f"user,word,count\n1,{ACUTE},2\n1,{COMPOSED},3\n2,{ACUTE},1\n2,B,1\n", "utf-8")
    population = read_population(path)
    assert _counts(population) == {"B": 1, COMPOSED: 6}
    assert population.word_counts().holders.tolist() == [1, 2]


@pytest.mark.parametrize(("language", "dotless"), [("tr", "\u0131"), ("az", "\u0131"), ("en", "i")])
def test_case_follows_the_language(tmp_path, language, dotless):
    texts = tmp_path / "texts.csv"
    texts.write_text("user,text\n1,ILK DIL. ilk\n", "utf-8")
    expected = {f"{dotless}lk": 1, f"d{dotless}l": 1}
    expected["ilk"] = expected.get("ilk", 0) + 1
    layout = Layout(language=language)
    assert _counts(read_file(texts, layout)) == expected
    frame = pd.DataFrame({"user": [1, 1], "word": ["ILK", "\u0130LK"]})
    words = fedhh.population_from(frame, fold_case=True, language=language, known="none")
    other = "ilk" if language != "en" else "i\u0307lk"
    assert set(words.lexicon.words) == {f"{dotless}lk", other}
    config = load_config(
        data=texts,
        settings=[
            f"population.language={language}",
            "population.known=none",
            "population.alphabet=abc",
        ],
    )
    assert config.population.language == language


def test_a_token_is_as_long_as_its_symbols():
    longest = KSHI * 24
    words, dropped = tokenize_all([longest, KSHI * 25])
    assert words == [[longest], []]
    assert dropped == {("too long", KSHI * 25): 1}


@pytest.mark.slow("::test_a_token_is_as_long_as_its_symbols")
def test_a_run_finds_words_of_any_script(tmp_path):
    held = [KSHI + "\u092a", "\ud55c\uad6d\uc5b4", "\u0643\u064e\u062a\u064e\u0628\u064e", ACUTE]
    held += [
        "\U0001f468\u200d\U0001f469\u200d\U0001f467\U0001f44d\U0001f3fd",
        "\U0001f1e9\U0001f1ea",
    ]
    rows = [f"{user},{word}" for user in range(3_000) for word in [held[user % len(held)]]]
    path, public = tmp_path / "words.csv", tmp_path / "public.txt"
    path.write_text("\n".join(["user,word", *rows]), "utf-8")
    public.write_text("\n".join([*held, "abc"]), "utf-8")
    wanted = {*held[:3], COMPOSED, *held[4:]}
    for alphabet in (
        ["population.alphabet=from-data"],
        ["population.alphabet=auto", f"population.alphabet_source={public}"],
    ):
        config = load_config(
            data=path,
            settings=[
                *alphabet,
                "population.known=none",
                "protocol.depth=5",
                "privacy.local_epsilon=12",
            ],
        )
        result = run_config(config, build_population(config.population, seed=0))[1]
        assert wanted <= set(result.discoveries["word"])
