"""Graphs of imports, and the arrows of a graph that stand in cycles.

`python -m tests.import_graph` prints the number of arrows between the folders and modules at the top of
`backend`, and the number of those inside cycles.
"""

import os
import re
from collections.abc import Mapping, Set
from pathlib import Path

import grimp

Graph = Mapping[str, Set[str]]
"""Importer -> what it imports."""

PACKAGES = (
    "backend",
    "workers",
    "callboard",
    "callboard_algorithms",
    "callboard_cli",
    "callboard_environments",
    "benchmarks",
)
PAGES = Path(__file__).parents[1] / "frontend" / "src"

_IMPORT = re.compile(r"""(?:\bfrom|\bimport)\s*\(?\s*['"]((?:\.|@/)[^'"]*)['"]""")


def python_modules() -> Graph:
    """The imports between our modules, also those inside functions and for types."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    return {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}


def page_modules(folder: Path = PAGES) -> Graph:
    """The imports between the modules of the pages, also those of types; tests are left out."""
    names = {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.ts*")}
    graph: dict[str, set[str]] = {}
    for path in folder.rglob("*.ts*"):
        name = path.relative_to(folder).with_suffix("").as_posix()
        if name.endswith(".test"):
            continue
        graph[name] = set()
        for target in _IMPORT.findall(path.read_text()):
            start = "" if target.startswith("@/") else f"{os.path.dirname(name)}/"
            imported = os.path.normpath(start + target.removeprefix("@/")).lstrip("/")
            graph[name] |= {imported, f"{imported}/index"} & names
    return graph


def top_of(package: str) -> Graph:
    """The imports between the folders and modules directly in a package."""
    graph = grimp.build_graph(package, cache_dir=None)
    parts = graph.find_children(package)
    return {
        importer: {
            imported
            for imported in parts - {importer}
            if graph.direct_import_exists(importer=importer, imported=imported, as_packages=True)
        }
        for importer in parts
    }


def arrows(graph: Graph) -> list[tuple[str, str]]:
    """Each importer with each module that it imports."""
    return [(importer, imported) for importer in graph for imported in graph[importer]]


def arrows_in_cycles(graph: Graph) -> list[tuple[str, str]]:
    """The arrows from whose end a way leads back to their start."""
    reached = {start: _reached(graph, start) for start in graph}
    return sorted((start, end) for start, end in arrows(graph) if start in reached.get(end, ()))


def _reached(graph: Graph, start: str) -> Set[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph.get(waiting.pop(), frozenset()) - reached
        reached |= new
        waiting += new
    return reached


if __name__ == "__main__":
    top = top_of("backend")
    print(f"{len(arrows(top))} arrows, {len(arrows_in_cycles(top))} of them in cycles")
