"""Where the web process may be bound."""

from ipaddress import ip_address

from backend.auth import repository as auth
from backend.cli.terminal import fail
from backend.db.engine import make_engine, reading
from backend.settings import Settings


def refuse_open_door(settings: Settings) -> None:
    """Refuse a bind that other machines reach, while no admin has a password.

    Raises:
        typer.Exit: refused, with one line that says what to do.
    """
    if _is_loopback(settings.host):
        return
    engine = make_engine(settings.database)
    with reading(engine) as session:
        closed = auth.has_admin_with_password(session)
    engine.dispose()
    if not closed:
        raise fail(
            f"CALLBOARD_HOST={settings.host} would let other machines in: "
            "set a password first, with `callboard password`"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
