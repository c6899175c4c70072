"""What of a message its author typed as prose: no quotes, code, diffs, trailers or signatures.

Rules look at one line at a time, and at what the line before it was. What is taken out is counted
by its reason: lines, and pieces within a line.
"""

from __future__ import annotations

import re
from collections import Counter

QUOTED = "quoted text"
CODE = "code"
DIFF = "diff"
TRAILER = "trailer"
SIGNATURE = "signature"
COMMIT_ID = "commit id"

_FENCE = re.compile(r"\s*(?:```|~~~)")
_IN_ONE_LINE = re.compile(r"```.*?```|`[^`]+`")
_INDENTED = re.compile(r"(?: {4}| {0,3}\t)\s*\S")
_QUOTE = re.compile(r"\s{0,3}>|\s?[A-Za-z]{1,3}>\s")
_ATTRIBUTION = re.compile(
    r"(?:on|am|le|el|il|em|op|den)\b(?=.*[0-9]).*[<@:,]"
    r"|.{0,200}\b(?:wrote|writes|schrieb|écrit|escribió|ha scritto|escreveu)\b.{0,100}:\s*$",
    re.IGNORECASE,
)
_REST_IS_QUOTED = re.compile(
    r"-{2,}\s*(?:original message|forwarded message|forwarded by)", re.IGNORECASE
)
_DIFF_BEGINS = re.compile(r"diff --git |diff -[a-zA-Z]|Index: \S|@@ -\d|--- [^\s-]\S*(?:\s|$)")
_IN_DIFF = re.compile(
    r"[ +\-@\\]|$|index [0-9a-f]|(?:new|deleted) file|old mode|new mode|similarity|rename |copy "
    r"|Binary files|={10}|diff |Index: "
)
_DIFF_SUMMARY = re.compile(
    r" \S.{0,200} \| +(?:\d+ ?[+-]*|Bin\b.*)$| \d+ files? changed|"
    r" (?:create|delete) mode \d| rename .*\(\d+%\)$"
)
_TRAILER = re.compile(
    r"\s{0,3}(?:[A-Za-z]+(?:-[A-Za-z]+)*-by|cc|fixes|closes|resolves|refs?|link|see-also"
    r"|change-id|reviewed-on|differential revision|pull[- ]request|git-svn-id|"
    r"signed-off|depends-on|gh-pr|pr-url|svn-revision|upstream-status)\s*:(?:\s|\S+$)",
    re.IGNORECASE,
)
_PICKED = re.compile(r"\(?cherry[- ]picked from commit|This reverts commit", re.IGNORECASE)
_TRAILER_NAME = re.compile(r"\s{0,3}[A-Za-z -]{2,40}:\s*([^<>\n]{1,200}?)\s*<")
_ID = re.compile(r"\b(?=[0-9a-f]{0,63}[0-9])(?=[0-9a-f]{0,63}[a-f])[0-9a-f]{7,64}\b")


def prose(text: str, dropped: Counter[str], names: set[str] | None = None) -> str:
    r"""Return what of a message is prose.

    Args:
        text: The message.
        dropped: Where lines and pieces that are none are counted.
        names: Where the names that trailers mention are added.

    >>> dropped = Counter()
    >>> prose("Fix the frob\n\n> why?\nSigned-off-by: Ana <a@b.c>", dropped), dict(dropped)
    ('Fix the frob', {'quoted text': 1, 'trailer': 1})
    """
    kept: list[str] = []
    lines = text.splitlines()
    state, after_blank = "", True
    for number, line in enumerate(lines):
        state, reason = _reason(
            state, line, lines[number + 1 : number + 3], after_blank=after_blank
        )
        after_blank = not line.strip() or reason == CODE
        if not reason:
            kept.append(_without_pieces(line, dropped))
        elif line.strip():
            dropped[reason] += 1
        if reason == TRAILER and names is not None:
            names.update(found.group(1) for found in [_TRAILER_NAME.match(line)] if found)
    return "\n".join(kept).strip()


def _reason(state: str, line: str, after: list[str], *, after_blank: bool) -> tuple[str, str]:
    """Return the state after a line, and why the line is no prose.

    A state is a reason that lasts: code in a fence, a diff, or what goes on to the end.
    """
    if state == CODE:
        return ("" if _FENCE.match(line) else CODE), CODE
    if state in (QUOTED, SIGNATURE) or (state == DIFF and _IN_DIFF.match(line)):
        return state, state
    for pattern, following, reason in _RULES:
        if pattern.match(line):
            return following, reason
    if _ATTRIBUTION.match(line) and any(_QUOTE.match(each) for each in after):
        return "", QUOTED
    return "", CODE if after_blank and _INDENTED.match(line) else ""


_RULES = (
    (re.compile(r"\s*(?:```|~~~)[^`]*$"), CODE, CODE),
    (_DIFF_BEGINS, DIFF, DIFF),
    (_DIFF_SUMMARY, "", DIFF),
    (_REST_IS_QUOTED, QUOTED, QUOTED),
    (_QUOTE, "", QUOTED),
    (_TRAILER, "", TRAILER),
    (_PICKED, "", TRAILER),
    (re.compile(r"-----BEGIN PGP SIGNED|Hash: SHA[0-9]+$"), "", SIGNATURE),
    (re.compile(r"-- ?$|-----BEGIN PGP "), SIGNATURE, SIGNATURE),
)


def _without_pieces(line: str, dropped: Counter[str]) -> str:
    for pattern, reason in ((_IN_ONE_LINE, CODE), (_ID, COMMIT_ID)):
        line, times = pattern.subn(" ", line)
        if times:
            dropped[reason] += times
    return line
