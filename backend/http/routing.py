"""Routers that are tried for their own addresses only, routes that commit in the thread of their endpoint,
the methods of each address, and the path converter for ids."""

import re
from collections.abc import Callable
from functools import cached_property, wraps
from inspect import iscoroutinefunction
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute, iter_route_contexts
from sqlalchemy.orm import Session
from starlette.convertors import Convertor, register_url_convertor
from starlette.routing import Match, compile_path
from starlette.types import Scope

from backend.http.dependencies import commit_session


class _UlidConvertor(Convertor[str]):
    """`{run_id:ulid}`: matches only ids, so that it does not match the name of another route."""

    regex = "[0-9A-HJKMNP-TV-Z]{26}"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("ulid", _UlidConvertor())


class ResourceRouter(APIRouter):
    """The routes of a resource below `/api/v1`.

    FastAPI tries the routes of all routers in turn, which takes up to a fifth of a request. These are tried
    only for addresses that begin with the same word as one of them, such as `runs`.
    """

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(route.path.split("/")[1] for route in iter_route_contexts(self.routes) if route.path)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """As FastAPI's."""
        _, *words = scope["path"].split("/", 4)  # api, v1, the word, the rest
        if len(words) < 3 or words[2] not in self._words:
            return Match.NONE, {}
        return super().matches(scope)


class WritingRoute(APIRoute):
    """A `route_class` for routers whose routes change something in a `WriteSession`."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        if not iscoroutinefunction(endpoint):
            endpoint = _committing(endpoint)
        super().__init__(path, endpoint, **options)


def _committing(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(endpoint)
    def call(**values: Any) -> Any:
        answer = endpoint(**values)
        for value in values.values():
            if isinstance(value, Session):
                commit_session(value)
        return answer

    return call


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
