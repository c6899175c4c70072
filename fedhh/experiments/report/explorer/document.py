"""The page itself, and its file: HTML that asks nobody for anything.

What users typed stands only in compressed data, never in markup but for the title, which is
escaped. The policy lets no script run but the page's own, by its hash, and no request leave.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from fedhh.experiments.report.explorer.chunks import packed
from fedhh.experiments.study.kinds import finished_kind
from fedhh.experiments.study.page import REPORT
from fedhh.system.files import require_replaceable, write_text
from fedhh.validation import InputError, printable

_ASSETS = Path(__file__).parent / "assets"

MANIFEST = "manifest"
"""Name of the piece that says what the others are."""


@cache
def asset(name: str) -> str:
    """Return a file of the built page."""
    return (_ASSETS / name).read_text(encoding="utf-8")


def policy(*, connect: str) -> str:
    """Return the content security policy of a page.

    Its script may ask for data where ``connect`` says: "'none'", or "'self'" if it is served.
    """
    digest = hashlib.sha256(asset("explorer.js").encode("utf-8")).digest()
    script = base64.b64encode(digest).decode("ascii")
    return (
        f"default-src 'none'; script-src 'sha256-{script}'; style-src 'unsafe-inline'; "
        f"img-src blob: data:; connect-src {connect}; base-uri 'none'; form-action 'none'"
    )


def document(title: str, manifest: Any, chunks: Mapping[str, Any], *, connect: str) -> str:
    """Return a whole page that shows what its manifest says; see `policy` for ``connect``.

    Further pieces of its data have names of letters, digits and hyphens.
    """
    pieces = {MANIFEST: manifest, **chunks}
    data = "\n".join(
        f'<script type="application/octet-stream" id="chunk-{name}">{packed(value)}</script>'
        for name, value in pieces.items()
    )
    shown = html.escape(printable(title))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy(connect=connect)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{shown}</title>
<style>{asset("explorer.css")}</style>
</head>
<body>
<noscript>This page draws itself with the script that it holds; allow scripts to see it.</noscript>
<main id="explorer"><h1>{shown}</h1></main>
{data}
<script>{asset("explorer.js")}</script>
</body>
</html>
"""


def write_report(directory: Path, other: Path | None = None, *, out: Path | None = None) -> Path:
    """Write a directory's page, and return the file.

    The pages of directories below it are written too where its page leads to them, as a sweep's
    leads to the runs in ``cells/CELL``.

    Args:
        directory: Of anything that is finished.
        other: A second run's, to be laid over the first one.
        out: The file; "report.html" in the directory if None, or "compared-with-OTHER.html".
    """
    file = out or directory / REPORT
    if other is not None:
        file = out or directory / f"compared-with-{other.resolve().name or 'root'}.html"
        for each in (directory, other):
            _check_is_no_page_of(each, file)
    require_replaceable(file)
    text = report_text(directory, other)
    if other is None:
        for below in finished_kind(directory).opened_from_page(directory):
            write_report(below)
    write_text(file, text)
    return file


def report_text(directory: Path, other: Path | None = None) -> str:
    """Return the HTML that `write_report` writes; pages that it leads to are not written."""
    kind = finished_kind(directory)
    if other is None:
        page = kind.page(directory)
    else:
        for each in (directory, other):
            if not finished_kind(each).is_laid_over:
                raise InputError(
                    f"{each} holds no single run; two runs are laid over each other. Give it alone."
                )
        page = kind.page_of_two(directory, other)
    return document(page.title, page.manifest, page.chunks, connect="'none'")


def _check_is_no_page_of(directory: Path, file: Path) -> None:
    """Raise InputError if a file is the page of a run alone."""
    if file.resolve() == (directory / REPORT).resolve():
        raise InputError(
            f"{file} is the page of one of the runs; give the comparison another --out."
        )
