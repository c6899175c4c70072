"""Mutants of fedhh: small mistakes in its code, drawn by a seed.

A mutant is one small change in one line: `<` for `<=`, `+` for `-`, a refusal left out. Lines are
drawn by the seed, then one change of each. Names, line and change decide, not the line's number: an
edit elsewhere changes hardly any of the draws, and the first n of those of a larger count are those
of n. Each package of fedhh/ has three (the modules at its root are one package); each next one goes
where there are fewest for the number of lines that can change. Of the lines that can only lose what
they return, which hardly any test misses, a quarter takes part.

Nothing is changed in docstrings, messages (f-strings, what a `raise` says), annotations, classes'
bases, imports, `__all__` and below `if TYPE_CHECKING`, nor in what decides nothing in correct code:
`assert`, `zip(strict=True)` and the options of `dataclass`. Mutants that behave as fedhh does are
listed with the reason in `equivalent_mutants.toml`; the next one is drawn instead.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import io
import itertools
import tokenize
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

AT_LEAST = 3
"""Mutants of each package, however small."""

# What stands for an operator, and what replaces it.
_SWAPS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not", ""),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("not", ""),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "|"),
}
_RETURNED = "returned value dropped"
_CALLS = dict(
    pair
    for first, second in [
        ("min", "max"),
        ("minimum", "maximum"),
        ("argmin", "argmax"),
        ("floor", "ceil"),
        ("any", "all"),
    ]
    for pair in [(first, second), (second, first)]
)


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One change of one file.

    Attributes:
        file: Path below the checkout.
        number: Of the line where the change begins, from 1.
        line: Its text without the spaces around.
        operator: What the change is.
        nth: Which of those with this file, line and operator, in the order of the file, from 1.
        start, end: Characters of the file that are replaced.
        text: What replaces them.
    """

    file: str
    number: int
    line: str
    operator: str
    nth: int
    start: int
    end: int
    text: str

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What the mutant is, whatever is edited elsewhere."""
        return self.file, self.line, self.operator, self.nth

    @property
    def id(self) -> str:
        return _digest(*self.key)[:12]

    @property
    def package(self) -> str:
        """The package at the top level of fedhh/, or fedhh for the modules at its root."""
        return "/".join(Path(self.file).parts[:2]) if self.file.count("/") > 1 else "fedhh"

    def applied(self, source: str) -> str:
        """Return the file's text with the change."""
        return source[: self.start] + self.text + source[self.end :]

    def diff(self, source: str) -> str:
        """Return the change as a unified diff of no other lines."""
        before, after = (text.splitlines() for text in (source, self.applied(source)))
        lines = difflib.unified_diff(before, after, self.file, self.file, lineterm="", n=0)
        return "\n".join(lines)


def _digest(*words: object) -> str:
    return hashlib.sha256(repr(words).encode()).hexdigest()


class _Finder(ast.NodeVisitor):
    """Finds the changes of a file: operator, first and last character, what replaces them."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._lines = source.split("\n")
        self._begins = list(itertools.accumulate((len(x) + 1 for x in self._lines), initial=0))
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        self._tokens = [(self._begins[t.start[0] - 1] + t.start[1], t.string) for t in tokens]
        self._in_function = False
        self.found: set[tuple[int, int, str, str]] = set()

    def _place(self, row: int, column: int) -> int:
        """Return which character it is that ast names by row and by bytes before it."""
        before = self._lines[row - 1].encode()[:column]
        return self._begins[row - 1] + len(before.decode())

    def _range(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        end_row, end_column = node.end_lineno, node.end_col_offset
        assert end_row is not None
        assert end_column is not None
        return self._place(node.lineno, node.col_offset), self._place(end_row, end_column)

    def _add(self, operator: str, start: int, end: int, text: str) -> None:
        self.found.add((start, end, operator, text))

    def _replace(self, operator: str, node: ast.expr | ast.stmt, pattern: str) -> None:
        """Add a change of a whole node, whose text stands for {} in the pattern."""
        start, end = self._range(node)
        self._add(operator, start, end, pattern.replace("{}", self._source[start:end]))

    def _swap(self, first: int, last: int, old: str, new: str) -> None:
        """Add a change of the token ``old`` between two characters."""
        for start, text in self._tokens[bisect_left(self._tokens, (first, "")) :]:
            if start >= last:
                return
            if text == old:
                self._add(
                    f"{old} to {new}" if new else f"{old} dropped", start, start + len(old), new
                )
                return

    def _swap_between(
        self, kind: ast.AST, left: ast.expr, right: ast.expr, suffix: str = ""
    ) -> None:
        if type(kind) in _SWAPS:
            old, new = _SWAPS[type(kind)]
            self._swap(self._range(left)[1], self._range(right)[0], old + suffix, new + suffix)

    def visit_Compare(self, node: ast.Compare) -> None:
        for kind, (left, right) in zip(
            node.ops, itertools.pairwise([node.left, *node.comparators]), strict=True
        ):
            self._swap_between(kind, left, right)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in itertools.pairwise(node.values):
            self._swap_between(node.op, left, right)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = any(
            isinstance(side, ast.JoinedStr)
            or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
            for side in (node.left, node.right)
        )
        # Outside of functions, a bar is between types.
        if not texts and (self._in_function or not isinstance(node.op, ast.BitOr)):
            self._swap_between(node.op, node.left, node.right)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._swap_between(node.op, node.target, node.value, "=")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._swap(*self._range(node), "not", "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._replace(f"{value} to {not value}", node, str(not value))
        elif isinstance(value, int | float) and value + 1 != value:
            self._replace("n to n + 1", node, repr(value + 1))

    def visit_Call(self, node: ast.Call) -> None:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in _CALLS:
            end = self._range(node.func)[1]
            self._add(f"{name} to {_CALLS[name]}", end - len(name), end, _CALLS[name])
        if name == "range" and isinstance(node.func, ast.Name):
            self._one_more(node.args[min(len(node.args), 2) - 1], "range's end + 1")
        if name == "zip":
            node.keywords = []
        self.generic_visit(node)

    def visit_Slice(self, node: ast.Slice) -> None:
        for bound in (node.lower, node.upper):
            if bound is not None:
                self._one_more(bound, "slice's bound + 1")
        self.generic_visit(node)

    def _one_more(self, node: ast.expr, operator: str) -> None:
        # A number changes by itself.
        number = node.operand if isinstance(node, ast.UnaryOp) else node
        if not isinstance(number, ast.Constant | ast.Starred):
            self._replace(operator, node, "({}) + 1")

    def _negate(self, test: ast.expr) -> None:
        """Add a condition's contrary, where no operator of its own has one."""
        if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant):
            self._replace("condition negated", test, "not ({})")

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self._negate(node.test)
        if isinstance(node.body[-1], ast.Raise):
            self._replace("raise dropped", node.body[-1], "pass")
        self.generic_visit(node)

    def _visit_test(self, node: ast.While | ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    visit_While = visit_IfExp = _visit_test  # noqa: N815

    def visit_Return(self, node: ast.Return) -> None:
        nothing = isinstance(node.value, ast.Constant) and node.value.value is None
        if node.value is not None and not nothing:
            self._replace(_RETURNED, node.value, "None")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if getattr(node.targets[0], "id", "") != "__all__":
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def _visit_parts(self, node: ast.FunctionDef | ast.ClassDef, *parts: ast.AST | None) -> None:
        declared = [x for x in node.decorator_list if not ast.unparse(x).startswith("dataclass")]
        for part in (*declared, *parts, *node.body):
            if part is not None:
                self.visit(part)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outer, self._in_function = self._in_function, True
        self._visit_parts(node, *node.args.defaults, *node.args.kw_defaults)
        self._in_function = outer

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._visit_parts(node)

    def _leave(self, node: ast.AST) -> None:
        """What is not changed."""

    visit_Assert = visit_Raise = visit_JoinedStr = visit_Import = visit_ImportFrom = _leave  # noqa: N815


def mutants_of(file: str, source: str) -> list[Mutant]:
    """Return all mutants of a file, in its order."""
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    lines = source.split("\n")
    seen: Counter[tuple[str, str]] = Counter()
    mutants = []
    for start, end, operator, text in sorted(finder.found):
        number = source.count("\n", 0, start) + 1
        line = lines[number - 1].strip()
        seen[line, operator] += 1
        mutants.append(
            Mutant(
                file=file,
                number=number,
                line=line,
                operator=operator,
                nth=seen[line, operator],
                start=start,
                end=end,
                text=text,
            )
        )
    return mutants


def draw(
    sources: dict[str, str], *, count: int, seed: int, equivalent: Sequence[dict[str, Any]] = ()
) -> list[Mutant]:
    """Return mutants of files, by path: at least three of each package, the rest by its lines.

    Raises:
        ValueError: An equivalent mutant is none of these files, or more than there are are wanted.
    """
    listed = {(x["file"], x["line"], x["operator"], x.get("nth", 1)) for x in equivalent}
    none = set(listed)
    queues: dict[str, list[tuple[str, Mutant]]] = defaultdict(list)
    for file, source in sources.items():
        mutants = mutants_of(file, source)
        none -= {mutant.key for mutant in mutants}
        for _, of_line in itertools.groupby(mutants, lambda mutant: mutant.number):
            line = list(of_line)
            rank = _digest(seed, line[0].key)
            if {mutant.operator for mutant in line} == {_RETURNED} and rank[-1] not in "048c":
                continue
            drawn = min(line, key=lambda mutant: _digest(seed, mutant.key))
            if drawn.key not in listed:
                queues[drawn.package].append((rank, drawn))
    if none:
        raise ValueError(f"Expected equivalent mutants that there are, got {sorted(none)}.")
    sizes = {package: len(lines) for package, lines in queues.items()}
    if count > sum(sizes.values()):
        raise ValueError(f"Expected count <= {sum(sizes.values())}, got {count}.")
    for lines in queues.values():
        lines.sort(key=lambda ranked: ranked[0], reverse=True)
    result: list[Mutant] = []
    taken = dict.fromkeys(sorted(queues), 0)
    while len(result) < count:
        package = min(
            (package for package in taken if queues[package]),
            key=lambda p: (min(taken[p], AT_LEAST), (2 * taken[p] + 1) / sizes[p]),
        )
        taken[package] += 1
        result.append(queues[package].pop()[1])
    return result
