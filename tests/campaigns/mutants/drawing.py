"""Small errors for Python source, one at a time: which there are, and a random sample of them."""

import ast
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

_OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.BitOr: ("|", "&"),
    ast.BitAnd: ("&", "|"),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "argmax": "argmin", "ceil": "floor"}


@dataclass(frozen=True, order=True)
class Mutant:
    """One change of a file."""

    path: str
    start: int
    """Of the bytes that are replaced."""
    end: int
    new: str
    old: str
    line: int
    lines: tuple[int, ...]
    """Lines of the statement that it is in, without the body of that."""
    function: str
    """Qualified name of the outermost function around it; empty at the level of a module or class."""
    number: int = 0
    """Among the same changes in the same function, in the order of the text."""

    @property
    def key(self) -> str:
        """Identifies it in every state of the source in which its function has the same such changes."""
        return f"{self.path}: {self.function}: {self.old} -> {self.new} ({self.number})"

    def applied(self, source: bytes) -> bytes:
        """The file with the change."""
        return source[: self.start] + self.new.encode() + source[self.end :]

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.old} -> {self.new}"


class _Sites(ast.NodeVisitor):
    """Collects the mutants of a file. Strings, annotations, decorators and what is raised are left alone."""

    def __init__(self, path: str, source: bytes) -> None:
        self.found: list[Mutant] = []
        self._path = path
        self._source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._statement: ast.stmt | None = None
        self._names: list[str] = []
        self._function = ""

    def visit(self, node: ast.AST) -> None:
        before = self._statement
        if isinstance(node, ast.stmt):
            self._statement = node
        super().visit(node)
        self._statement = before

    def _at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _add(self, start: int, end: int, new: str) -> None:
        statement = self._statement
        assert statement is not None
        body = getattr(statement, "body", None)
        last = body[0].lineno - 1 if isinstance(body, list) and body else statement.end_lineno
        assert last is not None
        line = self._source.count(b"\n", 0, start) + 1
        lines = tuple(range(statement.lineno, max(last, statement.lineno) + 1))
        old = self._source[start:end].decode()
        self.found.append(Mutant(self._path, start, end, new, old, line, lines, self._function))

    def _operator(self, operator: ast.AST, left: ast.expr, right: ast.expr) -> None:
        if type(operator) not in _OPERATORS:
            return
        old, new = _OPERATORS[type(operator)]
        start, end = self._span(left)[1], self._span(right)[0]
        match = re.search(re.escape(old).replace(r"\ ", r"\s+").encode(), self._source[start:end])
        assert match is not None
        self._add(start + match.start(), start + match.end(), new)

    def _negated(self, condition: ast.expr) -> None:
        start, end = self._span(condition)
        self._add(start, end, f"(not ({self._source[start:end].decode()}))")

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._names.append(node.name)
        outermost = not self._function
        for default in (*node.args.defaults, *(default for default in node.args.kw_defaults if default)):
            self.visit(default)
        if outermost:
            self._function = ".".join(self._names)
        for statement in node.body:
            self.visit(statement)
        if outermost:
            self._function = ""
        self._names.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._names.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self._names.pop()

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self._operator(node.op, node.left, node.right)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._operator(node.op, left, right)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            self._operator(operator, left, right)
            left = right
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub) and not isinstance(node.operand, ast.Constant):
            self._add(self._span(node)[0], self._span(node.operand)[0], "")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) in _OPERATORS:
            old, new = (f"{symbol}=" for symbol in _OPERATORS[type(node.op)])
            start = self._source.index(old.encode(), self._span(node.target)[1])
            self._add(start, start + len(old), new)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add(*self._span(node), str(not node.value))
        elif isinstance(node.value, int):
            self._add(*self._span(node), str(node.value + 1))
        elif isinstance(node.value, float):
            self._add(*self._span(node), repr(2 * node.value or 1.0))

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in _CALLS:
            end = self._span(node.func)[1]
            self._add(end - len(name), end, _CALLS[name])
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._add(*self._span(node), "pass")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            self._negated(node.test)
            self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negated(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for condition in node.ifs:
            self._negated(condition)
        self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._add(*self._span(node), "break")

    def visit_Break(self, node: ast.Break) -> None:
        self._add(*self._span(node), "continue")

    def visit_Raise(self, node: ast.Raise) -> None:
        self._add(*self._span(node), "pass")

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Text."""


def mutants_of(root: Path, path: str) -> Iterator[Mutant]:
    """All mutants of a file that are Python, in the order of its text."""
    source = (root / path).read_bytes()
    sites = _Sites(path, source)
    sites.visit(ast.parse(source))
    numbers: Counter[tuple[str, str, str]] = Counter()
    for mutant in sorted(set(sites.found)):
        try:
            compile(mutant.applied(source), path, "exec", dont_inherit=True)
        except SyntaxError:
            continue
        change = (mutant.function, mutant.old, mutant.new)
        numbers[change] += 1
        yield replace(mutant, number=numbers[change])


def drawn(root: Path, paths: Sequence[str], n: int, seed: int) -> tuple[list[Mutant], int]:
    """A random sample of the mutants of these files, and how many there are."""
    every = [mutant for path in paths for mutant in mutants_of(root, path)]
    return random.Random(seed).sample(every, min(n, len(every))), len(every)
