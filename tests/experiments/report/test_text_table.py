"""Tables of text: nothing that users typed is markup, a command or a formula."""

from __future__ import annotations

import io

import pandas as pd

from fedhh.experiments.study.csv_file import cell_text, csv_text, write_csv
from fedhh.experiments.study.plain_text import latex, markdown, unmathed
from fedhh.experiments.study.text_table import TextTable

HOSTILE = ["=cmd()", "+1", "-1", "@x", "\ttab", "\rline", "'tis", "＝x", "a=b", "", "plain", "=1,2"]
SPECIALS = r"50 % of \x{y} & $a_1$ #2 ~^ <i> | [opt] ± "


def read(text: str) -> list[str]:
    """Return the column of words as docs/populations.md says to read it."""
    words = pd.read_csv(io.StringIO(text), keep_default_na=False)["word"]
    return list(words.where(~words.str.startswith("'"), words.str[1:]))


def test_no_cell_of_a_csv_file_is_a_formula_and_all_text_is_read_back(tmp_path):
    table = pd.DataFrame({"word": HOSTILE, "count": range(-3, len(HOSTILE) - 3)})
    write_csv(table, tmp_path / "t.csv")
    written = (tmp_path / "t.csv").read_bytes().decode()
    raw = pd.read_csv(tmp_path / "t.csv", keep_default_na=False)
    assert not raw["word"].str.match(r"[=+\-@\t\r＝＋－＠]").any()
    assert read(written) == HOSTILE
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


def test_a_cell_of_markdown_is_one_cell_without_markup():
    assert markdown("a|b\n<b>") == "a\\|b\\\\n&lt;b>"


def test_dollars_of_a_figure_are_dollars():
    from matplotlib.figure import Figure

    figure = Figure()
    text = figure.text(0, 0, unmathed(r"$5 or $x_\frac$ or \$"))
    figure.savefig(io.BytesIO(), format="svg")
    assert text._preprocess_math(text.get_text()) == (r"$5 or $x_\frac$ or \$", False)
