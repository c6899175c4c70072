"""What `fedhh account ledger` prints and draws."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedhh.accounting.guarantees import Guarantee, NotApplicable
from fedhh.accounting.ledger.curve import Curve, loss_curve
from fedhh.accounting.ledger.statements import EARLY, LATER, PLD, RECORD, SUM
from fedhh.cli.account.bounds import round_up
from fedhh.cli.account.ledger_request import Answer, LedgerRequest, answer
from fedhh.cli.console import open_console, print_json, print_line, print_written
from fedhh.cli.second_opinions import print_opinions

if TYPE_CHECKING:
    from rich.table import Table

    from fedhh.accounting.ledger import Charge
    from fedhh.accounting.second_opinion import SecondOpinion
    from fedhh.cli.console import SafeConsole

_DAYS_SHOWN = 7
_METHODS = {SUM: "sum", EARLY: "advanced 2010", LATER: "advanced 2015", PLD: "PLD"}


def print_event(request: LedgerRequest) -> None:
    """Print a whole life's records as an event of dp-accounting: Python that evaluates to it.

    Raises:
        NoDpEventError: There is none.
        InputError: See `answer`.
    """
    from fedhh.accounting.dp_event import NEIGHBORS, event_of_charges, expression

    found = answer(request)
    event = event_of_charges(found.rules.charges, found.most_in_life(request.num_days))
    console = open_console()
    print_line(
        console,
        f"# {found.title}: all that a device sends in {request.num_days} days, local; neighbors: "
        f"{_neighboring(found)}, {NEIGHBORS}.",
    )
    print_line(console, expression(event))


def print_ledger(
    request: LedgerRequest, *, plot: Path | None, second_opinion: bool, as_json: bool
) -> None:
    """Print a ledger, and draw it if a figure is named.

    Raises:
        RefutedClaimError: See `fedhh.accounting.second_opinion`.
        InputError: See `answer`; or the figure cannot be written; or no second opinion can be had.
    """
    if second_opinion:
        from fedhh.accounting.second_opinion import check_delta

        check_delta(request.delta)
    if plot is not None:
        from fedhh.experiments.report.account_figures import check_figure

        check_figure(plot)
    found = answer(request)
    if plot is not None:
        from fedhh.experiments.report.ledger_figures import plot_ledger

        plot_ledger(
            plot,
            title=found.title,
            curve=_curve(found, request),
            spent=None if found.busy is None else found.busy.by_day,
            delta=request.delta,
        )
    opinions = _opinions(found, request) if second_opinion else None
    if as_json:
        content = _content(found, request)
        if opinions is not None:
            content["second_opinion"] = [each.to_dict() for each in opinions]
        print_json(content)
        return
    console = open_console()
    console.print(_levels(found, request))
    console.print(_use_cases(found, request))
    if found.busy is not None:
        console.print(_busy(found))
    if opinions is not None:
        print_opinions(opinions)
    _print_notes(console, found)
    if plot is not None:
        print_written(plot)


def _opinions(found: Answer, request: LedgerRequest) -> list[SecondOpinion]:
    """Return second opinions on the whole life: of all use cases together, and of each alone."""
    from fedhh.accounting.second_opinion import opinion_on_charges

    charges, most = found.rules.charges, found.most_in_life(request.num_days)
    asked: list[tuple[str | None, list[Charge], list[int]]] = [(None, list(charges), list(most))]
    if len(charges) > 1:
        asked += [
            (charge.use_case, [charge], [count])
            for charge, count in zip(charges, most, strict=True)
        ]
    return [
        opinion_on_charges(
            some,
            counts,
            delta=request.delta,
            stated=[each for each in found.report.of(name).guarantees if each.unit == "user"],
            claim="a life, all use cases" if name is None else f"a life, {_short(name, found)}",
        )
        for name, some, counts in asked
        if sum(counts) > 1
    ]


def _curve(found: Answer, request: LedgerRequest) -> Curve:
    """Return what lives of some lengths lose at most."""
    return loss_curve(
        found.rules.charges, found.most_in_life, num_days=request.num_days, delta=request.delta
    )


def _content(found: Answer, request: LedgerRequest) -> dict[str, Any]:
    """Return everything as JSON."""
    busy = found.busy
    return {
        "rules": found.title,
        "use_cases": {
            charge.use_case: {
                "epsilon": charge.epsilon,
                "reports": list(charge.parts),
                "once_per_value": charge.once_per_value,
                "amount": found.rules.caps[charge.use_case].amount,
                "session_days": found.rules.caps[charge.use_case].session_days,
                "rollover": found.rules.caps[charge.use_case].rollover,
                "lifetime": found.rules.caps[charge.use_case].lifetime,
            }
            for charge in found.rules.charges
        },
        "delta": request.delta,
        **found.report.to_dict(),
        "curve": asdict(_curve(found, request)),
        "busy_device": None
        if busy is None
        else {
            "permitted_per_day": busy.permitted_per_day,
            "events_per_day": busy.events,
            "idle_days": busy.idle_days,
            "num_reports": busy.reports,
            "loss_by_day": busy.by_day,
            "largest_in_24_hours": busy.largest_in_24_hours,
            "spent": busy.spending.to_dict(),
        },
        "notes": list(found.notes),
    }


def _table(title: str, first: str, heads: list[str]) -> Table:
    from rich.table import Table

    table = Table(title=title)
    table.add_column(first, overflow="fold")
    for head in heads:
        table.add_column(head, justify="right")
    return table


def _levels(found: Answer, request: LedgerRequest) -> Table:
    """Return the table of all use cases together: a row for each level."""
    table = _table(
        f"{found.title}: all use cases together, {request.num_days} "
        f"day{'s' * (request.num_days > 1)}\nlocal epsilon, {_neighboring(found)}; delta 0 for the "
        f"sum, else {request.delta:g}",
        "unit",
        list(_METHODS.values()),
    )
    for unit in dict.fromkeys(each.unit for each in found.report.together.guarantees):
        of_unit = {
            each.method: each for each in found.report.together.guarantees if each.unit == unit
        }
        of_unit[SUM] = of_unit.get(SUM) or of_unit[RECORD]
        table.add_row(unit, *(_text(of_unit.get(method)) for method in _METHODS))
    table.caption = "*: the smallest; an empty cell is a single record."
    return table


def _use_cases(found: Answer, request: LedgerRequest) -> Table:
    """Return the table of single use cases: a record, a day, and all of a life."""
    table = _table(
        "each use case alone",
        "use case",
        ["a record", "a day", "records", "life: sum", "advanced 2015", "PLD"],
    )
    for charge in found.rules.charges:
        name = charge.use_case
        report = found.report
        life = report.guarantee("user", SUM, name)
        table.add_row(
            _short(name, found),
            round_up(charge.epsilon),
            round_up(_number(report.guarantee("day", SUM, name))),
            life.assumptions.split(" ", 1)[0],
            *(_text(report.guarantee("user", method, name)) for method in (SUM, LATER, PLD)),
        )
    return table


def _busy(found: Answer) -> Table:
    """Return the table of what a busy device sent."""
    busy = found.busy
    assert busy is not None
    spending = busy.spending
    table = _table(
        f"a device with {busy.events} events of each name on a busy day, after {busy.idle_days} "
        "idle ones",
        "what it may send, and what it sent",
        ["sum of epsilons"],
    )
    for what, epsilon in busy.permitted_per_day.items():
        table.add_row(f"permitted a day on average, {what}", round_up(epsilon))
    table.add_row("in its life", round_up(spending.life.basic.largest or 0.0))
    table.add_row("on its worst day, counted from opt-in", round_up(max(busy.by_day)))
    table.add_row("in its worst 24 hours", round_up(busy.largest_in_24_hours))
    first = next((day for day, loss in enumerate(busy.by_day) if loss), 0)
    table.add_row(
        f"day by day, from day {first} on",
        ", ".join(f"{loss:g}" for loss in busy.by_day[first : first + _DAYS_SHOWN]),
    )
    for name, losses in spending.life_by_use_case.items():
        table.add_row(
            f"of {_short(name, found)}, in its life", round_up(losses.basic.largest or 0.0)
        )
    return table


def _print_notes(console: SafeConsole, found: Answer) -> None:
    for note in (*found.report.together.notes, *found.notes):
        print_line(console, note)


def _short(name: str, found: Answer) -> str:
    """Return a use case's name for a table; of a BudgetKeyName, the last word."""
    return name if found.busy is None else name.rpartition(".")[2]


def _neighboring(found: Answer) -> str:
    """Return the neighboring relation; the weakest, where use cases differ."""
    kinds = {each.neighboring for each in found.report.together.guarantees}
    return max(kinds, key=len)


def _number(guarantee: Guarantee) -> float:
    return float("inf") if isinstance(guarantee.epsilon, NotApplicable) else guarantee.epsilon


def _plain(guarantee: Guarantee) -> float | None:
    return None if isinstance(guarantee.epsilon, NotApplicable) else guarantee.epsilon


def _text(guarantee: Guarantee | None) -> str:
    """Return an epsilon for a table, rounded up, the smallest marked."""
    if guarantee is None:
        return ""
    if isinstance(guarantee.epsilon, NotApplicable):
        return "not applicable"
    epsilon = guarantee.epsilon
    text = round_up(epsilon) if epsilon < 1e6 else f"{epsilon:.2g}"
    return text + (" *" if guarantee.best else "")
