"""Configurations of Apple's budget manager as they were audited: four files, version by version.

`CONFIGURATIONS` has them by name; next to every number stands its table or section.

Tang, Korolova, Bai, Wang, Wang (2017), "Privacy Loss in Apple's Implementation of Differential
Privacy on MacOS 10.12", arXiv:1709.02753. Tables and sections here are theirs. The paper prints 7
of 13 PropertiesNames and 13 of 160 KeyNames (section 3.2.1), and no SubmissionPriority: names that
begin as a printed one belong to it, and all priorities are equal here. The photos search keys of
10.12.1 (Table 3) are left out, since their parameters are not printed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fedhh.longitudinal.ledger.cap import Cap
from fedhh.validation import InputError, did_you_mean, require_at_least, require_positive

DAY = 86_400
"""Seconds; SessionSeconds of all budgets but health (Table 2)."""
WEEK = 604_800
"""SessionSeconds of com.apple.health (Table 2)."""
EPSILON_MAX = 2.0
"""Hard-coded; above it, a PrivacyParameter is replaced by 1 (section 5.2, Figure 14)."""
NEVER_SENT = 99_999
"""SubmissionPriority of a record whose PrivacyParameter was replaced (section 5.2)."""
MOST_PER_KEY = 40
"""Hard-coded limit of a report's records of one KeyName (section 4.2.1, Figure 13)."""

EMOJI, SEARCH = "com.apple.keyboard.Emoji", "com.apple.parsec.Search"
NEW_WORDS, DEEP_LINK = "com.apple.keyboard.NewWords", "com.apple.parsec.AppDeepLink"
HEALTH, SAFARI = "com.apple.health", "com.apple.safari"
TEST, DEFAULT = (
    "com.apple.differentialprivacy.testBudget",
    "com.apple.DifferentialPrivacy.default",
)
INITIALLY_ANNOUNCED = (NEW_WORDS, DEEP_LINK, SEARCH, EMOJI)
"""The four applications announced in June 2016 (sections 1 and 4.2.3)."""


@dataclass(frozen=True, kw_only=True)
class BudgetProperties:
    """An entry of budgetproperties.plist (section 3.2.4).

    Attributes:
        session_amount: Records of one KeyName in a report, and rise of the balance per session.
        session_seconds: Length of a session.
        is_renewed: Whether its balance was seen to rise (section 4.2.2: not that of "default").
        source: Where the numbers stand.
    """

    session_amount: int
    session_seconds: int = DAY
    is_renewed: bool = True
    source: str

    def __post_init__(self) -> None:
        require_at_least(1, session_amount=self.session_amount)
        if self.session_seconds < DAY or self.session_seconds % DAY:
            raise InputError(f"Expected session_seconds of whole days, got {self.session_seconds}.")

    @property
    def most_per_key(self) -> int:
        """Records of one KeyName in one report: min(SessionAmount, 40)."""
        return min(self.session_amount, MOST_PER_KEY)

    @property
    def cap(self) -> Cap:
        """What the balance alone allows: unused budget rolls over without limit."""
        if not self.is_renewed:
            return Cap(amount=self.session_amount, lifetime=self.session_amount)
        days = self.session_seconds // DAY
        return Cap(amount=self.session_amount, session_days=days, rollover=None)


@dataclass(frozen=True, kw_only=True)
class KeyProperties:
    """An entry of keyproperties.plist (sections 3.2.2 and 3.2.3).

    Attributes:
        algorithm: PrivatizationAlgorithm.
        privacy_parameter: PrivacyParameter, as the file has it.
        budget: BudgetKeyName.
        submission_priority: SubmissionPriority; what is lower goes first.
        source: Where the numbers stand.
    """

    algorithm: str
    privacy_parameter: float
    budget: str
    submission_priority: int = 0
    source: str

    def __post_init__(self) -> None:
        require_positive(privacy_parameter=self.privacy_parameter)

    @property
    def epsilon(self) -> float:
        """The parameter that is used (section 5.2)."""
        return self.privacy_parameter if self.privacy_parameter <= EPSILON_MAX else 1.0

    @property
    def priority(self) -> int:
        """The priority that is used (section 5.2)."""
        return NEVER_SENT if self.privacy_parameter > EPSILON_MAX else self.submission_priority


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """What a version of the system ships.

    Attributes:
        name: Of the preset.
        key_names: From the beginning of a KeyName to its PropertiesName (keynames.plist); the
            longest beginning that fits decides.
        key_properties: By PropertiesName.
        budgets: By BudgetKeyName.
        notes: What the paper leaves open, or says besides.
    """

    name: str
    key_names: Mapping[str, str]
    key_properties: Mapping[str, KeyProperties]
    budgets: Mapping[str, BudgetProperties]
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        for properties in self.key_names.values():
            if properties not in self.key_properties:
                known = did_you_mean(properties, self.key_properties)
                raise InputError(f"Unknown PropertiesName {properties!r}{known}")
        for each in self.key_properties.values():
            if each.budget not in self.budgets:
                known = did_you_mean(each.budget, self.budgets)
                raise InputError(f"Unknown BudgetKeyName {each.budget!r}{known}")

    def properties_of(self, key_name: str) -> KeyProperties:
        """Return how events of a KeyName are privatized, and out of which budget they are paid."""
        fitting = [each for each in self.key_names if key_name.startswith(each)]
        if not fitting:
            raise InputError(
                f"Unknown KeyName {key_name!r}{did_you_mean(key_name, self.key_names)}"
            )
        return self.key_properties[self.key_names[max(fitting, key=len)]]

    @property
    def paid_budgets(self) -> tuple[str, ...]:
        """Budgets out of which any record can be paid, in the order of the configuration."""
        sent = {each.budget for each in self.key_properties.values() if each.priority != NEVER_SENT}
        return tuple(budget for budget in self.budgets if budget in sent)

    def epsilon_of(self, budget: str) -> float:
        """Return the largest epsilon of a record that is paid out of a budget."""
        return max(
            each.epsilon
            for each in self.key_properties.values()
            if each.budget == budget and each.priority != NEVER_SENT
        )

    def loss_per_day(self, budgets: Sequence[str] | None = None) -> float:
        """Return PrivacyParameter times SessionAmount, per day of each session, summed (4.2.3).

        All BudgetKeyNames that are paid for and renewed count if None are named.
        """
        chosen = {
            name: self.budgets[name] for name in (self.paid_budgets if budgets is None else budgets)
        }
        return sum(
            self.epsilon_of(name) * each.session_amount * DAY / each.session_seconds
            for name, each in chosen.items()
            if each.is_renewed
        )

    def without(self, budgets: Sequence[str]) -> Configuration:
        """Return the configuration as if nothing were ever paid out of some budgets."""
        for name in budgets:
            if name not in self.paid_budgets:
                raise InputError(
                    f"Unknown BudgetKeyName {name!r}{did_you_mean(name, self.paid_budgets)}"
                )
        kept = {
            name: each for name, each in self.key_properties.items() if each.budget not in budgets
        }
        if not any(each.budget in self.paid_budgets for each in kept.values()):
            raise InputError("Expected at least one budget to be left, got none.")
        names = {key: name for key, name in self.key_names.items() if name in kept}
        return replace(self, key_names=names, key_properties=kept)


_SKETCH, _HISTOGRAM = "CountMedianSketch", "OneBitHistogram"
_T1, _T2, _T3 = "Table 1", "Table 2", "Table 3"

_UNSAID = (
    "The paper prints neither SubmissionPriorities (all equal here) nor when tasks first run "
    "(here one interval after opt-in) nor the limit of the database's size (none here)."
)

MACOS_10_12_3 = Configuration(
    name="macos-10.12",
    key_names={  # Section 3.2.1 and Table 1.
        "com.apple.keyboard.NewWords.": "NewWords",
        "com.apple.keyboard.NewWords.zh_Hans": "NewWordsChinese",
        "com.apple.keyboard.LocalWords.": "LocalWords",
        "com.apple.keyboard.Emoji.": "TermFrequency",
        "com.apple.parsec.AppDeepLink": "DeepLinks",
        "com.apple.health.datatypes": "HealthDataTypes",
        "com.apple.lookup.QueryMatch.": "Search",
        "com.apple.lookup.DomainMatch": "Search",
    },
    key_properties={
        name: KeyProperties(algorithm=kind, privacy_parameter=epsilon, budget=budget, source=_T1)
        for name, kind, epsilon, budget in (
            ("NewWords", _SKETCH, 2, NEW_WORDS),
            ("NewWordsChinese", _SKETCH, 2, NEW_WORDS),
            ("LocalWords", _SKETCH, 2, NEW_WORDS),
            ("TermFrequency", _HISTOGRAM, 1, EMOJI),
            ("DeepLinks", _SKETCH, 1, DEEP_LINK),
            ("HealthDataTypes", _HISTOGRAM, 1, HEALTH),
            ("Search", _HISTOGRAM, 1, SEARCH),
        )
    },
    budgets={
        EMOJI: BudgetProperties(session_amount=1, source=_T2),
        SEARCH: BudgetProperties(session_amount=1, source=_T2),
        NEW_WORDS: BudgetProperties(session_amount=2, source=_T2),
        DEEP_LINK: BudgetProperties(session_amount=10, source=_T2),
        HEALTH: BudgetProperties(session_amount=2, session_seconds=WEEK, source=_T2),
        TEST: BudgetProperties(session_amount=4, source=_T2),
        DEFAULT: BudgetProperties(
            session_amount=1, is_renewed=False, source=f"{_T2}; not renewed: section 4.2.2"
        ),
    },
    notes=(
        _UNSAID,
        "Deep links are in the files but were not seen on macOS (sections 4.2.2, 4.2.3, 5.4): "
        "leave their budget out for what a Mac of that version could send.",
    ),
)
"""macOS 10.12.3, the version that the paper calls 10.12."""

_OLDER_PROPERTIES = {
    name: each
    for name, each in MACOS_10_12_3.key_properties.items()
    if name not in {"LocalWords", "HealthDataTypes"}  # Table 3.
}
MACOS_10_12_1 = replace(
    MACOS_10_12_3,
    name="macos-10.12.1",
    key_names={
        key: name for key, name in MACOS_10_12_3.key_names.items() if name in _OLDER_PROPERTIES
    },
    key_properties=_OLDER_PROPERTIES,
    budgets={
        **{name: each for name, each in MACOS_10_12_3.budgets.items() if name != HEALTH},
        NEW_WORDS: BudgetProperties(session_amount=1, source=_T3),
        TEST: BudgetProperties(session_amount=1, source=_T3),
    },
)
"""macOS 10.12.1: what Table 3 says is different; it has no SubmissionPriority."""

IOS_10_1_1 = replace(
    MACOS_10_12_1,
    name="ios-10.1.1",
    notes=(_UNSAID, "Its files were identical to those of macOS 10.12.1 (section 5.4)."),
)
"""iOS 10.1.1, where deep links are sent."""

IOS_11_BETA = replace(
    IOS_10_1_1,
    name="ios-11-beta",
    key_names={
        **IOS_10_1_1.key_names,
        "com.apple.safari.DomainVisited": "SafariDomains",
        "com.apple.safari.DomainCausingEnergyDrain": "SafariDomains",
    },
    key_properties={
        **IOS_10_1_1.key_properties,
        "TermFrequency": KeyProperties(
            algorithm=_HISTOGRAM, privacy_parameter=2, budget=EMOJI, source="Section 6, item 2"
        ),
        "SafariDomains": KeyProperties(
            algorithm="not printed",
            privacy_parameter=1,
            budget=SAFARI,
            source="Section 6, item 2; one PropertiesName for both is a choice",
        ),
    },
    budgets={
        **IOS_10_1_1.budgets,
        EMOJI: BudgetProperties(session_amount=10, source="Section 6, item 2: records in a report"),
        SAFARI: BudgetProperties(session_amount=10, source="Section 6, item 2; see the notes"),
    },
    notes=(
        _UNSAID,
        "Known from report files alone (section 6): records in a report stand for SessionAmount; "
        "both Safari names share one budget, which gives the paper's 'at least 29' more a day; "
        "all else is as in iOS 10.1.1, which the paper does not say.",
    ),
)
"""iOS 11 beta: what section 6 reads off its report files."""

CONFIGURATIONS: Mapping[str, Configuration] = {
    "macos-10.12": MACOS_10_12_3,
    "macos-10.12.1": MACOS_10_12_1,
    "ios-10.1.1": IOS_10_1_1,
    "ios-11-beta": IOS_11_BETA,
}
"""The audited configurations; "macos-10.12" is macOS 10.12.3."""
