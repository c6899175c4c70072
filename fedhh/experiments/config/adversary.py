"""The table `[adversary]` of a configuration: fake clients, or clients that collude."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fedhh.adversary import (
    MOST_TARGETS,
    Adversary,
    FakeCounts,
    FakeShare,
    Goal,
    Strategy,
    TargetLength,
)
from fedhh.experiments.config.section import Section, one_of, text_or_texts
from fedhh.settings import described


class AdversaryConfig(Section):
    """Fake clients, or clients that collude; without this table, all clients are honest."""

    clients: Annotated[FakeCounts, one_of(FakeCounts)] = None
    share: FakeShare | None = None
    goal: Goal = "promote"
    strategy: Strategy = "output"
    targets: Annotated[str | tuple[str, ...], text_or_texts("a word or a list of words")] = ()
    num_targets: Annotated[int, Field(ge=1, le=MOST_TARGETS)] = 1
    target_length: TargetLength = 8

    @property
    def adversary(self) -> Adversary:
        """The settings, for a run.

        Raises:
            InputError: They contradict each other.
        """
        values = dict(self)
        if isinstance(self.targets, str):
            values["targets"] = (self.targets,) if self.targets else ()
        return Adversary(**values)


# What the settings mean stands once, with the dataclass that they make.
_MEANINGS = "".join(f"    {key}: {text}\n" for key, text in described(Adversary).items())
AdversaryConfig.__doc__ = f"{AdversaryConfig.__doc__}\n\nAttributes:\n{_MEANINGS}"
