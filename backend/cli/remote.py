"""The REST API as commands use it: this machine's server, or any by `CALLBOARD_URL` and `CALLBOARD_TOKEN`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

import httpx
from ulid import ULID

from backend.cli.installation import Installation
from backend.cli.shown_key import GivenKey, LocalKey
from backend.cli.terminal import BAD_INPUT, fail
from backend.settings import Settings

TIMEOUT_S = 30.0
MAX_PAGE = 200


class Remote:
    """A server. To be used as a context."""

    def __init__(self, settings: Settings) -> None:
        self._client = httpx.Client(
            base_url=f"{_url(settings).rstrip('/')}/api/v1", auth=_key(settings), timeout=TIMEOUT_S
        )

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close its connections."""
        self._client.close()

    def ask(
        self, method: str, path: str, *, body: Any = None, params: Mapping[str, Any] | None = None
    ) -> Any:
        """The answer's JSON.

        Raises:
            typer.Exit: the server cannot be reached (1), fails (1), or refuses (2), told in one line.
        """
        headers = {"Idempotency-Key": str(ULID())} if method == "POST" else {}
        request = self._client.build_request(method, path, json=body, params=params, headers=headers)
        try:
            try:
                answer = self._client.send(request)
            except (httpx.ReadError, httpx.RemoteProtocolError):
                if method != "POST":
                    raise
                # The connection broke, and perhaps the answer with it: with the same key it is done once.
                answer = self._client.send(request)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from None
        _check(answer)
        return answer.json() if answer.content else None

    def items(self, path: str, params: Mapping[str, Any], limit: int) -> Iterator[Any]:
        """The items of a list, over as many pages as it takes, `limit` at most."""
        asked = {name: value for name, value in params.items() if value is not None}
        while limit > 0:
            page = self.ask("GET", path, params=asked | {"limit": min(limit, MAX_PAGE)})
            yield from page["items"]
            limit -= len(page["items"])
            if page["next_cursor"] is None:
                return
            asked["cursor"] = page["next_cursor"]

    @contextmanager
    def download(self, path: str, params: Mapping[str, Any]) -> Iterator[Iterator[bytes]]:
        """The bytes of a file, as they come.

        Raises:
            typer.Exit: as `ask` does.
        """
        try:
            with self._client.stream("GET", path, params=params) as answer:
                if answer.is_error:
                    answer.read()
                _check(answer)
                yield answer.iter_bytes()
        except httpx.HTTPError as error:
            raise self._unreachable(error) from None

    def _unreachable(self, error: httpx.HTTPError) -> Exception:
        return fail(f"{self._client.base_url}: {error or type(error).__name__}; is it running?", 1)


def _check(answer: httpx.Response) -> None:
    if answer.is_success:
        return
    try:
        problem = answer.json()
        faults = [f"{fault['field']}: {fault['message']}" for fault in problem.get("errors", [])]
        told = "; ".join(faults) or problem["detail"]
    except (ValueError, KeyError, TypeError):
        told = f"{answer.status_code} {answer.reason_phrase}"
    raise fail(told, BAD_INPUT if answer.is_client_error else 1)


def _url(settings: Settings) -> str:
    if settings.url is not None:
        return settings.url
    running = Installation(settings.home_dir).running()
    if running is not None and running.url is not None:
        return running.url
    return f"http://{settings.host}:{settings.port}"


def _key(settings: Settings) -> httpx.Auth:
    if settings.token is not None:
        return GivenKey(settings.token)
    if settings.url is not None:
        raise fail("CALLBOARD_TOKEN: another machine's server wants a token; its page makes one")
    if settings.database_url is None and not (settings.home_dir / "callboard.sqlite3").exists():
        raise fail(f"nothing is in {settings.home_dir}: start `callboard up`, or set CALLBOARD_URL", 1)
    return LocalKey(settings)
