"""`fedhh account shuffle`, `user`, `anonymity`: the central privacy of one shuffle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedhh.cli.account.options import (
    ChosenCohort,
    Colluders,
    Delta,
    DomainSize,
    ExcessChance,
    HonestShare,
    LocalEpsilon,
    Population,
    Reports,
    asked_of,
)
from fedhh.cli.options import FigureOption, Format, FormatOption
from fedhh.validation import InputError, require_choice

if TYPE_CHECKING:
    from fedhh.accounting.guarantees import PrivacyReport


def shuffle(  # noqa: PLR0917 - typer makes these options, none is positional
    local_epsilon: LocalEpsilon,
    num_reports: Reports,
    delta: Delta = 1e-10,
    oracle: Annotated[str, typer.Option(help="ss, or any for any randomizer.")] = "any",
    domain_size: DomainSize = None,
    honest_share: HonestShare = None,
    colluders: Colluders = None,
    population: Population = None,
    max_items: Annotated[
        int, typer.Option(help="With --colluders: reports of a client, all of them told.")
    ] = 1,
    excess_chance: ExcessChance = None,
    chosen_cohort: ChosenCohort = False,
    figure: FigureOption = None,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Central epsilon of one shuffle, item level, by every bound.

    With --honest-share or --colluders, clients tell the server their reports, and bounds count the
    reports of the others alone.

    Example: fedhh account shuffle --local-epsilon 10 --reports 30000000 --oracle ss
    --domain-size 1000001
    """
    asked = asked_of(locals())
    from fedhh.accounting.shuffles import account_shuffle
    from fedhh.oracles import oracle_names

    require_choice(["any", *oracle_names()], oracle=asked.pop("oracle"))
    if oracle != "ss":
        asked["domain_size"] = None
    elif domain_size is None:
        raise InputError("Expected --domain-size with --oracle ss, got none.")
    found = account_shuffle(**asked)
    if figure is not None:
        from fedhh.experiments.report.account_figures import plot_shuffle

        drawn = {name: asked[name] for name in ("local_epsilon", "delta", "domain_size")}
        plot_shuffle(figure, **drawn, num_reports=found.guarantees[0].smallest_cohort * max_items)
    _print(
        found, f"central epsilon at delta {delta:g}, item level, replace-one", output_format, figure
    )


def user(  # noqa: PLR0917 - typer makes these options, none is positional
    local_epsilon: LocalEpsilon,
    num_clients: Annotated[int, typer.Option("--clients", help="Clients in one cohort.")],
    max_items: Annotated[int, typer.Option(help="Contributions per client, exactly so many.")],
    delta: Delta = 1e-10,
    domain_size: DomainSize = None,
    rounds: Annotated[
        int, typer.Option(help="Rounds in which a client takes part, of a window of collections.")
    ] = 1,
    honest_share: HonestShare = None,
    colluders: Colluders = None,
    population: Population = None,
    excess_chance: ExcessChance = None,
    chosen_cohort: ChosenCohort = False,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Epsilon of all contributions of a client, local and central.

    With --honest-share or --colluders, clients tell the server their reports, and bounds count the
    others alone.

    Example: fedhh account user --local-epsilon 10 --clients 500000 --max-items 60
    """
    asked = asked_of(locals())
    from fedhh.accounting.shuffles import account_user

    title = f"epsilon at delta {delta:g}, user level, replace-one"
    _print(account_user(**asked), title, output_format)


def anonymity(  # noqa: PLR0917 - typer makes these options, none is positional
    local_epsilon: LocalEpsilon,
    num_reports: Reports,
    eta_max: Annotated[int, typer.Option(help="Prefixes that a layer keeps.")],
    alphabet_size: Annotated[int, typer.Option(help="Symbols, the end symbol included.")],
    alpha: Annotated[float, typer.Option(help="Probability that a rare word stays unseen.")] = 0.95,
    passes: Annotated[int, typer.Option(help="Passes in which a word may surface.")] = 1,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Approximate k-anonymity of a layer, as printed in the paper and corrected.

    Example: fedhh account anonymity --local-epsilon 10 --reports 30000000 --eta-max 10000
    --alphabet-size 100
    """
    asked = asked_of(locals())
    from fedhh.accounting.anonymity import account_anonymity
    from fedhh.cli.text_tables import print_result
    from fedhh.experiments.study.text_table import TextTable

    found = account_anonymity(**asked)
    rows = []
    for claim in found.anonymity:
        known = isinstance(claim.k, int)
        chance = "" if claim.probability is None else f"{claim.probability:.4f}"
        why = "" if known or claim.k is None else f"; {claim.k}"
        source = f"{claim.theorem}; {claim.assumptions}{why}"
        rows.append((claim.variant, str(claim.k) if known else "none", chance, source))
    table = TextTable(
        title=f"approximate k-anonymity at alpha {alpha:g}, {passes} pass(es)",
        columns=("variant", "k", "P(kept) at k, or at 0", "source"),
        rows=tuple(rows),
        note="",
        labels=4,
    )
    print_result(output_format, found.to_dict, (table,))


def _print(found: PrivacyReport, title: str, how: Format, figure: Path | None = None) -> None:
    """Print the guarantees of a report, and what has to be known about them."""
    from fedhh.accounting.guarantees import NotApplicable
    from fedhh.cli.text_tables import print_result
    from fedhh.experiments.study.parts import Line
    from fedhh.experiments.study.text_table import TextTable, round_up

    rows = []
    for each in found.guarantees:
        epsilon, source = "not applicable", each.theorem
        if isinstance(each.epsilon, NotApplicable):
            source += f"; {each.epsilon.reason}"
        else:
            epsilon = round_up(each.epsilon)
        if each.assumptions.startswith("comparison"):
            source += f"; {each.assumptions}"
        name = each.method if each.trust == "central" else "local"
        rows.append((name + (" *" if each.best else ""), epsilon, source))
    table = TextTable(
        title=title,
        columns=("bound", "epsilon", "source"),
        rows=tuple(rows),
        note="",
        labels=3,
    )
    said = ("* the smallest that is proven.", *found.notes)
    print_result(how, found.to_dict, [table, *map(Line, said)], figure=figure)
