"""Query parameters that no endpoint knows are refused, like unknown fields of a body."""

from collections.abc import Callable, Sequence
from typing import Any

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, APIWebSocketRoute
from starlette.requests import HTTPConnection

from backend.errors import Invalid
from backend.specs.problems import FieldProblem, unknown_field

_KNOWN: dict[Callable[..., Any], Sequence[str]] = {}
"""By endpoint; it is worked out once."""


async def refuse_unknown(connection: HTTPConnection) -> None:
    """Refuse a request with a query parameter that its endpoint does not have.

    Raises:
        Invalid: with each of them, and what is probably meant.
    """
    given = connection.query_params.keys()
    if not given:
        return
    known = parameters_of(connection.scope["route"])
    problems = [
        FieldProblem(field=name, message=unknown_field(name, known, kind="parameter"))
        for name in given
        if name not in known
    ]
    if problems:
        raise Invalid(problems)


def parameters_of(route: APIRoute | APIWebSocketRoute) -> Sequence[str]:
    """The query parameters of a route's endpoint and of what it depends on."""
    found = _KNOWN.get(route.endpoint)
    if found is None:
        found = _KNOWN[route.endpoint] = tuple(dict.fromkeys(_parameters(route.dependant)))
    return found


def _parameters(dependant: Dependant) -> list[str]:
    inner = [name for each in dependant.dependencies for name in _parameters(each)]
    return [each.alias for each in dependant.query_params] + inner
