"""The table `[devices]` of a configuration: when clients' devices are there to answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from fedhh.devices import CURVES, Deadline, Devices, Hours, Points, PositiveShare, SmallerShare
from fedhh.experiments.config.section import CountOrAuto, Section
from fedhh.settings import Count, described


def _curve(value: Any) -> Any:
    """Return a name or points of a curve; the error says in one line what is expected."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        points = [tuple(each) if isinstance(each, list | tuple) else () for each in value]
        if all(len(point) == 2 and all(map(_is_number, point)) for point in points):
            return tuple((float(hours), float(share)) for hours, share in points)
    expected = f"{', '.join(CURVES)}, or a list of points [hours, share]"
    raise PydanticCustomError("curve", "{expected}", {"expected": expected})


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class DevicesConfig(Section):
    """When clients' devices are there; without this table, all always answer at once."""

    check_in: Annotated[str | Points, BeforeValidator(_curve)] = "always"
    eligible: PositiveShare = 1.0
    dropout: SmallerShare = 0.0
    deadline_hours: Deadline | None = None
    least_clients: Count | None = None
    least_share: PositiveShare | None = None
    when_missed: Literal["wait", "stop"] = "wait"
    gap_hours: Hours = 0.0
    answers_per_day: CountOrAuto = "auto"

    @property
    def devices(self) -> Devices:
        """The settings, for a run.

        Raises:
            InputError: They contradict each other.
        """
        return Devices(**dict(self))


# What the settings mean stands once, with the dataclass that they make.
_MEANINGS = "".join(f"    {key}: {text}\n" for key, text in described(Devices).items())
DevicesConfig.__doc__ = f"{DevicesConfig.__doc__}\n\nAttributes:\n{_MEANINGS}"
