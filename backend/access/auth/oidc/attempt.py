"""One attempt to sign in by OpenID Connect: from the login page to the provider and back."""

import hmac
import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from functools import cached_property
from time import time

LIFETIME_S = 600
MAX_PATH_CHARACTERS = 1000

_OWN_PATH = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f]*")
_COOKIE = re.compile(r"[A-Za-z0-9_-]{43}\.([0-9]{1,12})\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{0,64}")


def own_path(path: str | None) -> str:
    """The path, if it is one of this server; else the first page. Browsers read `//host` and `/\\host` as
    other servers, and drop tabs and line breaks."""
    if path is None or len(path) > MAX_PATH_CHARACTERS or not _OWN_PATH.fullmatch(path):
        return "/"
    return path


@dataclass(frozen=True)
class SignInAttempt:
    """An attempt. Its cookie binds it to the browser, and is the key from which its state, its nonce and its
    PKCE verifier are derived: nothing is stored on the server, and addresses reveal neither key nor verifier.
    """

    cookie: str
    """A random secret, the end of its lifetime, the page to return to, and the nonce of the page that begins
    it."""

    @classmethod
    def start(cls, path: str, page_nonce: str = "") -> "SignInAttempt":
        """A new attempt that returns to `path`."""
        page = _unpadded(path.encode())
        return cls(f"{secrets.token_urlsafe(32)}.{int(time()) + LIFETIME_S}.{page}.{page_nonce}")

    @classmethod
    def resume(cls, cookie: str | None, state: str) -> "SignInAttempt | None":
        """The attempt of a browser that the provider has sent back with `state`; None if it has expired, or
        `state` belongs to another attempt."""
        if cookie is None or not (parts := _COOKIE.fullmatch(cookie)):
            return None
        attempt = cls(cookie)
        if not hmac.compare_digest(attempt.state.encode(), state.encode(errors="surrogatepass")):
            return None
        return attempt if time() < int(parts[1]) else None

    @cached_property
    def path(self) -> str:
        """The page to return to."""
        # A client that holds the cookie can change the page, and the state with it.
        try:
            return own_path(urlsafe_b64decode(self.cookie.split(".")[2] + "==").decode())
        except ValueError:
            return "/"

    @property
    def page_nonce(self) -> str:
        """The nonce of the page that has begun it."""
        return self.cookie.split(".")[3]

    @cached_property
    def state(self) -> str:
        """Proves that a response of the provider belongs to this browser."""
        return self._derived("state")

    @cached_property
    def nonce(self) -> str:
        """Proves that an ID token belongs to this attempt."""
        return self._derived("nonce")

    @cached_property
    def code_verifier(self) -> str:
        """Proves to the provider that the client that redeems a code requested it (PKCE, RFC 7636)."""
        return self._derived("code verifier")

    def _derived(self, purpose: str) -> str:
        return _unpadded(hmac.digest(self.cookie.encode(), purpose.encode(), "sha256"))


def _unpadded(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()
