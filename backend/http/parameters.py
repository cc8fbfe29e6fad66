"""Query parameters that no endpoint knows are refused, like unknown fields of a body."""

from collections.abc import Callable, Sequence
from typing import Any

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, APIWebSocketRoute
from starlette.requests import HTTPConnection

from backend.http.dependencies import TICKET
from backend.platform.errors import Invalid
from backend.specs.problems import MAX_EXPLAINED, unknown_fields

_OF_ALL = ("limit", "cursor", TICKET)
"""Allowed everywhere: a client reads every list alike, and short ones have one page; a browser sends the
ticket where it sends no header."""

_MAX_LENGTH = 80
"""Of a name in the answer, in characters."""

_KNOWN: dict[Callable[..., Any], Sequence[str]] = {}
"""By endpoint; it is worked out once."""


async def refuse_unknown(connection: HTTPConnection) -> None:
    """Refuse a request with a query parameter that its endpoint does not have.

    Raises:
        Invalid: with the first ten of them, and what may be meant.
    """
    given = connection.query_params.keys()
    if not given:
        return
    known = parameters_of(connection.scope["route"])
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
