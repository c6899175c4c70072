"""Configurations of Apple's budget manager as they were audited: four files, version by version.

Tang, Korolova, Bai, Wang, Wang (2017), "Privacy Loss in Apple's Implementation of Differential
Privacy on MacOS 10.12", arXiv:1709.02753. Tables and sections here are theirs. The paper prints 7
of 13 PropertiesNames and 13 of 160 KeyNames (section 3.2.1), and no SubmissionPriority: names that
begin as a printed one belong to it, and all priorities are equal here. The photos search keys of
10.12.1 (Table 3) are left out, since their parameters are not printed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fedhh.longitudinal.ledger.cap import Cap
from fedhh.validation import InputError, did_you_mean, require_at_least, require_positive

DAY = 86_400
"""Seconds; SessionSeconds of all budgets but health (Table 2)."""
WEEK = 604_800
"""SessionSeconds of com.apple.health (Table 2)."""
EPSILON_MAX = 2.0
"""Hard-coded; above it, a PrivacyParameter is replaced by 1 (section 5.2, Figure 14)."""
REPLACED_PARAMETER = 1.0
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
        over = self.privacy_parameter > EPSILON_MAX
        return REPLACED_PARAMETER if over else self.privacy_parameter

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
        report_file_days: Days until a report file is removed: 30 on macOS, 7 on iOS (5.1, 5.4).
        notes: What the paper leaves open, or says besides.
    """

    name: str
    key_names: Mapping[str, str]
    key_properties: Mapping[str, KeyProperties]
    budgets: Mapping[str, BudgetProperties]
    report_file_days: int = 30
    notes: Sequence[str] = field(default=())

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
        """Return how events of a KeyName are privatized, and out of which budget they are paid.

        Raises:
            InputError: No such name.
        """
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

        Args:
            budgets: BudgetKeyNames; all that are paid for and renewed if None.
        """
        chosen = self.paid_budgets if budgets is None else budgets
        return sum(
            self.epsilon_of(name)
            * self.budgets[name].session_amount
            * DAY
            / self.budgets[name].session_seconds
            for name in chosen
            if self.budgets[name].is_renewed
        )

    def without(self, budgets: Sequence[str]) -> Configuration:
        """Return the configuration as if nothing were ever paid out of some budgets.

        Raises:
            InputError: No record is paid out of one of them, or out of any other.
        """
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
        return Configuration(
            name=self.name,
            key_names={key: name for key, name in self.key_names.items() if name in kept},
            key_properties=kept,
            budgets=self.budgets,
            report_file_days=self.report_file_days,
            notes=self.notes,
        )
