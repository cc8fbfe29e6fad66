"""Password hashing with Argon2, and a check of new passwords against common ones."""

from functools import cache
from threading import BoundedSemaphore, Lock

from pwdlib import PasswordHash

from backend.platform.errors import Invalid

MIN_CHARACTERS = 10
MAX_CHARACTERS = 200
"""Maximum length of a password; longer ones would only take time to hash."""

MAX_HASHES = 1
"""Hashes that are computed at the same time; each takes 64 MiB, and four threads."""

CHECKED_CHARACTERS = 40
"""How many characters of a new password, from its start, are checked: to check more takes seconds."""
MIN_SCORE = 3
"""zxcvbn's estimate of how hard a password is to guess, from 0 to 4: from 3 on, more than 10^8 guesses."""

_hashing = BoundedSemaphore(MAX_HASHES)
_estimating = Lock()

_HASHER = PasswordHash.recommended()


def hash_password(password: str) -> str:
    """The hash to store."""
    with _hashing:
        return _HASHER.hash(password)


def verify_password(password: str, password_hash: str | None) -> bool:
    """Whether the password matches. Takes as long for a user without a password, so that names cannot be
    probed."""
    dummy = _dummy_hash()  # always: otherwise the first unknown name would take longer
    with _hashing:
        right = _HASHER.verify(password, password_hash or dummy)
    return right and password_hash is not None


def require_uncommon(field: str, password: str, *names: str) -> None:
    """Check that a new password is neither one of the common ones nor easily derived from them or from names.

    Args:
        field: the request's field, for the error.
        password: the new password.
        names: the names of the user.

    Raises:
        Invalid: it is easy to guess.
    """
    from zxcvbn import zxcvbn  # its lists of words are loaded when a password is set, which is rare

    with _estimating:  # zxcvbn keeps the names in a global variable
        estimate = zxcvbn(password[:CHECKED_CHARACTERS], ["callboard", *names])
    if estimate["score"] < MIN_SCORE:
        warning = (estimate["feedback"]["warning"] or "it is close to common words").rstrip(".")
        reason = warning[0].lower() + warning[1:]
        raise Invalid.field(field, f"is easy to guess: {reason}; use several unrelated words")


@cache
def _dummy_hash() -> str:
    return hash_password("a dummy password")
