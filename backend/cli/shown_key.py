"""The key a command shows to a server."""

import os
from collections.abc import Generator
from datetime import timedelta

import httpx

from backend.auth.roles import Role
from backend.cli.keys import make_key
from backend.settings import Settings

LOCAL_LIFETIME = timedelta(days=30)


class GivenKey(httpx.Auth):
    """A key someone gave."""

    def __init__(self, key: str) -> None:
        self._key = key

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Show it."""
        request.headers["Authorization"] = f"Bearer {self._key}"
        yield request


class LocalKey(httpx.Auth):
    """The key to this machine's own server: kept under home, made when there is none that fits."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._path = settings.home_dir / "command-line-key"

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Show it, or a new one."""
        if self._path.exists():
            request.headers["Authorization"] = f"Bearer {self._path.read_text()}"
            if (yield request).status_code != httpx.codes.UNAUTHORIZED:
                return
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        key = make_key(self._settings, "owner", "command line", Role.OPERATOR, LOCAL_LIFETIME) or ""
        with os.fdopen(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(key)
        request.headers["Authorization"] = f"Bearer {key}"
        yield request
