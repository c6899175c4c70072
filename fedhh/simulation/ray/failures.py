"""What Ray says of a failure, as an error of this program in one line."""

from __future__ import annotations

import re

from ray.exceptions import ObjectLostError, RayActorError, RayError

from fedhh.plugin_errors import PluginError
from fedhh.validation import InputError, RunFailedError

MOST_FAILURES = 20
"""Deaths of workers in one round, or of one task, after which the run stops: something else is
wrong then."""

LOST = (RayActorError, ObjectLostError)

_MISSING = re.compile(r"ModuleNotFoundError: No module named '([^']+)'")


def failure_of(error: RayError) -> Exception:
    """Return what a worker raised, or one line of Ray's own error, which may have pages."""
    cause = getattr(error, "cause", None)
    if not isinstance(cause, PluginError) and (missing := _MISSING.search(str(error))):
        return InputError(
            f"A Ray worker cannot import the module {missing[1]!r}, which is there in this "
            "process; install it on every node, or put it beside the config."
        )
    if isinstance(cause, Exception):
        return cause
    reason = str(error).strip().partition("\n")[0]
    return RunFailedError(
        f"A Ray worker failed ({type(error).__name__}): {reason} What is finished is kept: go on "
        "with --resume, with --workers 0 also without Ray."
    )
