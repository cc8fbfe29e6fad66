"""Browsers that have logged in as a user before: guesses of others never make them wait.

A browser keeps a cookie `random.signature`. The signature's key is the hash of the user's password, so that
nothing is stored, and a new password forgets all browsers.
"""

import hmac
import re
import secrets

from backend.db import User

COOKIE = "callboard_browser"
"""Beginning of the cookie's name; see `cookie_name`."""
LIFETIME_S = 365 * 24 * 3600

_COOKIE = re.compile(r"([A-Za-z0-9_-]{22})\.[0-9a-f]{64}", re.ASCII)


def cookie_of(user: User) -> str:
    """A new cookie for a browser in which a user has logged in with their password."""
    return _sign(secrets.token_urlsafe(16), user)


def is_known(cookie: str | None, user: User | None) -> bool:
    """Whether the browser with this cookie has logged in as the user before."""
    parts = _COOKIE.fullmatch(cookie or "")
    if parts is None or user is None or user.password_hash is None:
        return False
    return hmac.compare_digest(_sign(parts[1], user), parts[0])


def _sign(random: str, user: User) -> str:
    signature = hmac.digest((user.password_hash or "").encode(), f"{random}.{user.id}".encode(), "sha256")
    return f"{random}.{signature.hex()}"
