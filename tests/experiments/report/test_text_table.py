"""Tables of text: nothing that users typed is markup, a command or a formula.

Renderers of Markdown show their text alone, and TeX compiles them.
"""

from __future__ import annotations

import html
import io
import re
import shutil
import subprocess

import pandas as pd
import pytest
from markdown_it import MarkdownIt
from matplotlib.figure import Figure

from fedhh.experiments.study.csv_file import cell_text, csv_text, write_csv
from fedhh.experiments.study.plain_text import latex, markdown, unmathed
from fedhh.experiments.study.text_table import TextTable
from tests.every import every

FORMULAS = [
    "=cmd()",
    "+1",
    "-1",
    "@x",
    "\ttab",
    "\rline",
    "'tis",
    "＝x",
    "a=b",
    "",
    "plain",
    "=1,2",
]
SPECIALS = r"50 % of \x{y} & $a_1$ #2 ~^ <i> | [opt] ± "


def read(text: str) -> list[str]:
    """Return the column of words as docs/populations.md says to read it."""
    words = pd.read_csv(io.StringIO(text), keep_default_na=False)["word"]
    return list(words.where(~words.str.startswith("'"), words.str[1:]))


def test_no_cell_of_a_csv_file_is_a_formula_and_all_text_is_read_back(tmp_path):
    table = pd.DataFrame({"word": FORMULAS, "count": range(-3, len(FORMULAS) - 3)})
    write_csv(table, tmp_path / "t.csv")
    written = (tmp_path / "t.csv").read_bytes().decode()
    raw = pd.read_csv(tmp_path / "t.csv", keep_default_na=False)
    assert not raw["word"].str.match(r"[=+\-@\t\r＝＋－＠]").any()
    assert read(written) == FORMULAS
    assert raw["count"].tolist() == table["count"].tolist()


def test_plain_text_and_numbers_are_as_they_were():
    table = pd.DataFrame({"word": ["plain", "a=b"], "gain": [-0.5, float("nan")], "n": [1, 2]})
    assert csv_text(table) == table.to_csv(index=False)
    assert cell_text("don't") == "don't"


def test_csv_has_plain_values_where_a_table_has_them():
    table = TextTable(
        title="t", columns=("a", "b"), rows=(("=x", "50.0% [40.0%, 60.0%]"),), note="n",
        records=({"a": "=x", "b_mean": 0.5, "b_low": 0.4, "b_high": 0.6},),
    )  # fmt: skip
    assert table.render("csv") == "a,b_mean,b_low,b_high\n'=x,0.5,0.4,0.6\n"


def test_every_special_of_latex_is_escaped():
    assert latex(SPECIALS) == (
        r"50 \% of \textbackslash{}x\{y\} \& \$a\_1\$ \#2 \textasciitilde{}\textasciicircum{} "
        r"\textless{}i\textgreater{} \textbar{} [opt] $\pm$ "
    )
    # LaTeX takes a bracket behind the end of a row for an option of it.
    assert latex("[x") == "{}[x"
    assert latex("*") == "{}*"


@pytest.mark.parametrize("show", [latex, markdown, unmathed])
def test_joiners_that_spell_stay_and_others_are_escapes(show):
    for word in ("می\u200cخواهم", "क्\u200dष", "👨\u200d👩\u200d👧"):
        assert show(word) == word
    assert "\u200d" not in show("a\u200db")
    assert "\u202e" not in show("می\u202eخواهم")


def test_dollars_of_a_figure_are_dollars():
    figure = Figure()
    text = figure.text(0, 0, unmathed(r"$5 or $x_\frac$ or \$"))
    figure.savefig(io.BytesIO(), format="svg")
    assert text._preprocess_math(text.get_text()) == (r"$5 or $x_\frac$ or \$", False)


HOSTILE = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</td></table><b>", "<!-- x",
    "[x](javascript:alert(1))", "[x](<javascript:alert(1)> 't')", "![x](http://a.example/p.png)",
    "![x][y]", "[y]: http://a.example", "[x]", "<http://a.example>", "http://a.example/?q=1",
    "HTTPS://a.example", "www.a.example", "a@b.example", "a|b", "\\", "a\\|b", "\\\\|", "`a",
    "a`|`b", "``` x", "*a* **b**", "_a_ __b__ a_1_", "~~a~~ ~~~", "&lt;b&gt; &#60; &amp;", "a\nb",
    "a\r\n\r\n# b",
    "\x1b[2J\x00", "a\u202eb", "\ud800", "$x$ $$y$$", "a<br>b", "---", "- a", "+ a", "# a", "> a",
    "1. a", "12) a", "    code", "\tcode", "===", "***", "a^b^", "[a][b](c)", "]( ](x)", "![", "",
    "eta_max", "35 [21, 40]", "50 % of 3", "x  y",
]  # fmt: skip
ALIEN = ["Ελληνικά", "Кириллица", "देवनागरी", "😀", "漢字", "naïve ± 2", "a\u0301"]
TEXT_ONLY = re.compile(r"</?(?:p|table|thead|tbody|tr|th|td)(?: style=\"text-align:\w+\")?>")


def table_of(cells: list[str], *, title: str = "", note: str = "") -> TextTable:
    rows = tuple((cell, f"{number}", cell) for number, cell in enumerate(cells))
    return TextTable(title=title, columns=("label", "n", cells[0]), rows=rows, note=note)


def readers() -> list[MarkdownIt]:
    loose = MarkdownIt("js-default", {"html": True})
    pages = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    return [loose, pages]


def shown(text: str) -> str:
    """What a table shows of a text: what cannot be printed as its escape."""
    return "".join(
        s if s.isprintable() else s.encode("unicode_escape", "surrogatepass").decode() for s in text
    )


@pytest.mark.parametrize("reader", readers())
def test_a_renderer_of_markdown_shows_the_text_of_each_cell_and_nothing_else(reader: MarkdownIt):
    page = reader.render(table_of(HOSTILE).render("markdown"))
    assert not re.search(r"<", TEXT_ONLY.sub("", page))
    cells = re.findall(r"<td[^>]*>(.*?)</td>", page, re.DOTALL)
    assert len(cells) == 3 * len(HOSTILE)
    for text, cell in zip(HOSTILE, cells[::3], strict=True):
        assert html.unescape(cell) == shown(text).strip()


@every("reader", readers())
@every("text", HOSTILE)
def test_titles_and_notes_are_paragraphs(reader: MarkdownIt, text: str):
    table = table_of(["a"], title=text, note=f"{text} {text}")
    page = reader.render(table.render("markdown"))
    assert not re.search(r"<", TEXT_ONLY.sub("", page))
    assert page.count("<table>") == 1
    paragraphs = [html.unescape(found) for found in re.findall(r"<p>(.*?)</p>", page, re.DOTALL)]
    assert paragraphs == [shown(each.strip()) for each in (text, f"{text} {text}") if each.strip()]


def test_the_usual_stays_as_it_is():
    usual = table_of(
        ["eta_max 5", "57.9% [55.1%, 60.2%]", "-4.5 (see below)"], title="Coverage, N = 5"
    )
    text = usual.render("markdown")
    assert "\\" not in text
    assert "&" not in text


def test_ligatures_and_options_of_latex_are_text():
    table = table_of(["[x", " [x", "*", "a -- b", "``quoted''", "?`", "!`", ",,"])
    text = table.render("latex")
    for cell in ("{}[x", "{} [x", "{}*", "a -{}- b", "`{}`quoted'{}'", "?{}`", "!{}`", ",{},"):
        assert f"    {cell} & " in text
    assert "fontspec" not in text
    assert r"needs \usepackage{booktabs}" in text
    assert "lualatex or xelatex, with \\usepackage{fontspec}" in table_of(ALIEN).render("latex")
    assert "fontspec" not in table_of(["5 ± 1"]).render("latex")


@pytest.mark.slow("::test_every_special_of_latex_is_escaped")
def test_tex_compiles_cells_of_any_kind(tmp_path):
    engine = shutil.which("lualatex") or shutil.which("xelatex")
    if engine is None:
        pytest.skip("neither lualatex nor xelatex is installed")
    packages = ("fontspec.sty", "booktabs.sty")
    found = subprocess.run(["kpsewhich", *packages], capture_output=True, check=False).stdout
    if found.count(b"\n") < len(packages):
        pytest.skip("TeX lacks fontspec or booktabs")
    specials = [
        r"\input{/etc/passwd}",
        r"\write18{x}",
        r"50 % of \x{y} & $a_1$ #2 ~^ \\ \end{table}",
    ]
    made = table_of([*HOSTILE, *ALIEN, *specials], title="# 5 % of [x] & Ελλ_1", note="A $ note^.")
    lines = [
        r"\documentclass{article}", r"\usepackage{fontspec}", r"\usepackage{booktabs}",
        r"\begin{document}", r"\tiny", made.render("latex"), r"\end{document}", "",
    ]  # fmt: skip
    (tmp_path / "t.tex").write_text("\n".join(lines))
    done = subprocess.run(
        [engine, "-interaction=nonstopmode", "-halt-on-error", "t.tex"],
        cwd=tmp_path, capture_output=True, check=False, timeout=300, text=True, errors="replace",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert (tmp_path / "t.pdf").stat().st_size > 5_000
    assert "passwd)" not in done.stdout
