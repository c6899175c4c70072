"""`fedhh account anonymity`: approximate k-anonymity of a layer."""

from __future__ import annotations

from typing import Annotated

import typer

from fedhh.cli.account.options import LocalEpsilon, Reports
from fedhh.cli.options import Format, FormatOption


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
    from fedhh.accounting import NotApplicable, account_anonymity
    from fedhh.cli.account.output import show_table
    from fedhh.cli.console import print_json
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
    if output_format is Format.JSON:
        print_json({"unit": "item", "alpha": alpha, "passes": passes, **content})
        return
    rows = []
    for variant, row in content.items():
        k = "none" if row["k"] is None else str(row["k"])
        chance = "" if row["probability"] is None else f"{row['probability']:.4f}"
        notes = (row["source"], row["assumptions"], row["reason"])
        rows.append((variant, k, chance, "; ".join(str(note) for note in notes if note)))
    show_table(
        TextTable(
            title=f"approximate k-anonymity at alpha {alpha:g}, {passes} pass(es)",
            columns=("variant", "k", "P(kept) at k, or at 0", "source"),
            rows=tuple(rows),
            note="",
            labels=4,
        )
    )
