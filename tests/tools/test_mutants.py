"""The mutants that are drawn, and who is said to have noticed them."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import textwrap
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from tools import mutants as tool
from tools.drawn_mutants import AT_LEAST, draw, mutants_of

CODE = textwrap.dedent(
    '''
    """Doc: 1 < 2."""
    from typing import TYPE_CHECKING
    if TYPE_CHECKING:
        SIZE = 3
    __all__ = ["f"] + ["g"]
    @dataclass(frozen=True)
    class A(Base, final=True):
        field: Annotated[int, Gt(7)] = 5
        union = int | None
    @cached(size=9)
    def f(é: Literal[4], n=2, *, on=True) -> int | None:
        """Also: 3 + 4."""
        assert n > 8
        if "é" in é and n not in é:
            raise ValueError(f"Expected {n + 1}.", 6)
        for i in range(n):
            n -= i * 2.5
        while on:
            on = not (n or i)
        last = [min(x, y) for x, y in zip(é, é[:n], strict=True)]
        return np.floor(n if on else -n)
    '''
).lstrip()
EXPECTED = [
    *["n to n + 1"] * 4,
    *["condition negated", "not dropped"] * 2,
    "True to False",
    "in to not in",
    "and to or",
    "or to and",
    "raise dropped",
    "range's end + 1",
    "slice's bound + 1",
    "-= to +=",
    "* to /",
    "min to max",
    "floor to ceil",
    "returned value dropped",
]


def sources(packages: int = 3) -> dict[str, str]:
    small = "def f(x, y):\n    return x < y + 1\n"
    files = {f"fedhh/package{i}/f.py": small * (3 + 10 * i) for i in range(packages)}
    return {**files, "fedhh/a.py": small * 2, "fedhh/b.py": small * 2}


class TestMutantsOfAFile:
    def test_each_kind_is_found_and_nothing_else(self):
        found = [mutant.operator for mutant in mutants_of("fedhh/f.py", CODE)]
        assert Counter(found) == Counter(EXPECTED)

    def test_each_is_other_code_of_which_all_else_is_as_before(self):
        before = ast.dump(ast.parse(CODE))
        for mutant in mutants_of("fedhh/f.py", CODE):
            after = mutant.applied(CODE)
            assert ast.dump(ast.parse(after)) != before
            assert CODE.startswith(after[: mutant.start])
            assert CODE.endswith(after[mutant.start + len(mutant.text) :])
            assert f"\n-{CODE.splitlines()[mutant.number - 1]}\n" in mutant.diff(CODE)

    def test_bytes_and_characters_are_told_apart(self):
        (mutant,) = (m for m in mutants_of("fedhh/f.py", CODE) if m.operator == "in to not in")
        assert 'if "é" not in é and' in mutant.applied(CODE)

    def test_those_of_one_text_have_numbers(self):
        found = mutants_of("fedhh/f.py", "a = b - c - d\na = b - c - d\n")
        assert [mutant.nth for mutant in found] == [1, 2, 3, 4]
        assert len({mutant.id for mutant in found}) == 4


class TestDraws:
    def test_a_seed_says_which(self):
        first, again, other = (draw(sources(), count=30, seed=seed) for seed in (0, 0, 1))
        assert first == again != other
        assert draw(sources(), count=20, seed=0) == first[:20]

    def test_each_package_has_three_and_the_rest_goes_by_lines(self):
        counts = Counter(mutant.package for mutant in draw(sources(), count=28, seed=0))
        assert set(counts) == {"fedhh", *(f"fedhh/package{i}" for i in range(3))}
        assert min(counts.values()) == counts["fedhh"] == AT_LEAST
        assert counts["fedhh/package2"] > counts["fedhh/package1"] > AT_LEAST

    def test_edits_elsewhere_change_no_draw(self):
        edited = {file: f'"""Doc."""\n\n{source}' for file, source in sources().items()}
        ids = [mutant.id for mutant in draw(sources(), count=20, seed=0)]
        assert [mutant.id for mutant in draw(edited, count=20, seed=0)] == ids

    def test_the_next_is_drawn_for_an_equivalent_one(self):
        drawn = draw(sources(), count=12, seed=0)
        names = ("file", "line", "operator", "nth")
        listed = dict(zip(names, drawn[5].key, strict=True))
        others = draw(sources(), count=12, seed=0, equivalent=[listed])
        assert drawn[5] not in others
        assert [mutant.package for mutant in others] == [mutant.package for mutant in drawn]
        assert len(set(others) & set(drawn)) == 11

    def test_a_listed_one_that_is_none_is_named(self):
        listed = {"file": "fedhh/a.py", "line": "gone", "operator": "< to <="}
        with pytest.raises(ValueError, match="gone"):
            draw(sources(), count=12, seed=0, equivalent=[listed])


class TestVerdicts:
    def judge(self, path: Path, *rows: tuple[str, object]) -> tool.Judge:
        (mutant,) = draw(sources(), count=1, seed=0)
        lines = [
            json.dumps({"id": mutant.id, "stage": stage, "outcome": outcome, "tests": outcome})
            for stage, outcome in rows
        ]
        (path / "results.jsonl").write_text("\n".join(lines))
        return tool.Judge(path / "results.jsonl", processes="0", limit=None, workers=1)

    @pytest.mark.parametrize(
        ("rows", "todo", "words"),
        [
            ([], ["own", "default"], "1 not judged"),
            ([("tests", [])], ["own", "default"], "1 not judged"),
            ([("tests", ["a::b"])], ["lines", "own", "default"], "1 not judged"),
            ([("tests", ["a::b"]), ("lines", "killed")], [], "killed 1 by lines"),
            ([("own", "survived")], ["default"], "1 survived"),
            ([("own", "survived"), ("default", "killed")], [], "0 by own, 1 by default"),
            ([("own", "time limit")], [], "1 by own, 0 by default, 0 by slow (1 of them by the"),
        ],
    )
    def test_what_stands_there_is_counted_and_not_run_again(self, tmp_path, rows, todo, words):
        (mutant,) = draw(sources(), count=1, seed=0)
        judge = self.judge(tmp_path, *rows)
        assert judge.todo(mutant, tool.STAGES[:3]) == todo
        assert words in tool.summary(judge, [mutant], sources())


@pytest.mark.slow("::TestVerdicts::test_what_stands_there_is_counted_and_not_run_again")
class TestWholeRuns:
    """Siblings above: the draws of small files, and verdicts that are read."""

    def test_suites_judge_mutants_of_a_small_project(self, tmp_path, monkeypatch, capsys):
        project = tmp_path / "project"
        files = {
            "fedhh/__init__.py": "",
            "fedhh/small/__init__.py": (
                "def below(x):\n    if x > 3:\n        x -= 2\n    return x\n\n\n"
                "def unseen(x):\n    return x + 1\n"
            ),
            "tests/small/test_own.py": (
                "from fedhh.small import below\n\n\n"
                "def test_below():\n    assert (below(5), below(4), below(3)) == (3, 2, 3)\n"
            ),
        }
        for name, text in files.items():
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text(text)
        subprocess.run(["git", "init", "-q", project], check=True)
        subprocess.run(["git", "add", "."], cwd=project, check=True)
        (project / "none.toml").touch()
        monkeypatch.setattr(tool, "ROOT", project)
        monkeypatch.setattr(tool, "EQUIVALENT", project / "none.toml")
        monkeypatch.setattr(tool, "_limit_memory", lambda: None)
        seen = importlib.util.find_spec("coverage") is not None
        words = ["--count", "3", "--limit", "300", "--results", str(tmp_path / "results.jsonl")]
        assert tool.main(words) == 0
        printed = capsys.readouterr().out
        rows = (tmp_path / "results.jsonl").read_text().splitlines()
        outcomes = {
            (row["line"], row["stage"]): row["outcome"]
            for row in map(json.loads, rows)
            if "line" in row
        }
        assert outcomes == {
            ("x -= 2", "lines" if seen else "own"): "killed",
            ("if x > 3:", "lines" if seen else "own"): "killed",
            ("return x + 1", "own"): "survived",
            ("return x + 1", "default"): "survived",
        }
        assert "+ 1\n+    return x" in printed
        assert tool.main(words) == 0
        assert (tmp_path / "results.jsonl").read_text().splitlines() == rows
        words = ["--count", "3", "--limit", ".01", "--results", str(tmp_path / "other.jsonl")]
        capsys.readouterr()
        assert tool.main([*words, "--unchecked"]) == 0
        by_stage = "2 by lines, 1 by own" if seen else "0 by lines, 3 by own"
        said = capsys.readouterr().out
        assert f"killed {by_stage}, 0 by default, 0 by slow (3 of them" in said

    def test_each_package_of_fedhh_has_three_and_the_list_is_of_mutants(self):
        files = {
            path.relative_to(tool.ROOT).as_posix(): path.read_text(encoding="utf-8")
            for path in (tool.ROOT / "fedhh").rglob("*.py")
        }
        listed = tomllib.loads(tool.EQUIVALENT.read_text(encoding="utf-8")).get("equivalent", [])
        assert all(each["reason"] for each in listed)
        drawn = draw(files, count=100, seed=0, equivalent=listed)
        packages = Counter(mutant.package for mutant in drawn)
        folders = {path.parent.name for path in (tool.ROOT / "fedhh").glob("*/__init__.py")}
        assert set(packages) == {"fedhh", *(f"fedhh/{name}" for name in folders)}
        assert min(packages.values()) >= AT_LEAST
        assert len(set(drawn)) == 100
        for mutant in drawn:
            ast.parse(mutant.applied(files[mutant.file]))
