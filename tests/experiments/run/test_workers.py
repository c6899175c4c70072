"""The rule that decides between this process and Ray; the same bits are a test of executors."""

from contextlib import nullcontext

import pytest

from fedhh.experiments.config.load import load_config
from fedhh.experiments.config.schema import ExecutionConfig
from fedhh.experiments.run import run, workers
from fedhh.experiments.run.workers import choose_workers, seconds_of_run, start_in_background
from fedhh.experiments.sweep.costs import workers_of_sweep
from fedhh.experiments.sweep.plan import parse_sweep
from fedhh.simulation.executor import InProcessExecutor

AUTO = ExecutionConfig()

TABLE = {
    "population": {"source": "chat", "clients": 1_000},
    "protocol": {"clients_per_layer": 10, "depth": 4, "passes": 1},
}


def give_cores(monkeypatch, number: int) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(number)), raising=False)


@pytest.fixture
def two_cores(monkeypatch):
    give_cores(monkeypatch, 2)


def seconds_of(preset: str, *settings: str, population=None) -> float:
    """The estimate for a preset whose clients are not drawn."""
    config = load_config(preset=preset, settings=settings)
    settled, protocol = run.settle(config, config.population.clients)
    return seconds_of_run(settled, protocol.plan, population)


@pytest.mark.parametrize("number", [0, 1, 7])
@pytest.mark.parametrize("address", ["", "head:6379"])
def test_a_number_is_taken_as_it_is(two_cores, number, address):
    execution = ExecutionConfig(workers=number, ray_address=address)
    for seconds in (0.0, 1e9):
        chosen = choose_workers(execution, seconds, most=1)
        assert chosen.number == number
        assert chosen.why.endswith("as configured")


def test_a_cluster_that_is_named_is_used_for_any_work(two_cores):
    chosen = choose_workers(ExecutionConfig(ray_address="head:6379"), 0.0)
    assert chosen.number is None
    assert "head:6379" in chosen.why


@pytest.mark.parametrize(
    ("execution", "number"),
    [
        (ExecutionConfig(workers=2), 2),
        (ExecutionConfig(workers=2, ray_address="head:6379"), 2),
        (ExecutionConfig(ray_address="head:6379"), None),
    ],
)
def test_ray_starts_in_the_background_where_it_is_certainly_needed(monkeypatch, execution, number):
    pytest.importorskip("ray")
    started = []

    def ahead(*, num_workers, address, warm_up):
        started.append((num_workers, address))
        return nullcontext()

    monkeypatch.setattr("fedhh.simulation.ray.executor.RayExecutor", ahead)
    start_in_background(execution)
    assert started == [(number, execution.ray_address)]


@pytest.mark.parametrize("execution", [AUTO, ExecutionConfig(workers=0)])
def test_no_ray_starts_in_the_background_that_may_not_be_needed(monkeypatch, execution):
    pytest.importorskip("ray")
    monkeypatch.setattr("fedhh.simulation.ray.executor.RayExecutor", None)
    with start_in_background(execution) as ahead:
        assert ahead is None


def test_ray_is_started_where_it_saves_more_than_it_takes(two_cores):
    # Two workers save half.
    here = choose_workers(AUTO, 2 * workers.RAY_SECONDS)
    assert (here.number, here.why) == (
        0, "in this process: 2 workers would save about 10 s, and Ray takes 10 s to start and end",
    )  # fmt: skip
    there = choose_workers(AUTO, 2.01 * workers.RAY_SECONDS)
    assert there.number == 2
    assert there.why.startswith("on Ray: ")


def test_more_cores_save_more(monkeypatch):
    give_cores(monkeypatch, 10)
    assert choose_workers(AUTO, 11.0).number == 0
    assert choose_workers(AUTO, 11.2).number == 10


def test_one_core_or_one_thing_to_do_is_no_reason_for_ray(monkeypatch):
    give_cores(monkeypatch, 1)
    assert choose_workers(AUTO, 1e9).number == 0
    give_cores(monkeypatch, 2)
    assert choose_workers(AUTO, 1e9, most=1).number == 0
    assert choose_workers(AUTO, 1e9, most=5).number == 2


def test_gboards_scale_goes_to_ray_and_what_is_small_stays(two_cores, population):
    gboard = seconds_of("gboard-random-one-pass")
    assert choose_workers(AUTO, gboard).number == 2
    both = seconds_of("default", population=population) + seconds_of(
        "default", "protocol.name=sfp", "protocol.clients_per_layer=auto", population=population
    )
    assert choose_workers(AUTO, both).number == 0
    assert choose_workers(AUTO, seconds_of("small", population=population)).number == 0


def test_the_estimate_counts_the_answers_that_are_made(population):
    drawn = seconds_of("gboard-random-one-pass")
    assert drawn == pytest.approx(15e6 * workers.DRAWN)
    few = seconds_of("gboard-random-one-pass", "simulation.drawn_clients=1000")
    assert few == pytest.approx(15e3 * workers.DRAWN)
    reports = seconds_of("gboard-random-one-pass", "simulation.fidelity=per-report")
    assert reports == pytest.approx(15e6 * (workers.DRAWN + workers.REPORTED))
    held = seconds_of("gboard-random-one-pass", population=population)
    assert held == pytest.approx(15e6 * workers.HELD)


def test_a_sweep_is_worth_ray_by_its_number_of_cells(two_cores):
    sweep = parse_sweep({**TABLE, "sweep": {"seeds": 30}}, "x")
    assert workers_of_sweep(sweep.to_run, AUTO).number == 2
    assert workers_of_sweep(sweep.to_run[:5], AUTO).number == 0
    # Of five cells, each is large: most of them goes to Ray.
    large = parse_sweep(
        {**TABLE, "sweep": {"seeds": 5}, "simulation": {"fidelity": "per-report"},
         "population": {"source": "chat", "clients": 2_000_000},
         "protocol": {"clients_per_layer": 400_000, "depth": 4, "passes": 1}}, "x",
    )  # fmt: skip
    assert workers_of_sweep(large.to_run, AUTO).number == 2
    assert workers_of_sweep(large.to_run, ExecutionConfig(workers=0)).number == 0


@pytest.mark.slow("::test_a_cluster_that_is_named_is_used_for_any_work")
def test_a_run_opens_what_is_chosen(monkeypatch, population):
    asked = []

    def executor(worker, number, address):
        asked.append((number, address))
        return InProcessExecutor(worker)

    monkeypatch.setattr(workers, "open_workers", executor)
    settings = ["protocol.clients_per_layer=100", "protocol.depth=4"]
    for words in ([], ["execution.workers=3"], ["execution.ray_address=head:6379"]):
        run.run_config(load_config(preset="small", settings=settings + words), population)
    assert asked == [(0, ""), (3, ""), (None, "head:6379")]
