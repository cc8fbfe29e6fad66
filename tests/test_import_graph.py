"""No two modules import each other, directly or by others, in Python and in the pages."""

import re
import tomllib
from pathlib import Path

from tests import import_graph
from tests.import_graph import arrows_in_cycles


def test_python_modules_form_no_cycle() -> None:
    graph = import_graph.python_modules()
    assert {name.partition(".")[0] for name in graph} >= set(import_graph.PACKAGES)
    assert arrows_in_cycles(graph) == []


def test_modules_of_pages_form_no_cycle() -> None:
    graph = import_graph.page_modules()
    assert graph["main"] - {"main"}
    assert arrows_in_cycles(graph) == []


def test_folders_at_the_top_of_backend_form_no_cycle() -> None:
    graph = import_graph.top_of("backend")
    assert "backend.http" in graph["backend.runs"]
    assert arrows_in_cycles(graph) == []


def test_architecture_page_describes_every_level_of_backend() -> None:
    root = Path(__file__).parents[1]
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [backend] = [contract for contract in contracts if contract.get("containers") == ["backend"]]
    levels = [set(re.findall(r"\w+", level)) for level in backend["layers"]]
    page = (root / "docs" / "explanation" / "architecture.md").read_text()
    table = page.partition("| level, from top to bottom")[2].partition("\n\n")[0]
    described = [set(re.findall(r"`(\w+)`", row)) for row in re.findall(r"^\| (`.+?) \|", table, re.M)]
    # A level has a row; the row need not name every resource of the level.
    assert [row & level for row, level in zip(described, levels, strict=True)] == described


def test_arrows_of_every_cycle_are_reported_and_no_others() -> None:
    graph = {"app": {"a"}, "a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": set[str](), "e": {"f"}, "f": {"e"}}
    assert arrows_in_cycles(graph) == [("a", "b"), ("b", "c"), ("c", "a"), ("e", "f"), ("f", "e")]


def test_imports_of_pages_are_read_in_every_form(tmp_path: Path) -> None:
    (tmp_path / "api").mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "api" / "series.ts").write_text(
        "import { a,\n  b } from './batch';\nexport type { C } from '@/lib/types';\nimport x from 'react';\n"
    )
    (tmp_path / "api" / "batch.tsx").write_text(
        "const page = lazy(() => import('../lib'));\nimport './style';\n"
    )
    (tmp_path / "api" / "batch.test.ts").write_text("import './series';\n")
    (tmp_path / "api" / "style.ts").touch()
    (tmp_path / "lib" / "types.ts").touch()
    (tmp_path / "lib" / "index.ts").touch()
    assert import_graph.page_modules(tmp_path) == {
        "api/series": {"api/batch", "lib/types"},
        "api/batch": {"lib/index", "api/style"},
        "api/style": set(),
        "lib/types": set(),
        "lib/index": set(),
    }
