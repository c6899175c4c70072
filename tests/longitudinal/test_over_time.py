import math

import numpy as np
import pytest

from fedhh.clients.synthetic import (
    PopulationModel,
    RankDrawer,
    RankRows,
    WordList,
    model_of,
)
from fedhh.longitudinal.populations.over_time import SyntheticOverTime, Turnover, WordCalendar
from fedhh.testing import ALPHA, distribution_p_value, follows_distribution
from fedhh.validation import InputError


def one_word_model(num_words: int, weights=None, *, words: int = 1, adoption: float = 1.0):
    """Clients that type so many words, each a fresh draw from a list."""
    return PopulationModel(
        name="tiny", unit="user", fitted_on="nothing",
        log_words_mean=math.log(words), log_words_sd=0, min_words=1, max_words=words,
        oov_share=1.0, oov_share_log_sd=0, copy_scale=1, copy_exponent=0,
        rank_exponent=1, rank_shift=0, head_ranks=16, tail_exponent=2, adoption=adoption,
        word_list=WordList(
            words=tuple(f"w{rank}" for rank in range(1, num_words + 1)),
            weights=tuple(weights or [1.0] * num_words),
        ),
    )  # fmt: skip


def over_time(model, *, clients=400, periods=6, calendar=None, seed=3, **turnover):
    calendar = calendar or WordCalendar(seed=seed, days=periods * 7, born_share=0.5, rise_days=4)
    settings = {"arrivals": 0, "mean_periods": math.inf} | turnover
    return SyntheticOverTime(
        model,
        seed=seed,
        every_days=7,
        turnover=Turnover(
            seed=seed, first_devices=clients, num_periods=periods, **settings
        ),
        calendar=calendar,
    )  # fmt: skip


def block_rows(rows: RankRows, client: int) -> list[tuple[int, int]]:
    here = slice(rows.offsets[client], rows.offsets[client + 1])
    return list(zip(rows.ranks[here].tolist(), rows.counts[here].tolist(), strict=True))


def test_a_word_rises_and_falls_as_documented():
    calendar = WordCalendar(
        seed=1, days=100, born_share=0.5, rise_days=10, fading_share=1, half_life_days=30
    )
    ranks = np.arange(1, 2_001)
    born = calendar.born_days(ranks)
    assert 0.45 < np.isfinite(born).mean() < 0.55
    assert 0 <= np.nanmin(born) < 5 < 95 < np.nanmax(born) < 100
    steady = ranks[np.isnan(born)][:1]
    assert calendar.envelope(steady, 0) == calendar.envelope(steady, 1e6) == 1
    new = ranks[np.isfinite(born)][:1]
    birth = calendar.born_days(new)[0]

    def at(age):
        return calendar.envelope(new, birth + age)[0]

    assert at(-1e-6) == 0
    assert at(0) == pytest.approx(0.01)
    assert at(10) == pytest.approx(0.5)
    assert at(20) == pytest.approx(0.99)
    assert at(50) == pytest.approx(0.99 / 2, rel=0.02)
    assert at(80) == pytest.approx(0.25, rel=0.02)
    stays = WordCalendar(seed=1, days=100, born_share=0.5, rise_days=10, fading_share=0)
    assert stays.envelope(new, birth + 1e4)[0] == pytest.approx(1)


def test_contributions_are_kept_by_independent_coins():
    calendar = WordCalendar(seed=5, days=50, born_share=1, rise_days=100, fading_share=0)
    clients = np.arange(30_000)
    ranks = np.array([7, 11])
    rows = RankRows(
        offsets=np.arange(0, 60_001, 2),
        ranks=np.tile(ranks, 30_000),
        counts=np.tile(np.array([2, 1], dtype=np.int32), 30_000),
    )
    day = float(calendar.born_days(ranks).max()) + 70
    first, second = calendar.envelope(ranks, day)
    assert 0.1 < min(first, second) < max(first, second) < 0.9
    kept = calendar.thinned(rows, clients, period=2, day=day)
    drawn = []
    for client in range(len(clients)):
        found = dict(block_rows(kept, client))
        drawn.append((found.get(7, 0), found.get(11, 0)))
    of_first = [(1 - first) ** 2, 2 * first * (1 - first), first**2]
    distribution = {
        (a, b): of_first[a] * (second if b else 1 - second) for a in range(3) for b in range(2)
    }
    assert follows_distribution(drawn, distribution)
    off = [(1 - 1.05 * second if b == 0 else 1.05 * second) for b in range(2)]
    wrong = {(a, b): of_first[a] * off[b] for a in range(3) for b in range(2)}
    assert distribution_p_value(drawn, wrong) < ALPHA
    again = calendar.thinned(rows, clients, period=3, day=day)
    assert not np.array_equal(again.ranks, kept.ranks)


def test_what_clients_type_follows_the_distribution_times_the_envelope():
    weights = [1 / rank for rank in range(1, 101)]
    model = one_word_model(100, weights)
    population = over_time(model, clients=40_000, periods=4, seed=8)
    period = population.at(2)
    calendar = WordCalendar(seed=8, days=28, born_share=0.5, rise_days=4)
    ranks = np.arange(1, 101)
    chances = np.array(weights) / sum(weights) * calendar.envelope(ranks, 17.5)
    distribution = {
        f"w{rank}": chance for rank, chance in zip(ranks.tolist(), chances, strict=True)
    }
    distribution["nothing"] = 1 - chances.sum()
    items = period.population.items
    typed = ["nothing"] * 40_000
    for owner, word in zip(
        np.repeat(items.clients, np.diff(items.offsets)).tolist(), items.word_ids, strict=True
    ):
        typed[owner] = period.population.lexicon.words[word]
    assert follows_distribution(typed, distribution)
    unthinned = dict(zip(distribution, [*(np.array(weights) / sum(weights)), 0.0], strict=True))
    assert distribution_p_value(typed, unthinned) < ALPHA


def test_nobody_types_a_word_before_its_birth():
    population = over_time(model_of("chat"), clients=2_000, periods=5)
    for number in range(5):
        period = population.at(number)
        middle = (number + 0.5) * 7
        assert not (period.born_days > middle).any()
        assert np.isnan(period.born_days).any()
        if number:
            assert (period.born_days >= 0).any()


def test_a_client_keeps_its_tastes():
    model = one_word_model(250, words=3_000, adoption=0.5)
    drawn = [
        RankDrawer(model=model, seed=4, period=period).draw(np.arange(3)) for period in (0, 1, 9)
    ]
    tastes = [
        [{rank for rank, _ in block_rows(rows, client)} for rows in drawn] for client in (0, 1)
    ]
    # 3,000 draws of 125 words leave one of them out with a chance of 125 exp(-24).
    assert tastes[0][0] == tastes[0][1] == tastes[0][2]
    assert tastes[1][0] == tastes[1][1] == tastes[1][2]
    assert len(tastes[0][0] ^ tastes[1][0]) > 60
    assert block_rows(drawn[0], 0) != block_rows(drawn[1], 0)


def test_a_client_types_as_many_new_words_in_every_period_up_to_chance():
    model = model_of("chat")
    clients = np.arange(20_000)
    first, second = (
        RankDrawer(model=model, seed=6, period=period).count_tokens(clients) for period in (0, 1)
    )
    both = first + second
    # Given the sum, the first is binomial with one half: the terms have mean 1.
    terms = ((first - second) ** 2 / np.maximum(both, 1))[both > 0]
    assert abs(terms.mean() - 1) < 6 * terms.std() / math.sqrt(len(terms))
    others = np.roll(second, 1)
    assert ((first - others) ** 2 / np.maximum(first + others, 1)).mean() > 3


def test_without_a_period_a_client_types_what_it_always_did():
    known = RankDrawer(model=model_of("chat"), seed=3).draw(np.arange(100))
    timed = RankDrawer(model=model_of("chat"), seed=3, period=0).draw(np.arange(100))
    assert known.ranks[:4].tolist() != timed.ranks[:4].tolist()


def test_what_a_device_types_does_not_depend_on_who_asks():
    population = over_time(model_of("chat"), clients=300, arrivals=20, mean_periods=8.0)
    period = population.at(4)
    items, words = period.population.items, period.population.lexicon.words
    model = model_of("chat")
    for place in (0, 7, len(period.devices) - 1):
        device = period.devices[place]
        alone = population.rows(4, np.array([device]))
        here = slice(items.offsets[place], items.offsets[place + 1])
        assert model.strings(alone.ranks) == [words[i] for i in items.word_ids[here].tolist()]
        assert alone.counts.tolist() == items.counts[here].tolist()


def test_devices_stay_a_geometric_number_of_periods():
    turnover = Turnover(
        seed=2, first_devices=20_000, arrivals=1_000, mean_periods=4.0, num_periods=12
    )
    stays = np.minimum(turnover.end - turnover.first, 6).tolist()
    distribution = {k: 0.75 ** (k - 1) * 0.25 for k in range(1, 6)} | {6: 0.75**5}
    assert follows_distribution(stays, distribution)
    wrong = {k: 0.78 ** (k - 1) * 0.22 for k in range(1, 6)} | {6: 0.78**5}
    assert distribution_p_value(stays, wrong) < ALPHA
    assert turnover.num_devices == 31_000
    assert (turnover.first[:20_000] == 0).all()
    assert np.bincount(turnover.first[20_000:]).tolist() == [0] + [1_000] * 11


def test_who_stays_for_ever_and_who_stays_one_period():
    forever = over_time(model_of("chat"), clients=5, periods=3)
    assert forever.devices(2).tolist() == [0, 1, 2, 3, 4]
    one = over_time(model_of("chat"), clients=5, arrivals=2, mean_periods=1.0, periods=3)
    assert one.devices(2).tolist() == [7, 8]
    assert (one.num_devices, one.arrivals.tolist()) == (9, [0] * 5 + [1] * 2 + [2] * 2)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"born_share": 1.5}, "born_share=1.5"),
        ({"rise_days": 0.0}, "rise_days=0.0"),
        ({"half_life_days": math.inf}, "half_life_days=inf"),
        ({"days": 0}, "days=0"),
    ],
)
def test_wrong_calendars_are_refused(changed, message):
    with pytest.raises(InputError, match=message):
        WordCalendar(**{"seed": 0, "days": 10} | changed)


def test_wrong_turnovers_and_empty_periods_are_refused():
    good = {"seed": 0, "first_devices": 1, "arrivals": 0, "mean_periods": 1.0, "num_periods": 3}
    wrong = [{"mean_periods": 0.5}, {"first_devices": 0}, {"num_periods": 10**6}]
    for changed in [*wrong, {"first_devices": 10**12}, {"arrivals": 10**12}]:
        with pytest.raises(InputError):
            Turnover(**good | changed)
    population = over_time(model_of("chat"), clients=1, mean_periods=1.0)
    with pytest.raises(InputError, match="got none"):
        population.at(1)
    with pytest.raises(InputError, match="period"):
        population.at(6)
