"""What users typed, as text in tables and figures: nothing of it is markup or a command."""

from __future__ import annotations

import re

from fedhh.words.readable import readable

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "_": r"\_", "%": r"\%", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "±": r"$\pm$",
}  # fmt: skip

# Two of these would become one letter, such as a dash or a quotation mark.
_LIGATURE = re.compile(r"(?<=[-`',!?])(?=[-`',])")

_MARKUP = re.compile(
    r"[\\`*~^$|@]"
    # Within a word, as in eta_max, an underscore is text.
    r"|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])"
    # A bracket without a parenthesis, as around an interval, is text where nothing defines it.
    r"|(?<=\])[(\[:]"
    # What many renderers make links of without any mark.
    r"|(?<=:)/(?=/)|(?<=[wW][wW][wW])\."
)

_BLOCK = re.compile(r"[-+#>=\[]|(?<=\d)[.)]")
"""What begins something else than a paragraph at the start of a line, or behind its number."""


def latex(text: str) -> str:
    r"""Return text as LaTeX that shows it.

    >>> latex("50 % of $a_1$")
    '50 \\% of \\$a\\_1\\$'
    """
    whole = _LIGATURE.sub("\0", readable(text))
    shown = "".join(_LATEX.get(symbol, symbol) for symbol in whole).replace("\0", "{}")
    # Behind the end of a row, a bracket or an asterisk would be an option of it, also after spaces.
    start = shown.lstrip(" ")
    return f"{{}}{shown}" if start[:1] in ("[", "*") else shown


def markdown(text: str) -> str:
    r"""Return text as a cell of a Markdown table that shows it: without tag, link or image.

    >>> print(markdown("a|b <i> [4, 5] ![x](http://y) eta_max _z_"))
    a\|b &lt;i> [4, 5] ![x]\(http:\//y) eta_max \_z\_
    """
    entities = readable(text).replace("&", "&amp;").replace("<", "&lt;")
    return _MARKUP.sub(r"\\\g<0>", entities)


def markdown_paragraph(text: str) -> str:
    r"""Return text as a paragraph of Markdown that shows it.

    >>> print(markdown_paragraph("1. # of [a]: b"))
    1\. # of [a]\: b
    """
    shown = markdown(text.strip())
    number = len(shown) - len(shown.lstrip("0123456789"))
    begins = _BLOCK.match(shown, number)
    return f"{shown[:number]}\\{shown[number:]}" if begins else shown


def unmathed(text: str) -> str:
    r"""Return text, lines kept, that matplotlib shows as it is: it takes ``$...$`` for a formula.

    >>> unmathed("$5 or $6")
    '\\$5 or \\$6'
    """
    return "\n".join(readable(line) for line in text.split("\n")).replace("$", r"\$")
