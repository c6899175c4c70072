"""Each command loads what it uses: a process of its own says which packages it has in the end."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from tests.every import every

HEAVY = {
    "dp_accounting", "matplotlib", "numba", "numpy", "pandas", "platformdirs", "pyarrow",
    "pydantic", "ray", "scipy", "scipy.optimize", "scipy.signal", "scipy.stats", "wordfreq",
}  # fmt: skip

HALF_A_SECOND = {"dp_accounting", "scipy.optimize", "scipy.signal", "scipy.stats"}

SCRIPT = """
import sys
from fedhh.cli.app import main
status = 0
for line in sys.argv[1:]:
    sys.argv = ["fedhh", *line.split()]
    try:
        main()
    except SystemExit as end:
        status = max(status, int(end.code or 0))
print("status", status, *sys.modules, file=sys.stderr)
"""

SMALL = "run --preset small --set population.clients=2000 --set protocol.depth=3"


@pytest.fixture
def loaded(tmp_path):
    (tmp_path / "words.csv").write_text("user,word,count\na,lol,1\n")
    (tmp_path / "texts.csv").write_text("user,text\na,lol\n")

    def call(*lines: str, status: int = 0) -> set[str]:
        """Return what one process has after some commands."""
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, *lines],
            capture_output=True, text=True, timeout=120, cwd=tmp_path, check=True,
        )  # fmt: skip
        _, ended, *modules = done.stderr.splitlines()[-1].split()
        assert int(ended) == status, done.stderr
        return HEAVY & set(modules)

    return call


@every("name", sorted(HEAVY))
def test_what_is_looked_for_is_spelled_as_it_is_loaded(name):
    assert importlib.util.find_spec(name) is not None


def test_a_protocol_loads_no_special_functions_and_no_kernel():
    code = "import sys, fedhh.server.ldp_triehh; print(len(sys.modules), *sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    number, *modules = shown.stdout.split()
    assert int(number) <= 400
    assert not {"numba", "scipy.special", "scipy.optimize", "dp_accounting"} & set(modules)


@pytest.mark.slow("tests/oracles/test_registry.py::test_importing_the_package_loads_no_kernel")
def test_names_of_the_package_load_what_they_use():
    steps = {
        "__version__, Alphabet, Clients": {"numpy"},
        "LdpTrieHH": {"numpy", "scipy"},
        "Sfp, Pem, TrieHH": {"numpy", "scipy", "numba"},
    }
    code = "".join(f"from fedhh import {each}; print(*sys.modules)\n" for each in steps)
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, fedhh; print(*sys.modules)\n{code}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    shown = done.stdout.splitlines()
    for modules, used in zip(shown, [set(), *steps.values()], strict=True):
        assert HEAVY & set(modules.split()) <= used


def test_help_loads_next_to_nothing(loaded):
    assert not loaded("--help")
    assert loaded("run --help") <= {"pydantic"}


@pytest.mark.slow("::test_help_loads_next_to_nothing")
def test_presets_load_what_reads_a_configuration(loaded):
    assert loaded("presets list", "presets show small") <= {"numpy", "pydantic"}


@pytest.mark.slow("::test_help_loads_next_to_nothing")
def test_accounting_loads_no_tables_no_figures_and_no_kernels(loaded):
    words = "account shuffle --local-epsilon 8 --reports 10000 --oracle ss --domain-size 100"
    assert loaded(words) <= {"numpy", "pydantic", "scipy"}


@pytest.mark.slow("::test_help_loads_next_to_nothing")
def test_a_run_that_is_refused_loads_neither_figures_nor_accounting(loaded):
    found = loaded(f"{SMALL} --set protocol.eta_max=0", status=2)
    assert not found & {"matplotlib", "ray", *HALF_A_SECOND}


@pytest.mark.slow("::test_help_loads_next_to_nothing")
def test_a_small_run_loads_no_ray_and_its_tables_no_figures(loaded):
    found = loaded(f"{SMALL} --out run")
    assert found >= {"matplotlib", "numba", "pandas"}
    assert not found & {"ray", *HALF_A_SECOND}
    assert not loaded("show run") & {"matplotlib", "ray", *HALF_A_SECOND}


@pytest.mark.slow("::test_help_loads_next_to_nothing")
def test_commands_about_files_load_what_reads_them(loaded):
    # pyarrow brings pandas where it meets arrays.
    found = loaded("data prepare texts.csv out.csv", "data describe words.csv")
    assert found <= {"numpy", "pandas", "pyarrow", "pydantic", "numba", "scipy"}
    assert not loaded("data synthesize --clients 10 drawn.csv") & {
        "ray",
        "matplotlib",
        "scipy.stats",
    }
