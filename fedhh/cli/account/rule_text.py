"""Rules of sending as options write them: a use case with its epsilon and its cap."""

from __future__ import annotations

from collections.abc import Sequence

from fedhh.longitudinal.ledger import Charge, Rules
from fedhh.longitudinal.ledger.cap import Cap
from fedhh.validation import InputError, require_positive, shown

_UNLIMITED = "unlimited"
_RULE = "NAME=EPSILON:RECORDS[/DAYS][:ROLLOVER[:LIFETIME]]"
_PERMANENT = "NAME=EPSILON:VALUES"
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
    name, epsilons, fields = _fields(text, "--use-case", _RULE, most=3)
    records, _, days = fields[0].partition("/")
    unlimited = len(fields) > 1 and fields[1] == _UNLIMITED
    rollover = None if unlimited else _integer(fields[1], text) if len(fields) > 1 else 0
    cap = Cap(
        amount=_integer(records, text),
        session_days=_integer(days, text) if "/" in fields[0] else 1,
        rollover=rollover,
        lifetime=_integer(fields[2], text) if len(fields) > 2 else None,
    )
    reports = epsilons if len(epsilons) > 1 else ()
    return Charge(use_case=name, epsilon=sum(epsilons), reports=reports), cap


def _permanent(text: str) -> tuple[Charge, Cap]:
    """Return the charge and the cap of one --permanent."""
    name, epsilons, fields = _fields(text, "--permanent", _PERMANENT, most=1)
    if len(epsilons) != 1:
        raise InputError(f"Expected one epsilon in --permanent {_PERMANENT}, got {shown(text)}.")
    values = _integer(fields[0], text)
    # All of a device's values may come up on one day.
    cap = Cap(amount=values, rollover=None, lifetime=values)
    charge = Charge(use_case=name, epsilon=epsilons[0], once_per_value=True, most_values=values)
    return charge, cap


def _fields(
    text: str, option: str, form: str, *, most: int
) -> tuple[str, tuple[float, ...], list[str]]:
    """Return the name, the epsilons, and what follows them."""
    name, equals, rest = text.partition("=")
    first, *fields = rest.split(":")
    if not (name and equals and first and 1 <= len(fields) <= most):
        raise InputError(f"Expected {option} {form}, got {shown(text)}.")
    epsilons = []
    for part in first.split("+"):
        try:
            epsilons.append(float(part))
        except ValueError:
            raise InputError(
                f"Expected a number as epsilon in {option} {form}, got {shown(text)}."
            ) from None
    for epsilon in epsilons:
        require_positive(**{f"epsilon of {name}": epsilon})
    return name, tuple(epsilons), fields


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
