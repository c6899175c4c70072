import math
import subprocess
import sys
from dataclasses import FrozenInstanceError

import pytest

from fedhh.oracles import (
    ORACLES,
    FrequencyOracle,
    OracleSpec,
    SubsetSelection,
    make_oracle,
    make_pure_oracle,
    oracle_class,
)
from fedhh.validation import InputError


def test_a_spec_makes_the_oracle_that_it_names():
    spec = OracleSpec(name="ss", epsilon=2.0, params={"subset_size": "optimal"})
    expected = SubsetSelection(epsilon=2.0, domain_size=28, subset_size="optimal")
    assert make_oracle(spec, 28) == expected


def test_every_name_makes_an_oracle_of_its_class():
    for name, place in ORACLES.items():
        epsilon = math.inf if name == "none" else 3.0
        made = make_oracle(OracleSpec(name=name, epsilon=epsilon), 10)
        assert type(made) is oracle_class(name)
        assert place == f"{type(made).__module__}:{type(made).__qualname__}"


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(InputError) as error:
        OracleSpec(name="grrr", epsilon=1.0)
    assert "Unknown oracle 'grrr'; did you mean 'grr'?" in str(error.value)
    assert all(name in str(error.value) for name in ORACLES)


def test_an_unknown_parameter_lists_the_known_ones():
    with pytest.raises(InputError, match=r"'subset' of oracle 'ss'.*Known: subset_size"):
        OracleSpec(name="ss", epsilon=1.0, params={"subset": "paper"})
    with pytest.raises(InputError, match=r"'subset_size' of oracle 'grr'; it takes none"):
        OracleSpec(name="grr", epsilon=1.0, params={"subset_size": "paper"})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"domain_size": 5.0}, r"Expected an integer domain_size >= 2, got domain_size=5\.0"),
        ({"domain_size": 1}, "Expected an integer domain_size >= 2, got domain_size=1"),
        (
            {"epsilon": math.nan},
            r"Expected 1e-06 <= epsilon <= 1e\+09, got epsilon=nan",
        ),
        (
            {"epsilon": "4"},
            r"Expected 1e-06 <= epsilon <= 1e\+09, got epsilon='4'",
        ),
        ({"subset_size": "best"}, "Unknown subset_size 'best'"),
    ],
)
def test_settings_of_a_wrong_type_or_size_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        SubsetSelection(**{"epsilon": 4.0, "domain_size": 5, **settings})


def test_specs_are_frozen_hashable_and_compared_by_content():
    spec = OracleSpec(name="ss", epsilon=1.0, params={"subset_size": "paper"})
    again = OracleSpec(name="ss", epsilon=1.0, params={"subset_size": "paper"})
    assert spec == again
    assert hash(spec) == hash(again)
    assert spec != OracleSpec(name="ss", epsilon=1.0, params={"subset_size": "optimal"})
    with pytest.raises(FrozenInstanceError):
        spec.name = "grr"


OWN_MODULE = """
from dataclasses import dataclass
from fedhh.oracles import GeneralizedRandomizedResponse

@dataclass(frozen=True, kw_only=True)
class Mine(GeneralizedRandomizedResponse):
    rounds: int = 1

class NoOracle:
    pass
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch, own_modules):
    (tmp_path / "own_oracles.py").write_text(OWN_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield "own_oracles"
    sys.modules.pop("own_oracles", None)


def test_an_oracle_of_a_module_is_found_by_module_and_class(own_module):
    spec = OracleSpec(name=f"{own_module}:Mine", epsilon=1.0, params={"rounds": 3})
    made = make_oracle(spec, 4)
    assert type(made).__name__ == "Mine"
    assert (made.rounds, made.domain_size) == (3, 4)
    with pytest.raises(InputError, match=r"'round' of oracle 'own_oracles:Mine'; did you mean"):
        OracleSpec(name=f"{own_module}:Mine", epsilon=1.0, params={"round": 3})


def test_a_class_that_is_no_oracle_is_refused(own_module):
    with pytest.raises(InputError, match=r"Expected a subclass of .*FrequencyOracle as oracle"):
        OracleSpec(name=f"{own_module}:NoOracle", epsilon=1.0)


def test_a_server_that_needs_p_and_q_refuses_an_oracle_without(monkeypatch):
    monkeypatch.setitem(ORACLES, "impure", f"{__name__}:Impure")
    with pytest.raises(InputError, match=r"a PureOracle, got oracle='impure'"):
        make_pure_oracle(OracleSpec(name="impure", epsilon=1.0), 4)


class Impure(FrequencyOracle):
    """Only a name: nobody may call it."""

    privatize = estimate = variance = log_prob = report_space = report_bits = _add_reports = None


def test_importing_the_package_loads_no_kernel():
    code = "import sys, fedhh.oracles; print({'numba', 'scipy'} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "set()\n"
