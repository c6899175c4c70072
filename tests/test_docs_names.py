"""What pages name is there: members of a protocol, commands; and what they show is Python."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
import typer

import fedhh
from fedhh.cli.app import app
from fedhh.experiments.config.load import load_config
from fedhh.experiments.config.schema import Config
from fedhh.experiments.run.run import run_config
from fedhh.protocol import DiscoveryProtocol
from tests.every import every

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *DOCS.rglob("*.md")]


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def test_members_of_a_protocol_that_pages_name_are_members():
    table = page("tutorials/own-protocol.md")
    members = re.findall(r"^\| `(\w+)(?:\(.*?\))?` \|", table, flags=re.MULTILINE)
    assert len(members) == 4
    members += re.findall(r"`self\.(\w+)", page("extending.md"))
    assert [each for each in members if not hasattr(DiscoveryProtocol, each)] == []


def test_commands_that_a_sentence_names_after_another_exist():
    of_top = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    missing = []
    for path in PAGES:
        for group, first, others in re.findall(
            r"`fedhh (?:([a-z]+) )?([a-z]+)`((?:(?:,| and| or)\s+`[a-z][a-z-]*`)+)",
            path.read_text(encoding="utf-8"),
        ):
            known = of_top[group].commands if group else of_top
            for each in (first, *re.findall(r"`(.+?)`", others)):
                if each not in known:
                    missing.append((path.name, group, each))
    assert missing == []


@every("path", PAGES)
def test_python_of_a_page_is_python(path: Path):
    text = path.read_text(encoding="utf-8")
    for block in re.findall(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE):
        compile(block, path.name, "exec", dont_inherit=True)


def test_the_protocol_of_the_tutorial_refuses_settings_that_mean_nothing():
    names: dict[str, object] = {"__name__": "page", "fedhh": fedhh}
    (text,) = [
        block
        for block in re.findall(
            r"^```python\n(.*?)^```$", page("tutorials/own-protocol.md"), re.DOTALL | re.MULTILINE
        )
        if "class StopsAtNoise" in block
    ]
    exec(compile(text.partition("\n\n\nmine = ")[0], "page", "exec", dont_inherit=True), names)
    made: type[fedhh.LdpTrieHH] = names["StopsAtNoise"]  # type: ignore[assignment]
    assert made().least_z == 1.8  # type: ignore[attr-defined]
    for bad in (math.nan, 0.0, -1.0):
        with pytest.raises(fedhh.InputError, match="least_z"):
            made(least_z=bad)  # type: ignore[call-arg]


@pytest.mark.slow("::test_the_protocol_of_the_tutorial_refuses_settings_that_mean_nothing")
def test_the_tutorial_of_a_protocol_ends_with_its_conformance():
    names: dict[str, object] = {"__name__": "page"}
    code = re.findall(
        r"^```python\n(.*?)^```$", page("tutorials/own-protocol.md"), re.DOTALL | re.MULTILINE
    )
    assert "check_protocol(" in code[-1]
    for block in code:
        exec(compile(block, "page", "exec", dont_inherit=True), names)


def test_what_a_configuration_simulates_is_not_called_missing():
    text = page("explanation/fidelity.md")
    sections = re.findall(r"`\[(\w+)\]`", text.partition("Simulated only if asked for")[2])
    assert sections == ["devices", "adversary"]
    assert set(sections) <= Config.model_fields.keys()


def test_the_run_on_ones_own_data_has_the_default_settings():
    text = page("tutorials/my-data.md")
    assert "\nfedhh run --data words.parquet\n" in text
    assert "central epsilon 1 of a user" in text
    assert load_config().privacy.central_target == ("user", 1.0)
    assert load_config().protocol.participation == "every-round"


@pytest.mark.slow("::test_the_run_on_ones_own_data_has_the_default_settings")
def test_a_larger_epsilon_covers_more_as_the_tutorial_on_ones_own_data_says():
    text = page("tutorials/my-data.md")
    population = fedhh.synthetic_population("chat", 30_000, seed=0)
    for epsilon, said in ((1, "covered to 21 %"), (8, "to 32 %")):
        settings = [f"privacy.user_central_epsilon={epsilon}", "baseline=none"]
        result = run_config(load_config(settings=settings), population)[1]
        assert said in " ".join(text.split())
        assert abs(result.metrics.coverage - float(said.split()[-2]) / 100) < 0.01
