"""What users typed, as text in tables and figures: nothing of it is markup or a command."""

from __future__ import annotations

from fedhh.validation import printable

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "_": r"\_", "%": r"\%", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "±": r"$\pm$",
}  # fmt: skip


def latex(text: str) -> str:
    r"""Return text as LaTeX that shows it.

    >>> latex("50 % of $a_1")
    '50 \\% of \\$a\\_1'
    """
    shown = "".join(_LATEX.get(symbol, symbol) for symbol in printable(text))
    # Behind the end of a row, a bracket or an asterisk would be an option of it.
    return f"{{{shown[0]}}}{shown[1:]}" if shown[:1] in ("[", "*") else shown


def markdown(text: str) -> str:
    r"""Return text as a cell of a Markdown table.

    >>> markdown("a|b <i>")
    'a\\|b &lt;i>'
    """
    return printable(text).replace("|", "\\|").replace("<", "&lt;")


def unmathed(text: str) -> str:
    r"""Return text, lines kept, that matplotlib shows as it is: it takes ``$...$`` for a formula.

    >>> unmathed("$5 or $6")
    '\\$5 or \\$6'
    """
    return "\n".join(printable(line) for line in text.split("\n")).replace("$", r"\$")
