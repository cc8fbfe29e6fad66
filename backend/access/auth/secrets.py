"""The secrets of logins and their hashes. Standard library only."""

import hashlib
import secrets
from dataclasses import dataclass
from typing import Self

_HALF = 32
"""Characters of a session's hash that belong to each secret: 128 bits."""


def hash_secret(secret: str) -> str:
    """The stored hash of a secret. Secrets are long and random, so a fast hash is sufficient."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


@dataclass(frozen=True)
class SessionSecrets:
    """The two secrets of a browser's session.

    A browser sends a cookie to every port of its host, and other users of the machine may listen there. The
    page's secret is in the local storage of one origin, which includes the port.
    """

    cookie: str
    page: str

    @classmethod
    def create(cls) -> Self:
        """The secrets of a new session."""
        return cls(secrets.token_urlsafe(32), secrets.token_urlsafe(32))

    @property
    def hash(self) -> str:
        """What is stored: half of each secret's hash, so that the cookie can be checked by itself."""
        return hash_secret(self.cookie)[:_HALF] + hash_secret(self.page)[:_HALF]


def has_cookie(session_hash: str, cookie: str) -> bool:
    """Whether a session with this hash has this cookie."""
    return secrets.compare_digest(session_hash[:_HALF], hash_secret(cookie)[:_HALF])
