"""HTTP clients that log in as the pages do: by a cookie, and the secret that only the page knows."""

import ssl
from urllib.parse import urlsplit

import httpx

from backend.http.dependencies import COOKIE, PAGE_SECRET_HEADER
from tests.support.waiting import PATIENCE_S

TRUST = httpx.create_ssl_context()
"""Of all clients of services without TLS: each would read the authorities anew, which takes half as long as
to start a service."""

NONCE = "a-nonce"
"""Of every login's page."""

_LOGIN_PATHS = ("/api/v1/auth/login", "/api/v1/auth/password")


def page_client(url: str, *, verify: ssl.SSLContext = TRUST) -> httpx.Client:
    """A client that is not logged in, as a page of `url` is."""
    return as_page(httpx.Client(base_url=url, timeout=PATIENCE_S, verify=verify))


def as_page(client: httpx.Client) -> httpx.Client:
    """Have a client send an `Origin` header, as browsers do, begin logins with a nonce, and keep the page's
    secret of each login."""
    parts = urlsplit(str(client.base_url))
    client.headers["Origin"] = f"{parts.scheme}://{parts.netloc}"

    def begin(request: httpx.Request) -> None:
        if request.url.path.endswith(("/login", "/login/oidc")) and request.method == "GET":
            request.url = request.url.copy_merge_params({"nonce": NONCE})

    def keep(answer: httpx.Response) -> None:
        _, _, secret = answer.headers.get("location", "").partition("#page_secret=")
        secret = secret.partition("&nonce=")[0]
        if answer.is_success and answer.request.url.path in _LOGIN_PATHS:
            answer.read()
            secret = answer.json()["page_secret"]
        if secret:
            client.headers[PAGE_SECRET_HEADER] = secret

    client.event_hooks = {"request": [begin], "response": [keep]}
    return client


def session_cookie(url: httpx.URL | str) -> str:
    """The name of the session's cookie at an address with a port."""
    return f"{COOKIE}_{httpx.URL(str(url)).port}"


def session_headers(client: httpx.Client) -> dict[str, str]:
    """The headers by which another client shares the session of this one."""
    cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    return {"Cookie": cookie, PAGE_SECRET_HEADER: client.headers[PAGE_SECRET_HEADER]}
