"""The methods that each address allows, and the path converter for ids."""

import re

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.convertors import Convertor, register_url_convertor
from starlette.routing import compile_path


class _UlidConvertor(Convertor[str]):
    """`{run_id:ulid}`: matches only ids, so that it does not match the name of another route."""

    regex = "[0-9A-HJKMNP-TV-Z]{26}"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("ulid", _UlidConvertor())


class HttpMethods:
    """The methods that an address allows, over all matching routes."""

    def __init__(self, app: FastAPI, *, catch_all: str) -> None:
        self._routes: list[tuple[re.Pattern[str], set[str]]] = [
            (compile_path(route.path)[0], set(route.methods))
            for route in iter_route_contexts(app.routes)
            if route.path and route.methods and route.path != catch_all
        ]

    def of(self, path: str) -> list[str]:
        """The methods, sorted; empty if no route matches."""
        matching = (methods for pattern, methods in self._routes if pattern.match(path))
        methods = set().union(*matching)
        return sorted(methods | {"HEAD"} if "GET" in methods else methods)
