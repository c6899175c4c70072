"""Kinds of experiments: a new one is a module and a line; directories say their kind by a word."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pandas as pd
import pytest

from fedhh.experiments.report.sweep_kind import SweepKind
from fedhh.experiments.study import kinds, source
from fedhh.experiments.study.kinds import Registered
from fedhh.validation import InputError
from tests.fuzz.work import call, make, undrawn
from tests.thinned import thinned

TOY = """
import json

from matplotlib.figure import Figure
import pandas as pd

from fedhh.experiments.report.explorer.study_page import chart, study_page
from fedhh.experiments.report.style import write_figure
from fedhh.experiments.study.callbacks import Several, Work
from fedhh.experiments.study.directory import check_output, new_directory
from fedhh.experiments.study.kinds import Drawn, Kind
from fedhh.experiments.study.parts import Line
from fedhh.experiments.study.resume import require_same, require_unfinished, stored_toml
from fedhh.experiments.study.stored_files import read_json
from fedhh.experiments.study.study import Study
from fedhh.experiments.study.text_table import TextTable
from fedhh.system.files import write_text
from fedhh.validation import InputError
import tomli_w


class ToyStudy(Study):
    def __init__(self, source, request):
        self.toy, self.request = source.table["toy"], request
        if self.toy["values"] < 1:
            raise InputError(f"{source.origin}: toy.values = {self.toy['values']}: too few.")
        if request.resume:
            require_same(
                request.out, self.toy, stored_toml(request.out, what="toy")["toy"], what="toy"
            )
            require_unfinished(request.out, what="toy")

    def plan(self):
        yield Line(f"{self.toy['values']} values")

    def plan_record(self):
        return self.toy

    def run(self, callbacks=()):
        heard, request, most = Several(callbacks), self.request, self.toy["values"]
        check_output(request.out, "runs", resume=request.resume)
        directory = request.out
        if not request.resume:
            config = tomli_w.dumps({"toy": self.toy})
            directory = new_directory(request.out, "runs", name="toy", config=config)
        heard.start(Work(title="A toy", noun="values", total=most))
        values = []
        for place in range(most):
            values.append(1_000 * place)
            heard.finish(f"value {place}", values[-1])
        write_text(directory / "result.json", json.dumps({"kind": "toy", "values": values}))
        return directory


class Toy(Kind):
    noun = "toy"
    command = "run"
    begun = "config.toml"

    def study(self, source, request):
        return ToyStudy(source, request)

    def table(self, directory):
        values = read_json(directory / "result.json")["values"]
        rows = tuple((str(place), f"{value:,}") for place, value in enumerate(values))
        return TextTable(title="A toy", columns=("place", "value"), rows=rows, note="All of it.")

    def plot(self, directory, drawing):
        figure = Figure()
        figure.subplots().plot(read_json(directory / "result.json")["values"])
        return Drawn(
            paths=[write_figure(figure, (drawing.out or directory) / "values", look=drawing.look)]
        )

    def page(self, directory):
        values = read_json(directory / "result.json")["values"]
        table = pd.DataFrame({"place": range(len(values)), "of": "toy", "value": values})
        drawn = chart(("Values", "Place by place."), table, ["place", "of"], ["value"], {})
        return study_page(
            "A toy", [], [self.table(directory)], [drawn], config=directory / "config.toml"
        )
"""
TOY_FILE = "[toy]\nvalues = 3\n"

PAGE = (Path(__file__).parents[3] / "docs" / "extending.md").read_text(encoding="utf-8")
SURVEY = (
    PAGE.partition("## A kind of experiment")[2].partition("```python\n")[2].partition("```")[0]
)
"""The class that the page shows."""


@pytest.fixture
def toy(tmp_path, monkeypatch, capsys):
    """The directory of a finished toy, whose module and line are all that fedhh knows of it."""
    (tmp_path / "toys.py").write_text(TOY + SURVEY)
    monkeypatch.syspath_prepend(tmp_path)
    more = {
        "toy": Registered("toys:Toy", section="toy"),
        "survey": Registered("toys:SurveyKind", section="survey"),
    }
    monkeypatch.setattr(kinds, "KINDS", {**kinds.KINDS, **more})
    monkeypatch.setattr(source, "KINDS", kinds.KINDS)
    (tmp_path / "toy.toml").write_text(TOY_FILE)
    call("run", tmp_path / "toy.toml", "--out", tmp_path / "toy", "-q")
    assert capsys.readouterr() == (f"{tmp_path / 'toy'}\n", "")
    return tmp_path / "toy"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    home = tmp_path_factory.mktemp("made")
    for kind in ("run", "sweep", "months", "pipeline"):
        make(home, kind)
    return home


def holding(folder: Path, record: dict) -> Path:
    folder.mkdir()
    (folder / "result.json").write_text(json.dumps(record))
    return folder


def test_a_sixth_kind_is_a_module_and_a_line(toy, capsys):
    call("show", toy)
    shown = capsys.readouterr().out
    assert "A toy" in shown
    assert "2,000" in shown
    assert f"Files: {toy}" in shown
    call("show", toy / "result.json", "--format", "json")
    assert json.loads(capsys.readouterr().out) == {
        "kind": "toy", "values": [0, 1000, 2000], "directory": str(toy),
    }  # fmt: skip
    call("show", toy, "--table", "main", "--format", "csv")
    assert capsys.readouterr().out.split() == ["place,value", "0,0", '1,"1,000"', '2,"2,000"']
    call("plot", toy)
    assert {path.name for path in toy.glob("values.*")} == {
        "values.png",
        "values.pdf",
        "values.svg",
    }
    call("report", toy)
    assert "<title>A toy" in (toy / "report.html").read_text(encoding="utf-8")


def test_a_report_replaces_files_alone_and_may_go_to_standard_output(toy, capsys, monkeypatch):
    monkeypatch.chdir(toy)
    os.mkfifo("pipe")
    Path("file").touch()
    call("report", toy, "--out", "-")
    assert capsys.readouterr().out.startswith("<!doctype html>")
    assert not {Path("-"), Path("report.html")} & set(Path().iterdir())
    with pytest.raises(InputError, match="a regular file: pipe"):
        call("report", toy, "--out", "pipe")
    for words in ("report", toy, "--out", "file/a.html"), ("plot", toy, "--out", "file"):
        with pytest.raises(InputError, match=": file"):
            call(*words)
    assert Path("pipe").is_fifo()


def test_a_sixth_kind_runs_as_the_others_do(toy, tmp_path, capsys):
    call("run", tmp_path / "toy.toml", "--dry-run", "--set", "toy.values=2_000")
    assert capsys.readouterr().out == "2000 values\n"
    call("run", tmp_path / "toy.toml", "--dry-run", "--format", "json")
    assert json.loads(capsys.readouterr().out) == {"values": 3}
    call("run", tmp_path / "toy.toml", "--out", tmp_path / "two", "--set", "toy.values=2")
    shown = capsys.readouterr().out
    assert "1,000" in shown
    assert f"Files: {tmp_path / 'two'}" in shown
    (toy / "result.json").unlink()
    with pytest.raises(InputError, match=r"another toy \(differs in: values\)"):
        call("run", "--resume", "--out", toy, "--set", "toy.values=4")
    call("run", "--resume", "--out", toy, "--format", "json")
    assert json.loads(capsys.readouterr().out)["values"] == [0, 1000, 2000]
    for words, reason in {
        ("--resume", "--out", toy): "The toy in .* is finished",
        (tmp_path / "toy.toml", "--out", toy): "holds another run",
        (tmp_path / "toy.toml", "--set", "toy.values=0"): r"toy\.values = 0: too few",
        (tmp_path / "toy.toml", "--live"): "A toy has no live page",
        (tmp_path / "toy.toml", "--data", "words.csv"): "a toy has none",
    }.items():
        with pytest.raises(InputError, match=reason):
            call("run", *words)


def test_what_a_kind_cannot_do_is_one_line(toy, tmp_path, capsys):
    survey = holding(tmp_path / "survey", {"kind": "survey", "answers": {"yes": 1_000}})
    call("show", survey)
    assert "1,000" in capsys.readouterr().out
    for words, reason in {
        ("plot", survey): "holds a survey, which has no figures",
        ("report", survey): "holds a survey, which has no page to explore",
        ("plot", toy, "--x", "seed"): "holds a toy, whose figures take --out, --no-title",
        ("show", toy, "--table", "summary"): "which has one table: main",
        ("report", toy, toy): "holds no single run",
    }.items():
        with pytest.raises(InputError, match=reason):
            call(*words)
    assert not list(survey.glob("*.png"))


def test_what_was_begun_says_how_to_go_on(toy, tmp_path):
    (toy / "result.json").unlink()
    for command in ("show", "plot", "report"):
        with pytest.raises(InputError, match="go on with fedhh run --resume --out"):
            call(command, toy)
    with pytest.raises(InputError, match="go on with fedhh run --resume --out"):
        call("plot", tmp_path / "absent")


def test_an_unknown_kind_is_named_with_the_known_ones(tmp_path):
    newer = holding(tmp_path / "newer", {"kind": "sent\x1b[2J"})
    with pytest.raises(
        InputError, match="expected one of run, sweep, comparison, pipeline"
    ) as error:
        call("show", newer)
    assert "\x1b" not in str(error.value)


@pytest.mark.slow("::test_an_unknown_kind_is_named_with_the_known_ones")
@pytest.mark.parametrize("word", thinned(["run", "sweep", "pipeline", "repeated-collection"]))
def test_a_directory_says_its_kind_and_one_that_says_none_is_refused(made, tmp_path, word):
    directory = tmp_path / "copy"
    shutil.copytree(made / {"repeated-collection": "months"}.get(word, word), directory)
    expected = type(kinds.find(word))
    assert type(kinds.kind_of(directory)) is expected
    file = directory / "result.json"
    if word == "sweep":
        assert not file.exists()
        return
    record = json.loads(file.read_text())
    assert record["kind"] == word
    file.write_text(json.dumps({key: part for key, part in record.items() if key != "kind"}))
    with pytest.raises(InputError, match="is of the kind None, expected one of run, sweep"):
        kinds.kind_of(directory)


@pytest.mark.slow("::test_a_sixth_kind_is_a_module_and_a_line")
def test_figures_of_a_repeated_collection_are_drawn_from_its_tables(made, tmp_path, capsys):
    directory = tmp_path / "months"
    shutil.copytree(made / "months", directory)
    shutil.rmtree(directory / "periods")
    with undrawn():
        call("plot", directory)
    names = {path.name for path in (directory / "figures").glob("*.png")}
    assert names == {"days-until-found.png", "by-week.png"}
    assert f"Wrote {directory / 'figures' / 'by-week.png'}" in capsys.readouterr().out
    call("plot", directory, "--out", tmp_path / "drawn", "--size", "6x5", "--no-title")
    assert (tmp_path / "drawn" / "by-week.svg").exists()
    pd.DataFrame({"protocol": [1]}).to_parquet(directory / "losses.parquet")
    with pytest.raises(InputError, match=r"losses\.parquet is damaged"):
        call("plot", directory)


def test_a_sweep_is_finished_once_its_results_are_there(tmp_path):
    sweep = SweepKind()
    assert sweep.is_finished(tmp_path) is False
    (tmp_path / "results.parquet").write_bytes(b"PAR1")
    assert sweep.is_finished(tmp_path) is True


def test_a_user_who_asks_nothing_special_gets_the_main_table_and_twenty_words():
    assert vars(kinds.Asked()) == {"everything": False, "words": 20}
