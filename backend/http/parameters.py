"""Query parameters and conditions that no endpoint knows are refused, like unknown fields of a body."""

from collections.abc import Callable, Collection, Sequence
from typing import Annotated, Any

from fastapi import Header
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, APIWebSocketRoute
from starlette.requests import HTTPConnection

from backend.http.dependencies import TICKET
from backend.http.pages import SAFE_METHODS
from backend.platform.errors import Invalid, Stale
from backend.specs.problems import MAX_EXPLAINED, unknown_fields

_OF_ALL = ("limit", "cursor", TICKET)
"""Allowed everywhere: a client reads every list alike, and short ones have one page; a browser sends the
ticket where it sends no header."""

_MAX_LENGTH = 80
"""Of a name in the answer, in characters."""

_KNOWN: dict[Callable[..., Any], Sequence[str]] = {}
"""By endpoint; it is worked out once."""


IfMatch = Annotated[
    str | None,
    Header(max_length=1_000, description="Entity tags, one of which the object must have; `*` for any."),
]


def tags_of(if_match: str | None) -> Collection[str] | None:
    """The entity tags that a header names, without their quotes; None for any."""
    if if_match is None or if_match.strip() == "*":
        return None
    return [tag.strip().removeprefix("W/").strip('"') for tag in if_match.split(",")]


async def refuse_unknown(connection: HTTPConnection) -> None:
    """Refuse a request with a query parameter or a condition that its endpoint does not have.

    Raises:
        Invalid: with the first ten of these parameters, and what may be meant.
        Stale: it depends on an entity tag, and the endpoint does not.
    """
    route = connection.scope["route"]
    if (
        connection.scope.get("method", "GET") not in SAFE_METHODS
        and tags_of(connection.headers.get("if-match")) is not None
        and not any(parameter.alias == "if-match" for parameter in route.dependant.header_params)
    ):
        raise Stale(
            "no change at this address depends on an entity tag (If-Match): send the values that you have "
            "seen as `expected` in the body of a PATCH"
        )
    given = connection.query_params.keys()
    if not given:
        return
    known = parameters_of(route)
    if unknown := [name[:_MAX_LENGTH] for name in given if name not in known and name not in _OF_ALL]:
        # Nobody has logged in yet: the answer to a long address must not be longer.
        raise Invalid(unknown_fields(unknown[:MAX_EXPLAINED], known, "no such parameter"))


def parameters_of(route: APIRoute | APIWebSocketRoute) -> Sequence[str]:
    """The query parameters of a route's endpoint and of what it depends on."""
    parameters = _KNOWN.get(route.endpoint)
    if parameters is None:
        parameters = _KNOWN[route.endpoint] = tuple(dict.fromkeys(_parameters(route.dependant)))
    return parameters


def _parameters(dependant: Dependant) -> list[str]:
    inner = [name for dependency in dependant.dependencies for name in _parameters(dependency)]
    return [parameter.alias for parameter in dependant.query_params] + inner
