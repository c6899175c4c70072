"""Apple's audited configurations by name; beside every number, its table or section.

Tables and sections of Tang, Korolova, Bai, Wang, Wang (2017); see
`fedhh.longitudinal.ledger.macos_configuration`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fedhh.longitudinal.ledger.macos_configuration import (
    DEEP_LINK,
    DEFAULT,
    EMOJI,
    HEALTH,
    NEW_WORDS,
    SAFARI,
    SEARCH,
    TEST,
    WEEK,
    BudgetProperties,
    Configuration,
    KeyProperties,
)
from fedhh.validation import require_choice

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
        "NewWords": KeyProperties(
            algorithm=_SKETCH, privacy_parameter=2, budget=NEW_WORDS, source=_T1
        ),
        "NewWordsChinese": KeyProperties(
            algorithm=_SKETCH, privacy_parameter=2, budget=NEW_WORDS, source=_T1
        ),
        "LocalWords": KeyProperties(
            algorithm=_SKETCH, privacy_parameter=2, budget=NEW_WORDS, source=_T1
        ),
        "TermFrequency": KeyProperties(
            algorithm=_HISTOGRAM, privacy_parameter=1, budget=EMOJI, source=_T1
        ),
        "DeepLinks": KeyProperties(
            algorithm=_SKETCH, privacy_parameter=1, budget=DEEP_LINK, source=_T1
        ),
        "HealthDataTypes": KeyProperties(
            algorithm=_HISTOGRAM, privacy_parameter=1, budget=HEALTH, source=_T1
        ),
        "Search": KeyProperties(
            algorithm=_HISTOGRAM, privacy_parameter=1, budget=SEARCH, source=_T1
        ),
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
    report_file_days=7,  # Section 5.4.
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


def configuration(name: str) -> Configuration:
    """Return an audited configuration.

    Raises:
        InputError: No such name.
    """
    require_choice(CONFIGURATIONS, configuration=name)
    return CONFIGURATIONS[name]
