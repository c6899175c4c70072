"""What is known before a run: numbers, sentences, and what would help."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fedhh.accounting.guarantees import Guarantee
from fedhh.clients.describe import Spelling
from fedhh.devices import FEWEST_ANSWERS
from fedhh.experiments.config.labels import listed, round_up
from fedhh.experiments.run.privacy import epsilon_of
from fedhh.experiments.study.parts import Columns, Line, Part
from fedhh.validation import printable, shown
from fedhh.words.alphabet import NAMED_ALPHABETS

LESS = 1 - 1e-3
"""A central epsilon below this share of the local one is amplified."""
_MUCH = 0.01
"""Share of contributions from which a loss is worth a sentence."""
_EXAMPLES = 3
_SYMBOLS = 12


@dataclass(frozen=True, kw_only=True)
class LargerPopulation:
    """A number of clients with which a plan's central epsilon is smaller.

    Attributes:
        clients: How many.
        epsilon: The central epsilon before the run, at item level.
    """

    clients: int
    epsilon: float


@dataclass(frozen=True, kw_only=True)
class PlanFacts:
    """What a protocol's plan says before a run.

    Attributes:
        title: The protocol's.
        smallest_cohort: Clients of the smallest cohort.
        central: The central guarantee before the run, at item level.
        epsilons: See `Plan.epsilons_before_run`.
        amplifying: Where shuffling amplifies nothing: more clients with which it does, the fewest
            that were found and those of half the local epsilon. Empty if there are none, None if
            none were looked for.
        fewest_answers: Answers that a round accepts at least, for which the central guarantee is;
            None if all clients always answer.
    """

    title: str
    smallest_cohort: int
    central: Guarantee
    epsilons: Mapping[str, float]
    amplifying: tuple[LargerPopulation, ...] | None = None
    fewest_answers: int | None = None

    @property
    def central_epsilon(self) -> float:
        """The central epsilon before the run, infinite if there is none."""
        return epsilon_of(self.central)

    @property
    def local_epsilon(self) -> float:
        """The local epsilon of an item, infinite if clients trust the server."""
        return self.epsilons["local_epsilon"]

    @property
    def is_not_amplified(self) -> bool:
        """Whether reports are local, and readers of results learn as much as the server."""
        return self.local_epsilon * LESS <= self.central_epsilon < math.inf


@dataclass(frozen=True, kw_only=True)
class Preflight:
    """What is known before a run.

    Attributes:
        name: The population's.
        unit: What one client stands for.
        clients: Number of clients.
        words: Distinct words that devices do not know.
        contributions: How often these were typed.
        spelling: Which of these the protocol can spell.
        folded_share: Share of these contributions that it could spell in lower case, besides those
            that it can.
        plans: Of each protocol.
        texts: Texts of the file; 0 for counted words.
        empty_texts: Texts without a word.
        tokens: Pieces of all texts, dropped ones too.
        dropped: How many were dropped, by the reason.
    """

    name: str
    unit: str
    clients: int
    words: int
    contributions: int
    spelling: Spelling
    folded_share: float
    plans: tuple[PlanFacts, ...]
    texts: int = 0
    empty_texts: int = 0
    tokens: int = 0
    dropped: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join(self.lines)

    @property
    def lines(self) -> tuple[str, ...]:
        """All of it, in sentences; what would help comes last."""
        delta = self.plans[0].central.delta
        each = [
            f"{plan.title} {epsilons_text(plan.epsilons)}, {plan.smallest_cohort:,} {self.unit}s"
            for plan in self.plans
        ]
        plans = (
            f"Central and local epsilon before the run (delta {delta:g}), and the smallest cohort: "
            f"{'; '.join(each)}."
        )
        return (*self.contents, plans, *self.advice)

    @property
    def contents(self) -> tuple[str, ...]:
        """What the clients hold, and how much of it can be found at all, in sentences."""
        spelling = self.spelling
        return (
            f"{printable(self.name)}: {self.clients:,} {self.unit}s, "
            f"{self.words:,} distinct new words, typed "
            f"{self.contributions:,} times.",
            f"{1 - spelling.lost_token_share:.1%} of these contributions can be spelled with "
            f"{alphabet_label(spelling.alphabet)} and at most {spelling.depth} symbols.",
            *_dropped(self),
        )

    @property
    def advice(self) -> tuple[str, ...]:
        """What would help, a sentence each; empty where nothing stands in the way."""
        if not self.contributions:
            return (f"No {self.unit} holds a word that is not known: see population.known.",)
        return (*_spelling(self), *_few_answers(self), *_not_amplified(self))

    @property
    def plan_parts(self) -> tuple[Line, Columns]:
        """The epsilons and the smallest cohort of each protocol."""
        return plan_parts(self.plans, self.unit)

    @property
    def advice_parts(self) -> tuple[Line, ...]:
        """What would help, each with a dash."""
        return tuple(Line(f"- {line}", style="yellow") for line in self.advice)

    @property
    def parts(self) -> tuple[Part, ...]:
        """All of it to be printed: what the clients hold, the plans, what would help."""
        return (*map(Line, self.contents), *self.plan_parts, *self.advice_parts)

    @property
    def record(self) -> dict[str, Any]:
        """What JSON has of it: numbers, and the advice."""
        return {
            "protocols": [
                {
                    "protocol": plan.title,
                    "smallest_cohort": plan.smallest_cohort,
                    **(
                        {}
                        if plan.fewest_answers is None
                        else {"fewest_answers": plan.fewest_answers}
                    ),
                    **{name: or_none(each) for name, each in plan.epsilons.items()},
                    "delta": plan.central.delta,
                    "amplifying": [vars(each) for each in plan.amplifying or ()],
                }
                for plan in self.plans
            ],
            "advice": list(self.advice),
        }


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


def plan_parts(plans: Sequence[PlanFacts], unit: str) -> tuple[Line, Columns]:
    """Return the epsilons and the smallest cohort of some protocols, before the run.

    Args:
        plans: Of each protocol.
        unit: What one client stands for.
    """
    answers = any(plan.fewest_answers is not None for plan in plans)
    columns = Columns(
        heads=(
            *("protocol", "central", "local", "central, user", "local, user", "cohort"),
            *(["least answers"] if answers else []),
        ),
        rows=[
            (
                plan.title,
                *map(epsilon_text, plan.epsilons.values()),
                f"{plan.smallest_cohort:,}",
                *([f"{plan.fewest_answers:,}"] if answers else []),
            )
            for plan in plans
        ],
    )
    line = (
        f"Epsilon before the run of an item and of a user (delta {plans[0].central.delta:g}), and "
        f"{unit}s of the smallest cohort:"
    )
    return Line(line), columns


def epsilons_text(epsilons: Mapping[str, float]) -> str:
    """Return what holds before the run, of `Plan.epsilons_before_run`, in a few words.

    >>> epsilons_text({"item": 1.5, "local": 4.0, "user": 6.0, "user local": 20.0})
    '1.5 and 4 of an item, 6 and 20 of a user'
    """
    return "{} and {} of an item, {} and {} of a user".format(*map(epsilon_text, epsilons.values()))


def epsilon_text(epsilon: float) -> str:
    """Return an epsilon as text, never smaller than it is."""
    return "none" if math.isinf(epsilon) else round_up(epsilon)


def or_none(epsilon: float) -> float | None:
    """Return an epsilon as a JSON value, None if it is infinite."""
    return epsilon if epsilon < math.inf else None


def _few_answers(found: Preflight) -> tuple[str, ...]:
    """Return that a run accepts next to no answers, on which its central guarantee rests."""
    answers = [plan.fewest_answers for plan in found.plans if plan.fewest_answers is not None]
    if not answers or min(answers) > FEWEST_ANSWERS:
        return ()
    return (
        f"A round accepts {FEWEST_ANSWERS} answers, so that before the run the central guarantee "
        "is for so few: set devices.least_clients or devices.least_share.",
    )


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
