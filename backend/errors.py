"""One tree of expected errors, and the RFC 9457 problem documents of their responses.

Problem
├── BadRequest      400  the request cannot be read
├── Unauthenticated 401  not logged in
├── Forbidden       403  logged in, but not allowed
├── NotFound        404  no such object
├── Conflict        409  not possible in the current state
├── Gone            410  a stored file is damaged
├── TooLarge        413  the body is too long
├── BadRange        416  no such range of a file
├── Invalid         422  invalid fields, each named
├── TooMany         429  too many attempts: wait
└── Unavailable     503  the database or the artifact store is unavailable or busy: try again

A `code` names what was wrong for programs. Clients that keep what they cannot deliver, as the package
`callboard` does, give up only because of a code that was made for it; a sentence may change, and a status
alone may be that of a proxy.

`InvalidSpec` and the framework's own errors are converted to one of these.
"""

import json
import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, ClassVar

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from sqlalchemy.exc import IntegrityError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.responses import Response

from backend.artifacts import StoreUnavailable
from backend.db.engine import QUERY_TIMEOUT_S, is_query_timeout
from backend.db.keyset import BadCursor
from backend.http.routing import HttpMethods
from backend.specs.problems import FieldProblem, InvalidSpec, explained_in, message_of

SECRET_FIELDS = frozenset({"password", "current", "new"})
"""Fields whose values are never quoted in a response or in the audit trail."""

MEDIA_TYPE = "application/problem+json"

log = structlog.get_logger(__name__)


class ProblemDocument(BaseModel):
    """An error, as an RFC 9457 problem document."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    code: str | None = None
    """What was wrong, for programs, such as `run_not_found`; null if there is nothing to distinguish."""
    errors: list[FieldProblem] = []
    """Every invalid field, by its dotted path."""
    request_id: str | None = None
    """Id of this request in the logs."""


class Problem(Exception):
    """Root of the tree: an expected error with an HTTP status, not a bug."""

    status: ClassVar[HTTPStatus] = HTTPStatus.INTERNAL_SERVER_ERROR
    code: str | None = None
    """For programs; of the class unless a problem has one of its own."""

    def __init__(
        self,
        detail: str,
        errors: Sequence[FieldProblem] = (),
        headers: Mapping[str, str] | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code or self.code
        self.errors = list(errors)
        self.headers = dict(headers or {})


class BadRequest(Problem):
    """The request cannot be read."""

    status = HTTPStatus.BAD_REQUEST
    code = "bad_request"


class Unauthenticated(Problem):
    """The request has no valid token or session."""

    status = HTTPStatus.UNAUTHORIZED
    code = "unauthenticated"

    def __init__(self, detail: str = "log in, or send a token") -> None:
        super().__init__(detail, headers={"WWW-Authenticate": "Bearer"})


class Forbidden(Problem):
    """Logged in, but not allowed."""

    status = HTTPStatus.FORBIDDEN
    code = "forbidden"


class NotFound(Problem):
    """No such object."""

    status = HTTPStatus.NOT_FOUND


class Conflict(Problem):
    """Not possible in the object's current state."""

    status = HTTPStatus.CONFLICT


class Gone(Problem):
    """A stored file is damaged, so that its content is lost."""

    status = HTTPStatus.GONE


class TooLarge(Problem):
    """The body is longer than any request needs."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    code = "body_too_large"


class BadRange(Problem):
    """The file has no such range."""

    status = HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE


class Invalid(Problem):
    """Invalid fields, each named."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY
    code = "invalid_fields"

    def __init__(self, errors: Sequence[FieldProblem], code: str | None = None) -> None:
        super().__init__("; ".join(f"{e.field}: {e.message}" for e in errors), errors, code=code)

    @classmethod
    def field(cls, field: str, message: str, code: str | None = None) -> "Invalid":
        """With one invalid field."""
        return cls([FieldProblem(field=field, message=message)], code)


class TooMany(Problem):
    """Too many attempts: wait."""

    status = HTTPStatus.TOO_MANY_REQUESTS

    def __init__(self, detail: str, wait_s: float) -> None:
        super().__init__(detail, headers={"Retry-After": str(math.ceil(wait_s))})


class Unavailable(Problem):
    """The database or the artifact store is unavailable or busy."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


def respond(problem: Problem, request_id: str | None) -> Response:
    """The response for `problem`."""
    document = ProblemDocument(
        title=problem.status.phrase,
        status=problem.status,
        detail=problem.detail,
        code=problem.code,
        errors=problem.errors,
        request_id=request_id,
    )
    # ASCII: quoted input may hold a lone surrogate, which has no UTF-8 form.
    content = json.dumps(document.model_dump())
    return Response(content, int(problem.status), headers=problem.headers, media_type=MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Respond to every error of `app` with a problem document."""

    def answer(request: Request, problem: Problem) -> Response:
        return respond(problem, getattr(request.state, "request_id", None))

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
                return answer(request, _from_http(HTTPException(NotFound.status)))
            allowed = allowed or "GET"  # of a page
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
        return answer(request, Unavailable(detail, headers={"Retry-After": "1"}))

    def on_store(request: Request, error: Exception) -> Response:
        log.warning("artifacts.unavailable", error=str(error))
        detail = (
            "the artifact store is unavailable; its files can be read and written once it is back: try again"
        )
        return answer(request, Unavailable(detail, headers={"Retry-After": "5"}))

    def on_conflict(request: Request, error: Exception) -> Response:
        log.warning("database.conflict", error=str(error))
        return answer(
            request, Conflict("another request changed this at the same time; nothing was changed: try again")
        )

    def on_bug(request: Request, error: Exception) -> Response:
        log.error("request.failed", exc_info=error)
        return answer(request, Problem("internal error; see the log of the web process for this request id"))

    app.add_exception_handler(Problem, on_problem)
    app.add_exception_handler(InvalidSpec, on_spec)
    app.add_exception_handler(BadCursor, on_cursor)
    app.add_exception_handler(RequestValidationError, on_validation)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(OperationalError, on_database)
    app.add_exception_handler(InterfaceError, on_database)
    app.add_exception_handler(StoreUnavailable, on_store)
    app.add_exception_handler(IntegrityError, on_conflict)
    app.add_exception_handler(PoolTimeout, on_database)
    app.add_exception_handler(Exception, on_bug)


def _from_validation(error: RequestValidationError, body: Any) -> Problem:
    """A problem of each field; `body` is the type of the endpoint's body."""
    if any(item["loc"][:1] == ("path",) for item in error.errors()):
        return NotFound("there is no such id")
    # A parameter that an endpoint shares with one of its dependencies is checked twice.
    problems = dict.fromkeys(_field_problem(item) for item in error.errors())
    return Invalid(explained_in(problems, body))


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
    headers = dict(error.headers or {})
    if error.status_code == NotFound.status:
        return NotFound("there is nothing at this address", headers=headers)
    if error.detail == _UNREADABLE_BODY:
        return Invalid.field("body", "cannot be read: a number is too long, or values are nested too deeply")
    problem = Problem(error.detail, headers=headers)
    problem.status = HTTPStatus(error.status_code)  # type: ignore[misc]
    return problem
