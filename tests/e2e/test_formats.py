"""Results of every command in every format: the same rows, and tables alone where programs read."""

from __future__ import annotations

import csv
import io
import json

import pytest

from tests.thinned import thinned

COMMANDS = {
    "user": ("account user --local-epsilon 2 --clients 500 --max-items 5", 1),
    "shuffle": ("account shuffle --local-epsilon 2 --reports 1000", 1),
    "anonymity": (
        "account anonymity --local-epsilon 8 --reports 1000 --eta-max 9 --alphabet-size 9",
        1,
    ),
    "plan": ("account plan --local-epsilon 2 --central-epsilon 1", 1),
    "ledger": ("account ledger --use-case emoji=4:1 --days 3", 2),
    "memo": ("account memo --answer rappor --local-epsilon 4 --bits 4 --days 2", 2),
    "compare": ("oracles compare --local-epsilon 4 --domain-size 100", 1),
    "deployment": (
        "plan small --set population.clients=3000 --workers 0 -q --at item-central-epsilon=4 "
        "--protocol triehh --protocol blender --min-precision 0 --runs 2",
        4,
    ),
    "log": ("audit log log.csv --use-case emoji=4:1", 1),
    "describe": ("data describe words.csv", 2),
    "presets": ("presets list", 1),
}


@pytest.fixture
def printed(command, tmp_path):
    (tmp_path / "log.csv").write_text("device,day,use_case\na,0,emoji\nb,3,emoji\n")
    (tmp_path / "words.csv").write_text("user,word\na,lol\nb,brb\n")

    def call(line: str, how: str) -> str:
        done = command(*line.split(), "--format", how, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return call


@pytest.mark.parametrize(("line", "tables"), thinned(COMMANDS.values()), ids=COMMANDS)
def test_every_format_has_the_same_tables(printed, line, tables):
    read = [list(csv.DictReader(io.StringIO(each))) for each in printed(line, "csv").split("\n\n")]
    assert len(read) == tables
    latex, markdown = printed(line, "latex"), printed(line, "markdown")
    assert latex.count(r"\begin{tabular}") == markdown.count("\n|-") == tables
    rows = sum(map(len, read))
    assert rows > 0
    assert latex.count(r" \\") == rows + tables
    assert markdown.count("\n| ") == rows + tables
    # A head that stands twice would lose a column.
    for table in read:
        assert all(None not in row and len(row) > 1 for row in table)
    assert json.loads(printed(line, "json"))


def test_csv_holds_the_numbers(printed):
    line = "account user --local-epsilon 2 --clients 500 --max-items 5"
    guarantees = json.loads(printed(line, "json"))["guarantees"]
    rows = list(csv.DictReader(io.StringIO(printed(line, "csv"))))
    for row, stated in zip(rows, guarantees, strict=True):
        assert float(row["epsilon"]) == pytest.approx(stated["epsilon"], abs=1e-4)


def test_what_stands_between_tables_is_a_paragraph_of_markdown(printed):
    text = printed("oracles compare --local-epsilon 4 --domain-size 100", "markdown")
    assert "\n\nUse grr: 100 values are fewer than" in text


ANSWER = "audit device --answer one-bit-mean --local-epsilon 1 --days 2 --devices 50"


@pytest.mark.parametrize(
    ("line", "name", "start"),
    thinned(
        [
            ("account memo --answer fresh --local-epsilon 1 --days 3", "b.png", b"\x89PNG"),
            ("account shuffle --local-epsilon 0.5 --reports 100", "new/b.png", b"\x89PNG"),
            ("account shuffle --local-epsilon 0.5 --reports 100 --format json", "b.pdf", b"%PDF"),
            ("account ledger --rules ios-10.1.1 --days 20", "b.svg", b"<?xml"),
            ("account memo --answer dbitflip --local-epsilon 1 --days 3", "b.svg", b"<?xml"),
            (ANSWER, "b.svg", b"<?xml"),
            ("oracles compare --local-epsilon 4 --domain-size 100", "b.png", b"\x89PNG"),
        ]
    ),
)
@pytest.mark.usefixtures("drawn_figures")
def test_a_figure_is_written_whole_and_said(command, tmp_path, line, name, start):
    done = command(*line.split(), "--figure", str(tmp_path / name))
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / name).read_bytes().startswith(start)
    assert [path.name for path in (tmp_path / name).parent.iterdir()] == [name.rpartition("/")[2]]
    if "json" in line:
        assert json.loads(done.stdout)["guarantees"]
    else:
        assert f"Wrote {tmp_path / name}\n" in done.stdout


@pytest.mark.slow("::test_every_format_has_the_same_tables")
def test_a_run_ends_with_its_tables_as_they_are_shown_again(command, tmp_path):
    small = "run small --workers 0 --set population.clients=2000 --set protocol.depth=3"
    for how in ("csv", "latex"):
        done = command(*small.split(), "--out", how, "--format", how, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout == command("show", how, "--format", how).stdout
    planned = command(*small.split(), "--dry-run", "--format", "markdown")
    assert planned.returncode == 0, planned.stderr
    assert "\x1b" not in planned.stdout
