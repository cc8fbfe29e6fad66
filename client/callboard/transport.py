"""Requests to a server: its address and token, its problem documents as exceptions."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from callboard.errors import NotConfigured, Rejected, RequestTooLarge, Unreachable

TIMEOUT = httpx.Timeout(30.0, connect=5.0)
PROBLEM = "application/problem+json"
"""Media type of the server's errors."""
RETRIED = frozenset({408, 425, 429})
"""Statuses below 500 that ask to try again."""


@dataclass(frozen=True)
class Server:
    """Address and token of a server."""

    url: str
    token: str


def home() -> Path:
    """The folder of this machine's installation: `CALLBOARD_HOME`, by default `~/.callboard`."""
    return Path(os.environ.get("CALLBOARD_HOME") or "~/.callboard").expanduser().absolute()


def spool_root() -> Path:
    """The folder of all spools: below `CALLBOARD_HOME` if it is set, else below the user's cache."""
    if os.environ.get("CALLBOARD_HOME"):
        return home() / "spool"
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser().absolute() / "callboard" / "spool"


def find_server(url: str | None = None, token: str | None = None) -> Server:
    """The given server, else that of `CALLBOARD_URL` and `CALLBOARD_TOKEN`, else this machine's installation.

    Raises:
        NotConfigured: no server, or no token for it.
    """
    url = url or os.environ.get("CALLBOARD_URL") or None
    token = token or os.environ.get("CALLBOARD_TOKEN") or None
    local = url is None or url.rstrip("/") == _local_url()
    url = url or _local_url()
    if token is None and local:
        token = _local_token()
    if not url.startswith(("http://", "https://")):
        raise NotConfigured(f"url: must begin with http:// or https://: got {url!r}")
    if token is None:
        where = f"no token in {home()}: start `callboard up` there" if local else f"{url} needs a token"
        raise NotConfigured(
            f"token: {where}; or set CALLBOARD_TOKEN to one of the server's Settings page "
            "(and CALLBOARD_URL to its address)"
        )
    return Server(url.rstrip("/"), token)


def _local_url() -> str:
    try:
        running = json.loads((home() / "up.json").read_text("utf-8"))
    except (OSError, ValueError):
        running = {}
    host = os.environ.get("CALLBOARD_HOST") or "127.0.0.1"
    port = os.environ.get("CALLBOARD_PORT") or "8642"
    return str(running.get("url") or f"http://{host}:{port}").rstrip("/")


def _local_token() -> str | None:
    try:
        return (home() / "command-line-key").read_text("utf-8").strip() or None
    except OSError:
        return None


class Transport:
    """Sends requests to one server. Any thread may use it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._client = httpx.Client(
            base_url=f"{server.url}/api/v1/",
            headers={"Authorization": f"Bearer {server.token}"},
            timeout=TIMEOUT,
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        content: bytes | None = None,
        content_type: str = "application/json",
        params: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Send a request, and return the JSON of the answer.

        Args:
            method: HTTP method.
            path: below `/api/v1/`.
            body: sent as JSON.
            content: sent as it is, instead of `body`.
            content_type: media type of `content`.
            params: of the query; None values are left out.
            idempotency_key: with it, the server executes a repeated POST once.

        Raises:
            Unreachable: no answer, one that asks to try again, or one of something else than the server.
            Rejected: the server refused the request.
        """
        headers = {"Content-Type": content_type} if content is not None else {}
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        query = {name: value for name, value in (params or {}).items() if value is not None}
        try:
            response = self._client.request(
                method, path, json=body, content=content, params=query, headers=headers
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._unreachable(error) from None
        check(response)
        if not response.content:
            return None
        try:
            return response.json()
        except (ValueError, RecursionError):
            raise _foreign(response) from None

    def fields_of(self, answer: Any, **types: type) -> dict[str, Any]:
        """An answer, which is an object with these fields.

        Raises:
            Unreachable: it is not; something else than the server has answered.
        """
        if isinstance(answer, dict) and all(type(answer.get(name)) is kind for name, kind in types.items()):
            return answer
        raise Unreachable(f"something else answered at {self.server.url}: {str(answer)[:80]!r}")

    @contextmanager
    def stream(
        self, path: str, params: Mapping[str, Any] | None = None, timeout: httpx.Timeout = TIMEOUT
    ) -> Iterator[httpx.Response]:
        """Read an answer as it comes.

        Raises:
            Unreachable: no answer, or it broke off.
            Rejected: the server refused the request.
        """
        try:
            with self._client.stream("GET", path, params=params, timeout=timeout) as response:
                if not response.is_success:
                    response.read()
                check(response)
                yield response
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._unreachable(error) from None

    def _unreachable(self, error: httpx.HTTPError | httpx.InvalidURL) -> Unreachable:
        return Unreachable(f"{self.server.url}: {error or type(error).__name__}; is the server running?")


def check(response: httpx.Response) -> None:
    """Raise what an answer without success means.

    Only a problem document of the server can refuse a request. A proxy, a login page or another service that
    answers at the same address knows nothing about the request: it may succeed later.

    Raises:
        Unreachable: it asks to try again, or it is not a problem document.
        Rejected: it refuses the request.
    """
    if response.is_success:
        return
    if response.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE:
        size = len(response.request.content)
        raise RequestTooLarge(f"{response.url.host}: a request of {size:,} bytes is too large for it")
    problem = _problem(response)
    if problem is None and response.status_code < httpx.codes.INTERNAL_SERVER_ERROR:
        raise _foreign(response)
    problem = problem or {}
    detail = str(problem.get("detail") or f"{response.status_code} {response.reason_phrase}")
    fields: dict[str, str] = {}
    with suppress(KeyError, TypeError):
        fields = {str(fault["field"]): str(fault["message"]) for fault in problem.get("errors") or ()}
        detail = "; ".join(f"{field}: {message}" for field, message in fields.items()) or detail
    if response.status_code >= httpx.codes.INTERNAL_SERVER_ERROR or response.status_code in RETRIED:
        after = response.headers.get("retry-after", "")
        raise Unreachable(f"{response.url.host}: {detail}", float(after) if after.isdecimal() else None)
    code, expected = problem.get("code"), problem.get("expected")
    raise Rejected(
        response.status_code,
        detail,
        fields,
        expected if type(expected) is int else None,
        code if isinstance(code, str) else None,
    )


def _problem(response: httpx.Response) -> dict[str, Any] | None:
    """The problem document of an answer; None if it is something else."""
    if response.headers.get("content-type", "").partition(";")[0].strip().lower() != PROBLEM:
        return None
    try:
        problem = response.json()
    except (ValueError, RecursionError):
        return None
    return problem if isinstance(problem, dict) and problem.get("status") == response.status_code else None


def _foreign(response: httpx.Response) -> Unreachable:
    kind = response.headers.get("content-type", "") or "nothing"
    answer = f"{response.status_code} {response.reason_phrase}".strip()
    return Unreachable(f"{response.url.host}: something else than Callboard answered: {answer}, {kind:.40}")
