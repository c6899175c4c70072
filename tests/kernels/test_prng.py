import numpy as np

from fedhh.kernels.prng import LANES, aligned_empty, bound_in_place, fill_words, lane_states
from fedhh.testing import ALPHA, distribution_p_value, follows_distribution
from tests.every import every
from tests.kernels.drawing_reference import xoshiro


def test_the_reference_gives_the_published_first_words():
    # The authors' C program from the state 1, 2, 3, 4.
    state = [1, 2, 3, 4]
    assert [xoshiro(state) for _ in range(3)] == [41943041, 58720359, 3588806011781223]


def test_every_lane_is_a_xoshiro_generator_of_its_own():
    states = lane_states(np.random.default_rng(0))
    reference = [[int(word) for word in column] for column in states.T]
    out = aligned_empty(5 * LANES, np.uint64)
    fill_words(states, out[: 2 * LANES])
    fill_words(states, out[2 * LANES :])
    for row in out.reshape(5, LANES).tolist():
        assert row == [xoshiro(state) for state in reference]
    assert [[int(word) for word in column] for column in states.T] == reference


def test_states_differ_between_lanes_and_seeds_and_are_never_zero():
    first, second = (lane_states(np.random.default_rng(seed)) for seed in (1, 2))
    assert len(set(np.concatenate([first, second], axis=1).ravel().tolist())) == 8 * LANES
    assert (first[0] & 1).all()


def test_work_arrays_start_on_a_cache_line():
    for size in (1, 7, 1000):
        array = aligned_empty(size, np.uint32)
        assert array.shape == (size,)
        assert array.ctypes.data % 64 == 0


@every("bound", [1, 2, 3, 1000, 2**16, 2**31, 2**31 + 1, 3 * 2**30, 2**32 - 1])
def test_bounded_draws_equal_lemires_method_on_plain_integers(bound):
    rng = np.random.default_rng(3)
    words = rng.integers(0, 2**32, size=4_000, dtype=np.uint32)
    # The least words are those that the method rejects or just keeps.
    words[:64] = np.arange(64)
    draws = words.copy()
    bound_in_place(draws.view(np.uint64), np.uint64(bound))
    threshold = 2**32 % bound
    for word, draw in zip(words.tolist(), draws.tolist(), strict=True):
        rejected = (word * bound) % 2**32 < threshold
        assert draw == (bound if rejected else word * bound // 2**32)


def test_kept_words_are_shared_out_equally():
    # At this bound the plain product gives every third value twice as many of the 2**32 words.
    bound = 3 * 2**30
    words = np.random.default_rng(4).integers(0, 2**32, size=60_000, dtype=np.uint32)
    product = words.astype(np.uint64) * np.uint64(bound) >> np.uint64(32)
    bound_in_place(words.view(np.uint64), np.uint64(bound))
    distribution = dict.fromkeys(range(3), 1 / 3)
    assert follows_distribution((words[words < bound] % 3).tolist(), distribution)
    assert distribution_p_value((product % 3).tolist(), distribution) < ALPHA
