"""Each command loads what it uses: a process of its own says which packages it has in the end."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

HEAVY = {
    "matplotlib", "numba", "numpy", "pandas", "pyarrow", "pydantic", "ray",
    "scipy", "scipy.optimize", "scipy.signal", "scipy.stats", "dp_accounting",
}  # fmt: skip

HALF_A_SECOND = {"scipy.optimize", "scipy.signal", "scipy.stats"}

DP_ACCOUNTING = {"dp_accounting"}

SCRIPT = """
import sys
from fedhh.cli.app import main
sys.argv[0] = "fedhh"
try:
    main()
except SystemExit as end:
    status = int(end.code or 0)
print("status", status, *sys.modules, file=sys.stderr)
"""

SMALL = (
    "run",
    "--preset",
    "small",
    "--set",
    "population.clients=2000",
    "--set",
    "protocol.depth=3",
)


@pytest.fixture
def loaded(tmp_path):
    def call(*words: str, status: int = 0) -> set[str]:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, *words],
            capture_output=True, text=True, timeout=120, cwd=tmp_path, check=True,
        )  # fmt: skip
        _, ended, *modules = done.stderr.splitlines()[-1].split()
        assert int(ended) == status, done.stderr
        return HEAVY & set(modules)

    return call


@pytest.mark.parametrize("name", sorted(HEAVY))
def test_what_is_looked_for_is_spelled_as_it_is_loaded(name):
    assert importlib.util.find_spec(name) is not None


def test_the_package_and_help_load_next_to_nothing(loaded):
    code = "import sys, fedhh; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY & set(done.stdout.split())
    assert not loaded("--help")
    assert loaded("run", "--help") <= {"pydantic"}


def test_presets_load_what_reads_a_configuration(loaded):
    assert loaded("presets", "list") <= {"numpy", "pydantic"}
    assert loaded("presets", "show", "small") <= {"numpy", "pydantic"}


def test_accounting_loads_no_tables_no_figures_and_no_kernels(loaded):
    words = ("--local-epsilon", "8", "--reports", "10000", "--oracle", "ss", "--domain-size", "100")
    bare = {"numpy", "pydantic", "scipy"}
    assert loaded("account", "shuffle", *words) <= bare


def test_a_run_that_is_refused_loads_neither_figures_nor_accounting(loaded):
    found = loaded(*SMALL, "--set", "protocol.eta_max=0", status=2)
    assert not found & {"matplotlib", "ray", *HALF_A_SECOND}


def test_a_small_run_loads_no_ray_and_its_tables_no_figures(loaded):
    found = loaded(*SMALL, "--out", "run")
    assert found >= {"matplotlib", "numba", "pandas"}
    assert not found & {"ray", *HALF_A_SECOND}
    assert not found & DP_ACCOUNTING
    found = loaded("show", "run")
    assert not found & {"matplotlib", "ray", *HALF_A_SECOND, *DP_ACCOUNTING}
    assert loaded("show", "run", "--second-opinion") >= DP_ACCOUNTING


def test_dp_accounting_is_loaded_on_request_alone(loaded):
    shuffle = ("account", "shuffle", "--local-epsilon", "2", "--reports", "100")
    assert not loaded(*shuffle) & DP_ACCOUNTING
    assert loaded(*shuffle, "--second-opinion") >= DP_ACCOUNTING
