"""Error responses in the OpenAPI document: each operation lists the statuses that it can answer."""

from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any

from fastapi.routing import APIRoute, iter_route_contexts
from starlette.routing import BaseRoute

from backend.http.access import RequireRole
from backend.http.bodies import MAX_BODY_BYTES
from backend.http.errors import MEDIA_TYPE, ProblemDocument
from backend.http.idempotency.route import HEADER, KEY_PATTERN, IdempotentRoute
from backend.http.pages import SAFE_METHODS
from backend.platform.principals import Role

ERRORS: dict[str, tuple[str, str, str]] = {
    "401": ("Unauthorized", "No valid token or session.", "log in, or send a token"),
    "403": (
        "Forbidden",
        "The role is too low, or a browser sent the request from another site.",
        "this requires the role operator; your role is viewer",
    ),
    "404": (
        "Not Found",
        "There is no such resource.",
        "run 01JD3QZ6W9K0Y5T8H2V4B7N1XC does not exist or has been deleted",
    ),
    "409": (
        "Conflict",
        "Not possible in the current state, or another request changed the same thing; nothing was changed.",
        "the run is finished: it has already ended",
    ),
    "410": ("Gone", "The stored file is damaged.", "the checksum of the video does not match"),
    "412": (
        "Precondition Failed",
        "The object has none of the entity tags of `If-Match`; nothing was changed.",
        "the view has been saved meanwhile; nothing was changed: read it again, or save it as another",
    ),
    "413": (
        "Content Too Large",
        "The body is too long.",
        f"the request body exceeds the maximum of {MAX_BODY_BYTES} bytes",
    ),
    "416": (
        "Range Not Satisfiable",
        "The range starts after the end of the file.",
        "the range starts after the end of the file",
    ),
    "422": (
        "Unprocessable Content",
        "Some fields are invalid; each is named.",
        "config.n_e: must be at least 1",
    ),
    "429": (
        "Too Many Requests",
        "Too many attempts: wait for the seconds of `Retry-After`.",
        "too many attempts: wait 5 s",
    ),
    "503": (
        "Service Unavailable",
        "The database or the artifact store is unavailable or busy: try again.",
        "the database is unavailable or busy; nothing was changed: try again",
    ),
    "default": ("Bad Request", "Any other error.", "the request cannot be read"),
}
"""Status -> title, what it means, and the `detail` of an example. `default` is any other status:
from the range `4XX`, some client generators write code that does not compile."""


OTHER = "default"
"""What proxies and the HTTP server answer themselves."""

_AUTH = "/api/v1/auth"

_IDEMPOTENCY_KEY = {
    "name": HEADER,
    "in": "header",
    "description": "A request repeated with its key within a day is not executed again and gets "
    "the same response.",
    "schema": {"type": "string", "pattern": KEY_PATTERN},
}


def describe(document: dict[str, Any], routes: Sequence[BaseRoute]) -> None:
    """Describe errors as problem documents, in place of the framework's own schemas."""
    components = document["components"]
    problem = ProblemDocument.model_json_schema(ref_template="#/components/schemas/{model}")
    components["schemas"] |= problem.pop("$defs", {}) | {"ProblemDocument": problem}
    for unused in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(unused, None)
    components["responses"] = {_name(status): _response(status) for status in ERRORS}
    restricted = set(_restricted(routes))
    idempotent = set(_idempotent(routes))
    for address, path in document["paths"].items():
        for method, operation in path.items():
            if method == "post" and address in idempotent:
                operation.setdefault("parameters", []).append(_IDEMPOTENCY_KEY)
            for response in operation["responses"].values():
                for content in response.get("content", {}).values():
                    content.pop("itemSchema", None)  # OpenAPI 3.2 only; the document is 3.1
            operation["responses"].pop("422", None)
            for status in _statuses(address, method, operation, (address, method) in restricted):
                answer = {"$ref": f"#/components/responses/{_name(status)}"}
                operation["responses"].setdefault(status, answer)


def _statuses(address: str, method: str, operation: dict[str, Any], restricted: bool) -> Iterator[str]:
    """The error statuses of an operation.

    Args:
        address: path of the operation.
        method: HTTP method of the operation, in lower case.
        operation: the operation's description so far.
        restricted: whether a viewer may not use it.
    """
    parameters = operation.get("parameters", [])
    named = {parameter["name"] for parameter in parameters}
    if operation.get("security") or (address.startswith(_AUTH) and "requestBody" in operation):
        yield "401"
    if restricted or method.upper() not in SAFE_METHODS:
        yield "403"
    if "{" in address or {"run", "cursor"} & named:
        yield "404"
    if method.upper() not in SAFE_METHODS:
        yield "409"
    if "if-match" in named:
        yield "412"
    if "requestBody" in operation:
        yield "413"
    if "range" in named:
        yield from ("410", "416")
    if parameters or "requestBody" in operation:
        yield "422"
    if address.startswith(_AUTH) and "requestBody" in operation:
        yield "429"
    yield from ("503", OTHER)


def _restricted(routes: Sequence[BaseRoute]) -> Iterator[tuple[str, str]]:
    """Address and method of each route that a viewer's token may not use."""
    for context in iter_route_contexts(routes):
        route = context.original_route
        if not isinstance(route, APIRoute):
            continue
        needed = [
            dependency.call
            for dependency in route.dependant.dependencies
            if isinstance(dependency.call, RequireRole)
        ]
        if any(requirement.role != Role.VIEWER or requirement.logged_in for requirement in needed):
            yield from ((str(context.path_format), method.lower()) for method in route.methods or ())


def _idempotent(routes: Sequence[BaseRoute]) -> Iterator[str]:
    """Address of each route whose POST is executed once for each key."""
    for context in iter_route_contexts(routes):
        if isinstance(context.original_route, IdempotentRoute):
            yield str(context.path_format)


def _name(status: str) -> str:
    return ERRORS[status][0].replace(" ", "")


def _response(status: str) -> dict[str, Any]:
    title, description, detail = ERRORS[status]
    code = 400 if status == OTHER else int(status)
    example: dict[str, Any] = {"type": "about:blank", "title": title, "status": code, "detail": detail}
    if code == HTTPStatus.UNPROCESSABLE_ENTITY:
        field, _, message = detail.partition(": ")
        example["errors"] = [{"field": field, "message": message}]
    schema = {"$ref": "#/components/schemas/ProblemDocument"}
    return {"description": description, "content": {MEDIA_TYPE: {"schema": schema, "example": example}}}
