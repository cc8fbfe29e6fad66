"""Requests to a server: its address and token, its problem documents as exceptions."""

from __future__ import annotations

import json
import os
import re
import socket
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import httpx

from callboard.cleaning import kind_of
from callboard.deadlines import Deadline
from callboard.errors import NotConfigured, Rejected, RequestTooLarge, Unreachable
from callboard.tally import warn

TIMEOUT = httpx.Timeout(30.0, connect=5.0)
"""Maximum times without a byte."""
DEADLINE_S = 30.0
"""Maximum time of a whole request, from the connection to the last byte of the answer."""
LEAST_BYTES_PER_S = 20_000
"""A request has further time for its body: as long as sending it at this rate takes."""
MAX_ANSWER_BYTES = 16 * 2**20
"""Maximum size of an answer, as it comes and decompressed."""
PROBLEM = "application/problem+json"
"""Media type of the server's errors."""
OF_THE_ENVIRONMENT = frozenset({"ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"})
"""Variables that httpx reads: of proxies and certificates."""
PAGE = 200
"""Items of one request for a list, at most."""
_ANY_PORT = 9
RETRIED = frozenset({408, 425, 429})
"""Statuses below 500 that ask to try again."""


@dataclass(frozen=True)
class Server:
    """Address and token of a server."""

    url: str
    token: str
    is_local: bool = False
    """Whether it is this machine's installation."""


def home() -> Path:
    """The folder of this machine's installation: `CALLBOARD_HOME`, by default `~/.callboard`.

    Raises:
        OSError: the user has no home.
    """
    return _expanded(os.environ.get("CALLBOARD_HOME") or "~/.callboard")


def spool_root() -> Path:
    """The folder of all spools: below `CALLBOARD_HOME` if it is set, else below the user's cache.

    Raises:
        OSError: the user has no home.
    """
    if os.environ.get("CALLBOARD_HOME"):
        return home() / "spool"
    return _expanded(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "callboard" / "spool"


def _expanded(path: str) -> Path:
    try:
        return Path(path).expanduser().absolute()
    except RuntimeError:
        raise OSError(f"no home is known for {path}: set HOME or CALLBOARD_HOME") from None


def find_server(url: str | None = None, token: str | None = None) -> Server:
    """The given server, else that of `CALLBOARD_URL` and `CALLBOARD_TOKEN`, else this machine's installation.

    Raises:
        NotConfigured: no server, or no token for it.
    """
    given_url, url_name = _given("url", url, "CALLBOARD_URL")
    given_token, token_name = _given("token", token, "CALLBOARD_TOKEN")
    address = address_of(given_url, url_name) if given_url is not None else _local_url()
    local = given_url is None or _local_url() in (address, given_url.rstrip("/"))
    if given_token is None and local:
        given_token = _local_token()
    if given_token is None:
        remedy = "set CALLBOARD_TOKEN to a token from the server's Settings page"
        problem = f"{address} needs a token: {remedy}"
        if local:
            with suppress(OSError):
                problem = f"no token in {home()}: start `callboard up` there, or {remedy}"
                if given_url is None:
                    problem += " and CALLBOARD_URL to its address"
        raise NotConfigured(f"token: {problem}")
    return Server(address, _secret(given_token, token_name), local)


def _given(argument: str, value: Any, variable: str) -> tuple[str | None, str]:
    """An argument, else a variable of the environment, without space around it; and its name.

    Raises:
        NotConfigured: the value is not text.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        text = os.environ.get(variable, "").strip()
        return text or None, variable
    if not isinstance(value, str):
        raise NotConfigured(f"{argument}: must be text: got {kind_of(value)}")
    return value.strip(), argument


def address_of(text: str, name: str) -> str:
    """The address of a server, without the path of its API or of a page.

    Args:
        text: what is given.
        name: the argument or variable that has it, for messages.

    Raises:
        NotConfigured: the text is no address of a server.
    """
    shown = re.sub(r"//[^/@]*@", "//...@", text)
    if not text.lower().startswith(("http://", "https://")):
        raise NotConfigured(f"{name}: must begin with http:// or https://: got {shown!r:.200}")
    try:
        url = httpx.URL(text)
        is_complete = bool(url.host) and (url.port is None or 0 < url.port < 2**16)
        if not text.isprintable() or " " in text:
            is_complete = False
    except (httpx.InvalidURL, ValueError, TypeError, UnicodeError):
        is_complete = False
    if not is_complete:
        raise NotConfigured(f"{name}: must be an address such as http://lab-server:8642: got {shown!r:.200}")
    if url.userinfo:
        raise NotConfigured(f"{name}: must not have a user name or a password: got {shown!r:.200}")
    if url.query or url.fragment:
        raise NotConfigured(f"{name}: must end before ? and #: got {shown!r:.200}")
    path = re.sub(r"(/api/v1|/runs(/.*)?)?/*$", "", url.path)
    return f"{url.scheme}://{url.netloc.decode('ascii')}{path}"


def _secret(text: str, name: str) -> str:
    """A token. Messages never contain it.

    Raises:
        NotConfigured: the text cannot be a token.
    """
    token = text.removeprefix("Bearer ").strip().strip("\"'").strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise NotConfigured(f"{name}: must be a token: letters, digits and _-. without spaces or line breaks")
    return token


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
        self._client = _http_client(server)
        self._deadline = Deadline()
        self._deadline.watch(self._client)

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
            params: parameters of the query; None values are left out.
            idempotency_key: with it, the server executes a repeated POST once.

        Raises:
            Unreachable: no answer, one that asks to try again, or one of something else than the server.
            Rejected: the server refused the request.
        """
        headers = {"Accept-Encoding": "gzip"}
        if content is not None:
            headers["Content-Type"] = content_type
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        query = {name: value for name, value in (params or {}).items() if value is not None}
        try:
            with (
                self._deadline.within(DEADLINE_S + len(content or b"") / LEAST_BYTES_PER_S),
                self._open(method, path, json=body, content=content, params=query, headers=headers) as answer,
            ):
                response = _read(answer)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._unreachable(error) from None
        check(response)
        if not response.content:
            return None
        try:
            return response.json()
        except (ValueError, RecursionError):
            raise _foreign(response) from None

    def items(
        self,
        path: str,
        params: Mapping[str, Any] | None = None,
        *,
        limit: int | None = None,
        page: int = PAGE,
    ) -> Iterator[dict[str, Any]]:
        """The items of a list, over all its pages.

        Args:
            path: of the list, below `/api/v1/`.
            params: parameters of the query.
            limit: how many items at most; default: all.
            page: items of a request, at most.
        """
        query = {**(params or {})}
        while limit is None or limit > 0:
            query["limit"] = page if limit is None else min(page, limit)
            answer = self.request("GET", path, params=query)
            yield from answer["items"]
            limit = None if limit is None else limit - len(answer["items"])
            query["cursor"] = answer["next_cursor"]
            if query["cursor"] is None:
                return

    def download(self, path: str, file: str | PathLike[str], params: Mapping[str, Any] | None = None) -> Path:
        """Store an answer in a file, which is replaced once all of it has come, and return its path.

        Raises:
            OSError: the file cannot be written.
            Unreachable: no answer, or it broke off.
            Rejected: the server refused the request.
        """
        target = Path(fspath(file)).absolute()
        partial = target.with_name(f".{target.name[:200]}.partial")
        query = {name: value for name, value in (params or {}).items() if value is not None}
        try:
            with self.stream(path, query) as response, partial.open("wb") as parts:
                for part in response.iter_bytes():
                    parts.write(part)
            partial.replace(target)
        finally:
            with suppress(OSError):
                partial.unlink()
        return target

    def validate_answer(self, answer: Any, **types: type) -> dict[str, Any]:
        """Return an answer, which must be an object with at least these fields.

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
            with (
                self._deadline.within(DEADLINE_S) as until_head,
                self._open("GET", path, params=params, timeout=timeout) as response,
            ):
                if not response.is_success:
                    check(_read(response))
                until_head.close()
                yield response
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._unreachable(error) from None

    @contextmanager
    def _open(self, method: str, path: str, **options: Any) -> Iterator[httpx.Response]:
        """Send a request and read the head of its answer.

        A GET is sent again if the server closes its connection without an answer: it may have been closing
        the idle connection when the request was sent.
        """
        request = self._client.build_request(method, path, **options)
        try:
            response = self._client.send(request, stream=True)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
            if method != "GET":
                raise
            response = self._client.send(request, stream=True)
        with closing(response):
            yield response

    def _unreachable(self, error: httpx.HTTPError | httpx.InvalidURL) -> Unreachable:
        return Unreachable(f"{self.server.url}: {error or type(error).__name__}; is the server running?")


def _read(response: httpx.Response) -> httpx.Response:
    """An answer with its whole body, which is decompressed.

    Raises:
        Unreachable: it is too large, or compressed in a way that nobody has asked for.
    """
    body = bytearray()
    for part in response.iter_raw():
        body += part
        if len(body) > MAX_ANSWER_BYTES:
            raise _too_large(response)
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("gzip", "deflate"):
        decompressor = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
        try:
            body = bytearray(decompressor.decompress(body, MAX_ANSWER_BYTES + 1))
        except zlib.error:
            raise _foreign(response) from None
        if len(body) > MAX_ANSWER_BYTES:
            raise _too_large(response)
    elif encoding not in ("identity", "") and body:
        raise _foreign(response)
    form = ("content-encoding", "content-length", "transfer-encoding")
    headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in form]
    return httpx.Response(
        response.status_code,
        headers=headers,
        content=bytes(body),
        request=response.request,
        extensions=response.extensions,
    )


def _too_large(response: httpx.Response) -> Unreachable:
    return Unreachable(
        f"{response.url.host}: something else than Callboard answered: more than {MAX_ANSWER_BYTES:,} bytes"
    )


def _http_client(server: Server) -> httpx.Client:
    """A client with the proxies and certificates of the environment, which are ignored if they are unusable.

    A server on this machine is reached without a proxy.
    """
    create = partial(
        httpx.Client,
        base_url=f"{server.url}/api/v1/",
        headers={"Authorization": f"Bearer {server.token}"},
        timeout=TIMEOUT,
    )
    address = httpx.URL(server.url)
    is_here = server.is_local or is_this_machine(address.host)
    if is_here and address.scheme != "https":
        return create(trust_env=False)
    try:
        # A transport of its own takes the environment's certificates, and no proxy.
        return create(transport=httpx.HTTPTransport(), trust_env=False) if is_here else create()
    except Exception as error:  # of a proxy's scheme, or of a file of certificates
        names = [name for name in os.environ if name.upper() in OF_THE_ENVIRONMENT]
        warn(
            "callboard: %s cannot be used and is ignored: %s",
            ", ".join(names) or "the environment's proxy",
            error or kind_of(error),
        )
        return create(trust_env=False)


def is_this_machine(host: str) -> bool:
    """Whether a host is `localhost`, a loopback address or another address of this machine. No proxy knows
    what this machine calls itself."""
    try:
        address = ip_address(host)
    except ValueError:
        return host.lower() == "localhost"
    if address.is_loopback or address.is_unspecified:
        return True
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        # Nothing is sent. To bind it instead proves nothing where ip_nonlocal_bind is set.
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((host, _ANY_PORT))
            return ip_address(probe.getsockname()[0]) == address  # packets to an own address come from it
    except (OSError, ValueError):
        return False


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
    if response.is_redirect:
        answer += f" to {response.headers.get('location', '')!r:.100}"
    return Unreachable(f"{response.url.host}: something else than Callboard answered: {answer}, {kind:.40}")
