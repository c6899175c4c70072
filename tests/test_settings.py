from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import pytest
from annotated_types import Ge, Gt, Lt

from fedhh.settings import (
    Count,
    CountOrAuto,
    FromConfig,
    Positive,
    Settings,
    config_path,
    decided,
    described,
    settings_of,
)
from fedhh.validation import InputError
from tests.every import every


@dataclass(frozen=True, kw_only=True)
class Base(Settings):
    """A base.

    Attributes:
        depth: Of the base, stated
            on two lines.
    """

    depth: Count = 3


@dataclass(frozen=True, kw_only=True)
class Mine(Base):
    """A class of settings.

    Attributes:
        size: How many.
        share: A share: of one.

    More text: this is no field.
    """

    size: CountOrAuto = "auto"
    share: Annotated[float, Gt(0), Lt(1)] = 0.5
    rate: Annotated[Positive, FromConfig("privacy.rate")] = 1.0
    budget: Annotated[float, Gt(0)] = math.inf
    seed: Annotated[Annotated[int, Ge(0)] | None, FromConfig("seed")] = None
    rule: Literal["strict", "paper"] = "strict"
    pad: bool = True
    label: str = ""
    sizes: tuple[Count, ...] | None = None
    words: tuple[str, ...] = ()


@every(
    ("name", "value", "message"),
    [
        ("depth", 0, "Expected an integer depth >= 1, got depth=0."),
        ("depth", True, "Expected an integer depth, got depth=True."),
        ("depth", 2.0, "Expected an integer depth >= 1 and <= 1099511627776, got depth=2.0."),
        ("size", 0, "Expected an integer size >= 1 or \"auto\", got size=0."),
        ("size", "aut", "Expected an integer size >= 1 and <= 1099511627776 or \"auto\", got "
                        "size='aut'."),
        ("share", 1.0, "Expected 0 < share < 1, got share=1.0."),
        ("share", "a", "Expected 0 < share < 1, got share='a'."),
        ("rate", math.inf, "Expected 0 < rate < inf, got rate=inf."),
        ("rate", math.nan, "Expected 0 < rate < inf, got rate=nan."),
        ("budget", 0, "Expected 0 < budget, got budget=0."),
        ("seed", -1, "Expected an integer seed >= 0 or None, got seed=-1."),
        ("rule", "papier", "Unknown rule 'papier'; did you mean 'paper'? Known: paper, strict."),
        ("pad", 1, "Expected pad as true or false, got pad=1."),
        ("label", 1, "Expected label as text, got label=1."),
        ("sizes", (3, -3), "Expected sizes as a tuple, each an integer >= 1 and <= 1099511627776 "
                           "or None, got sizes=(3, -3)."),
        ("words", ("a", 3), "Expected words as a tuple, each text, got words=('a', 3)."),
        ("words", "ab", "Expected words as a tuple, each text, got words='ab'."),
    ],
)  # fmt: skip
def test_a_value_out_of_its_type_is_refused_with_name_value_and_bound(name, value, message):
    with pytest.raises(InputError) as refused:
        replace(Mine(), **{name: value})
    assert str(refused.value) == message


@pytest.mark.parametrize(
    "values",
    [
        {"size": 5, "seed": 0},
        {"share": 0.999, "budget": 1},
        {"rule": "paper", "rate": 3},
        {"sizes": (1, 2), "words": ("a",)},
    ],
)
def test_values_within_their_bounds_pass(values):
    assert replace(Mine(), **values)


def test_a_field_that_the_config_keeps_elsewhere_says_where():
    paths = {name: config_path(each) for name, each in settings_of(Mine).items()}
    elsewhere = {name: path for name, path in paths.items() if path is not None}
    assert elsewhere == {"rate": "privacy.rate", "seed": "seed"}


def test_docstrings_of_a_class_and_its_bases_describe_the_fields():
    assert described(Mine) == {
        "depth": "Of the base, stated on two lines.",
        "size": "How many.",
        "share": "A share: of one.",
    }


def test_a_number_that_is_not_decided_names_the_cure():
    assert decided(3, "size") == 3
    with pytest.raises(InputError, match=r"size as a number.*settle\(num_clients="):
        decided("auto", "size")
