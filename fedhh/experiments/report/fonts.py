"""Text of any script in figures: another installed font for it, or else its code points."""

from __future__ import annotations

import functools
import unicodedata

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.text import Text

_CJK = ("HANGUL", "CJK", "HIRAGANA", "KATAKANA", "BOPOMOFO")
_BROAD = ("Noto Sans Symbols", "Noto Sans Symbols2", "Noto Emoji", "Symbola", "FreeSans", "Unifont")
_NO_OUTLINES = "Color"
"""In the names of fonts of pictures, which a figure cannot draw."""


def make_readable(figure: Figure) -> None:
    """Give the texts of a figure fonts that have their letters.

    A letter that no installed font has becomes its code point, such as U+0915. Of scripts such as
    Devanagari, older versions of matplotlib do not join the letters.
    """
    for artist in figure.findobj(Text):
        assert isinstance(artist, Text)
        text = artist.get_text()
        missing = [c for c in dict.fromkeys(text) if not (c.isascii() or _has(_usual(), c))]
        if not missing:
            continue
        fonts = list(artist.get_fontfamily())
        for letter in missing:
            if any(_has(font, letter) for font in fonts[1:]):
                continue
            font = _font_with(letter)
            if font is None:
                text = text.replace(letter, f"U+{ord(letter):04X}")
            else:
                fonts.append(font)
        artist.set_text(text)
        artist.set_fontfamily(fonts)


def _usual() -> str:
    return str(mpl.rcParams["font.sans-serif"][0])


@functools.cache
def _font_with(letter: str) -> str | None:
    """Return an installed font that has a letter: one of its script, or a broad one."""
    script = unicodedata.name(letter, "").split(" ")[0].split("-")[0]
    named = "CJK" if script in _CJK else script.title()
    installed = fontManager.get_font_names()
    plain = [name for name in installed if named and named in name and _NO_OUTLINES not in name]
    # Noto's sans first, as the usual font is one.
    plain.sort(key=lambda name: (not name.startswith("Noto Sans"), len(name), name))
    broad = [name for name in _BROAD if name in installed]
    return next((name for name in (*plain, *broad) if _has(name, letter)), None)


@functools.cache
def _has(font: str, letter: str) -> bool:
    path = findfont(FontProperties(family=[font]), fallback_to_default=True)
    try:
        return bool(get_font(path).get_char_index(ord(letter)))
    except (OSError, RuntimeError):
        return False
