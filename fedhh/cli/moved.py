"""Names that commands and options had: each answers with one line that says the new one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer

from fedhh.validation import InputError

_COMMANDS = {
    "table": "fedhh show DIR --table NAME",
    "paper": "python -m papers NAME in a checkout of fedhh's sources",
    "account oracles": "fedhh oracles compare",
    "account cms-variance": "fedhh oracles size",
    "account audit": "fedhh audit randomizer",
    "account audit-life": "fedhh audit device, or fedhh audit log FILE for --transcript FILE",
}
_OPTIONS = {
    "--plot": "--figure",
    "--columns": "--column ROLE=NAME, repeated",
    "--protocols": "--protocol NAME, repeated",
}
"""Of every command that has the new one."""
_OPTIONS_OF = {
    "account ledger": {"--preset": "--rules", "--run": "SOURCE, without an option"},
    "audit device": {"--preset": "--rules", "--transcript": "fedhh audit log FILE"},
    "audit log": {"--preset": "--rules", "--transcript": "FILE, without an option"},
    "oracles compare": {"--epsilon": "--local-epsilon"},
    "oracles size": {"--epsilon": "--local-epsilon"},
    "data synthesize": {"--preset": "--source"},
}
"""Of single commands."""


def answer_moved_names(app: typer.Typer) -> None:
    """Add hidden commands of the old names, with any arguments."""
    anything = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
    groups = {group.name: group.typer_instance for group in app.registered_groups}
    for path, new in _COMMANDS.items():
        *above, name = path.split()
        group = groups[above[0]] if above else app
        if group is not None:
            group.command(name, hidden=True, context_settings=anything)(_refusal(path, new))


def _refusal(path: str, new: str) -> Callable[[], None]:
    def refuse() -> None:
        """Say the new name."""
        raise InputError(f"`fedhh {path}` has another name now: {new}.")

    return refuse


def new_option(error: Any) -> str:
    """Return what to say of an unknown option that had this name; nothing if none had."""
    option, context = getattr(error, "option_name", ""), getattr(error, "ctx", None)
    if context is None:
        return ""
    known = {name for param in context.command.params for name in param.opts}
    names = []
    while context.parent is not None:
        names.append(context.info_name)
        context = context.parent
    path = " ".join(reversed(names))
    new = _OPTIONS_OF.get(path, {}).get(option, _OPTIONS.get(option, ""))
    if new.startswith("--") and new.split()[0] not in known:
        return ""
    return f"{option} of `fedhh {path}` has another name now: {new}." if new else ""
