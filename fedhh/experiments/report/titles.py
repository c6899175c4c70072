"""Titles, names of panels and notes of figures: broken to fit, shown as typed, and left out."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from weakref import WeakKeyDictionary

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.text import Text
from matplotlib.textpath import text_to_path
from matplotlib.transforms import blended_transform_factory

from fedhh.experiments.study.look import Look
from fedhh.experiments.study.plain_text import unmathed
from fedhh.validation import InputError

NOTE = "#555555"

_TITLE, _HEADING, _NAME, _SMALL = 10, 11, 9, 8
_MARGIN, _BESIDE_PANEL = 0.5, 0.5
"""Inches of a figure, or of a column of panels, that no title takes: a long name of the y axis may
reach as high."""
_MOST_LINES = 6
"""Of a line of a title, which a label of hundreds of letters would fill a figure with."""
_CUT = " …"
_LETTER = 0.083
"""Inches of a usual letter of a title."""
_POINTS = 72
_COLLAPSED = "constrained_layout not applied"


@dataclass(frozen=True, kw_only=True)
class _Written:
    """A text as it was given, to be broken again for another width."""

    text: str
    share: float
    """Of the figure's width."""
    is_title: bool


_WRITTEN: WeakKeyDictionary[Text, _Written] = WeakKeyDictionary()


def put_title(axes: Axes, title: str) -> None:
    """Put a figure's title above its only axes: what is shown, and in further lines of whom."""
    artist = axes.set_title("", fontsize=_TITLE, pad=8)
    _center(artist, axes)
    _write(artist, axes.figure, title, is_title=True)


def put_heading(figure: Figure, title: str) -> None:
    """Put a figure's title above all of its panels."""
    artist = figure.suptitle("", fontsize=_HEADING)
    _write(artist, figure, title, is_title=True)


def name_panel(axes: Axes, name: str, *, size: float = _NAME) -> None:
    """Put a panel's name above it, which it keeps where a figure loses its title."""
    place = axes.get_subplotspec()
    columns = 1 if place is None else place.get_gridspec().ncols
    artist = axes.set_title("", fontsize=size)
    if columns == 1:
        _center(artist, axes)
    _write(artist, axes.figure, name, share=1 / columns)


def put_note(figure: Figure, note: str) -> None:
    """Put what marks and intervals mean below a figure."""
    _write(figure.supxlabel("", fontsize=_SMALL, color=NOTE), figure, note)


def wrapped(text: str, inches: float, *, size: float = _TITLE) -> str:
    """Return text, of a size in points, broken so that no line is wider, without any formula in it.

    Its line breaks stay; each of its lines becomes `_MOST_LINES` at most.
    """
    lines = [part for line in text.split("\n") for part in _broken(line, inches, size)]
    return unmathed("\n".join(lines))


def letters_wide(text: str) -> int:
    """Return how wide a line of text is, in letters of usual width."""
    return math.ceil(_inches(text, _TITLE) / _LETTER)


def shortened(texts: Iterable[str], longest: int) -> list[str]:
    """Return texts without their middle where they are wider, no two alike that were not.

    The width is in letters of usual width, see `letters_wide`.

    >>> shortened(["short", "a long label of one", "a long label of two"], 12)
    ['short', 'a long … one', 'a long … two']
    >>> shortened(["a long label 1 and", "a long label 2 and"], 9)
    ['a lon…and', 'a l…d (2)']
    """
    whole = list(texts)
    made: dict[str, str] = {}
    for text in dict.fromkeys(whole):
        short, number = _without_middle(text, longest), 1
        while short in made.values():
            number += 1
            mark = f" ({number})"
            short = _without_middle(text, longest - len(mark)) + mark
        made[text] = short
    return [made[text] for text in whole]


def shown_labels(texts: Iterable[str], longest: int) -> list[str]:
    r"""Return labels of a legend or of ticks: short, without any formula, none left out.

    >>> shown_labels(["_mine", "$5"], 20)
    [' _mine', '\\$5']
    """
    # A legend leaves out what begins with an underscore.
    return [
        f" {text}" if text.startswith("_") else text
        for text in map(unmathed, shortened(texts, longest))
    ]


def restyle(figure: Figure, look: Look) -> None:
    """Give a figure the look that a user asks for; all texts are broken again to fit."""
    if look.size is not None:
        figure.set_size_inches(*look.size)
    for artist in figure.findobj(Text):
        assert isinstance(artist, Text)
        if (written := _WRITTEN.get(artist)) is None:
            continue
        if written.is_title and not look.title:
            artist.set_text("")
            artist.set_in_layout(False)
        else:
            _fit(artist, figure, written)
    if look.size is not None:
        _check_room(figure, look.size)


def _center(artist: Text, axes: Axes) -> None:
    """Center a title over the figure, whose width it may take, not over the axes."""
    figure = axes.figure
    artist.set_transform(blended_transform_factory(figure.transFigure, artist.get_transform()))


def _write(
    artist: Text, figure: object, text: str, *, share: float = 1.0, is_title: bool = False
) -> None:
    assert isinstance(figure, Figure)
    written = _Written(text=text, share=share, is_title=is_title)
    _WRITTEN[artist] = written
    _fit(artist, figure, written)


def _fit(artist: Text, figure: Figure, written: _Written) -> None:
    margin = _MARGIN if written.share == 1 else _BESIDE_PANEL
    inches = written.share * figure.get_figwidth() - margin
    artist.set_text(wrapped(written.text, inches, size=float(artist.get_fontsize())))


def _check_room(figure: Figure, size: Sequence[float]) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        figure.draw_without_rendering()
    if any(_COLLAPSED in str(each.message) for each in seen):
        raise InputError(
            f"size: {size[0]:g}x{size[1]:g} inches leave no room between the labels of this "
            "figure; ask for more, or for no title."
        )


def _broken(line: str, inches: float, size: float) -> list[str]:
    """Return a line as lines that fit, between words where that is possible."""
    lines = [""]
    for word in line.split():
        longer = f"{lines[-1]} {word}".lstrip()
        if _inches(longer, size) <= inches:
            lines[-1] = longer
            continue
        lines += [word] if lines[-1] else []
        rest = lines[-1] = word
        while (fits := _that_fit(rest, inches, size)) < len(rest):
            lines[-1], rest = rest[:fits], rest[fits:]
            lines.append(rest)
            if len(lines) > _MOST_LINES:
                break
        if len(lines) > _MOST_LINES:
            last = lines[_MOST_LINES - 1]
            room = inches - _inches(_CUT, size)
            return [*lines[: _MOST_LINES - 1], last[: _that_fit(last, room, size)] + _CUT]
    return lines if lines[0] else []


def _that_fit(text: str, inches: float, size: float) -> int:
    """Return how many of a text's first letters fit, at least one."""
    counts = range(1, len(text) + 1)
    return max(bisect_right(counts, inches, key=lambda count: _inches(text[:count], size)), 1)


def _without_middle(text: str, longest: int) -> str:
    lines = text.split("\n")
    if len(text) <= longest * len(lines) and all(letters_wide(x) <= longest for x in lines):
        return text
    text, kept = " ".join(lines), longest
    while True:
        tail = max(kept // 3, 1)
        short = f"{text[: max(kept - tail - 1, 1)]}…{text[len(text) - tail :]}"
        if kept <= 3 or letters_wide(short) <= longest:
            return short
        kept -= 1


@lru_cache(maxsize=1024)
def _inches(text: str, size: float) -> float:
    """Return how wide a line of text is, as matplotlib draws it."""
    with warnings.catch_warnings():
        # What the font lacks is a box, whose width counts.
        warnings.simplefilter("ignore")
        width, _, _ = text_to_path.get_text_width_height_descent(
            unmathed(text).replace(r"\$", "$"), FontProperties(size=size), False
        )
    return float(width) / _POINTS
