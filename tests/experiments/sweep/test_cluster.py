"""`fedhh sweep --ray-address` on a cluster of several nodes gives what this process gives."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import fedhh
from fedhh.cli import app as cli
from tests.fuzz.work import RUN

ray = pytest.importorskip("ray")

from ray.cluster_utils import Cluster  # noqa: E402 - only where ray is there

SWEEP = RUN + '[sweep.axes]\n"protocol.sampler" = ["greedy", "random"]\n'


@pytest.fixture(scope="module")
def cluster():
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_ADDRESS", raising=False)
        ray.shutdown()  # if other tests of this process share one
        cluster = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
        )
        cluster.add_node(num_cpus=1)
        cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        yield cluster
        ray.shutdown()
        cluster.shutdown()


# A whole cluster; that the address reaches Ray is tested next to the sweep.
@pytest.mark.slow(
    "tests/simulation/test_calls_of_an_executor.py::test_any_number_of_actors_gives_the_reference"
)
@pytest.mark.parametrize("virtual", ["false", "true"], ids=["cells", "clients"])
def test_a_sweep_on_a_cluster_gives_the_bytes_of_one_process(
    cluster, virtual, tmp_path, monkeypatch, capsys
):
    # Cells share what is held; of clients that are drawn when asked, those of one cell are shared.
    sweep = SWEEP.replace("[population]", f"[population]\nvirtual = {virtual}")
    (tmp_path / "sweep.toml").write_text(sweep)
    fedhh.sweep(tmp_path / "sweep.toml", out=tmp_path / "here")
    words = ["--workers", "2", "--ray-address", cluster.address]
    out = tmp_path / "there"
    command = ["fedhh", "sweep", str(tmp_path / "sweep.toml"), *words, "--out", str(out)]
    monkeypatch.setattr(sys, "argv", command)
    asked, init = [], ray.init
    monkeypatch.setattr(
        ray, "init", lambda **options: [asked.append(options["address"]), init(**options)][1]
    )
    # main() installs handlers of signals, which are the test runner's to keep.
    monkeypatch.setattr(cli, "stop_at_signals", lambda _: None)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert not end.value.code, capsys.readouterr().err
    assert set(asked) == {cluster.address}
    assert (out / "results.csv").read_bytes() == (tmp_path / "here/results.csv").read_bytes()
    assert len(list(Path(out / "cells").iterdir())) == 2


def test_a_cluster_that_is_not_there_is_named(tmp_path):
    (tmp_path / "sweep.toml").write_text(SWEEP)
    with pytest.raises(fedhh.InputError, match=r"127\.0\.0\.1:1"):
        fedhh.sweep(
            tmp_path / "sweep.toml", workers=1, ray_address="127.0.0.1:1", out=tmp_path / "out"
        )
