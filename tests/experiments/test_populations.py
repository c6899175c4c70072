from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import fedhh
from fedhh.clients.population import StoredPopulation
from fedhh.clients.virtual import VirtualPopulation
from fedhh.experiments.config import PopulationConfig
from fedhh.experiments.populations import build_population
from fedhh.experiments.run import simulate
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.validation import InputError

SAMPLED = ["missed_mass"]


def build(**changes):
    fields = {"source": "keyboard60d", "clients": 9_000, **changes}
    return build_population(PopulationConfig(**fields), seed=4)


def test_a_virtual_population_gives_the_result_of_the_stored_one():
    protocol = LdpTrieHH(clients_per_layer=800, depth=7, passes=1, eta_max=300, local_epsilon=10.0)
    stored, virtual = (
        simulate(protocol, build(virtual=virtual)[0], seed=1) for virtual in (False, True)
    )
    pd.testing.assert_frame_equal(stored.discoveries, virtual.discoveries)
    pd.testing.assert_frame_equal(
        stored.layers.drop(columns=SAMPLED), virtual.layers.drop(columns=SAMPLED)
    )
    assert (stored.discoveries["true_clients"] > 0).sum() > 10
    # Both lexicons are whole here, but for what the sample of rare words says: of all clients.
    np.testing.assert_allclose(stored.layers[SAMPLED], virtual.layers[SAMPLED], rtol=1e-9)
    # Words beside the lexicon count as contributions, but not as items.
    words = stored.metrics.pop("target_words"), virtual.metrics.pop("target_words")
    assert words[0] > words[1]
    items = stored.metrics.pop("item_coverage"), virtual.metrics.pop("item_coverage")
    assert items[0] * words[0] == pytest.approx(items[1] * words[1])
    assert set(stored.metrics) == set(virtual.metrics)
    for name, value in stored.metrics.items():
        same = value if value is None else pytest.approx(value, rel=1e-9)
        assert virtual.metrics[name] == same, name
    assert virtual.population["counted_clients"] == 9_000
    assert virtual.population["coverage_std_error_at_most"] == 0.0


def test_large_synthetic_populations_are_virtual_and_small_ones_are_stored(monkeypatch):
    assert isinstance(build()[0], StoredPopulation)
    monkeypatch.setattr("fedhh.experiments.populations._STORED_TOKENS", 500_000)
    assert isinstance(build()[0], VirtualPopulation)
    assert isinstance(build(source="chat")[0], StoredPopulation)
    assert isinstance(build(virtual=False)[0], StoredPopulation)


def test_facts_about_known_words_agree():
    stored, virtual = (build(virtual=virtual)[1] for virtual in (False, True))
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


@pytest.mark.parametrize("source", ["zipf", "wordfreq-tail", "chat"])
def test_python_makes_every_synthetic_population_that_a_configuration_can_name(source: str):
    population = fedhh.synthetic_population(source, 400, seed=4)
    same, _ = build(source=source, clients=400, known="none", virtual=False)
    assert population.name == same.name
    assert population.lexicon.words == same.lexicon.words
    np.testing.assert_array_equal(population.items.offsets, same.items.offsets)
    np.testing.assert_array_equal(population.items.word_ids, same.items.word_ids)
    np.testing.assert_array_equal(population.items.counts, same.items.counts)


def test_an_unknown_population_is_refused_with_all_known_ones():
    known = r"did you mean 'zipf'\? Known: chat, .*, wordfreq-tail, zipf\."
    with pytest.raises(InputError, match=f"Unknown preset 'zip'; {known}"):
        fedhh.synthetic_population("zip", 400, seed=4)
