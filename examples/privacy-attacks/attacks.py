"""What a curious server guesses of a client from its reports, next to what local epsilon allows.

    python examples/privacy-attacks/attacks.py chosen-trie --local-epsilon 4 --domain-size 3
    python examples/privacy-attacks/attacks.py pool-inference --local-epsilon 4 --reports 1 4 16

Each table has the exact chance of a right guess, where reports differ in few ways, the share of
simulated ones that are right, by reports that the randomizer makes, and the most that epsilon
allows. Exit code 1 if guesses are right more often.

**chosen-trie**: the server maps words to candidates of a layer, or to the dummy, as it likes: each
word to a candidate of its own; the likeliest word alone; every second word, the likeliest first.

**pool-inference**: values fall into pools, such as skin tones of emoji, and a client draws from the
pool that it prefers with a chance, its polarization, else any value. Gadotti, Houssiau, Annamalai,
de Montjoye (2022), "Pool inference attacks on local differential privacy", USENIX Security.

**What is allowed.** One report: with m hypotheses, equally likely, the likeliest has a posterior of
at most E / (E + m - 1), E = e**epsilon. t reports: that of t epsilon; for two hypotheses the
majority of t randomized responses (Kairouz, Oh, Viswanath 2015, Theorem 3.3). A report about a draw
is one about the pool: mixtures have ratios of at most E, too.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from fedhh.arrays import Floats, Ints
from fedhh.audit import clopper_pearson
from fedhh.oracles import OracleSpec, SubsetSelection, make_oracle
from fedhh.oracles.base import FrequencyOracle
from fedhh.validation import (
    InputError,
    require_at_least,
    require_between,
    require_choice,
    require_epsilon,
)

STRATEGIES = ("each", "single", "halves")
MOST_KINDS = 100_000
MOST_VALUES_OF_SUBSETS = 10
DIGITS = 9
AT_ONCE = 2_000_000
ROUNDING = 1e-9


class TooManyKindsError(ValueError):
    """Reports differ in more ways than are told apart exactly."""


def allowed_success(epsilon: float, hypotheses: int, reports: int = 1) -> float:
    """Return the largest chance of a right guess among equally likely hypotheses.

    >>> round(allowed_success(1.0, 2), 4), round(allowed_success(1.0, 2, reports=3), 4)
    (0.7311, 0.8219)
    """
    require_epsilon(local_epsilon=epsilon)
    require_at_least(2, hypotheses=hypotheses)
    composed = float(special.expit(reports * epsilon - math.log(hypotheses - 1)))
    if hypotheses > 2:
        return composed
    votes = stats.binom(reports, special.expit(epsilon))
    majority = votes.sf(reports // 2) + (0 if reports % 2 else votes.pmf(reports // 2) / 2)
    return float(min(majority * (1 + ROUNDING), composed))


@dataclass(frozen=True, kw_only=True)
class Success:
    """How often guesses are right after some reports of a client."""

    attack: str
    reports: int
    hypotheses: int
    epsilon: float
    exact: float | None
    right: int
    clients: int

    @property
    def allowed(self) -> float:
        """The most that the stated epsilon of a report allows."""
        return allowed_success(self.epsilon, self.hypotheses, self.reports)

    def refuted(self, error: float) -> bool:
        """Return whether guesses were right more often than allowed; wrong with ``error``."""
        least = float(clopper_pearson(self.right, self.clients, error=error)[0])
        too_much = self.exact is not None and self.exact > self.allowed * (1 + ROUNDING)
        return too_much or least > self.allowed


def of_kinds(chances: Floats) -> Floats:
    """Return ``(m, kinds)`` chances of ``(m, n)``: reports of equal likelihood ratios are one."""
    possible = chances[:, chances.max(axis=0) > 0]
    with np.errstate(divide="ignore"):
        ratios = np.maximum(np.log(possible / possible.max(axis=0)), -1e9).round(DIGITS) + 0.0
    kind = np.zeros(ratios.shape[1], dtype=np.int64)
    for row in ratios:
        _, place = np.unique(row, return_inverse=True)
        _, kind = np.unique(kind * (place.max() + 1) + place, return_inverse=True)
    if kind.max() >= MOST_KINDS:
        raise TooManyKindsError(f"{kind.max() + 1:,} kinds of reports")
    return np.stack([np.bincount(kind, weights=row) for row in possible])


def evidence(oracle: FrequencyOracle, values: Sequence[int]) -> Floats:
    """Return ``(m, kinds)``: the chance of each kind of report about one of m values.

    Of Subset Selection in closed form: a report holds j of the m values, and C(s - m, d - j)
    reports hold the same ones. Of other oracles by enumeration.
    """
    if not isinstance(oracle, SubsetSelection):
        if oracle.report_bits > math.log2(MOST_KINDS * 4):
            raise TooManyKindsError(f"2**{oracle.report_bits:.0f} reports")
        space = oracle.report_space()
        return of_kinds(np.exp([oracle.log_prob(space, value) for value in values]))
    number, size, subset = len(values), oracle.domain_size, oracle.d
    if number > MOST_VALUES_OF_SUBSETS:
        raise TooManyKindsError(f"2**{number} kinds of reports")
    own = math.comb(size - 1, subset - 1), math.comb(size - 1, subset)
    patterns = np.array(list(itertools.product((False, True), repeat=number)))

    def ways(held: int, of: int) -> float:
        # Ratios of whole numbers: a domain may have more subsets than a double counts.
        if not 0 <= subset - held <= size - number:
            return 0.0
        return math.comb(size - number, subset - held) / of

    shares = np.array([[ways(held, each) for each in own] for held in patterns.sum(axis=1)])
    chances = np.where(patterns, shares[:, :1] * oracle.p, shares[:, 1:] * (1 - oracle.p))
    return of_kinds(chances.T)


def followed_by(one: Floats, other: Floats) -> Floats:
    """Return the evidence of two that are independent given the hypothesis."""
    if one.shape[1] * other.shape[1] > 10 * MOST_KINDS:
        raise TooManyKindsError("sequences of reports")
    return of_kinds((one[:, :, None] * other[:, None, :]).reshape(len(one), -1))


def success_of(chances: Floats) -> float:
    """Return how often the likeliest of equally likely hypotheses is the true one."""
    return float(chances.max(axis=0).sum() / len(chances))


def exact_repeated(one: Floats, reports: Sequence[int]) -> list[float | None]:
    """Return the success after so many reports, ascending; None from where on it is not exact."""
    found: list[float | None] = []
    try:
        heard, number = one, 1
        for wanted in reports:
            while number < wanted:
                heard, number = followed_by(heard, one), number + 1
            found.append(success_of(heard))
    except TooManyKindsError:
        pass
    return found + [None] * (len(reports) - len(found))


def by_rank(strategy: str, words: int) -> Ints:
    """Return which value each word is mapped to, the likeliest word first."""
    ranks = np.arange(words)
    return {"each": ranks, "single": np.minimum(ranks, 1), "halves": ranks % 2}[strategy]


def exact_trie(
    oracle: FrequencyOracle, strategy: str, *, words: int, rounds: int
) -> list[float | None]:
    """Return the success of a chosen trie after each round.

    Under "each" all tries are the same. Under the others only likelihoods count, in descending
    order: states are sorted log-likelihoods, and a report moves each to as many as it has kinds.
    """
    found: list[float | None] = []
    try:
        if strategy == "each":
            return exact_repeated(evidence(oracle, range(words)), range(1, rounds + 1))
        with np.errstate(divide="ignore"):
            one = evidence(oracle, [0, oracle.domain_size - 1])[by_rank(strategy, words)]
            logs = np.log(one)
        states = {(0.0,) * words: 1.0}
        for _ in range(rounds):
            following: dict[tuple[float, ...], float] = {}
            for state, mass in states.items():
                reached = mass * (special.softmax(state) @ one)
                moved = np.asarray(state)[:, None] + logs
                moved = np.sort(moved - moved.max(axis=0), axis=0)[::-1].round(DIGITS) + 0.0
                for after, chance in zip(map(tuple, moved.T.tolist()), reached, strict=True):
                    following[after] = following.get(after, 0.0) + float(chance)
            if len(following) > MOST_KINDS // 10:
                raise TooManyKindsError("sequences of reports")
            states = following
            found.append(sum(mass * special.softmax(each)[0] for each, mass in states.items()))
    except TooManyKindsError:
        pass
    return found + [None] * (rounds - len(found))


def simulated_trie(
    oracle: FrequencyOracle,
    strategy: str,
    *,
    words: int,
    rounds: int,
    num_clients: int,
    rng: np.random.Generator,
) -> Iterator[int]:
    """Yield how many guesses are right after each round, by reports that the oracle makes."""
    values = np.arange(words) if strategy == "each" else np.array([0, oracle.domain_size - 1])
    ranks = by_rank(strategy, words)
    value_of = np.tile(ranks, (num_clients, 1))
    held = rng.integers(words, size=num_clients)
    scores = np.zeros((num_clients, words))
    for _ in range(rounds):
        if strategy != "each":
            # By ranks of words, the likeliest first; ties by chance, anew in every round.
            order = np.lexsort((rng.random(scores.shape), -scores), axis=1)
            np.put_along_axis(value_of, order, np.broadcast_to(ranks, order.shape), axis=1)
        reports = oracle.privatize(values[value_of[np.arange(num_clients), held]], rng=rng)
        scores += np.take_along_axis(oracle.log_probs(reports, values), value_of, axis=1)
        yield num_right(scores, held, rng)


def num_right(scores: Floats, held: Ints, rng: np.random.Generator) -> int:
    """Return how many clients' likeliest hypothesis is theirs, ties broken by chance."""
    best = scores >= scores.max(axis=1, keepdims=True) - 10.0**-DIGITS
    return int((np.where(best, rng.random(scores.shape), -1).argmax(axis=1) == held).sum())


def infer_word(
    oracle: FrequencyOracle,
    *,
    words: int,
    rounds: int,
    num_clients: int,
    rng: np.random.Generator,
    stated: float | None = None,
    strategies: Sequence[str] = STRATEGIES,
) -> list[Success]:
    """Return how often a server that chooses the trie guesses which of some words a client holds.

    The oracle is over the values of a layer, the last of which is the dummy.
    """
    require_at_least(2, words=words)
    require_at_least(1, rounds=rounds, num_clients=num_clients)
    if words >= oracle.domain_size:
        raise InputError(
            f"Expected words < domain_size={oracle.domain_size}, one value is the dummy, got "
            f"words={words}."
        )
    found = []
    for strategy in strategies:
        require_choice(STRATEGIES, strategy=strategy)
        exact = exact_trie(oracle, strategy, words=words, rounds=rounds)
        made = simulated_trie(
            oracle, strategy, words=words, rounds=rounds, num_clients=num_clients, rng=rng
        )
        found += [
            Success(
                attack=strategy,
                reports=number,
                hypotheses=words,
                epsilon=stated or oracle.epsilon,
                exact=exact[number - 1],
                right=right,
                clients=num_clients,
            )
            for number, right in enumerate(made, start=1)
        ]
    return found


@dataclass(frozen=True, kw_only=True)
class Pools:
    """Pools of as many values each; pool j has the values j size .. (j + 1) size - 1."""

    num_pools: int
    pool_size: int
    polarization: float = 1.0

    def __post_init__(self) -> None:
        require_at_least(2, num_pools=self.num_pools)
        require_at_least(1, pool_size=self.pool_size)
        require_between(0, 1, polarization=self.polarization)

    @property
    def num_values(self) -> int:
        return self.num_pools * self.pool_size

    @property
    def weights(self) -> Floats:
        """``(m, values)``: chance of each value under each preferred pool."""
        own = np.repeat(np.eye(self.num_pools), self.pool_size, axis=1) / self.pool_size
        return self.polarization * own + (1 - self.polarization) / self.num_values

    def draw(self, pools: Ints, *, rng: np.random.Generator) -> Ints:
        """Return ``(n,)`` one value for each client, given ``(n,)`` the pools that they prefer."""
        on_purpose = rng.random(len(pools)) < self.polarization
        own = pools * self.pool_size + rng.integers(self.pool_size, size=len(pools))
        return np.where(on_purpose, own, rng.integers(self.num_values, size=len(pools)))


def infer_pool(
    oracle: FrequencyOracle,
    pools: Pools,
    *,
    reports: Sequence[int],
    num_clients: int,
    rng: np.random.Generator,
    stated: float | None = None,
) -> list[Success]:
    """Return how often an attacker guesses which pool a client prefers, by number of reports."""
    require_at_least(1, num_clients=num_clients)
    if not reports or list(reports) != sorted(set(reports)) or reports[0] < 1:
        raise InputError(f"Expected ascending numbers of reports from 1, got {list(reports)}.")
    if pools.num_values > oracle.domain_size:
        raise InputError(
            f"Expected pools of at most domain_size={oracle.domain_size} values in all, got "
            f"{pools.num_pools} x {pools.pool_size}."
        )
    made = simulated_pools(oracle, pools, reports, num_clients, rng)
    exact = exact_pools(oracle, pools, reports)
    return [
        Success(
            attack="Bayes",
            reports=number,
            hypotheses=pools.num_pools,
            epsilon=stated or oracle.epsilon,
            exact=chance,
            right=right,
            clients=num_clients,
        )
        for number, chance, right in zip(reports, exact, made, strict=True)
    ]


def exact_pools(
    oracle: FrequencyOracle, pools: Pools, reports: Sequence[int]
) -> list[float | None]:
    """Return the chance of a right guess after so many reports; None where it is not exact."""
    try:
        one = of_kinds(pools.weights @ evidence(oracle, range(pools.num_values)))
    except TooManyKindsError:
        return [None] * len(reports)
    return exact_repeated(one, reports)


def simulated_pools(
    oracle: FrequencyOracle,
    pools: Pools,
    reports: Sequence[int],
    num_clients: int,
    rng: np.random.Generator,
) -> Iterator[int]:
    """Yield how many guesses are right after so many reports, by those that the oracle makes."""
    preferred = rng.integers(pools.num_pools, size=num_clients)
    scores = np.zeros((num_clients, pools.num_pools))
    at_once = max(1, AT_ONCE // pools.num_values)
    for heard in range(1, reports[-1] + 1):
        for start in range(0, num_clients, at_once):
            some = slice(start, start + at_once)
            drawn = pools.draw(preferred[some], rng=rng)
            logs = oracle.log_probs(oracle.privatize(drawn, rng=rng), np.arange(pools.num_values))
            largest = logs.max(axis=1, keepdims=True)
            with np.errstate(divide="ignore"):
                scores[some] += np.log(np.exp(logs - largest) @ pools.weights.T)
        if heard in reports:
            yield num_right(scores, preferred, rng)


def main(words: Sequence[str] | None = None) -> int:
    """Print the table of an attack; 1 if what is stated is refuted."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    attacks = parser.add_subparsers(dest="attack", required=True)
    for name, oracle, clients in (("chosen-trie", "ss", 20_000), ("pool-inference", "cms", 1_000)):
        attack = attacks.add_parser(name)
        attack.add_argument("--oracle", default=oracle)
        attack.add_argument("--local-epsilon", type=float, default=4.0)
        attack.add_argument("--stated-epsilon", type=float)
        attack.add_argument("--domain-size", type=int, default=28 if name == "chosen-trie" else 120)
        attack.add_argument("--clients", type=int, default=clients)
        attack.add_argument("--confidence", type=float, default=0.999)
        attack.add_argument("--seed", type=int, default=0)
    attacks.choices["chosen-trie"].add_argument("--words", type=int, default=2)
    attacks.choices["chosen-trie"].add_argument("--rounds", type=int, default=3)
    of_pools = attacks.choices["pool-inference"]
    of_pools.add_argument("--pools", type=int, default=6)
    of_pools.add_argument("--pool-size", type=int, default=20)
    of_pools.add_argument("--polarization", type=float, default=0.9)
    of_pools.add_argument("--reports", type=int, nargs="+", default=[1, 4, 16, 64])
    asked = parser.parse_args(words)
    try:
        found = _attacked(asked)
    except InputError as error:
        parser.error(str(error))
    print("attack reports  by chance    exact  simulated  allowed  epsilon stated")
    for each in found:
        exact = "none" if each.exact is None else f"{each.exact:.4f}"
        print(
            f"{each.attack:6} {each.reports:7} {1 / each.hypotheses:10.4f} {exact:>8} "
            f"{each.right / each.clients:10.4f} {each.allowed:8.4f} "
            f"{each.epsilon * each.reports:15g}"
        )
    refuted = any(each.refuted((1 - asked.confidence) / len(found)) for each in found)
    print("verdict:", "refuted" if refuted else "consistent")
    return int(refuted)


def _attacked(asked: argparse.Namespace) -> list[Success]:
    spec = OracleSpec(name=asked.oracle, epsilon=asked.local_epsilon)
    oracle, rng = make_oracle(spec, asked.domain_size), np.random.default_rng(asked.seed)
    common = {"num_clients": asked.clients, "rng": rng, "stated": asked.stated_epsilon}
    if asked.attack == "chosen-trie":
        return infer_word(oracle, words=asked.words, rounds=asked.rounds, **common)
    pools = Pools(num_pools=asked.pools, pool_size=asked.pool_size, polarization=asked.polarization)
    return infer_pool(oracle, pools, reports=sorted(set(asked.reports)), **common)


if __name__ == "__main__":
    raise SystemExit(main())
