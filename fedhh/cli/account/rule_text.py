"""Rules of sending as options write them: a use case with its epsilon and its cap."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from fedhh.longitudinal.ledger import Charge, Rules
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.validation import InputError, require_positive, shown

_UNLIMITED = "unlimited"
_RULE = "--use-case NAME=EPSILON:RECORDS[/DAYS][:ROLLOVER[:LIFETIME]]"
_PERMANENT = "--permanent NAME=EPSILON:VALUES"
_EITHER = r"([^=]+)=([^:]+):([^:/]*)"
_LARGEST_INTEGER = 10**5


def rules_given(use_cases: Sequence[str], permanent: Sequence[str] = ()) -> Rules:
    """Return the rules of --use-case and --permanent."""
    pairs = [*map(_use_case, use_cases), *map(_permanent, permanent)]
    return Rules(
        charges=tuple(charge for charge, _ in pairs),
        caps={charge.use_case: cap for charge, cap in pairs},
    )


def _use_case(text: str) -> tuple[Charge, Cap]:
    """Return the charge and the cap of one --use-case."""
    form = _EITHER + "(?:/([^:]*))?(?::([^:]*))?(?::([^:]*))?"
    name, epsilons, (records, days, rollover, lifetime) = _matched(form, text, _RULE)
    rollover = "0" if rollover is None else rollover
    cap = Cap(
        amount=_integer(records, text),
        session_days=1 if days is None else _integer(days, text),
        rollover=None if rollover == _UNLIMITED else _integer(rollover, text),
        lifetime=None if lifetime is None else _integer(lifetime, text),
    )
    reports = epsilons if len(epsilons) > 1 else ()
    return Charge(use_case=name, epsilon=sum(epsilons), reports=reports), cap


def _permanent(text: str) -> tuple[Charge, Cap]:
    """Return the charge and the cap of one --permanent."""
    name, epsilons, (number,) = _matched(_EITHER, text, _PERMANENT)
    if len(epsilons) != 1:
        raise InputError(f"Expected one epsilon in {_PERMANENT}, got {shown(text)}.")
    values = _integer(number, text)
    # All of a device's values may come up on one day.
    cap = Cap(amount=values, rollover=None, lifetime=values)
    charge = Charge(use_case=name, epsilon=epsilons[0], once_per_value=True, most_values=values)
    return charge, cap


def _matched(form: str, text: str, said: str) -> tuple[str, tuple[float, ...], list[Any]]:
    """Return the name, the epsilons, and what follows them; None where something is not said."""
    match = re.fullmatch(form, text)
    if match is None:
        raise InputError(f"Expected {said}, got {shown(text)}.")
    name, first, *rest = match.groups()
    try:
        epsilons = tuple(map(float, first.split("+")))
    except ValueError:
        raise InputError(f"Expected a number as epsilon in {said}, got {shown(text)}.") from None
    for epsilon in epsilons:
        require_positive(**{f"epsilon of {name}": epsilon})
    return name, epsilons, rest


def _integer(part: str, text: str) -> int:
    try:
        number = int(part)
    except ValueError:
        raise InputError(f"Expected an integer for {shown(part)} in {shown(text)}.") from None
    if number > _LARGEST_INTEGER:
        raise InputError(
            f"Expected at most {_LARGEST_INTEGER}, got {shown(part)} in {shown(text)}."
        )
    return number
