import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from fedhh import plugins
from fedhh.experiments.attack.attack import attack
from fedhh.experiments.config.load import load_config
from fedhh.experiments.planner.planner import plan
from fedhh.longitudinal.pipeline.config import load_pipeline
from fedhh.validation import InputError

BUILTIN = {"path": "pathlib:Path", "error": "fedhh.validation:InputError"}


pytestmark = pytest.mark.usefixtures("own_modules")


def folder(path: Path, **files: str) -> Path:
    path.mkdir(exist_ok=True)
    for name, text in files.items():
        (path / f"{name}.py").write_text(text)
    plugins.add_folder(path)
    return path


def test_a_folder_whose_name_is_too_long_holds_nothing(tmp_path):
    plugins.add_folder(tmp_path / ("x" * 5_000))
    with pytest.raises(InputError, match="neither installed here nor next to"):
        plugins.find("oracles", "plugin_none:Mine", BUILTIN)


def test_a_builtin_name_is_its_class_and_a_misspelt_one_names_the_nearest():
    assert plugins.find("oracles", "path", BUILTIN) is Path
    with pytest.raises(InputError, match=r"Unknown oracle 'eror'; did you mean 'error'\?"):
        plugins.find("oracles", "eror", BUILTIN)
    assert plugins.names("oracles", BUILTIN)[:2] == ["path", "error"]


def test_an_entry_point_is_found_by_its_name(monkeypatch):
    from importlib.metadata import EntryPoint

    point = EntryPoint(name="theirs", value="fractions:Fraction", group="fedhh.things")
    monkeypatch.setattr(plugins, "entry_points", lambda group: {"fedhh.things": [point]}[group])
    assert plugins.find("things", "theirs", BUILTIN).__name__ == "Fraction"
    assert plugins.names("things", BUILTIN) == ["path", "error", "theirs"]


def test_a_module_of_a_folder_is_found_with_the_modules_it_needs(tmp_path):
    folder(
        tmp_path,
        plugin_mine="from plugin_helper import BASE\nclass Mine(BASE): pass\n",
        plugin_helper="class BASE: pass\n",
    )
    found = plugins.find("protocols", "plugin_mine:Mine", {})
    assert found.__bases__[0].__module__ == "plugin_helper"
    assert set(plugins.sources()) == {"plugin_mine.py", "plugin_helper.py"}


def test_the_newest_folder_wins_and_what_is_installed_wins_over_folders(tmp_path):
    folder(tmp_path / "old", plugin_twin="class Mine: age = 'old'\n", pytest="raise ValueError")
    assert plugins.find("protocols", "plugin_twin:Mine", {}).age == "old"
    folder(tmp_path / "new", plugin_twin="class Mine: age = 'new'\n")
    assert plugins.find("protocols", "plugin_twin:Mine", {}).age == "new"
    assert plugins.find("protocols", "pytest:Item", {}) is pytest.Item
    assert set(plugins.sources()) == {"plugin_twin.py"}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("plugin_none:Mine", "", "the module 'plugin_none' is neither installed here nor next to"),
        ("plugin_bad:Mime", "class Mine: pass", r"has no class 'Mime'; did you mean 'Mine'\?"),
        ("plugin_bad:Mine", "import plugin_gone", "plugin_bad needs the module 'plugin_gone'"),
        ("plugin_bad:Mine", "1 / 0", "plugin_bad stops with ZeroDivisionError"),
        ("plugin_bad:Mine", "raise SystemExit(0)", "plugin_bad stops with SystemExit"),
        ("plugin_bad:Mine", "class Mine(", "plugin_bad stops with SyntaxError"),
    ],
)
def test_what_cannot_be_found_is_one_line_that_says_why(tmp_path, name, text, message):
    folder(tmp_path, plugin_bad=text)
    with pytest.raises(InputError, match=message) as refused:
        plugins.find("protocols", name, {})
    assert "\n" not in str(refused.value)


def test_a_value_carries_its_modules_to_a_process_that_has_none(tmp_path):
    package = tmp_path / "plugin_package"
    folder(package, __init__="", part="class Mine:\n    size = 7\n")
    plugins.add_folder(tmp_path)
    value = plugins.find("protocols", "plugin_package.part:Mine", {})()
    file = tmp_path / "value.pickle"
    file.write_bytes(pickle.dumps([plugins.Carried(value), value]))
    package.rename(tmp_path / "moved")
    program = f"import pickle; print([v.size for v in pickle.load(open({str(file)!r}, 'rb'))])"
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        cwd=Path(__file__).parents[1],
    )  # fmt: skip
    assert shown.stdout.strip() == "[7, 7]"
    assert pickle.loads(file.read_bytes())[0] is not value


def test_an_installed_module_that_a_configuration_names_is_imported_with_trust_only(
    tmp_path, monkeypatch
):
    installed, config = tmp_path / "installed", tmp_path / "config"
    (installed / "plugin_spaced").mkdir(parents=True)
    config.mkdir()
    for name in ("plugin_installed", "plugin_spaced/part"):
        (installed / f"{name}.py").write_text("class Mine: pass")
    monkeypatch.syspath_prepend(installed)
    for module in ("plugin_installed", "plugin_spaced.part"):
        with plugins.apart(), plugins.offered(config):
            with pytest.raises(InputError, match=f"installed module {module} .*--trust"):
                plugins.find("protocols", f"{module}:Mine", {})
            assert module not in sys.modules
            plugins.trust(True)
            assert plugins.find("protocols", f"{module}:Mine", {}).__name__ == "Mine"


def test_a_name_that_no_configuration_gives_is_imported_after_one_was_read(tmp_path, monkeypatch):
    installed = tmp_path / "installed"
    installed.mkdir()
    for name in ("plugin_asked", "plugin_given", "plugin_clients"):
        (installed / f"{name}.py").write_text("class Mine: pass")
    monkeypatch.syspath_prepend(installed)
    config = tmp_path / "run.toml"
    config.write_text('protocol.oracle = "plugin_asked:Mine"')
    with pytest.raises(InputError, match=r"installed module plugin_asked .*--trust"):
        load_config(file=config)
    with pytest.raises(InputError, match=r"installed module plugin_clients .*--trust"):
        load_config(settings=["population.source=plugin_clients:Mine"])
    days = ["pipeline.use_cases.emoji.oracle=plugin_asked:Mine"]
    with pytest.raises(InputError, match=r"installed module plugin_asked .*--trust"):
        load_pipeline("pipeline-small", settings=days)
    assert not {"plugin_asked", "plugin_clients"} & set(sys.modules)
    # A person who writes Python names it, not a file.
    assert plugins.find("oracles", "plugin_given:Mine", {}).__name__ == "Mine"


@pytest.mark.parametrize("command", [attack, partial(plan, held_by="1/100", local_epsilon=4.0)])
def test_commands_find_a_protocol_that_is_given_next_to_the_configuration(
    tmp_path, monkeypatch, command
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plugin_beside.py").write_text("class Mine: pass")
    with pytest.raises(InputError, match="plugin_beside has no class 'Other'"):
        command(source="small", protocols=["plugin_beside:Other"])


def test_a_folder_is_searched_while_its_configuration_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plugin_beside.py").write_text("class Mine: pass")
    with plugins.offered(tmp_path), plugins.offered(tmp_path / "other"):
        pass
    with pytest.raises(InputError, match="looked in: no folder"):
        plugins.find("protocols", "plugin_beside:Mine", {})
    with plugins.offered(tmp_path):
        found = plugins.find("protocols", "plugin_beside:Mine", {})
    assert plugins.find("protocols", "plugin_beside:Mine", {}) is found
