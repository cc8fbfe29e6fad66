"""A client of the REST API: of this machine's server, or of `CALLBOARD_URL` with `CALLBOARD_TOKEN`."""

import os
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from time import monotonic, sleep
from typing import Any, Self

import httpx
import typer
from ulid import ULID

from backend.platform.principals import Role
from backend.platform.settings import Settings
from callboard_cli import BAD_INPUT, fail, printable
from callboard_cli.home import make_home
from callboard_cli.installation import Installation
from callboard_cli.listening import url_of
from callboard_cli.tokens import create_token

TIMEOUT_S = 30.0
WAIT_INTERVAL_S = 1.0
MAX_OUTAGE_S = 300.0
"""How long a command that waits for an end bears a server that restarts."""
AWAY = 3
"""Exit code when it was away for longer: what the command waited for may go on."""
_AWAY = {
    httpx.codes.TOO_MANY_REQUESTS,
    httpx.codes.BAD_GATEWAY,
    httpx.codes.SERVICE_UNAVAILABLE,
    httpx.codes.GATEWAY_TIMEOUT,
}
MAX_PAGE = 200
LOCAL_TOKEN_LIFETIME = timedelta(days=30)


class BearerToken(httpx.Auth):
    """Authenticates with a given token."""

    def __init__(self, token: str) -> None:
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the token to a request."""
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request


class LocalToken(httpx.Auth):
    """Authenticates at this machine's server with a token kept under home; creates one if it is not valid."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._path = settings.home_dir / "command-line-key"

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the kept token to a request; after a 401, a new one."""
        if self._path.exists():
            request.headers["Authorization"] = f"Bearer {self._path.read_text()}"
            if (yield request).status_code != httpx.codes.UNAUTHORIZED:
                return
        make_home(self._settings.home_dir)
        token = (
            create_token(self._settings, "owner", "command line", Role.OPERATOR, LOCAL_TOKEN_LIFETIME) or ""
        )
        with os.fdopen(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(token)
        request.headers["Authorization"] = f"Bearer {token}"
        yield request


class Remote:
    """A client of one server, to be used as a context manager."""

    def __init__(self, settings: Settings) -> None:
        from callboard.transport import OF_THE_ENVIRONMENT, is_this_machine

        self._has_token = settings.token is not None
        self.url = url = _url(settings).rstrip("/")
        """Address of the server."""
        is_here = url == _running_url(settings) or is_this_machine(httpx.URL(url).host)
        is_https = httpx.URL(url).scheme == "https"
        auth = _auth(settings)
        try:
            # No proxy knows what this machine calls itself. A transport of its own takes the environment's
            # certificates, if it needs any, and no proxy.
            transport = httpx.HTTPTransport(trust_env=is_https) if is_here else None
            self._client = httpx.Client(
                base_url=f"{url}/api/v1",
                auth=auth,
                timeout=TIMEOUT_S,
                trust_env=not is_here,
                transport=transport,
            )
        except (OSError, ValueError, ImportError) as error:  # of a file of certificates, or a proxy's scheme
            names = sorted(name for name in os.environ if name.upper() in OF_THE_ENVIRONMENT)
            raise fail(f"{', '.join(names)}: cannot be used: {error}") from None

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self._client.close()

    def request(
        self, method: str, path: str, *, body: Any = None, params: Mapping[str, Any] | None = None
    ) -> Any:
        """Send a request and return the response's JSON.

        Raises:
            typer.Exit: the server cannot be reached (1), fails (1), or rejects the request (2).
        """
        headers = {"Idempotency-Key": str(ULID())} if method == "POST" else {}
        try:
            request = self._client.build_request(method, path, json=body, params=params, headers=headers)
        except ValueError:
            raise fail("numbers must be finite: JSON has neither NaN nor infinity") from None
        try:
            try:
                response = self._client.send(request)
            except (httpx.ReadError, httpx.RemoteProtocolError):
                if method != "POST":
                    raise
                # The response may be lost: the same idempotency key prevents a second execution.
                response = self._client.send(request)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from None
        return self._json(response)

    def has(self, path: str) -> bool:
        """Whether there is something at `path`.

        Raises:
            typer.Exit: as for `request`, but for 404.
        """
        try:
            response = self._client.get(path)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from None
        if response.status_code == httpx.codes.NOT_FOUND:
            return False
        self._check(response)
        return True

    def wait_until(self, has_ended: Callable[[Any], bool], path: str) -> Any:
        """Get what is at `path` until it has ended, and return it.

        A server that is away or overloaded is asked again for up to `MAX_OUTAGE_S`: what it trains goes on.

        Raises:
            typer.Exit: the server was away for longer (3), fails (1), or rejects the request (2).
        """
        away_since = None
        while True:
            try:
                response = self._client.get(path)
            except httpx.TransportError as error:
                reason = str(error) or type(error).__name__
            else:
                if response.status_code not in _AWAY:
                    away_since = None
                    if has_ended(row := self._json(response)):
                        return row
                    sleep(WAIT_INTERVAL_S)
                    continue
                reason = f"{response.status_code} {response.reason_phrase}"
            now = monotonic()
            if away_since is None:
                away_since = now
                typer.echo(f"callboard: {self._client.base_url}: {printable(reason)}; waiting", err=True)
            if now - away_since > MAX_OUTAGE_S:
                raise fail(f"{self._client.base_url}: {reason}; is the server running?", AWAY)
            sleep(WAIT_INTERVAL_S)

    def _json(self, response: httpx.Response) -> Any:
        self._check(response)
        try:
            return response.json() if response.content else None
        except ValueError:
            message = "the response is not JSON; CALLBOARD_URL must be the address of a Callboard server"
            raise fail(f"{self._client.base_url}: {message}", 1) from None

    def items(self, path: str, params: Mapping[str, Any], limit: int) -> Iterator[Any]:
        """The items of a list, over all pages, at most `limit`."""
        query = {name: value for name, value in params.items() if value is not None}
        while limit > 0:
            page = self.request("GET", path, params=query | {"limit": min(limit, MAX_PAGE)})
            yield from page["items"]
            limit -= len(page["items"])
            if page["next_cursor"] is None:
                return
            query["cursor"] = page["next_cursor"]

    @contextmanager
    def download(self, path: str, params: Mapping[str, Any]) -> Iterator[Iterator[bytes]]:
        """Stream the bytes of a file, once the server has it: while a worker computes it, ask again.

        Raises:
            typer.Exit: as for `request`.
        """
        is_awaited = False
        try:
            while True:
                with self._client.stream("GET", path, params=params) as response:
                    if response.is_error:
                        response.read()
                    self._check(response)
                    if response.status_code != httpx.codes.ACCEPTED:
                        yield response.iter_bytes()
                        return
                if not is_awaited:
                    typer.echo("callboard: waiting for a worker to write it", err=True)
                is_awaited = True
                params = {name: value for name, value in params.items() if name != "again"}
                sleep(WAIT_INTERVAL_S)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from None

    def _check(self, response: httpx.Response) -> None:
        if response.is_success:
            return
        if response.status_code == httpx.codes.UNAUTHORIZED:
            raise fail(
                "CALLBOARD_TOKEN: unknown, revoked or expired; create one on the server's Settings page, or "
                "with `callboard token create`"
                if self._has_token
                else f"{self._client.base_url}: this server uses another database; set "
                "CALLBOARD_DATABASE_URL and CALLBOARD_HOME as they were when it was started"
            )
        try:
            problem = response.json()
            faults = [f"{fault['field']}: {fault['message']}" for fault in problem.get("errors", [])]
            message = "; ".join(faults) or problem["detail"]
        except (ValueError, KeyError, TypeError):
            message = f"{response.status_code} {response.reason_phrase}"
        raise fail(message, BAD_INPUT if response.is_client_error else 1)

    def _unreachable(self, error: httpx.HTTPError) -> Exception:
        return fail(f"{self._client.base_url}: {error or type(error).__name__}; is the server running?", 1)


def _url(settings: Settings) -> str:
    if settings.url is not None:
        return settings.url
    running = Installation(settings).running()
    if running is not None and running.url is not None:
        if settings.token is None:
            running.require_database(settings)
        return running.url
    return url_of(settings.host, settings.port)


def _running_url(settings: Settings) -> str | None:
    """The address that this machine's installation has published; None if it does not run."""
    running = Installation(settings).running()
    return None if running is None or running.url is None else running.url.rstrip("/")


def _auth(settings: Settings) -> httpx.Auth:
    if settings.token is not None:
        return BearerToken(settings.token)
    if settings.url is not None:
        raise fail("CALLBOARD_TOKEN: CALLBOARD_URL needs a token; create one on that server's Settings page")
    if settings.database_url is None and not settings.sqlite_file.exists():
        raise fail(f"no installation in {settings.home_dir}: start `callboard up`, or set CALLBOARD_URL", 1)
    return LocalToken(settings)
