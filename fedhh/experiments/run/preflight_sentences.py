"""What is known before a run, in sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fedhh.experiments.config.labels import listed, round_up
from fedhh.validation import printable, shown
from fedhh.words.alphabet import NAMED_ALPHABETS

if TYPE_CHECKING:
    from fedhh.experiments.run.preflight import Preflight

_MUCH = 0.01
"""Share of contributions from which a loss is worth a sentence."""

_EXAMPLES = 3
_SYMBOLS = 12


def contents(found: Preflight) -> tuple[str, ...]:
    """Return what the clients hold, and how much of it can be found at all."""
    spelling = found.spelling
    return (
        f"{printable(found.name)}: {found.clients:,} {found.unit}s, "
        f"{found.words:,} distinct new words, typed "
        f"{found.contributions:,} times.",
        f"{1 - spelling.lost_token_share:.1%} of these contributions can be spelled with "
        f"{alphabet_label(spelling.alphabet)} and at most {spelling.depth} symbols.",
        *_dropped(found),
    )


def plan(found: Preflight) -> str:
    """Return the epsilons and the smallest cohort of each protocol, in one sentence."""
    delta = found.plans[0].central.delta
    each = [
        f"{plan.title} {epsilon_text(plan.central_epsilon)} and "
        f"{epsilon_text(plan.local_epsilon)}, {plan.smallest_cohort:,} {found.unit}s"
        for plan in found.plans
    ]
    return (
        f"Central and local epsilon before the run (item level, delta {delta:g}), and the smallest "
        f"cohort: {'; '.join(each)}."
    )


def advice(found: Preflight) -> tuple[str, ...]:
    """Return what would help, a sentence each; nothing where nothing stands in the way."""
    if not found.contributions:
        return (f"No {found.unit} holds a word that is not known: see population.known.",)
    return (*_spelling(found), *_not_amplified(found))


def alphabet_label(alphabet: str) -> str:
    """Return what an alphabet is called in a sentence."""
    for name, symbols in NAMED_ALPHABETS.items():
        if alphabet in (name, symbols):
            return f"the alphabet {name!r}"
    return f"an alphabet of {len(alphabet):,} symbols"


def _dropped(found: Preflight) -> tuple[str, ...]:
    """Return how much of a file's texts is no word, and why; nothing for counted words."""
    if not found.texts:
        return ()
    total = max(found.tokens, 1)
    reasons = sorted(found.dropped, key=lambda reason: -found.dropped[reason])
    shares = ", ".join(f"{reason} {found.dropped[reason] / total:.1%}" for reason in reasons)
    why = f" ({shares})" if shares else ""
    return (
        f"{sum(found.dropped.values()) / total:.1%} of the tokens of {found.texts:,} texts are no "
        f"words{why}; {found.empty_texts:,} texts hold no word.",
    )


def epsilon_text(epsilon: float) -> str:
    """Return an epsilon as text, never smaller than it is."""
    return "none" if math.isinf(epsilon) else round_up(epsilon)


def _not_amplified(found: Preflight) -> tuple[str, ...]:
    """Return where a shuffle amplifies nothing, and how many clients would change that."""
    plans = [each for each in found.plans if each.is_not_amplified]
    if not plans:
        return ()
    unit = f"{found.unit}s"
    who = f" for {listed([each.title for each in plans])}" if len(plans) < len(found.plans) else ""
    is_exact = all(each.central_epsilon >= each.local_epsilon for each in plans)
    text = (
        f"Shuffling the reports of {found.clients:,} {unit} amplifies "
        f"{'nothing' if is_exact else 'next to nothing'}{who}: the central epsilon is the local "
        f"one{'' if is_exact else ', to a thousandth'}."
    )
    more = []
    for each in plans:
        numbers = [
            f"{larger.clients:,} {unit} would have {round_up(larger.epsilon)}"
            for larger in dict.fromkeys(each.amplifying or ())
        ]
        if numbers:
            more.append(f"{each.title}: {listed(numbers)}")
        elif each.amplifying is not None:
            more.append(f"{each.title}: more {unit} do not change it with these settings")
    return (f"{text} {'; '.join(more)}." if more else text,)


def _spelling(found: Preflight) -> tuple[str, ...]:
    """Return what would spell more, where much is lost."""
    spelling = found.spelling
    if spelling.lost_token_share < _MUCH:
        return ()
    examples = ", ".join(map(shown, spelling.examples[:_EXAMPLES]))
    longer = spelling.longer_tokens / spelling.tokens
    other = spelling.lost_token_share - longer - found.folded_share
    symbols = printable(spelling.other_symbols[:_SYMBOLS])
    cures = {
        "lower case (--fold-case, population.fold_case)": found.folded_share,
        f"an alphabet with more symbols, such as {symbols} (population.alphabet = the symbols, or "
        '"auto" with a public list as population.alphabet_source)': other,
        f"words of more than {spelling.depth} symbols (protocol.depth or the like)": longer,
    }
    helps = "; ".join(f"{cure} for {cures[cure]:.1%}" for cure in cures if cures[cure] >= _MUCH)
    return (
        f"{spelling.lost_token_share:.1%} of the contributions cannot be found, such as {examples}"
        f"{f'. What helps: {helps}' if helps else ''}.",
    )
