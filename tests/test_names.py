"""Names of local variables: each says what it holds."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = (
    *("alembic", "backend", "benchmarks", "callboard_algorithms", "callboard_cli", "callboard_environments"),
    *("client", "docs", "tests", "workers"),
)
ADVERBS = ("each", "found", "its", "one", "some", "there")
"""Names that say where a value comes from, or nothing: `found` may be a run, a match or a path."""

_MAY_BIND = re.compile(rf"\b(?:{'|'.join(ADVERBS)})\b *(?:[,)=:]|in\b)")


def bound_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every name that a variable or a parameter is given, with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name, node.lineno
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                yield name, node.lineno


def test_names_of_variables_say_what_they_hold() -> None:
    sources = {
        str(path.relative_to(ROOT)): path.read_text()
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
    }
    assert len(sources) > 500
    assert [
        f"{path}:{line}: {name}"
        for path, source in sorted(sources.items())
        if _MAY_BIND.search(source)
        for name, line in bound_names(ast.parse(source))
        if name in ADVERBS
    ] == []


def test_every_kind_of_binding_is_read() -> None:
    source = """
def f(found, *some, its=1):
    for one, other in zip(found, some): pass
    with open(one) as there: pass
    return [each for each in (lambda found: found)(there) if (some := each)]
"""
    assert _MAY_BIND.search(source)
    assert {name for name, _ in bound_names(ast.parse(source))} >= set(ADVERBS)
