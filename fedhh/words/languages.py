"""Languages: the rules by which the words of one are brought to a common form.

A language is named by its code, such as ``en`` or ``tr``. Every language has Unicode's rules of
case but Turkish and Azerbaijani, where I is the capital of the letter without a dot.
"""

from __future__ import annotations

import re
import unicodedata

from fedhh.validation import InputError, shown

ENGLISH = "en"

NAMES = {
    "ar": "Arabic", "de": "German", "en": "English", "es": "Spanish", "fi": "Finnish",
    "fr": "French", "hi": "Hindi", "id": "Indonesian", "it": "Italian", "ko": "Korean",
    "pt": "Portuguese", "ru": "Russian", "tr": "Turkish",
}  # fmt: skip
"""Names of languages that figures compare."""

_DOTLESS = {ord("I"): "ı", ord("İ"): "i"}
_WITH_DOTLESS_I = ("tr", "az")


def check_language(language: str) -> None:
    """Raise InputError unless a text is a language's code."""
    if not re.fullmatch(r"[a-z]{2,8}(?:[-_][a-z0-9]{2,8})*", language, re.ASCII):
        raise InputError(
            f"Expected a language's code in lower case such as 'de', got "
            f"language={shown(language)}."
        )


def lower(text: str, language: str) -> str:
    """Return a text in lower case, by a language's rules.

    >>> lower("ILIK İP", "tr"), lower("ILIK", "en")
    ('ılık ip', 'ilik')
    """
    if language in _WITH_DOTLESS_I:
        text = text.translate(_DOTLESS)
    return text.lower()


def normalised(text: str, language: str) -> str:
    """Return a text in Unicode form NFC and lower case, by a language's rules."""
    if text.isascii():
        return lower(text, language)
    return unicodedata.normalize("NFC", lower(unicodedata.normalize("NFC", text), language))
