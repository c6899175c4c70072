"""A pipeline from devices to publications: the same bits however it is run."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from fedhh.experiments.run.workers import open_workers
from fedhh.experiments.study.callbacks import Callbacks
from fedhh.longitudinal.devices.worker import DeviceWorker
from fedhh.longitudinal.pipeline.build import UseCase, build_model, build_use_cases
from fedhh.longitudinal.pipeline.config import load_pipeline
from fedhh.longitudinal.pipeline.directory import result_record
from fedhh.longitudinal.pipeline.run import Run
from fedhh.simulation.executor import InProcessExecutor
from fedhh.validation import InputError

SETTINGS = ("pipeline.devices=600", "pipeline.days=4", "pipeline.publish_every=3")


def configured(*settings, use_cases=()):
    return load_pipeline("pipeline-small", settings=(*SETTINGS, *settings), use_cases=use_cases)


def run(config, *, workers=0, stored_in=None, stop_after=None, kill_after=None):
    use_cases = build_use_cases(config)
    worker = DeviceWorker(build_model(config, use_cases), seed=config.seed)

    class StopError(Exception):
        pass

    with open_workers(worker, workers, "") as executor:
        pipeline = Run(config, use_cases, executor, stored_in=stored_in, seconds_between=0)

        class AfterDay(Callbacks):
            def finish(self, unit, result):
                done = int(unit.removeprefix("day "))
                if done == stop_after:
                    raise StopError
                if done == kill_after:
                    import ray

                    ray.kill(executor.clients[0])

        try:
            return pipeline.finish([AfterDay()])
        except StopError:
            return None


def bits(result):
    record = result_record(result)
    del record["timings_seconds"]
    return json.dumps([record, *vars(result.tables).values()], sort_keys=True)


@pytest.fixture(scope="module")
def reference():
    return run(configured())


@pytest.mark.slow(
    "tests/simulation/test_calls_of_an_executor.py::test_any_number_of_actors_gives_the_reference"
)
def test_one_and_two_workers_give_the_same_bits(reference, shared_ray):
    assert bits(run(configured(), workers=1)) == bits(reference)
    # A new actor lets the days before happen again.
    assert bits(run(configured(), workers=2, kill_after=2)) == bits(reference)


def test_a_small_pipeline_that_stopped_gives_the_same_bits(tmp_path):
    small = {"use_cases": ["words"]}
    config = configured("pipeline.devices=100", "pipeline.days=2", **small)
    sums = tmp_path / "state.arrays"
    assert run(config, stored_in=sums, stop_after=1) is None
    other = configured("pipeline.devices=100", "pipeline.days=2", "seed=1", **small)
    with pytest.raises(InputError, match="of another run"):
        run(other, stored_in=sums)
    assert bits(run(config, stored_in=sums)) == bits(run(config))


@pytest.mark.slow("::test_a_small_pipeline_that_stopped_gives_the_same_bits")
def test_a_resumed_pipeline_gives_the_same_bits(reference, tmp_path):
    for stop_after in (1, 3):
        sums = tmp_path / f"{stop_after}.arrays"
        assert run(configured(), stored_in=sums, stop_after=stop_after) is None
        assert bits(run(configured(), stored_in=sums)) == bits(reference)
    with pytest.raises(InputError, match="of another run"):
        run(configured("seed=1"), stored_in=sums)
    sums.write_bytes(b"damaged")
    with pytest.raises(InputError, match="damaged"):
        run(configured(), stored_in=sums)


def test_a_use_case_alone_has_the_numbers_that_it_has_among_others(reference):
    alone = run(configured(use_cases=["words"]))
    numbers = [
        [
            (row["events"], row["sent"], row["waiting"])
            for row in each.tables.days
            if row["use_case"] == "words"
        ]
        for each in (alone, reference)
    ]
    assert numbers[0] == numbers[1]
    assert len(numbers[0]) == 4


@pytest.mark.slow("::test_a_use_case_alone_has_the_numbers_that_it_has_among_others")
def test_a_use_case_is_the_same_whatever_stands_behind_it(reference):
    alone = run(configured(use_cases=["words"]))
    assert bits(run(configured("seed=1", use_cases=["words"]))) != bits(alone)
    words = [row for row in reference.tables.days if row["use_case"] == "words"]
    counts = [(row["events"], row["sent"], row["waiting"]) for row in words]
    again = [row for row in alone.tables.days if row["use_case"] == "words"]
    assert [(row["events"], row["sent"], row["waiting"]) for row in again] == counts


def test_records_and_losses_add_up(reference):
    tables, config = reference.tables, reference.config.pipeline
    opted = reference.num_opted_in
    for index, row in enumerate(reference.use_cases):
        case = config.use_cases[row["use_case"]]
        days = [each for each in tables.days if each["use_case"] == row["use_case"]]
        assert [each["day"] for each in days] == [1, 2, 3, 4]
        assert sum(each["sent"] for each in days) == row["sent"]
        assert row["events_opted_in"] == row["sent"] + row["waiting"] + row["dropped"]
        assert reference.spent.records[index].sum() == row["sent"]
        epsilon = sum(case.epsilons)
        assert row["loss_of_life_mean"] == pytest.approx(row["sent"] * epsilon / opted)
        assert row["loss_of_life_largest"] <= row["loss_of_life_allowed"]
        assert row["loss_per_day_largest"] <= row["loss_per_day_allowed"]
        assert row["loss_per_day_allowed"] == case.records_per_day * epsilon
        # Four days: a session each, one session of a week, and the lifetime of ten.
        sessions = math.ceil(4 / case.session_days)
        assert row["loss_of_life_allowed"] == sessions * case.records_per_day * epsilon
    assert 0.7 < opted / config.devices < 0.9


def test_estimates_are_of_records_sent(reference):
    """All days, all use cases: normal to a good approximation, with the stated deviations."""
    rows = [
        row
        for row in reference.tables.values
        if row["use_case"] != "words" and row["day"] and row["sent"]
    ]
    z = np.array([(row["estimate"] - row["sent"]) / row["std_error"] for row in rows])
    assert len(z) > 80
    assert abs(z).max() < 6
    assert 0.7 < np.sqrt((z**2).mean()) < 1.3
    events = np.array([(row["estimate"] - row["events"]) / row["std_error"] for row in rows])
    assert events.mean() < z.mean() - 0.1


def test_windows_and_all_of_them_are_published(reference):
    assert {row["window"] for row in reference.tables.publications} == {0, 1, 2}
    for row in reference.tables.publications:
        listed = [
            each
            for each in reference.tables.published
            if (each["use_case"], each["window"]) == (row["use_case"], row["window"])
        ]
        assert len(listed) == row["published"]
        assert all(each["estimate"] > row["threshold"] for each in listed)
        right = sum(each["sent"] > row["threshold"] for each in listed)
        if listed:
            assert row["precision"] == right / len(listed)
        assert row["never_sent"] == sum(not each["sent"] for each in listed)


def test_a_fixed_threshold_is_the_threshold():
    config = configured("pipeline.use_cases.emoji.threshold=40.0", use_cases=["emoji"])
    result = run(config)
    assert {row["threshold"] for row in result.tables.publications} == {40.0}


def test_nobody_who_opts_in_is_an_error():
    config = configured("pipeline.devices=3", "pipeline.opt_in=1e-9", use_cases=["emoji"])
    with pytest.raises(InputError, match="none has opted in"):
        run(config)


def test_what_crosses_to_the_server_names_no_device():
    config = configured(use_cases=["emoji"])
    (emoji,) = build_use_cases(config)
    seen = []

    class Listening(InProcessExecutor):
        def answer(self, broadcast, progress=None):
            answer = super().answer(broadcast, progress)
            seen.append(answer.aggregate)
            return answer

    worker = DeviceWorker(build_model(config, (emoji,)), seed=0)
    added = []

    class Overheard(UseCase):
        def aggregator(self, top):
            made = super().aggregator(top)
            add = made.add
            made.add = lambda batch: (added.append(batch), add(batch))
            return made

    Run(config, (Overheard(**vars(emoji)),), Listening(worker)).finish()
    width = emoji.device.form.oracle.privatize(np.zeros(1, int), rng=np.random.default_rng()).shape
    for aggregate, batch in zip(seen, added, strict=True):
        # Address and time reach the ingestor, the aggregator gets reports in another order.
        assert aggregate.messages.shape[1] == width[1] + 2
        assert batch.reports.shape == (aggregate.num_reports, width[1])
        assert batch.reports.tolist() != aggregate.messages[:, 2:].tolist()
        assert sorted(batch.reports.tolist()) == sorted(aggregate.messages[:, 2:].tolist())
