from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import fedhh
from fedhh.clients.clients import Clients
from fedhh.clients.drawn import DrawnClients
from fedhh.clients.known_words import removal_facts
from fedhh.experiments.config import population
from fedhh.experiments.config.client_file import load_file
from fedhh.experiments.config.population import build_population
from fedhh.experiments.config.schema import PopulationConfig
from fedhh.experiments.run.run import simulate
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.validation import InputError
from tests.thinned import thinned

pytestmark = pytest.mark.usefixtures("virtual_lexicon")

SAMPLED = ["missed_mass"]


def build(**changes):
    fields = {"source": "keyboard60d", "clients": 9_000, **changes}
    return build_population(PopulationConfig(**fields), seed=4)


@pytest.mark.slow(
    "tests/clients/test_drawn.py::test_a_run_gives_the_same_bits_as_on_the_stored_population"
)
def test_a_virtual_population_gives_the_result_of_the_stored_one():
    protocol = LdpTrieHH(clients_per_layer=800, depth=3, passes=1, eta_max=300, local_epsilon=10.0)
    stored, virtual = (
        simulate(protocol, build(virtual=virtual), seed=1) for virtual in (False, True)
    )
    pd.testing.assert_frame_equal(stored.discoveries, virtual.discoveries)
    pd.testing.assert_frame_equal(
        stored.layers.drop(columns=SAMPLED), virtual.layers.drop(columns=SAMPLED)
    )
    assert (stored.discoveries["true_clients"] > 0).sum() > 10
    # Both lexicons are whole here, but for what the sample of rare words says: of all clients.
    np.testing.assert_allclose(stored.layers[SAMPLED], virtual.layers[SAMPLED], rtol=1e-9)
    # Words outside the lexicon count as contributions, but not as items.
    metrics, redrawn = stored.metrics.to_dict(), virtual.metrics.to_dict()
    words = metrics.pop("target_words"), redrawn.pop("target_words")
    assert words[0] > words[1]
    items = metrics.pop("item_coverage"), redrawn.pop("item_coverage")
    assert items[0] * words[0] == pytest.approx(items[1] * words[1])
    assert set(metrics) == set(redrawn)
    for name, value in metrics.items():
        same = value if value is None else pytest.approx(value, rel=1e-9)
        assert redrawn[name] == same, name
    assert virtual.population["counted_clients"] == 9_000
    assert virtual.population["coverage_std_error_at_most"] == 0.0


def test_few_clients_are_virtual_where_few_tokens_are_stored(monkeypatch):
    few = {"source": "chat", "clients": 50}
    stored = build(**few)
    assert isinstance(stored, Clients)
    monkeypatch.setattr("fedhh.experiments.config.population.STORED_TOKENS", 10)
    virtual = build(**few)
    assert isinstance(virtual, DrawnClients)
    assert isinstance(build(**few, virtual=False), Clients)
    facts, same = (removal_facts(each, "scowl70") for each in (stored, virtual))
    for name in ("tokens", "known_tokens", "known_token_share"):
        assert facts[name] == same[name]
    assert set(facts) == set(same)


@pytest.mark.slow("::test_few_clients_are_virtual_where_few_tokens_are_stored")
def test_large_synthetic_populations_are_virtual_and_small_ones_are_stored(monkeypatch):
    assert isinstance(build(), Clients)
    monkeypatch.setattr("fedhh.experiments.config.population.STORED_TOKENS", 500_000)
    assert isinstance(build(), DrawnClients)
    assert isinstance(build(source="chat"), Clients)
    assert isinstance(build(virtual=False), Clients)


@pytest.mark.slow("::test_few_clients_are_virtual_where_few_tokens_are_stored")
def test_facts_about_known_words_agree():
    stored, virtual = (
        removal_facts(build(virtual=virtual), "scowl70") for virtual in (False, True)
    )
    assert stored["tokens"] == virtual["tokens"] > 0
    assert stored["known_tokens"] == virtual["known_tokens"] == 0
    assert stored["known_token_share"] == virtual["known_token_share"] == 0.0
    assert set(stored) == set(virtual)


def test_a_list_of_known_words_needs_a_stored_population(tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("lol\n")
    with pytest.raises(InputError, match=r"population\.known = .*set population\.virtual = false"):
        build(virtual=True, known=str(words))


def test_a_file_cannot_be_virtual(tmp_path):
    with pytest.raises(InputError, match=r"population\.virtual = true: .* remove the key"):
        build(source=str(tmp_path / "a.csv"), clients=None, virtual=True)


@pytest.mark.parametrize("source", thinned(["zipf", "wordfreq-tail", "chat"], keep=2))
def test_python_makes_every_synthetic_population_that_a_configuration_can_name(source: str):
    population = fedhh.synthetic_population(source, 400, seed=4)
    same = build(source=source, clients=400, known="none", virtual=False)
    assert population.name == same.name
    assert population.lexicon.words == same.lexicon.words
    np.testing.assert_array_equal(population.items.offsets, same.items.offsets)
    np.testing.assert_array_equal(population.items.word_ids, same.items.word_ids)
    np.testing.assert_array_equal(population.items.counts, same.items.counts)


def test_an_unknown_population_is_refused_with_all_known_ones():
    known = r"did you mean 'zipf'\? Known: chat, .*, wordfreq-tail, zipf\."
    with pytest.raises(InputError, match=f"Unknown preset 'zip'; {known}"):
        fedhh.synthetic_population("zip", 400, seed=4)


def users_file(tmp_path, number: int = 50):
    rows = ["user,word,count", *(f"u{i},w{i},{i + 1}" for i in range(number)), "u3,shared,2"]
    (tmp_path / "p.csv").write_text("\n".join(rows) + "\n")
    return str(tmp_path / "p.csv")


def held(population) -> list[str]:
    return sorted(population.lexicon.words)


def test_clients_of_a_file_are_a_sample_by_the_seed_without_known_words(tmp_path):
    source = users_file(tmp_path)
    (tmp_path / "known.txt").write_text("shared\n")

    def sample(clients: int | None, seed: int):
        config = PopulationConfig(source=source, clients=clients, known=str(tmp_path / "known.txt"))
        return build_population(config, seed=seed)

    one = sample(20, 1)
    assert one.num_clients == 20
    assert one.drawn_from == 50
    assert one.name == "p.csv, a random 20 of 50 users"
    assert len(held(one)) == 20
    facts = removal_facts(one, "none")
    assert facts["known"] == "known.txt"
    assert facts["tokens"] == one.word_counts().typed.sum() + facts["known_tokens"]
    # A user keeps its own words and counts.
    assert [int(word[1:]) + 1 for word in one.lexicon.words] == one.word_counts().typed.tolist()
    assert held(sample(20, 1)) == held(one)
    assert held(sample(20, 2)) != held(one)
    assert set(held(sample(10, 1))) < set(held(one))
    everybody, whole = sample(50, 1), sample(None, 1)
    assert removal_facts(whole, "none")["known_tokens"] == 2
    assert held(everybody) == held(whole)
    assert everybody.name == whole.name == "p.csv"
    assert everybody.drawn_from is whole.drawn_from is None
    with pytest.raises(InputError, match=r"population.clients <= 50, the users of p.csv, got .*51"):
        sample(51, 1)


def test_every_user_is_drawn_equally_often(tmp_path):
    config = PopulationConfig(source=users_file(tmp_path, 10), clients=3, known="none")
    everybody = load_file(config)
    drawn: Counter[tuple[str, ...]] = Counter()
    seeds = 400
    for seed in range(seeds):
        words = held(build_population(config, seed=seed, read=lambda _: everybody))
        drawn[tuple(word for word in words if word != "shared")] += 1
    # Who follow each other from each user on are a sample, and each user is in three of them.
    assert Counter(word for sample in drawn for word in sample) == {f"w{i}": 3 for i in range(10)}
    counts = np.array(list(drawn.values()))
    assert len(counts) == 10
    assert ((counts - seeds / 10) ** 2).sum() / (seeds / 10) < 60.7  # 1e-9 of chi-square with 9


def test_clients_drawn_when_asked_are_counted_for_the_facts_about_known_words():
    config = PopulationConfig(source="chat", clients=1_000, virtual=True)
    population = build_population(config, seed=0)
    facts = removal_facts(population, config.known)
    assert (facts["known"], facts["known_tokens"]) == ("scowl70", 0)
    assert facts["tokens"] > facts["words"] > 0


def test_a_dataframe_gives_the_population_of_its_file(tmp_path):
    frame = pd.DataFrame(
        {"user": ["ann", "bob", "ann"], "word": ["lol", "brb", "house"], "count": [2, 1, 1]}
    )
    frame.to_csv(tmp_path / "words.csv", index=False)
    read = fedhh.load_population(tmp_path / "words.csv")
    made = fedhh.population_from(frame.set_axis([7, 7, 7]), name="words.csv")
    assert list(made.lexicon.words) == list(read.lexicon.words) == ["brb", "lol"]
    assert np.array_equal(made.items.offsets, read.items.offsets)
    assert np.array_equal(made.items.counts, read.items.counts)
    assert made.name == read.name
    renamed = fedhh.population_from(frame.rename(columns={"user": "who"}), columns={"user": "who"})
    assert np.array_equal(renamed.items.offsets, read.items.offsets)
    texts = pd.DataFrame({"user": [1, 2], "text": ["lol lol", "brb!"]})
    assert list(fedhh.population_from(texts).lexicon.words) == ["brb", "lol"]


class _Exported:
    """A frame of some library that exports Arrow's interface, as that of polars."""

    def __init__(self, table):
        self._table, self.columns = table, table.column_names

    def select(self, names):
        return _Exported(self._table.select(names))

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("kind", [_Exported, lambda table: table])
def test_frames_of_other_libraries_are_read_by_arrow(kind):
    # Versions of Arrow before 16 have no views.
    views = getattr(pa, "string_view", pa.large_string)
    words = pa.array(["lol", "brb", "lol"], views())
    users = pa.array(["ann", "bob", "ann"]).dictionary_encode()
    table = pa.table({"user": users, "word": words, "odd": [b"a", None, b"c"]})
    made = fedhh.population_from(kind(table))
    assert dict(zip(made.lexicon.words, made.word_counts().typed.tolist(), strict=True)) == {
        "brb": 1,
        "lol": 2,
    }
    texts = pa.table({"user": [1, 2], "text": ["lol lol", "brb!"]})
    assert list(fedhh.population_from(kind(texts)).lexicon.words) == ["brb", "lol"]


def test_of_a_dataframe_only_the_columns_that_are_needed_are_read():
    frame = pd.DataFrame({"user": ["ann", "bob"], "word": ["lol", "brb"]})
    others = pd.DataFrame([[2**70, 1j, 0], [1, 2j, "x"]], columns=["big", "odd", "odd"])
    made = fedhh.population_from(pd.concat([others, frame], axis=1))
    assert list(made.lexicon.words) == ["brb", "lol"]
    with pytest.raises(InputError, match="distinct columns in dataframe, got 'word' twice"):
        fedhh.population_from(pd.concat([frame, frame[["word"]]], axis=1))


def test_only_clients_that_are_drawn_when_asked_must_have_no_known_word(monkeypatch):
    looked_at = []
    monkeypatch.setattr(population, "_check_all_new", lambda model, config: looked_at.append(model))
    for virtual in (False, "auto"):
        population.check_known(PopulationConfig(source="chat", clients=10, virtual=virtual))
    assert looked_at == []
    population.check_known(PopulationConfig(source="chat", clients=10, virtual=True))
    assert len(looked_at) == 1
