"""Builds the word list `scowl70` from Debian's package `scowl`, the same bytes every time.

    apt-get install scowl        (or: apt-get download scowl && dpkg-deb -x scowl_*.deb DIR)
    python tools/build_scowl.py [--root DIR]

Taken from SCOWL: sizes up to 70; the spellings and kinds of words below. Size 80 and above contains
the UKACD, which has a condition of its own. Words are lower-cased; a word with accents enters only
without them, because the list holds ASCII words.
"""

from __future__ import annotations

import argparse
import gzip
import unicodedata
from pathlib import Path

LARGEST_SIZE = 70
SPELLINGS = (
    "english",
    "american",
    "british",
    "canadian",
    "australian",
    "variant_1",
    "special",
)
KINDS = ("words", "contractions", "upper", "proper-names", "abbreviations", "hacker")
ASSETS = Path(__file__).resolve().parent.parent / "fedhh" / "words" / "assets"


def without_accents(word: str) -> str:
    """Return the word with each letter's marks removed: ``café`` becomes ``cafe``."""
    parts = unicodedata.normalize("NFKD", word)
    return "".join(part for part in parts if not unicodedata.combining(part))


def scowl_words(folder: Path) -> list[str]:
    """Return the sorted lower-case ASCII words of the chosen lists."""
    words = set()
    for spelling in SPELLINGS:
        for kind in KINDS:
            for path in folder.glob(f"{spelling}-{kind}.*"):
                if int(path.suffix[1:]) <= LARGEST_SIZE:
                    lines = path.read_text(encoding="utf-8").lower().split()
                    words |= {without_accents(line) for line in lines}
    return sorted(word for word in words if word.isascii())


def main() -> None:
    """Write the list and, next to it, the package's copyright notice."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path("/"), help="where the package lies")
    root = parser.parse_args().root
    words = scowl_words(root / "usr/share/dict/scowl")
    text = "".join(f"{word}\n" for word in words).encode("ascii")
    # No time stamp and no file name: the same words give the same bytes.
    (ASSETS / "known_scowl70_en.txt.gz").write_bytes(gzip.compress(text, 9, mtime=0))
    notice = (root / "usr/share/doc/scowl/copyright").read_bytes()
    (ASSETS / "SCOWL_COPYRIGHT.txt").write_bytes(notice)


if __name__ == "__main__":
    main()
