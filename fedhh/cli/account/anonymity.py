"""`fedhh account anonymity`: approximate k-anonymity of a layer."""

from __future__ import annotations

from typing import Annotated, Any

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
    from rich.table import Table

    from fedhh.accounting import LayerAnonymity, NotApplicable, paper_subset_size
    from fedhh.accounting import anonymity as claim_of
    from fedhh.cli.console import open_console, print_json
    from fedhh.validation import require_at_least

    require_at_least(1, eta_max=eta_max, alphabet_size=alphabet_size, passes=passes)
    domain_size = eta_max * alphabet_size + 1
    content: dict[str, Any] = {"unit": "item", "alpha": alpha, "passes": passes}
    for variant in ("lemma", "tight"):
        layer = LayerAnonymity(
            local_epsilon=local_epsilon,
            domain_size=domain_size,
            subset_size=paper_subset_size(local_epsilon, domain_size),
            num_kept=eta_max,
            num_reports=reports,
            variant=variant,
        )
        claim = claim_of([layer] * passes, alpha=alpha)
        content[variant] = {
            "k": None if isinstance(claim.k, NotApplicable) else claim.k,
            "probability": claim.probability,
            "reason": str(claim.k) if isinstance(claim.k, NotApplicable) else None,
            "source": claim.theorem,
            "assumptions": claim.assumptions,
        }
    if output_format is Format.JSON:
        print_json(content)
        return
    table = Table(title=f"approximate k-anonymity at alpha {alpha:g}, {passes} pass(es)")
    for heading in ("variant", "k", "P(kept) at k, or at 0", "source"):
        table.add_column(heading, overflow="fold")
    for variant in ("lemma", "tight"):
        row = content[variant]
        k = "none" if row["k"] is None else str(row["k"])
        chance = "" if row["probability"] is None else f"{row['probability']:.4f}"
        notes = (row["source"], row["assumptions"], row["reason"])
        table.add_row(variant, k, chance, "; ".join(note for note in notes if note))
    open_console().print(table)
