"""A directory that somebody sent: read without running its code; run only with --trust."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from fedhh.validation import InputError
from tests.fuzz.work import MONTHS, PIPELINE, RUN, SWEEP, call
from tests.own_modules import own_modules
from tests.thinned import thinned

MARK = "ran.txt"
MODULE = """
from pathlib import Path
from fedhh.oracles import SubsetSelection
from fedhh.server.ldp_triehh import LdpTrieHH
from dataclasses import dataclass

Path({mark!r}).touch()

class Chosen(SubsetSelection):
    pass

@dataclass(frozen=True, kw_only=True)
class Mine(LdpTrieHH):
    title = "sent to you"
"""
PROTOCOL = RUN.replace("ldp-triehh", "sent_code:Mine")
ORACLE = RUN.replace("[execution]", 'oracle = "sent_code:Chosen"\n[execution]')
DAYS = PIPELINE.replace("oue", "sent_code:Chosen")

TEXTS = {
    "run": PROTOCOL,
    "oracle": ORACLE,
    "sweep": PROTOCOL + SWEEP,
    "months": PROTOCOL + MONTHS,
    "days": DAYS,
    "listed": PROTOCOL + '[sweep.protocols.a]\nname = "sent_code:Mine"\n'
    '[sweep.protocols.b]\nname = "sfp"\n',
}

pytestmark = pytest.mark.usefixtures("no_trust", "undrawn")


@pytest.fixture
def no_trust():
    with own_modules(trusted=False):
        yield


@pytest.fixture(scope="module")
def sent(tmp_path_factory):
    """The folder of somebody whose code is in it; what was made with it is made when asked for."""
    home = tmp_path_factory.mktemp("theirs")
    (home / "sent_code.py").write_text(MODULE.format(mark=str(home / MARK)))
    for name, text in TEXTS.items():
        (home / f"{name}.toml").write_text(text)
    return home


@pytest.fixture(scope="module")
def made(sent):
    """Make what they make of a kind, once; the mark is gone, and the module forgotten."""

    def make(kind: str) -> None:
        if (sent / kind).exists():
            return
        how = ("compare", "--config") if kind == "listed" else ("run",)
        with pytest.MonkeyPatch.context() as patch, own_modules(trusted=True):
            patch.chdir(sent)
            call(*how, f"{kind}.toml", "--out", kind, "-q", "--trust")
        (sent / MARK).unlink()
        assert "sent_code" not in sys.modules

    return make


@pytest.fixture
def received(sent, made, tmp_path, monkeypatch):
    """Copy what was made of some kinds into a folder below the current one.

    With code that Python may look for, too.
    """
    folder = tmp_path / "received"

    def copy(*kinds: str) -> Path:
        for kind in kinds:
            made(kind)
        shutil.copytree(sent, folder)
        for each in [folder, *(path for path in folder.iterdir() if path.is_dir())]:
            for name in ("bottleneck", "numexpr", "sent_code"):
                (each / f"{name}.py").write_text(MODULE.format(mark=str(sent / MARK)))
        monkeypatch.chdir(tmp_path)
        return folder

    yield copy
    (sent / MARK).unlink(missing_ok=True)


READ = [
    ("show", "run", "--all"),
    ("report", "run"),
    ("plot", "run"),
    ("show", "oracle", "--all"),
    ("report", "oracle"),
    ("plot", "oracle"),
    ("report", "run", "oracle"),
    ("show", "sweep", "--all"),
    ("report", "sweep"),
    ("plot", "sweep"),
    ("show", "sweep", "--table", "summary"),
    ("show", "listed"),
    ("plot", "listed"),
    ("show", "listed", "--table", "comparison"),
    ("show", "months"),
    ("show", "days"),
    ("plot", "days"),
]


@pytest.mark.parametrize("command", thinned(READ, single=True), ids=" ".join)
def test_a_directory_is_read_without_running_its_code(sent, received, command, capsys):
    folder = received(*(part for part in command if part in TEXTS))
    call(*(folder / part if part in TEXTS else part for part in command))
    assert capsys.readouterr().out
    assert not (sent / MARK).exists()
    assert "sent_code" not in sys.modules
    assert "bottleneck" not in sys.modules


def test_what_is_shown_without_the_code_is_what_the_run_stated(sent, received, capsys):
    folder = received("run", "sweep")
    call("show", folder / "run", "--all")
    shown = capsys.readouterr().out
    assert "sent to you on" in shown
    assert "at most 2 per client" in shown
    call("show", folder / "sweep", "--table", "summary", "--format", "json")
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert len(rows) == 2
    assert not (sent / MARK).exists()


def test_a_run_without_a_statement_is_refused_and_not_imported(sent, received):
    folder = received("run")
    path = folder / "run" / "result.json"
    record = json.loads(path.read_text())
    del record["stated_protocol"]
    path.write_text(json.dumps(record))
    with pytest.raises(InputError, match=r"result\.json is damaged.*stated_protocol"):
        call("show", folder / "run")
    assert not (sent / MARK).exists()


@pytest.mark.parametrize(
    "command",
    thinned(
        [
            ("run", "--config", "@run/config.toml", "--out", "new"),
            ("run", "--resume", "--out", "@run"),
            ("sweep", "--resume", "--out", "@sweep"),
            ("sweep", "@sweep/sweep.toml", "--out", "new"),
            ("compare", "--resume", "--out", "@listed"),
            ("longitudinal", "run", "--resume", "--out", "@months"),
            ("pipeline", "run", "--resume", "--out", "@days"),
            ("pipeline", "run", "--config", "@days/config.toml", "--out", "new"),
        ],
        single=True,
    ),
    ids=" ".join,
)
def test_code_next_to_a_result_runs_with_trust_alone(sent, received, command):
    (kind,) = (kind for kind in TEXTS if f"@{kind}" in " ".join(command))
    folder = received(kind)
    if "--resume" in command and kind in ("run", "days"):
        (folder / kind / "result.json").unlink()
    paths = [part.replace("@", f"{folder}/") for part in command]
    asks = r"'sent_code' would be imported; read it, and give --trust"
    with pytest.raises(InputError, match=asks):
        call(*paths, "-q")
    assert not (sent / MARK).exists()
    call(*paths, "-q", "--trust")
    assert (sent / MARK).exists()


def test_code_next_to_a_configuration_is_asked_about_wherever_it_stands(
    sent, received, monkeypatch
):
    folder = received()
    run = ("run", "--config", folder / "run.toml", "--out", "new", "-q")
    for here in (folder.parent, folder):
        monkeypatch.chdir(here)
        with pytest.raises(InputError, match=r"'sent_code' would be imported; .*--trust"):
            call(*run)
    assert not (sent / MARK).exists()


@pytest.mark.slow("::test_a_directory_is_read_without_running_its_code")
def test_a_folder_whose_code_nobody_names_is_never_imported_from(sent, received, tmp_path):
    folder = received()
    (folder / "plain.toml").write_text(RUN)
    call("run", "--config", folder / "plain.toml", "--out", "new", "-q")
    with pytest.raises(ModuleNotFoundError):
        __import__("numexpr.absent" if "numexpr" in sys.modules else "sent_code")
    assert not (sent / MARK).exists()
    assert Path("new/result.json").exists()
