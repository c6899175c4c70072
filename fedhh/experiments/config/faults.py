"""The table `[faults]` of a configuration: which clients send what the server refuses."""

from __future__ import annotations

from typing import Literal

from fedhh.devices import SmallerShare
from fedhh.experiments.config.section import Section
from fedhh.faults import Faults
from fedhh.settings import described


class FaultsConfig(Section):
    """Which clients send what the server refuses; without this table, none does."""

    second_answers: SmallerShare = 0.0
    stale_answers: SmallerShare = 0.0
    wrong_number: SmallerShare = 0.0
    wrong_size: SmallerShare = 0.0
    wrong_type: SmallerShare = 0.0
    no_such_row: SmallerShare = 0.0
    out_of_domain: SmallerShare = 0.0
    repeated_members: SmallerShare = 0.0
    order: Literal["random", "heavy-first"] = "random"

    @property
    def faults(self) -> Faults:
        """The settings, for a run.

        Raises:
            InputError: The shares are too large together.
        """
        return Faults(**dict(self))


# What the settings mean stands once, with the dataclass that they make.
_MEANINGS = "".join(f"    {key}: {text}\n" for key, text in described(Faults).items())
FaultsConfig.__doc__ = f"{FaultsConfig.__doc__}\n\nAttributes:\n{_MEANINGS}"
