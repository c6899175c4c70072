import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from fedhh import plugins
from fedhh.experiments.attack.attack import attack
from fedhh.experiments.config.load import load_config
from fedhh.experiments.config.population import build_population
from fedhh.experiments.config.protocol import settle
from fedhh.experiments.planner.planner import plan
from fedhh.experiments.study.directory import begin_directory
from fedhh.longitudinal.pipeline.config import load_pipeline
from fedhh.validation import InputError
from tests.own_modules import own_modules

BUILTIN = {"path": "pathlib:Path", "error": "fedhh.validation:InputError"}

pytestmark = pytest.mark.usefixtures("own_modules")


def find(folder: Path, name: str):
    plugins.search(folder)
    return plugins.find("protocols", name, {})


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder


@pytest.mark.parametrize("name", ["x" * 5_000, "plugin none", "", "..", "a..b", "a\0b"])
def test_what_can_be_no_module_is_one_line(tmp_path, name):
    with pytest.raises(InputError, match="is neither installed here nor"):
        find(tmp_path, f"{name}:Mine")


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
    write(
        tmp_path,
        plugin_mine="from plugin_helper import BASE\nclass Mine(BASE): pass\n",
        plugin_helper="class BASE: pass\n",
        plugin_other="1 / 0",
    )
    found = find(tmp_path, "plugin_mine:Mine")
    assert found.__bases__[0].__module__ == "plugin_helper"
    assert set(plugins.sources()) == {"plugin_mine.py", "plugin_helper.py"}
    begin_directory(tmp_path / "copy", "")
    assert {each.name for each in (tmp_path / "copy").iterdir()} == {
        "plugin_helper.py", "plugin_mine.py", "config.toml",
    }  # fmt: skip


def test_what_is_installed_wins_over_folders(tmp_path):
    write(tmp_path, plugin_beside="class Mine: pass\n", pytest="raise ValueError")
    assert find(tmp_path, "plugin_beside:Mine").__name__ == "Mine"
    assert find(tmp_path, "pytest:Item") is pytest.Item
    assert set(plugins.sources()) == {"plugin_beside.py"}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("plugin_none:Mine", "", "the module 'plugin_none' is neither installed here nor next to"),
        ("plugin_bad.part:Mine", "", "'plugin_bad.part' is neither installed here nor next to"),
        ("plugin_bad:Mime", "class Mine: pass", r"has no class 'Mime'; did you mean 'Mine'\?"),
    ],
)
def test_what_cannot_be_found_is_one_line_that_says_why(tmp_path, name, text, message):
    with pytest.raises(InputError, match=message) as refused:
        find(write(tmp_path, plugin_bad=text), name)
    assert "\n" not in str(refused.value)


def test_what_fails_in_a_module_is_pythons_error(tmp_path):
    write(tmp_path, plugin_needs="import plugin_gone", plugin_fails="1 / 0")
    with pytest.raises(ModuleNotFoundError, match="plugin_gone"):
        find(tmp_path, "plugin_needs:Mine")
    with pytest.raises(ZeroDivisionError):
        find(tmp_path, "plugin_fails:Mine")


def test_an_exit_is_an_error():
    with pytest.raises(RuntimeError, match="wanted to exit with 0"), plugins.without_exit():
        sys.exit(0)


def test_a_value_carries_its_modules_to_a_process_that_has_none(tmp_path):
    package = write(tmp_path / "plugin_package", __init__="", part="class Mine:\n    size = 7\n")
    value = find(tmp_path, "plugin_package.part:Mine")()
    file = tmp_path / "value.pickle"
    file.write_bytes(pickle.dumps([plugins.Carried(value), value]))
    package.rename(tmp_path / "moved")
    program = (
        f"import pickle; print([v.size for v in pickle.load(open({str(file)!r}, 'rb'))]);"
        "from fedhh import plugins; print(plugins._state.trusts)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        cwd=Path(__file__).parents[1],
    )  # fmt: skip
    assert shown.stdout.split("\n") == ["[7, 7]", "True", ""]
    assert pickle.loads(file.read_bytes())[0] is not value


def test_modules_that_changed_meanwhile_replace_those_of_the_same_name(tmp_path):
    for size in (1, 22):
        plugins.install({"plugin_sent.py": f"class Mine:\n    size = {size}\n"}, trusts=True)
        assert plugins.find("protocols", "plugin_sent:Mine", {}).size == size
    assert set(plugins.sources()) == {"plugin_sent.py"}


def test_an_installed_module_is_imported_with_trust_only(tmp_path, monkeypatch):
    installed, config = tmp_path / "installed", tmp_path / "config"
    (installed / "plugin_spaced").mkdir(parents=True)
    config.mkdir()
    write(installed, **dict.fromkeys(("plugin_at", "plugin_spaced/part"), "class Mine: pass"))
    monkeypatch.syspath_prepend(installed)
    for module in ("plugin_at", "plugin_spaced.part"):
        with own_modules(trusted=False):
            with pytest.raises(InputError, match=r"would be imported; .*--trust"):
                find(config, f"{module}:Mine")
            assert module not in sys.modules
            plugins.trust(True)
            assert find(config, f"{module}:Mine").__name__ == "Mine"


def test_whatever_a_configuration_names_is_asked_about(tmp_path, monkeypatch):
    names = ("plugin_asked", "plugin_clients")
    monkeypatch.syspath_prepend(write(tmp_path / "at", **dict.fromkeys(names, "class Mine: pass")))
    plugins.trust(False)
    config = tmp_path / "run.toml"
    config.write_text('protocol.oracle = "plugin_asked:Mine"')
    with pytest.raises(InputError, match=r"'plugin_asked' would be imported"):
        settle(load_config(file=config), 1_000)
    sourced = load_config(settings=["population.source=plugin_clients:Mine"])
    with pytest.raises(InputError, match=r"'plugin_clients' would be imported"):
        build_population(sourced.population, seed=0)
    days = ["pipeline.use_cases.emoji.oracle=plugin_asked:Mine"]
    with pytest.raises(InputError, match=r"'plugin_asked' would be imported"):
        load_pipeline("pipeline-small", settings=days)
    assert not {"plugin_asked", "plugin_clients"} & set(sys.modules)


@pytest.mark.parametrize("command", [attack, partial(plan, held_by="1/100", local_epsilon=4.0)])
def test_commands_find_a_protocol_that_is_given_next_to_the_configuration(
    tmp_path, monkeypatch, command
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plugin_beside.py").write_text("class Mine: pass")
    with pytest.raises(InputError, match="plugin_beside has no class 'Other'"):
        command(source="small", protocols=["plugin_beside:Other"])
