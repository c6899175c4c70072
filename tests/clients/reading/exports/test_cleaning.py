"""Which lines of a message are its author's prose, by reason."""

from collections import Counter

import pytest

from fedhh.clients.reading.exports.bots import is_bot
from fedhh.clients.reading.exports.cleaning import prose

CASES = {
    "nothing to drop": ("one\n\ntwo: three", "one\n\ntwo: three", {}),
    "quotes": ("> said\n>> more\nA> cited\nme", "me", {"quoted text": 3}),
    "an arrow is no quote": ("a -> b", "a -> b", {}),
    "who is quoted": (
        "On Mon, 3 Jan 2022, Ana Ivic wrote:\n> why\nbecause", "because", {"quoted text": 2},
    ),
    "who is quoted, in two lines": (
        "On Mon, 3 Jan 2022 at 10:15, Ana\nwrote:\n> why\nso", "so", {"quoted text": 3},
    ),
    "who is quoted, in German": (
        "Am 03.01.22 um 10:15 schrieb Ana:\n\n> why\nso", "so", {"quoted text": 2},
    ),
    "no quote follows": ("On 3 topics, see below\nyes", "On 3 topics, see below\nyes", {}),
    "the rest": ("top\n-----Original Message-----\nFrom: Ana\nold", "top", {"quoted text": 3}),
    "a fence": ("a\n```c\nint x;\n\nint y;\n```\nb", "a\nb", {"code": 4}),
    "a fence that stays open": ("a\n```\nx\ny", "a", {"code": 3}),
    "code in a line": ("run `make all` and ```x = 1``` now", "run   and   now", {"code": 2}),
    "a lone backtick": ("it` s", "it` s", {}),
    "indented code": ("a\n\n    x = 1\n    y = 2\nb", "a\n\nb", {"code": 2}),
    "an indented paragraph goes on": ("- a\n    b", "- a\n    b", {}),
    "a diff": (
        "why\n\ndiff --git a/x b/x\nindex 12..34 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n"
        "+new\n\nafter", "why\n\nafter", {"diff": 7},
    ),
    "a diff without git": ("--- x.c\n+++ x.c\n@@ -1,2 +1,2 @@\n a\n+b\nend", "end", {"diff": 5}),
    "a summary of a diff": (
        "a\n src/x.c | 12 ++++--\n 1 file changed, 2 insertions(+)\n create mode 100644 y", "a",
        {"diff": 3},
    ),
    "trailers": (
        "a\n\nSigned-off-by: Ana <a@b.c>\nCo-authored-by: Bo <b@b.c>\nCc: x@y.z\nFixes: #12\n"
        "Change-Id: I12ab\n(cherry picked from commit abc)", "a", {"trailer": 6},
    ),
    "a subject is no trailer": ("docs: say it", "docs: say it", {}),
    "a signature": ("a\n-- \nAna Ivic\n+49 1234", "a", {"signature": 3}),
    "a signed mail": (
        "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nhi\n-----BEGIN PGP SIGNATURE-----\n"
        "iQxx\n-----END PGP SIGNATURE-----", "hi", {"signature": 5},
    ),
    "commit ids": ("see 3f2a9bc and deadbee", "see   and deadbee", {"commit id": 1}),
}  # fmt: skip


@pytest.mark.parametrize(("text", "kept", "dropped"), CASES.values(), ids=CASES)
def test_what_is_no_prose_is_dropped_by_reason(text, kept, dropped):
    counted: Counter[str] = Counter()
    assert prose(text, counted) == kept
    assert counted == dropped


def test_names_in_trailers_are_found():
    names: set[str] = set()
    prose("a\n\nReviewed-by: Ana Maria Ivic <a@b.c>\nFixes: #1\nCc: b@c.d", Counter(), names)
    assert names == {"Ana Maria Ivic"}


@pytest.mark.parametrize(
    "line",
    [
        "a" * 2**18,
        "-a" * 2**17,
        "`" * 2**18,
        "On 1" + " " * 2**18,
        "Cc: " + "a-" * 2**17,
        "0f" * 2**17,
    ],
    ids=lambda line: line[:5],
)
def test_a_long_line_takes_time_that_grows_with_its_length(line):
    # With its square, each would take minutes.
    prose(f"{line}\n> quoted", Counter())


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("dependabot[bot]", "49699333+dependabot[bot]@users.noreply.github.com"),
        ("Renovate Bot", "x@y.z"), ("GitHub", "noreply@github.com"), ("", "no-reply@x.y"),
        ("kernel test robot", "lkp@intel.com"), ("Weblate", "hosted@weblate.org"),
        ("X", "MAILER-DAEMON@x.y"), ("my-bot", ""),
    ],
)  # fmt: skip
def test_programs_are_told_by_name_or_address(name, address):
    assert is_bot(name, address)


@pytest.mark.parametrize(
    ("name", "address"),
    [("Ana Abbot", "ana@x.y"), ("Bo", "12+bo@users.noreply.github.com"), ("Robotnik", "r@bot.org")],
)
def test_people_are_no_programs(name, address):
    assert not is_bot(name, address)
