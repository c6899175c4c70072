"""A server that chooses the trie so that a client's report tells most about its word.

A client finds which of the broadcast candidates is its word's prefix, and reports that candidate,
or the dummy if none is. So a trie is a map from words to values, and the server has the choice:

each
    every word in question is below a candidate of its own, as in an honest layer.
single
    one prefix alone is kept, that of the word which is likeliest so far: all others are the dummy.
halves
    every second word, the likeliest first, is below one candidate, the others are the dummy: two
    words that are as likely are told apart.

A client that answers in t rounds is asked by tries that depend on its earlier reports. The attacker
knows the stated distribution of reports and guesses by Bayes; all words are equally likely before.

**Exact success.** Under "each" all tries are the same: t reports are t independent kinds. Under the
others only the likelihoods of the words count, in descending order, as which word is likeliest
changes nothing. So states are sorted log-likelihoods with a probability, and a report moves each
state to as many as there are kinds of reports. For two words and Subset
Selection of d of s values, one report is right with (1 + p - q) / 2: it holds the one value alone
with p (s - d) / (s - 1), the other alone with (1 - p) d / (s - 1), whose difference is p - q.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from fedhh.accounting.empirical_epsilon import check_levels
from fedhh.accounting.inference.evidence import MOST_KINDS, Evidence, TooManyKindsError
from fedhh.accounting.inference.success import GuessesMade, InferenceVerdict, Success
from fedhh.oracles.base import FrequencyOracle
from fedhh.validation import InputError, require_at_least, require_choice

Floats = npt.NDArray[np.float64]
Strategy = Literal["each", "single", "halves"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

_DIGITS = 9


def infer_word(
    oracle: FrequencyOracle,
    *,
    words: int,
    rounds: int,
    num_clients: int,
    rng: np.random.Generator,
    stated: float | None = None,
    strategies: Sequence[Strategy] = STRATEGIES,
    confidence: float = 0.999,
) -> InferenceVerdict:
    """Return how often a server that chooses the trie guesses which of some words a client holds.

    Args:
        oracle: The randomizer, over the values of a layer, the last of which is the dummy.
        words: m, the words in question, below ``domain_size``.
        rounds: t, in which the client answers.
        num_clients: Simulated, for each strategy.
        rng: Source of words and coins.
        stated: Local epsilon of a report; the oracle's own if None.
        strategies: Of the server.
        confidence: Of the verdict.

    Raises:
        InputError: A value is out of range.
    """
    check_levels(0.0, confidence)
    require_at_least(2, words=words)
    require_at_least(1, rounds=rounds, num_clients=num_clients)
    if words >= oracle.domain_size:
        raise InputError(
            f"Expected words < domain_size={oracle.domain_size}, one value is the dummy, got "
            f"words={words}."
        )
    epsilon = oracle.epsilon if stated is None else stated
    successes = []
    for strategy in strategies:
        require_choice(STRATEGIES, strategy=strategy)
        exact = exact_successes(oracle, strategy, words=words, rounds=rounds)
        made = _simulated(
            oracle, strategy, words=words, rounds=rounds, num_clients=num_clients, rng=rng
        )
        successes += [
            Success(
                attack=strategy,
                reports=number,
                hypotheses=words,
                stated=epsilon,
                exact=exact[number - 1],
                made=guesses,
            )
            for number, guesses in enumerate(made, start=1)
        ]
    return InferenceVerdict(
        audited="which word a client holds, by a trie that the server chose",
        successes=successes,
        confidence=confidence,
        facts={
            "oracle": type(oracle).__name__,
            "local_epsilon": epsilon,
            "domain_size": oracle.domain_size,
            "words": words,
        },
    )


def exact_successes(
    oracle: FrequencyOracle, strategy: Strategy, *, words: int, rounds: int
) -> list[float | None]:
    """Return the chance of a right guess after 1 .. t rounds; None from where on it is not exact.

    Args:
        oracle: As it states its distribution.
        strategy: Of the server.
        words: m.
        rounds: t.
    """
    found: list[float | None] = []
    states = {(0.0,) * words: 1.0}
    try:
        one = Evidence.of_oracle(oracle, _values(oracle, strategy, words))
        heard = one
        while len(found) < rounds:
            if strategy == "each":
                heard = heard.followed_by(one) if found else one
                found.append(heard.success)
            else:
                states = _next_states(states, one, _values_by_rank(strategy, words))
                found.append(
                    float(sum(mass * _posterior(state)[0] for state, mass in states.items()))
                )
    except TooManyKindsError:
        pass
    return found + [None] * (rounds - len(found))


def _values(oracle: FrequencyOracle, strategy: Strategy, words: int) -> list[int]:
    """Return the values that some word is mapped to."""
    dummy = oracle.domain_size - 1
    return list(range(words)) if strategy == "each" else [0, dummy]


def _values_by_rank(strategy: Strategy, words: int) -> npt.NDArray[np.intp]:
    """Return which of `_values` a word has, the likeliest word first."""
    ranks = np.arange(words)
    if strategy == "each":
        return ranks
    return (ranks > 0 if strategy == "single" else ranks % 2).astype(np.intp)


def _posterior(state: Sequence[float]) -> Floats:
    weights = np.exp(np.asarray(state) - max(state))
    return np.asarray(weights / weights.sum())


def _next_states(
    states: dict[tuple[float, ...], float], evidence: Evidence, by_rank: npt.NDArray[np.intp]
) -> dict[tuple[float, ...], float]:
    """Return the states after one more report, with their probabilities."""
    following: dict[tuple[float, ...], float] = {}
    likelihoods = evidence.chances[by_rank]
    with np.errstate(divide="ignore"):
        logs = np.log(likelihoods)
    for state, mass in states.items():
        reached = mass * (_posterior(state) @ likelihoods)
        moved = np.asarray(state)[:, None] + logs
        moved = np.sort(moved - moved.max(axis=0), axis=0)[::-1].round(_DIGITS) + 0.0
        for after, chance in zip(moved.T.tolist(), reached.tolist(), strict=True):
            key = tuple(after)
            following[key] = following.get(key, 0.0) + chance
        if len(following) > MOST_KINDS // 10:
            raise TooManyKindsError("sequences of reports")
    return following


def _simulated(
    oracle: FrequencyOracle,
    strategy: Strategy,
    *,
    words: int,
    rounds: int,
    num_clients: int,
    rng: np.random.Generator,
) -> Iterator[GuessesMade]:
    """Yield how many guesses are right after each round, by reports that the oracle makes."""
    values = np.array(_values(oracle, strategy, words), dtype=np.int64)
    by_rank = _values_by_rank(strategy, words)
    value_of = np.tile(by_rank, (num_clients, 1))
    clients = np.arange(num_clients)
    held = rng.integers(words, size=num_clients)
    scores = np.zeros((num_clients, words))
    for _ in range(rounds):
        if strategy != "each":
            # By ranks of words, the likeliest first; ties by chance, anew in every round.
            order = np.lexsort((rng.random(scores.shape), -scores), axis=1)
            np.put_along_axis(value_of, order, np.broadcast_to(by_rank, order.shape), axis=1)
        reports = oracle.privatize(values[value_of[clients, held]], rng=rng)
        logs = oracle.log_probs(reports, values)
        scores += np.take_along_axis(logs, value_of, axis=1)
        scores = (scores - scores.max(axis=1, keepdims=True)).round(_DIGITS)
        best = scores == 0
        # A tie is broken by chance.
        guesses = np.where(best, rng.random(scores.shape), -math.inf).argmax(axis=1)
        yield GuessesMade(right=int((guesses == held).sum()), clients=num_clients)
