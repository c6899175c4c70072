"""What the documentation shows is true: its code runs, its lists are whole."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from fedhh.experiments.sweep.plan import parse_sweep

pytest.importorskip(
    "sphinx", reason="the documentation needs the extra docs: pip install -e .[docs]"
)

DOCS = Path(__file__).parent.parent / "docs"
sys.path.append(str(DOCS / "_ext"))

from fedhh_reference import api, commands, components, config_keys, formats  # noqa: E402
from fedhh_reference.markdown import entries, table  # noqa: E402

PAGES = [
    *sorted(DOCS.glob("*.md")),
    *(
        path
        for folder in ("tutorials", "howto", "explanation", "longitudinal-privacy")
        for path in (DOCS / folder).glob("*")
    ),
]
# What docs/extending.md shows are files of examples/, which has tests of its own.
TUTORIALS = [
    path
    for path in PAGES
    if "```python" in path.read_text(encoding="utf-8") and path.stem != "extending"
]


def blocks(path: Path, language: str) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_python_of_a_page_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for number, toml in enumerate(blocks(path, "toml")):
        text = toml.replace("200_000", "4_000").replace("seeds = 3", "seeds = 1")
        Path("sweep.toml" if number == 0 else f"{number}.toml").write_text(text, encoding="utf-8")
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks(path, "python"):
        exec(compile(block, path.name, "exec", dont_inherit=True), names)


def test_the_sweep_of_the_tutorial_is_one():
    (text,) = blocks(DOCS / "tutorials" / "first-sweep.md", "toml")
    assert len(parse_sweep(tomllib.loads(text), "tutorial").cells) == 24


def test_the_page_of_commands_has_every_option_with_its_default():
    page = commands.page()
    assert "## fedhh account plan" in page
    formats = "`table`, `json`, `csv`, `markdown`, `latex`"
    listed = "table, json, csv, markdown or latex"
    assert f"| `--format` | {formats} | `table` | Print as {listed}. |" in page
    assert "| `RESULTS` | path | required |" not in page
    assert "| `--days` | integer | `365` | Days of the device, from opt-in. |" in page


def test_the_page_of_keys_has_bounds_defaults_and_meanings():
    page = config_keys.page()
    assert '## `[protocol]` with `name = "sfp"`' in page
    assert "| `delta` | number, 1e-14 to 0.1 | `1e-10` | Of central guarantees. |" in page
    assert '| `workers` | integer, ≥ 0 or `"auto"` | `"auto"` |' in page
    assert "## `[population.model]`" in page


SCHEMAS = [
    config_keys.json_schema,
    config_keys.longitudinal_schema,
    config_keys.pipeline_schema,
]


@pytest.mark.parametrize("of", SCHEMAS)
def test_every_key_has_a_meaning(of):
    whole = of()
    for title, section in config_keys.sections(whole):
        for key, field in section["properties"].items():
            if config_keys.is_leaf(field, whole):
                assert config_keys.meaning(key, section), (title, key)


def test_the_page_of_months_has_its_tables_and_the_presets():
    page = config_keys.longitudinal_page()
    assert "## `[longitudinal]`" in page
    assert "## `[longitudinal.cap]`" in page
    assert '| `days` | integer, 1 to 36,500 or `"all"` | `182` |' in page
    assert "`fedhh longitudinal run --preset weekly`" in components.presets_page()


def test_the_page_of_a_pipelines_keys_has_its_use_cases():
    page = config_keys.pipeline_page()
    assert "## `[pipeline.use_cases.NAME]`" in page
    assert "## `[pipeline.use_cases.NAME.domain.population]`" in page
    assert "| `records_per_day` | integer, 1 to 10,000 | required |" in page
    assert '| `rollover` | integer, 0 to 10,000 or `"unlimited"` | `0` |' in page


def test_public_names_are_those_of_the_modules_that_fedhh_names():
    pages = api.pages()
    assert "\nfedhh.accounting\n" in pages["api"]
    assert ".. autoclass:: fedhh.LdpTrieHH" in pages["fedhh"]
    assert ".. autofunction:: fedhh.accounting.shuffle_epsilon" in pages["fedhh.accounting"]
    assert "``ss``" in pages["fedhh.oracles"]
    assert ".. autoclass:: fedhh.protocol.DiscoveryProtocol" in pages["fedhh.protocol"]


def test_oracles_and_presets_are_all_there():
    page = components.page()
    assert all(f"| `{name}` |" in page for name in components.ORACLES)
    presets = components.presets_page()
    assert "### gboard-table1\n" in presets
    assert "`fedhh pipeline run --preset apple`" in presets


def test_a_column_without_docstring_ends_the_build():
    meanings = formats.meanings_in(formats.metrics.Metrics) | {"found_top_K": "Share found."}
    assert formats.description("found_top_100", meanings) == "Share found."
    with pytest.raises(ValueError, match="No docstring says what the column or key 'new' is"):
        formats._described({"coverage": "double", "new": "double"}, meanings)


def test_a_file_that_is_not_described_ends_the_build(tmp_path: Path):
    for name in formats.RUN_FILES.keys() - formats._SOMETIMES:
        (tmp_path / name).mkdir() if name.endswith("/") else (tmp_path / name).touch()
    assert "`layers.parquet`" in formats._files(tmp_path, formats.RUN_FILES)
    (tmp_path / "new.txt").touch()
    with pytest.raises(ValueError, match=r"not as they are described: .*new\.txt"):
        formats._files(tmp_path, formats.RUN_FILES)


def test_docstring_sections_become_entries_and_cells_keep_their_bars():
    text = "Do.\n\nAttributes:\n    a: One\n        line ``x``.\n    b: Two.\n\nMore.\n    c: No."
    assert entries(text) == {"a": "One line `x`.", "b": "Two."}
    assert table(("x",), [("a | b",)]) == "| x |\n| --- |\n| a \\| b |\n"
