"""Tables as others read them: renderers of Markdown show their text alone, TeX compiles them."""

from __future__ import annotations

import html
import re
import shutil
import subprocess

import pytest
from markdown_it import MarkdownIt

from fedhh.experiments.study.text_table import TextTable

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


@pytest.mark.parametrize("reader", readers())
@pytest.mark.parametrize("text", HOSTILE)
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


@pytest.mark.slow
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
