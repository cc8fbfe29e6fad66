"""Answers of the expected errors, and of the framework's own, as RFC 9457 problem documents.

The tree is in `backend.platform.errors`. What only HTTP knows is added to it here:

Problem
└── HttpProblem        with a status of its own
    ├── BadRequest          400  the request cannot be read
    ├── TooLarge            413  the body is too long
    └── BadRange            416  no such range of a file
"""

import json
import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import Field
from sqlalchemy.exc import IntegrityError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.responses import Response

from backend.db.deadline import REQUEST_S, RequestEnded
from backend.db.engine import QUERY_TIMEOUT_S, is_query_timeout
from backend.db.keyset import BadCursor
from backend.http.context import request_id_of
from backend.http.routing import HttpMethods
from backend.platform.artifacts import StoreUnavailable
from backend.platform.errors import (
    SECRET_FIELDS,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Overwritten,
    Problem,
    Stale,
    TooMany,
    Unauthenticated,
    Unavailable,
)
from backend.specs.fields import Schema
from backend.specs.problems import MAX_PROBLEMS, FieldProblem, InvalidSpec, explain_in, message_of, quoted

MEDIA_TYPE = "application/problem+json"

MAX_DOCUMENT_BYTES = 16_000
"""Maximum size of a problem document, whatever the request has."""
_MAX_DETAIL_BYTES = 5_000
_MAX_ERRORS_BYTES = 10_000
_MAX_FIELD_BYTES = 500
_MAX_MESSAGE_BYTES = 2_000

log = structlog.get_logger(__name__)


class ProblemDocument(Schema):
    """An error, as an RFC 9457 problem document."""

    type: str = "about:blank"
    """Kind of problem, as a URI reference; `about:blank` adds nothing to the status."""
    title: str
    """Name of the HTTP status."""
    status: int
    """HTTP status of the response."""
    detail: str
    """What happened, why, and what to do."""
    code: str | None = None
    """What was wrong, for programs, such as `run_not_found`; null if there is nothing to distinguish."""
    errors: list[FieldProblem] = Field(default=[])
    """The first 20 invalid fields at most, by their dotted paths."""
    expected: int | None = None
    """The `sequence` or `offset` that must come next, where the request has another; null otherwise."""
    request_id: str | None = None
    """Id of this request in the logs."""


class HttpProblem(Problem):
    """An error of HTTP itself, which no service knows."""

    status = HTTPStatus.BAD_REQUEST

    def __init__(
        self, detail: str, *, status: HTTPStatus | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status or self.status
        self.headers = dict(headers or {})


class BadRequest(HttpProblem):
    """The request cannot be read."""

    code = "bad_request"


class TooLarge(HttpProblem):
    """The body is longer than any request needs."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    code = "body_too_large"


class BadRange(HttpProblem):
    """The file has no such range."""

    status = HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE


STATUSES: Mapping[type[Problem], HTTPStatus] = {
    Unauthenticated: HTTPStatus.UNAUTHORIZED,
    Forbidden: HTTPStatus.FORBIDDEN,
    NotFound: HTTPStatus.NOT_FOUND,
    Conflict: HTTPStatus.CONFLICT,
    Overwritten: HTTPStatus.CONFLICT,
    Stale: HTTPStatus.PRECONDITION_FAILED,
    Gone: HTTPStatus.GONE,
    Invalid: HTTPStatus.UNPROCESSABLE_ENTITY,
    TooMany: HTTPStatus.TOO_MANY_REQUESTS,
    Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
}
"""The status of each error that services raise; that of others is 500."""


def status_of(problem: Problem) -> HTTPStatus:
    """The status of a problem's response."""
    if isinstance(problem, HttpProblem):
        return problem.status
    known = (STATUSES[kind] for kind in type(problem).__mro__ if kind in STATUSES)
    return next(known, HTTPStatus.INTERNAL_SERVER_ERROR)


def _headers_of(problem: Problem) -> Mapping[str, str]:
    match problem:
        case HttpProblem():
            return problem.headers
        case Unauthenticated():
            return {"WWW-Authenticate": "Bearer"}
        case TooMany() | Unavailable():
            return {"Retry-After": str(math.ceil(problem.retry_after_s))}
    return {}


def respond(problem: Problem, request_id: str | None) -> Response:
    """The response for `problem`, of at most `MAX_DOCUMENT_BYTES`."""
    status = status_of(problem)
    document = ProblemDocument(
        title=status.phrase,
        status=status,
        detail=_shortened(problem.detail, _MAX_DETAIL_BYTES),
        code=problem.code,
        errors=_bounded(problem.errors),
        expected=problem.expected,
        request_id=request_id,
    )
    # ASCII: quoted input may hold a lone surrogate, which has no UTF-8 form.
    content = json.dumps(document.model_dump())
    return Response(content, int(status), headers=dict(_headers_of(problem)), media_type=MEDIA_TYPE)


def _bounded(errors: Sequence[FieldProblem]) -> list[FieldProblem]:
    """The first problems, shortened where they quote much of the input."""
    kept, n_bytes = [], 0
    for error in errors[:MAX_PROBLEMS]:
        short = FieldProblem(
            field=_shortened(error.field, _MAX_FIELD_BYTES),
            message=_shortened(error.message, _MAX_MESSAGE_BYTES),
        )
        n_bytes += len(json.dumps(short.model_dump())) + 2
        if n_bytes > _MAX_ERRORS_BYTES:
            break
        kept.append(short)
    return kept


def _shortened(text: str, n_bytes: int) -> str:
    """The start of a text whose JSON would be longer."""
    text = text[:n_bytes]
    while len(json.dumps(text)) > n_bytes:
        text = text[: len(text) * 3 // 4] + "…"
    return text


def install(app: FastAPI) -> None:
    """Respond to every error of `app` with a problem document."""

    def answer(request: Request, problem: Problem) -> Response:
        return respond(problem, request_id_of(request.scope))

    def on_problem(request: Request, error: Exception) -> Response:
        assert isinstance(error, Problem)
        return answer(request, error)

    def on_spec(request: Request, error: Exception) -> Response:
        assert isinstance(error, InvalidSpec)
        return answer(request, Invalid(error.problems))

    def on_cursor(request: Request, error: Exception) -> Response:
        message = "must be next_cursor of the previous page of the same list, in the same order"
        return answer(request, Invalid.field("cursor", message))

    def on_validation(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        body = getattr(request.scope.get("route"), "body_field", None)
        return answer(request, _from_validation(error, body and body.field_info.annotation))

    def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            # The framework lists the methods of one route only.
            methods: HttpMethods = request.app.state.methods
            path = request.scope["path"]
            allowed = ", ".join(methods.of(path))
            if not allowed and path.startswith("/api/"):
                return answer(request, _from_http(HTTPException(HTTPStatus.NOT_FOUND)))
            allowed = allowed or "GET, HEAD"  # of a page
            error.headers = {"Allow": allowed}
            error.detail = f"{request.method} is not allowed at this address; allowed: {allowed}"
        return answer(request, _from_http(error))

    def on_database(request: Request, error: Exception) -> Response:
        log.warning("database.unavailable", error=str(error))
        detail = "the database is unavailable or busy; nothing was changed: try again"
        if any(words in str(error) for words in ("disk is full", "No space left", "disk I/O error")):
            detail = "the disk of the database is full or broken; nothing was changed: free some space"
        elif is_query_timeout(error):
            detail = (
                f"the query took longer than {QUERY_TIMEOUT_S:g} s and was cancelled: ask for less, such as "
                "fewer terms in a filter"
            )
        return answer(request, Unavailable(detail, retry_after_s=1))

    def on_deadline(request: Request, error: Exception) -> Response:
        detail = (
            f"the request took longer than {REQUEST_S:g} s and was cancelled: ask for less, such as fewer "
            "terms in a filter, or try again later"
        )
        return answer(request, Unavailable(detail, retry_after_s=1))

    def on_store(request: Request, error: Exception) -> Response:
        log.warning("artifacts.unavailable", error=str(error))
        detail = (
            "the artifact store is unavailable; its files can be read and written once it is back: try again"
        )
        return answer(request, Unavailable(detail, retry_after_s=5))

    def on_conflict(request: Request, error: Exception) -> Response:
        log.warning("database.conflict", error=str(error))
        return answer(
            request, Conflict("another request changed this at the same time; nothing was changed: try again")
        )

    def on_bug(request: Request, error: Exception) -> Response:
        log.error("request.failed", exc_info=error)
        problem = Problem("internal error; see the log of the web process for this request id")
        response = answer(request, problem)
        # uvicorn closes the connection after an exception: the client must not send its next request on it.
        response.headers["Connection"] = "close"
        return response

    app.add_exception_handler(Problem, on_problem)
    app.add_exception_handler(InvalidSpec, on_spec)
    app.add_exception_handler(BadCursor, on_cursor)
    app.add_exception_handler(RequestValidationError, on_validation)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(OperationalError, on_database)
    app.add_exception_handler(InterfaceError, on_database)
    app.add_exception_handler(RequestEnded, on_deadline)
    app.add_exception_handler(StoreUnavailable, on_store)
    app.add_exception_handler(IntegrityError, on_conflict)
    app.add_exception_handler(PoolTimeout, on_database)
    app.add_exception_handler(Exception, on_bug)


def _from_validation(error: RequestValidationError, body: Any) -> Problem:
    """A problem of each field; `body` is the type of the endpoint's body."""
    for item in error.errors():
        if item["loc"][:1] == ("path",):
            what = str(item["loc"][1]).removesuffix("_id").replace("_", " ")
            return NotFound(f"{what} {quoted(item['input'])} does not exist")
    # A parameter that an endpoint shares with one of its dependencies is checked twice.
    problems: dict[FieldProblem, None] = {}
    for item in error.errors():
        problems[_field_problem(item)] = None
        if len(problems) > MAX_PROBLEMS:
            break
    problem = Invalid(explain_in(list(problems)[:MAX_PROBLEMS], body))
    if len(problems) > MAX_PROBLEMS:
        problem.detail += "; and others"
    return problem


def _field_problem(item: Mapping[str, Any]) -> FieldProblem:
    where, *rest = item["loc"]
    if item["type"] == "json_invalid":
        return FieldProblem(field="body", message=f"not JSON at character {rest[0]}: {item['ctx']['error']}")
    message = message_of(item, secret=bool(SECRET_FIELDS.intersection(rest)))
    if where == "query":
        rest = rest[:1]  # a parameter that is given several times has no numbers
    return FieldProblem(field=".".join(map(str, rest)) or str(where), message=message)


_UNREADABLE_BODY = "There was an error parsing the body"
"""FastAPI's message where a body is JSON that Python cannot read."""


def _from_http(error: HTTPException) -> Problem:
    if error.status_code == HTTPStatus.NOT_FOUND:
        return NotFound("there is nothing at this address")
    if error.detail == _UNREADABLE_BODY:
        return Invalid.field("body", "cannot be read: a number is too long, or values are nested too deeply")
    return HttpProblem(error.detail, status=HTTPStatus(error.status_code), headers=error.headers)
