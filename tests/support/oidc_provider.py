"""A real OpenID Connect provider, `oidc-provider-mock`, on a port of its own."""

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import flask
import httpx
import pytest
from werkzeug.serving import make_server

from backend.access.auth.oidc import provider as provider_module
from tests.support.service import RunningService
from tests.support.waiting import PATIENCE_S

with warnings.catch_warnings():
    import authlib.deprecate  # noqa: F401 - shows its warnings always, as a side effect

    # The mock uses an older interface of Authlib.
    warnings.simplefilter("ignore")
    import oidc_provider_mock


class OidcProvider:
    """A running provider.

    `overrides` replace fields of its discovery document, `userinfo` those of its user information, and
    `token_requests` are the requests that redeem codes.
    """

    def __init__(self, host: str) -> None:
        self.overrides: dict[str, Any] = {}
        self.userinfo: dict[str, Any] = {}
        self.token_requests: list[dict[str, str]] = []
        app = oidc_provider_mock.app()
        app.before_request(self._record)
        app.after_request(self._override)
        self._server = make_server("127.0.0.1", 0, app, threaded=True)
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.issuer = f"http://{host}:{self._server.server_port}"

    def start(self) -> None:
        """Serve in a thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def set_user(self, subject: str, **claims: Any) -> None:
        """Set the claims of a user."""
        httpx.put(f"{self.issuer}/users/{quote(subject)}", json=claims, timeout=PATIENCE_S).raise_for_status()

    def authorize(self, url: str, subject: str | None) -> str:
        """Sign in at the provider, or refuse to (None). Returns where it sends the browser."""
        form = {"action": "deny"} if subject is None else {"sub": subject}
        location = httpx.post(url, data=form, timeout=PATIENCE_S).headers["location"]
        if subject is not None:
            return location
        # The mock leaves the state out of a refusal, against RFC 6749, section 4.1.2.1.
        return f"{location}&state={dict(parse_qsl(urlsplit(url).query))['state']}"

    def _record(self) -> None:
        if flask.request.path == "/oauth2/token":
            headers = {"Authorization": flask.request.headers.get("Authorization", "")}
            self.token_requests.append(headers | flask.request.form.to_dict())

    def _override(self, response: flask.Response) -> flask.Response:
        replaced = {"/.well-known/openid-configuration": self.overrides, "/userinfo": self.userinfo}
        if changes := replaced.get(flask.request.path):
            response.set_data(json.dumps(json.loads(response.get_data()) | changes))
        return response


def wait_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let services wait longer for a provider: beside other tests it may take seconds to answer."""
    for name in ("REQUEST_TIMEOUT_S", "DISCOVERY_TIMEOUT_S", "TIMEOUT_S"):
        monkeypatch.setattr(provider_module, name, PATIENCE_S)


@contextmanager
def running_provider(host: str = "127.0.0.1") -> Iterator[OidcProvider]:
    """Run a provider on this machine, called `host`."""
    provider = OidcProvider(host)
    provider.start()
    try:
        yield provider
    finally:
        provider.stop()


class OidcBrowser:
    """A browser that signs in to a service by a provider."""

    def __init__(self, service: RunningService, provider: OidcProvider) -> None:
        self.client = service.new_client()
        self._provider = provider

    def start(self, page: str | None = None, **headers: str) -> str:
        """Begin. Returns where the service sends the browser."""
        answer = self.client.get(
            "/login/oidc", params={} if page is None else {"from": page}, headers=headers
        )
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    def sign_in(self, subject: str | None, page: str | None = None) -> str:
        """Sign in. Returns where the service sends the browser in the end."""
        return self.finish(self._provider.authorize(self.start(page), subject))

    def finish(self, callback: str) -> str:
        """Return from the provider. Returns where the service sends the browser."""
        answer = self.client.get(callback)
        assert answer.status_code == 303, answer.text
        return answer.headers["location"].partition("#page_secret=")[0]

    @property
    def me(self) -> dict[str, Any] | None:
        """Who is signed in; None: nobody."""
        answer = self.client.get("/api/v1/auth/me")
        return answer.json() if answer.status_code == 200 else None
