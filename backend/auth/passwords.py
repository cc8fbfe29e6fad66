"""Passwords: Argon2, and a brake on guessing."""

from collections import OrderedDict
from functools import cache
from threading import Lock
from time import monotonic

from pwdlib import PasswordHash

MIN_CHARACTERS = 10
MAX_CHARACTERS = 200
"""Long enough for anyone; a longer one would only cost time to hash."""

FREE_FAILURES = 5
"""Wrong passwords before one has to wait."""
FIRST_WAIT_S = 5.0
"""Doubles with each further one."""
MAX_WAIT_S = 300.0
MAX_REMEMBERED = 10_000

_HASHER = PasswordHash.recommended()


def hash_password(password: str) -> str:
    """What is stored of a password."""
    return _HASHER.hash(password)


def verify_password(password: str, password_hash: str | None) -> bool:
    """Whether it is this one. Takes as long for a user who has none, so that names cannot be probed."""
    nobodys = _nobodys_hash()  # whoever it is: else the first unknown name would take longer
    right = _HASHER.verify(password, password_hash or nobodys)
    return right and password_hash is not None


@cache
def _nobodys_hash() -> str:
    return _HASHER.hash("the password of nobody")


class Throttle:
    """Makes who fails often wait longer and longer, per process."""

    def __init__(self) -> None:
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._lock = Lock()

    def wait_s(self, who: str) -> float:
        """How long `who` still has to wait; 0 when they may try."""
        with self._lock:
            count, last = self._failures.get(who, (0, 0.0))
        if count < FREE_FAILURES:
            return 0.0
        wait_s: float = min(MAX_WAIT_S, FIRST_WAIT_S * 2 ** (count - FREE_FAILURES))
        return max(0.0, last + wait_s - monotonic())

    def failed(self, who: str) -> None:
        """`who` was wrong."""
        with self._lock:
            count, last = self._failures.pop(who, (0, 0.0))
            if monotonic() - last > MAX_WAIT_S:
                count = 0
            self._failures[who] = (count + 1, monotonic())
            if len(self._failures) > MAX_REMEMBERED:
                self._failures.popitem(last=False)

    def succeeded(self, who: str) -> None:
        """`who` was right: forget what was wrong before."""
        with self._lock:
            self._failures.pop(who, None)
