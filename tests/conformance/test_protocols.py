import pytest

from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.pem import Pem
from fedhh.server.sfp import Sfp
from fedhh.server.triehh import TrieHH
from fedhh.testing import LETTERS, protocol_checks, protocol_trial, small_population

POPULATION = small_population(3_000)

TRIE = {"alphabet": LETTERS, "clients_per_layer": 300, "depth": 4, "eta_max": 8}
PROTOCOLS = {
    "ldp-triehh": LdpTrieHH(**TRIE, local_epsilon=6.0, max_items=2),
    "ldp-triehh-oue-unpadded": LdpTrieHH(
        **TRIE, local_epsilon=4.0, oracle="oue", pad=False, skip_free_layers=False
    ),
    "ldp-triehh-reusing": LdpTrieHH(**TRIE, local_epsilon=6.0, reuse_clients=True, ties="paper"),
    "sfp": Sfp(
        alphabet=LETTERS,
        clients_per_layer=1_500,
        length=4,
        num_puzzles=16,
        word_hashes=16,
        word_cells=64,
        fragment_hashes=16,
        fragment_cells=64,
    ),
    "pem-olh": Pem(alphabet=LETTERS, clients_per_layer=300, length=5, step=1, keep=5, max_items=2),
    "pem-cms": Pem(
        alphabet=LETTERS,
        clients_per_layer=300,
        length=5,
        step=1,
        keep=5,
        oracle="cms",
        num_hashes=16,
    ),
    "triehh": TrieHH(alphabet=LETTERS, clients_per_layer=300, threshold=6, depth=4),
}
TRIALS = {name: protocol_trial(each, population=POPULATION) for name, each in PROTOCOLS.items()}


@pytest.mark.parametrize(
    ("name", "check"),
    [(name, check) for name, trial in TRIALS.items() for check in protocol_checks(trial)],
    ids=str,
)
def test_a_protocol_passes(name, check):
    check(TRIALS[name], seed=3)
