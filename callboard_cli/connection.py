"""How commands reach the server. Apart from `remote`, which it imports late: httpx takes a fifth of the time
of `callboard --help`."""

from typing import TYPE_CHECKING

from backend.settings import Settings

if TYPE_CHECKING:
    from callboard_cli.remote import Remote


def connect() -> "Remote":
    """The server on this machine, or that of CALLBOARD_URL, over REST."""
    from callboard_cli.remote import Remote

    return Remote(Settings())
