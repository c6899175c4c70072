import math
from dataclasses import FrozenInstanceError

import pytest

from fedhh.oracles import ORACLES, OracleSpec, SubsetSelection, make_oracle
from fedhh.validation import InputError


def test_a_spec_makes_the_oracle_that_it_names():
    spec = OracleSpec(name="ss", epsilon=2.0, params={"subset_size": "optimal"})
    expected = SubsetSelection(epsilon=2.0, domain_size=28, subset_size="optimal")
    assert make_oracle(spec, 28) == expected


def test_every_name_makes_an_oracle_of_its_class():
    for name, oracle_class in ORACLES.items():
        epsilon = math.inf if name == "none" else 3.0
        assert type(make_oracle(OracleSpec(name=name, epsilon=epsilon), 10)) is oracle_class


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(InputError) as error:
        OracleSpec(name="gr", epsilon=1.0)
    assert "Unknown oracle 'gr'; did you mean 'grr'?" in str(error.value)
    assert all(name in str(error.value) for name in ORACLES)


def test_an_unknown_parameter_lists_the_known_ones():
    with pytest.raises(InputError, match=r"'subset' of oracle 'ss'.*Known: subset_size"):
        OracleSpec(name="ss", epsilon=1.0, params={"subset": "paper"})
    with pytest.raises(InputError, match=r"'subset_size' of oracle 'grr'; it takes none"):
        OracleSpec(name="grr", epsilon=1.0, params={"subset_size": "paper"})


def test_specs_are_frozen_hashable_and_compared_by_content():
    spec = OracleSpec(name="ss", epsilon=1.0, params={"subset_size": "paper"})
    again = OracleSpec(name="ss", epsilon=1.0, params={"subset_size": "paper"})
    assert spec == again
    assert hash(spec) == hash(again)
    assert spec != OracleSpec(name="ss", epsilon=1.0, params={"subset_size": "optimal"})
    with pytest.raises(FrozenInstanceError):
        spec.name = "grr"
