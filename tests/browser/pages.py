"""The addresses of every page, read from the files of the routes."""

import re
from collections.abc import Mapping
from pathlib import Path

ROUTES = Path(__file__).parents[2] / "frontend" / "src" / "routes"
_PATH = re.compile(r"createFileRoute\('(?:/_shell)?([^']*)'\)")


def page_addresses(ids: Mapping[str, str]) -> list[str]:
    """The address of each page; the frames around pages have none.

    Args:
        ids: an id for each parameter of a path, such as `runId`.

    Raises:
        KeyError: a path has another parameter, of which the tests need an example.
    """
    files = [file for file in sorted(ROUTES.rglob("*.tsx")) if file.stem not in ("_shell", "route")]
    paths = [path.rstrip("/") or "/" for file in files for path in _PATH.findall(file.read_text("utf-8"))]
    return [re.sub(r"\$(\w+)", lambda parameter: ids[parameter[1]], path) for path in paths]
