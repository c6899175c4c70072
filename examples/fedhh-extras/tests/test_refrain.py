from fedhh_extras.refrain import Refrain

import fedhh


def test_clients_hold_words_of_the_refrain_and_the_seed_decides_which():
    first, again, other = (Refrain(500, seed=seed) for seed in (1, 1, 2))
    assert first.fingerprint() == again.fingerprint() != other.fingerprint()
    assert first.num_clients == 500
    assert int(first.word_counts().typed.sum()) == 1_500


def test_its_frequent_word_is_found():
    protocol = fedhh.LdpTrieHH(passes=1, depth=4, eta_max=10, max_items=3)
    result = fedhh.simulate(protocol, Refrain(4_000, seed=0), seed=0)
    assert result.discoveries["word"].iloc[0] == "la"
