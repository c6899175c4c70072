"""Builds lists of known words from spelling dictionaries, as files for population.known.

    apt-get install npm dpkg libhunspell-1.7-0 libvoikko-dev aspell
    pip install wordfreq==3.1.1
    python tools/build_word_lists.py [--packages DIR] [--out DIR] LANGUAGE ...

A list holds the words of wordfreq's largest list of a language that a spelling dictionary of
word_lists.toml accepts, at most the 100,000 most frequent. A word has a letter and no digit; it is
in Unicode's form NFC and in lower case, as wordfreq writes it. A word is accepted if the dictionary
accepts it as it stands, with a capital, in capitals, or with a full stop; `unfolded` says what else
is tried. A single letter is accepted if an accepted word has it.

The packages come by `npm pack` and `apt-get download` (Debian 12); their SHA-256 is checked. The
same versions give the same bytes. A list comes under the licenses of wordfreq's data, CC BY-SA 4.0,
and of its dictionaries, which word_lists.toml names; fedhh holds neither.
One line a language is printed, as JSON: shares are of wordfreq's words that have no digit.
"""

from __future__ import annotations

import argparse
import ctypes
import gzip
import hashlib
import importlib.metadata
import itertools
import json
import subprocess
import sys
import tempfile
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import regex
import wordfreq

MOST_WORDS = 100_000
TOOLS = Path(__file__).resolve().parent

Source = dict[str, str]
Accepts = Callable[[Iterable[str]], set[str]]
"""Which of some spellings a dictionary accepts."""


def fetch(source: Source, folder: Path) -> Path:
    """Return the folder of a package's files, fetched and unpacked unless they are there."""
    registry, name, version = source["package"].split()
    place = folder / name
    if not place.exists():
        place.mkdir(parents=True)
        if registry == "npm":
            command = ["npm", "pack", "--silent", f"{name}@{version}"]
        else:
            command = [
                "apt-get",
                "download",
                "-qq",
                "-oAPT::Sandbox::User=root",
                f"{name}={version}",
            ]
        subprocess.run(command, cwd=place, check=True, stdout=subprocess.DEVNULL)
    (archive,) = (path for path in place.iterdir() if path.is_file())
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != source["sha256"]:
        raise SystemExit(f"Expected SHA-256 {source['sha256']} of {archive.name}, got {digest}.")
    files = place / "files"
    if not files.exists():
        files.mkdir()
        unpack = ["tar", "xzf", archive, "-C", files]
        if registry == "debian":
            unpack = ["dpkg-deb", "-x", archive, files]
        subprocess.run(unpack, check=True)
    return files


def hunspell(stem: Path) -> Accepts:
    """Return what the dictionary STEM.aff, STEM.dic accepts, by Hunspell's C interface."""
    library = ctypes.CDLL("libhunspell-1.7.so.0")
    library.Hunspell_create.restype = ctypes.c_void_p
    library.Hunspell_get_dic_encoding.restype = ctypes.c_char_p
    library.Hunspell_get_dic_encoding.argtypes = [ctypes.c_void_p]
    library.Hunspell_spell.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    handle = library.Hunspell_create(f"{stem}.aff".encode(), f"{stem}.dic".encode())
    encoding = library.Hunspell_get_dic_encoding(handle).decode()

    def accepts(words: Iterable[str]) -> set[str]:
        found = set()
        for word in words:
            try:
                data = word.encode(encoding)
            except UnicodeEncodeError:
                continue
            if library.Hunspell_spell(handle, data):
                found.add(word)
        return found

    return accepts


def voikko(folder: Path) -> Accepts:
    """Return what the Finnish dictionary in a folder accepts, by the command voikkospell."""

    def accepts(words: Iterable[str]) -> set[str]:
        command = ["voikkospell", "-d", "fi", "-p", str(folder)]
        text = "".join(f"{word}\n" for word in words)
        environment = {"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}
        done = subprocess.run(
            command, input=text.encode(), env=environment, capture_output=True, check=True
        )
        lines = done.stdout.decode().splitlines()
        return {line[3:] for line in lines if line.startswith("C: ")}

    return accepts


def aspell(path: Path) -> Accepts:
    """Return what a compressed list of GNU Aspell's holds."""
    packed = gzip.decompress(path.read_bytes())
    done = subprocess.run(["prezip-bin", "-d"], input=packed, capture_output=True, check=True)
    known = set(unicodedata.normalize("NFC", done.stdout.decode()).split())
    return known.intersection


FORMATS = {"hunspell": hunspell, "voikko": voikko, "aspell": aspell}


def capitals(text: str, language: str) -> str:
    """Return a text in capitals, by the language's rule."""
    return (text.replace("i", "İ") if language == "tr" else text).upper()


def unfolded(word: str, language: str) -> Iterator[str]:
    """Yield a word and the spellings that wordfreq or a keyboard without œ turn into it.

    wordfreq folds case as `str.casefold` does: ß is ss, and ς is σ. It cuts Korean into morphemes:
    a stem is tried with 다 and 하다, an ending after the stems 하, 먹 and 좋.
    """
    yield word
    if language == "el" and word.endswith("σ"):
        yield word[:-1] + "ς"
    elif language == "ko":
        yield from (f"{word}다", f"{word}하다")
        yield from (f"{stem}{word}{end}" for stem in "하먹좋" for end in ("", "다"))
    elif language in ("de", "fr"):
        plain, letter = {"de": ("ss", "ß"), "fr": ("oe", "œ")}[language]
        first, *rest = word.split(plain)
        for letters in itertools.islice(
            itertools.product((plain, letter), repeat=len(rest)), 1, None
        ):
            yield first + "".join(map("".join, zip(letters, rest, strict=True)))


def spellings(word: str, language: str) -> set[str]:
    """Return the spellings of a word that a dictionary is asked for."""
    found = set()
    for spelling in unfolded(word, language):
        title = capitals(spelling[0], language) + spelling[1:]
        found |= {spelling, title, capitals(spelling, language), f"{spelling}.", f"{title}."}
    return found


def is_letter(word: str) -> bool:
    """Tell whether a word is one letter; a syllable of Hangul is several."""
    parts = unicodedata.normalize("NFD", word)
    return len(word) == 1 and sum(unicodedata.category(part)[0] == "L" for part in parts) == 1


def is_numeric(word: str) -> bool:
    """Tell whether a word has a digit or another sign of Unicode's numbers."""
    return any(unicodedata.category(symbol).startswith("N") for symbol in word)


def is_candidate(word: str, language: str) -> bool:
    """Tell whether a list can hold a word at all."""
    # İ and I have a lower case of their own in Turkish; Unicode's adds a dot, or takes it away.
    lower = not any(symbol.isupper() for symbol in word) if language == "tr" else word.islower()
    letters = any(unicodedata.category(symbol).startswith("L") for symbol in word)
    cased = word.lower() != word.upper()
    return letters and (lower or not cased) and unicodedata.is_normalized("NFC", word)


def ranked(language: str) -> list[tuple[str, float]]:
    """Return wordfreq's words without digits and their frequencies, the most frequent first."""
    bins = wordfreq.get_frequency_list(language, wordlist="best")
    return [
        (word, wordfreq.cB_to_freq(-index))
        for index, words in enumerate(bins)
        for word in sorted(words)
        if not is_numeric(word)
    ]


def accepted_words(words: list[str], language: str, dictionaries: list[Accepts]) -> set[str]:
    """Return the words that a dictionary accepts in one of their spellings."""
    tried = {word: spellings(word, language) for word in words if is_candidate(word, language)}
    asked = sorted(set().union(*tried.values()))
    known = set().union(*(accepts(asked) for accepts in dictionaries))
    accepted = {word for word, forms in tried.items() if not forms.isdisjoint(known)}
    symbols = {symbol for word in accepted for symbol in word}
    return accepted | {word for word in tried if is_letter(word) and word in symbols}


def figures(language: str, ranks: list[tuple[str, float]], accepted: set[str]) -> dict[str, object]:
    """Return what is reported of a list: counts, shares, symbols and the first unknown words."""
    total = sum(share for _, share in ranks)
    inside = [(word, share) for word, share in ranks if word in accepted]
    listed = inside[:MOST_WORDS]
    unknown = [word for word, _ in ranks if word not in accepted]
    clusters = [(regex.findall(r"\X", word), share) for word, share in listed]
    mass = sum(share for _, share in listed)
    return {
        "language": language,
        "wordfreq": len(ranks),
        "accepted": len(inside),
        "accepted_share": round(len(inside) / len(ranks), 4),
        "accepted_mass": round(sum(share for _, share in inside) / total, 4),
        "not_accepted": len(unknown),
        "listed": len(listed),
        "listed_mass": round(mass / total, 4),
        "code_points": len({symbol for word, _ in listed for symbol in word}),
        "clusters": len({cluster for found, _ in clusters for cluster in found}),
        "mean_length": round(sum(len(found) * share for found, share in clusters) / mass, 3),
        "longest": max(len(found) for found, _ in clusters),
        "first_not_accepted": unknown[:10],
    }


def build(language: str, sources: list[Source], packages: Path, out: Path) -> None:
    """Write a language's list and print its figures."""
    dictionaries = []
    for source in sources:
        (form,) = FORMATS.keys() & source.keys()
        dictionaries.append(FORMATS[form](fetch(source, packages) / source[form]))
    ranks = ranked(language)
    accepted = accepted_words([word for word, _ in ranks], language, dictionaries)
    listed = [word for word, _ in ranks if word in accepted][:MOST_WORDS]
    text = "".join(f"{word}\n" for word in sorted(listed)).encode()
    # No time stamp and no file name: the same words give the same bytes.
    data = gzip.compress(text, 9, mtime=0)
    (out / f"known_{language}.txt.gz").write_bytes(data)
    report = figures(language, ranks, accepted) | {"bytes": len(data)}
    sys.stdout.write(json.dumps(report, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Write the lists and print their figures."""
    sources = tomllib.loads((TOOLS / "word_lists.toml").read_text(encoding="utf-8"))
    expected = sources.pop("wordfreq")["version"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("languages", nargs="+", metavar="LANGUAGE", choices=sorted(sources))
    parser.add_argument("--packages", type=Path, help="where fetched packages are kept")
    parser.add_argument("--out", type=Path, default=Path(), help="where the lists go")
    options = parser.parse_args()
    version = importlib.metadata.version("wordfreq")
    if version != expected:
        raise SystemExit(f"Expected wordfreq {expected}, got {version}.")
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        packages = options.packages or Path(temporary)
        for language in options.languages:
            build(language, sources[language], packages.resolve(), options.out)


if __name__ == "__main__":
    main()
