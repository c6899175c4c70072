"""Names that commands had: each answers with one line that says the new one."""

from __future__ import annotations

from collections.abc import Callable

import typer

from fedhh.validation import InputError

_MOVED = {"paper": "python -m papers NAME in a checkout of fedhh's sources"}


def answer_moved_names(app: typer.Typer) -> None:
    """Add hidden commands of the old names, with any arguments."""
    anything = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
    for name, new in _MOVED.items():
        app.command(name, hidden=True, context_settings=anything)(_refusal(name, new))


def _refusal(name: str, new: str) -> Callable[[], None]:
    def refuse() -> None:
        """Say the new name."""
        raise InputError(f"`fedhh {name}` has another name now: {new}.")

    return refuse
