"""`fedhh account shuffle`, `user`, `anonymity`: the central privacy of one shuffle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from fedhh.cli.account.options import (
    AccountFormat,
    AccountFormatOption,
    ChosenCohort,
    Colluders,
    Delta,
    DomainSize,
    ExcessChance,
    HonestShare,
    LocalEpsilon,
    Population,
    Reports,
    collusion_given,
)
from fedhh.cli.options import FigureOption, Format, FormatOption

if TYPE_CHECKING:
    from fedhh.accounting.shuffle_accounts import ShuffleAccount
    from fedhh.experiments.study.parts import Part


def shuffle(  # noqa: PLR0917 - typer makes these options, none is positional
    local_epsilon: LocalEpsilon,
    reports: Reports,
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
    output_format: AccountFormatOption = AccountFormat.TABLE,
) -> None:
    """Central epsilon of one shuffle, item level, by every bound.

    With --honest-share or --colluders, clients tell the server their reports, and bounds count the
    reports of the others alone.

    Example: fedhh account shuffle --local-epsilon 10 --reports 30000000 --oracle ss
    --domain-size 1000001
    """
    from fedhh.accounting.shuffle_accounts import account_shuffle
    from fedhh.cli.text_tables import print_result
    from fedhh.oracles import oracle_names
    from fedhh.validation import InputError, require_choice

    require_choice(["any", *oracle_names()], oracle=oracle)
    if oracle != "ss":
        domain_size = None
    elif domain_size is None:
        raise InputError("Expected --domain-size with --oracle ss, got none.")
    _refuse_event(output_format)
    found = account_shuffle(
        local_epsilon=local_epsilon,
        num_reports=reports,
        delta=delta,
        domain_size=domain_size,
        honest_share=honest_share,
        collusion=collusion_given(
            colluders=colluders,
            population=population,
            excess_chance=excess_chance,
            chosen_cohort=chosen_cohort,
        ),
        max_items=max_items,
    )
    if figure is not None:
        from fedhh.experiments.report.account_figures import plot_shuffle

        plot_shuffle(
            figure,
            local_epsilon=local_epsilon,
            num_reports=found.honest_reports,
            delta=delta,
            domain_size=domain_size,
        )
    parts: list[Part] = [*_bounds(found)]
    parts += _honest(found.honest_reports, reports, "reports")
    print_result(output_format, found.to_dict, parts, figure=figure)


def _refuse_event(how: AccountFormat) -> None:
    if how is AccountFormat.DP_EVENT:
        from fedhh.accounting.dp_event import no_shuffle

        raise no_shuffle()


def _honest(honest: int, all_of_them: int, what: str) -> list[Part]:
    from fedhh.experiments.study.parts import Line

    if honest == all_of_them:
        return []
    return [Line(f"{honest:,} of {all_of_them:,} {what} are honest, at least; these alone count.")]


def _bounds(found: ShuffleAccount) -> Iterator[Part]:
    from fedhh.experiments.study.text_table import TextTable, round_up

    rows = []
    for key, stated in found.bounds.items():
        bound = stated.to_dict()
        epsilon, notes = bound["epsilon"], (stated.source, stated.note, bound["reason"])
        text = "not applicable" if epsilon is None else round_up(epsilon)
        rows.append((key.replace("_", " "), text, "; ".join(each for each in notes if each)))
    yield TextTable(
        title=f"central epsilon at delta {found.bounds['clones'].delta:g}, item level, swap",
        columns=("bound", "epsilon", "source"),
        rows=tuple(rows),
        note="",
        labels=3,
    )


def user(  # noqa: PLR0917 - typer makes these options, none is positional
    local_epsilon: LocalEpsilon,
    clients: Annotated[int, typer.Option(help="Clients in one cohort.")],
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
    output_format: AccountFormatOption = AccountFormat.TABLE,
) -> None:
    """Central epsilon of all contributions of a client.

    With --honest-share or --colluders, clients tell the server their reports, and bounds count the
    others alone.

    Example: fedhh account user --local-epsilon 10 --clients 500000 --max-items 60
    """
    from fedhh.accounting.guarantees import NotApplicable
    from fedhh.accounting.shuffle_accounts import account_user
    from fedhh.cli.text_tables import print_result
    from fedhh.experiments.study.text_table import TextTable, round_up

    _refuse_event(output_format)
    found = account_user(
        local_epsilon=local_epsilon,
        num_clients=clients,
        max_items=max_items,
        delta=delta,
        domain_size=domain_size,
        rounds=rounds,
        honest_share=honest_share,
        collusion=collusion_given(
            colluders=colluders,
            population=population,
            excess_chance=excess_chance,
            chosen_cohort=chosen_cohort,
        ),
    )
    table = TextTable(
        title=f"central epsilon at delta {delta + found.added_delta:g}, user level, swap",
        columns=("bound", "by groups", "by slots", "smallest"),
        rows=tuple(
            (
                name,
                round_up(each.groups),
                "not applicable" if isinstance(each.slots, NotApplicable) else round_up(each.slots),
                round_up(each.epsilon),
            )
            for name, each in found.bounds.items()
        ),
        note="",
    )
    parts: list[Part] = [table, *_honest(found.honest_clients, clients, "clients")]
    print_result(output_format, found.to_dict, parts)


def anonymity(  # noqa: PLR0917 - typer makes these options, none is positional
    local_epsilon: LocalEpsilon,
    reports: Reports,
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
    from fedhh.accounting.anonymity import account_anonymity
    from fedhh.accounting.guarantees import NotApplicable
    from fedhh.cli.text_tables import print_result
    from fedhh.experiments.study.text_table import TextTable

    found = account_anonymity(
        local_epsilon=local_epsilon,
        num_reports=reports,
        eta_max=eta_max,
        alphabet_size=alphabet_size,
        alpha=alpha,
        passes=passes,
    )
    content = {
        variant: {
            "k": None if isinstance(claim.k, NotApplicable) else claim.k,
            "probability": claim.probability,
            "reason": str(claim.k) if isinstance(claim.k, NotApplicable) else None,
            "source": claim.theorem,
            "assumptions": claim.assumptions,
        }
        for variant, claim in found.items()
    }
    rows = []
    for variant, row in content.items():
        k = "none" if row["k"] is None else str(row["k"])
        chance = "" if row["probability"] is None else f"{row['probability']:.4f}"
        notes = (row["source"], row["assumptions"], row["reason"])
        rows.append((variant, k, chance, "; ".join(str(note) for note in notes if note)))
    table = TextTable(
        title=f"approximate k-anonymity at alpha {alpha:g}, {passes} pass(es)",
        columns=("variant", "k", "P(kept) at k, or at 0", "source"),
        rows=tuple(rows),
        note="",
        labels=4,
    )
    record = {"unit": "item", "alpha": alpha, "passes": passes, **content}
    print_result(output_format, lambda: record, (table,))
