"""The addresses of every page, read from the router's source."""

import re
from collections.abc import Mapping
from pathlib import Path

ROUTER = Path(__file__).parents[2] / "frontend" / "src" / "router.tsx"
_ROUTE = re.compile(r"createRoute\(\{(.*?)\n\}\);", re.S)
_PATH = re.compile(r"^  path: '([^']+)',$", re.M)


def page_addresses(ids: Mapping[str, str]) -> list[str]:
    """The address of each page; redirects have none.

    Args:
        ids: an id for each parameter of a path, such as `runId`.

    Raises:
        KeyError: a path has another parameter, of which the tests need an example.
    """
    routes = [route for route in _ROUTE.findall(ROUTER.read_text("utf-8")) if "component:" in route]
    paths = [path for route in routes for path in _PATH.findall(route)]
    return [re.sub(r"\$(\w+)", lambda parameter: ids[parameter[1]], path) for path in paths]
