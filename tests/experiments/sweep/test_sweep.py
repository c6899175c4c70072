"""Sweeps: what they write, and that nothing of it is lost or mixed."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pandas as pd
import pytest

import fedhh
from fedhh.accounting.bounds import composition
from fedhh.accounting.bounds.composition import composed_epsilon
from fedhh.experiments.config.client_file import load_file
from fedhh.experiments.config.load import parse_config
from fedhh.experiments.config.population import build_population
from fedhh.experiments.run.run import run_config
from fedhh.experiments.study.callbacks import Callbacks
from fedhh.experiments.sweep import directory as results
from fedhh.experiments.sweep import sweep
from fedhh.experiments.sweep.plan import Sweep, parse_sweep
from fedhh.validation import InputError
from tests.fuzz.work import RUN
from tests.processes import start, wait_until
from tests.thinned import thinned
from tests.waiting import ORACLE, write_waiting

TABLE = {
    "seed": 5,
    "population": {"source": "chat", "clients": 2_000},
    # One contribution per client: accounting for users composes nothing, which is quick.
    "protocol": {"depth": 4, "passes": 1, "eta_max": 50, "clients_per_layer": 400, "max_items": 1},
    "metrics": {"top_k": [10]},
    "execution": {"workers": 0},
}


def plan_of(section: dict[str, object], **changes: object) -> Sweep:
    return parse_sweep({**TABLE, **changes, "sweep": section}, "test")


TWO_AXES = {
    "seeds": 2,
    "axes": {"privacy.local_epsilon": [2, 8], "protocol.sampler": ["greedy", "random"]},
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("sweep") / "out"
    sweep.run_sweep(plan_of(TWO_AXES), directory, workers=0)
    return directory


def test_results_hold_one_row_per_cell_and_seed_in_the_grids_order(finished: Path):
    table, description = results.read_results(finished)
    rows = table[["privacy.local_epsilon", "protocol.sampler", "seed"]].to_numpy().tolist()
    assert rows == [[e, s, n] for e in (2.0, 8.0) for s in ("greedy", "random") for n in (5, 6)]
    assert description["axes"] == ["privacy.local_epsilon", "protocol.sampler"]
    assert set(table["fedhh_version"]) == {fedhh.__version__}
    assert {"coverage", "precision_top_10", "local_epsilon", "reports"} <= set(table)


def test_a_cells_row_is_what_a_run_of_its_config_gives(finished: Path):
    table, _ = results.read_results(finished)
    row = table.iloc[7]
    config = parse_config(
        {**TABLE, "seed": 6, "privacy": {"local_epsilon": 8}, "protocol": {
            **TABLE["protocol"], "sampler": "random"}}, "test",
    )  # fmt: skip
    population = build_population(config.population, seed=6)
    _, result = run_config(config, population)
    assert row["cell"] == config.result_key
    for name in ("coverage", "precision", "recall", "f1", "found_top_10"):
        assert row[name] == result.metrics.to_dict()[name]
    assert row["reports"] == result.cost["reports"]


def test_the_csv_has_the_same_rows(finished: Path):
    table, _ = results.read_results(finished)
    csv = pd.read_csv(finished / "results.csv", keep_default_na=False)
    assert list(csv) == list(table)
    # Older pandas reads the last digit of a float approximately.
    assert csv["coverage"].tolist() == pytest.approx(table["coverage"].tolist(), rel=1e-14)


def test_times_stand_in_a_file_of_their_own(finished: Path):
    table, description = results.read_results(finished)
    assert not [name for name in table if "second" in name or "time" in name]
    assert "workers" not in json.dumps(description)
    assert (pd.read_csv(finished / "timings.csv")["seconds"] > 0).all()


def test_a_population_of_two_cells_is_drawn_once_and_each_is_accounted_once(tmp_path, monkeypatch):
    drawn, accounted = [], []

    def counted(config, *, seed, **options):
        drawn.append(seed)
        return build_population(config, seed=seed, **options)

    def counted_bound(uses, **options):
        accounted.append(uses)
        return composed_epsilon(uses, **options)

    monkeypatch.setattr("fedhh.experiments.sweep.sweep.build_population", counted)
    monkeypatch.setattr(composition, "composed_epsilon", counted_bound)
    protocol = {"name": "pem", "clients_per_layer": 210, "length": 4, "max_items": 2}
    plan = plan_of({"axes": {"protocol.keep": [5, 6]}}, protocol=protocol)
    table = sweep.run_sweep(plan, tmp_path / "out", workers=0)
    assert table["status"].tolist() == ["done", "done"]
    assert drawn == [5]
    assert len(accounted) == 1


@pytest.mark.slow("::test_a_population_of_two_cells_is_drawn_once_and_each_is_accounted_once")
def test_a_population_is_drawn_once_for_all_its_cells(tmp_path, monkeypatch):
    drawn = []

    def counted(config, *, seed, **options):
        drawn.append(seed)
        return build_population(config, seed=seed, **options)

    monkeypatch.setattr("fedhh.experiments.sweep.sweep.build_population", counted)
    sweep.run_sweep(plan_of(TWO_AXES), tmp_path / "out", workers=0)
    assert drawn == [5, 6]


@pytest.mark.slow("::test_a_population_of_two_cells_is_drawn_once_and_each_is_accounted_once")
@pytest.mark.parametrize("workers", thinned([0, 2]))
@pytest.mark.parametrize("source", ["synthetic", "held", "file"])
def test_a_sweep_draws_and_reads_nothing_twice(tmp_path, monkeypatch, ray_here, source, workers):
    """Also not to find out whether cells fit in parallel, which only workers do."""
    words = tmp_path / "words.csv"
    words.write_text("user,word,count\n" + "".join(f"u{i},w{i % 7},1\n" for i in range(900)))
    table = {**TABLE, "protocol": {**TABLE["protocol"], "clients_per_layer": 100}}
    if source == "file":
        table |= {"population": {"source": str(words), "known": "none"}}
    elif source == "held":
        table |= {"population": {**TABLE["population"], "virtual": False}}
    axes = {"population.clients": [700, 800], "privacy.local_epsilon": [2, 8]}
    drawn, read = [], []

    def counted(config, *, seed, **options):
        drawn.append((config.clients, seed))
        return build_population(config, seed=seed, **options)

    def counted_file(config):
        read.append(config.source)
        return load_file(config)

    monkeypatch.setattr("fedhh.experiments.sweep.sweep.build_population", counted)
    monkeypatch.setattr("fedhh.experiments.config.client_file.load_file", counted_file)
    store = sweep.PopulationStore()
    section = {"seeds": 2, "axes": axes}
    plan = parse_sweep({**table, "sweep": section}, "test", num_clients=store.num_clients)
    done = sweep.run_sweep(plan, tmp_path / "out", workers=workers, store=store)
    assert set(done["status"]) == {"done"}
    assert drawn == [(700, 5), (700, 6), (800, 5), (800, 6)]
    assert read == ([str(words)] if source == "file" else [])


@pytest.mark.slow("::test_a_population_of_two_cells_is_drawn_once_and_each_is_accounted_once")
def test_accounting_is_remembered_from_cell_to_cell(tmp_path, monkeypatch):
    made = []

    def counted(uses, **options):
        made.append(uses)
        return composed_epsilon(uses, **options)

    monkeypatch.setattr(composition, "composed_epsilon", counted)
    for seeds, epsilons in [(1, [2]), (3, [2]), (2, [2, 8])]:
        made.clear()
        # A cohort of its own, of which nothing is remembered.
        cohort = 400 + 10 * seeds
        protocol = {"name": "pem", "clients_per_layer": cohort, "length": 4, "max_items": 2}
        section = {"seeds": seeds, "axes": {"privacy.local_epsilon": epsilons}}
        plan = plan_of(section, protocol=protocol)
        sweep.run_sweep(plan, tmp_path / f"{seeds} {len(epsilons)}", workers=0)
        assert len(made) == len(epsilons)


@pytest.mark.slow("::test_resume_runs_only_what_is_missing")
def test_a_failing_cell_is_recorded_and_tried_again_on_resume(tmp_path, monkeypatch):
    plan = plan_of({"axes": {"protocol.eta_max": [20, 30, 40]}})

    def failing(config, population):
        if config.protocol.eta_max == 30:
            raise MemoryError("out of\nmemory")
        return run_config(config, population)

    with monkeypatch.context() as patch:
        patch.setattr("fedhh.experiments.sweep.sweep.run_config", failing)
        table = sweep.run_sweep(plan, tmp_path / "out", workers=0)
    assert table["status"].tolist() == ["done", "failed", "done"]
    assert table["error"].tolist() == ["", "MemoryError: out of memory", ""]
    assert pd.isna(table["coverage"][1])
    assert len(results.read_results(tmp_path / "out")[0]) == 2
    again = sweep.run_sweep(plan, tmp_path / "out", workers=0, resume=True)
    whole = sweep.run_sweep(plan, tmp_path / "whole", workers=0)
    pd.testing.assert_frame_equal(again, whole)
    assert same_bytes(tmp_path / "out", tmp_path / "whole")


def test_a_population_that_cannot_be_had_fails_its_cells_alone(tmp_path, monkeypatch):
    def failing(config, *, seed, **options):
        if seed == 5:
            raise InputError("no such clients")
        return build_population(config, seed=seed, **options)

    monkeypatch.setattr("fedhh.experiments.sweep.sweep.build_population", failing)
    table = sweep.run_sweep(plan_of({"seeds": 2}), tmp_path / "out", workers=0)
    assert table["error"].tolist() == ["no such clients", ""]


def test_resume_runs_only_what_is_missing(tmp_path):
    plan = plan_of({"axes": {"protocol.eta_max": [20, 30, 40]}})
    out = tmp_path / "out"
    sweep.run_sweep(plan, out, workers=0)
    before = (out / results.RESULTS).read_bytes()
    (out / "cells" / f"{plan.cells[1].id}.json").unlink()
    heard: list[str] = []

    class Recording(Callbacks):
        def begin(self, unit: str) -> None:
            heard.append(unit)

    sweep.run_sweep(plan, out, workers=0, resume=True, callbacks=[Recording()])
    assert heard == ["eta_max 30, seed 5"]
    assert (out / results.RESULTS).read_bytes() == before


def test_another_sweep_or_a_changed_file_is_not_mixed_in(tmp_path):
    words = tmp_path / "words.csv"
    words.write_text("user,word,count\n" + "".join(f"u{i},w{i % 7},1\n" for i in range(900)))
    changes = {
        "population": {"source": str(words), "known": "none", "alphabet": "w0123456"},
        "protocol": {"depth": 2, "passes": 1, "eta_max": 5, "clients_per_layer": 300},
    }
    store = sweep.PopulationStore()

    def plan_for(section: dict[str, object]) -> Sweep:
        return parse_sweep(
            {**TABLE, **changes, "sweep": section}, "test", num_clients=store.num_clients
        )

    plan = plan_for({"axes": {"protocol.eta_max": [4, 5]}})
    out = tmp_path / "out"
    sweep.run_sweep(plan, out, workers=0)
    with pytest.raises(InputError, match=r"holds another sweep \(differs in: configuration\)"):
        sweep.run_sweep(plan_for({"seeds": 2}), out, workers=0, resume=True)
    with pytest.raises(InputError, match="holds other files; give another --out"):
        sweep.run_sweep(plan, out, workers=0)
    sweep.run_sweep(plan, out, workers=0, resume=True)
    words.write_text(words.read_text() + "u1,w2,5\n")
    with pytest.raises(InputError, match=r"\(differs in: files\)"):
        sweep.run_sweep(plan, out, workers=0, resume=True)


def test_a_file_too_small_for_a_cell_is_refused_before_anything_runs(tmp_path):
    words = tmp_path / "words.csv"
    words.write_text("user,word\nann,lol\nbob,brb\n")
    path = tmp_path / "mine.toml"
    path.write_text(
        f'[population]\nsource = "{words}"\n[protocol]\nclients_per_layer = 3\n[sweep]\n'
    )
    with pytest.raises(InputError, match="The population has 2 clients, but"):
        fedhh.sweep(path, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow(
    "tests/simulation/test_calls_of_an_executor.py::test_any_number_of_actors_gives_the_reference"
)
@pytest.mark.usefixtures("shared_ray")
def test_ray_gives_the_same_bytes_as_one_process(tmp_path, finished: Path):
    sweep.run_sweep(plan_of(TWO_AXES), tmp_path / "cells", workers=2)
    assert same_bytes(tmp_path / "cells", finished)
    drawn = plan_of({}, population={**TABLE["population"], "virtual": True})
    sweep.run_sweep(drawn, tmp_path / "clients", workers=1)
    sweep.run_sweep(drawn, tmp_path / "alone", workers=0)
    assert same_bytes(tmp_path / "clients", tmp_path / "alone")


@pytest.mark.slow("::test_the_cluster_that_is_asked_is_the_one_that_works")
def test_what_workers_share_follows_from_what_fits(tmp_path, monkeypatch, ray_here):
    def shared(population: dict[str, object]) -> str:
        ray_here.clear()
        out = tmp_path / str(len(list(tmp_path.iterdir())))
        sweep.run_sweep(plan_of({}, population=population), out, workers=2)
        ((what, *_),) = ray_here
        return what

    small = {"source": "chat", "clients": 2_000, "virtual": False}
    assert shared(small) == "cells"
    # Clients that are drawn when asked would be counted by each cell again.
    assert shared({**small, "virtual": True}) == "clients"
    monkeypatch.setattr("fedhh.experiments.sweep.execution.memory_bytes", lambda: 100_000)
    assert shared(small) == "clients"


MINE = (
    RUN.replace("[execution]", f'oracle = "{ORACLE}"\n[execution]')
    + """[sweep]
seeds = 2
[sweep.axes]
protocol.sampler = ["greedy", "random"]
"""
)


@pytest.mark.slow("::test_resume_runs_only_what_is_missing")
@pytest.mark.usefixtures("own_modules")
def test_a_killed_sweep_resumes_to_the_same_bytes(tmp_path, command):
    (tmp_path / "mine.toml").write_text(MINE)
    go = write_waiting(tmp_path, "killed/cells/[!.]*.json", count=2)
    killed = start("sweep", "mine.toml", "--trust", "--out", "killed", cwd=tmp_path)
    cells = tmp_path / "killed" / "cells"
    wait_until(lambda: len(list(cells.glob("[!.]*.json"))) >= 2, killed)
    killed.kill()
    killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL
    done = {path: path.read_bytes() for path in cells.glob("[!.]*.json")}
    assert len(done) == 2
    assert not (tmp_path / "killed" / results.RESULTS).exists()
    go.touch()
    resumed = command("sweep", "--resume", "--out", "killed", "--trust", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    fedhh.sweep(tmp_path / "mine.toml", out=tmp_path / "whole")
    assert same_bytes(tmp_path / "whole", tmp_path / "killed")
    assert all(path.read_bytes() == content for path, content in done.items())


def test_the_command_refuses_wrong_sweeps_in_one_line_with_code_2(tmp_path, command):
    wrong = MINE.replace(f'oracle = "{ORACLE}"\n', "") + "protocol.eta_maxx = [1]\n"
    (tmp_path / "mine.toml").write_text(wrong)
    refused = command("sweep", "mine.toml", "--out", "out", cwd=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "unknown sweep axis protocol.eta_maxx; did you mean 'eta_max'?" in refused.stderr
    assert not (tmp_path / "out").exists()


def test_a_cluster_that_is_not_there_is_named(tmp_path):
    (tmp_path / "sweep.toml").write_text(RUN + '[sweep.axes]\n"protocol.passes" = [1, 2]\n')
    with pytest.raises(InputError, match=r"127\.0\.0\.1:1"):
        fedhh.sweep(
            tmp_path / "sweep.toml", workers=1, ray_address="127.0.0.1:1", out=tmp_path / "out"
        )


def same_bytes(one: Path, other: Path) -> bool:
    return (one / results.RESULTS).read_bytes() == (other / results.RESULTS).read_bytes()


@pytest.mark.parametrize(("virtual", "shared"), thinned([(False, "cells"), (True, "clients")]))
def test_the_cluster_that_is_asked_is_the_one_that_works(tmp_path, ray_here, virtual, shared):
    # The cluster itself is in tests/e2e/test_scaling_commands.py; here, where the address goes.
    plan = plan_of({}, population={**TABLE["population"], "virtual": virtual})
    table = sweep.run_sweep(plan, tmp_path / "out", workers=2, ray_address="head:6379")
    assert ray_here == [(shared, 2, "head:6379")]
    assert table["status"].tolist() == ["done"]
