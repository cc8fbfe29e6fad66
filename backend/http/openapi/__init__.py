"""Additions to the OpenAPI document that FastAPI generates.

Fields and parameters are described where they are declared: by the text below a field of a `Schema`, or by
`Field`, `Query` and `Path`. What has no text there has none in the document.
"""

import inspect
import sys
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute, iter_route_contexts

from backend.http.openapi import errors, examples

DESCRIPTION = """A request is authenticated by a token (`Authorization: Bearer …`) or by a browser's session.

Lists have pages: pass `next_cursor` as `cursor` to get the next one. JSON of up to 256 KiB has an `ETag`: a
GET with `If-None-Match` gets 304 while nothing has changed. Errors are RFC 9457 problem documents,
which name every invalid field. A POST that documents the header `Idempotency-Key` is executed once for each
key."""
"""What applies to every operation."""


def operation_id(route: APIRoute) -> str:
    """The function's name, which generated clients use."""
    return route.name


def install(app: FastAPI) -> None:
    """Complete the document of `app`: errors as problem documents, tags and examples."""
    plain = app.openapi

    def completed() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = plain()
            errors.describe(document, app.routes)
            examples.describe(document)
            document["tags"] = _tags(app)
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = completed  # type: ignore[method-assign]


def _tags(app: FastAPI) -> list[dict[str, str]]:
    """Each tag, described by the docstring of the first module that has routes with it."""
    modules: dict[str, str] = {}
    for context in iter_route_contexts(app.routes):
        route = context.original_route
        if isinstance(route, APIRoute) and route.include_in_schema:
            for tag in route.tags:
                modules.setdefault(str(tag), route.endpoint.__module__)
    return [
        {"name": tag, "description": inspect.cleandoc(sys.modules[module].__doc__ or "")}
        for tag, module in modules.items()
    ]
