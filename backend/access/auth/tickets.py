"""Tickets of sessions, for addresses to which a browser sends no header: streams, media and downloads.

A ticket is `session.expiry.signature`. The signature's key is the hash of the session's secrets, so that
nothing is stored and a ticket ends with its session. The cookie is required beside it: an address that is
copied, or kept in a log, gives access to nobody else.
"""

import hmac
import re
from datetime import timedelta
from time import time

from sqlalchemy.orm import Session

from backend.access.auth import repository, service
from backend.access.auth.secrets import SessionSecrets, has_cookie
from backend.platform.principals import Principal

LIFETIME_S = 3600

_TICKET = re.compile(r"([0-9A-HJKMNP-TV-Z]{26})\.([0-9]{1,12})\.[0-9a-f]{64}", re.ASCII)


def create(session_id: str, secrets: SessionSecrets) -> str:
    """A ticket of a session."""
    expires_at = int(time()) + LIFETIME_S
    return sign(session_id, expires_at, secrets.hash)


def sign(session_id: str, expires_at: int, key: str) -> str:
    """The ticket of a session, until a time in seconds since 1970, whose key is the session's stored hash."""
    signature = hmac.digest(key.encode(), f"{session_id}.{expires_at}".encode(), "sha256").hex()
    return f"{session_id}.{expires_at}.{signature}"


def find_principal(session: Session, cookie: str, ticket: str, idle: timedelta) -> Principal | None:
    """The user of a ticket; None if it has expired, its session has ended, or the cookie is that of another
    session."""
    parts = _TICKET.fullmatch(ticket)
    if parts is None or int(parts[2]) <= time():
        return None
    row = repository.session_user_by_id(session, parts[1], idle)
    if row is None or not has_cookie(row.token_hash, cookie):
        return None
    expected = sign(parts[1], int(parts[2]), row.token_hash)
    return service.principal_of(row) if hmac.compare_digest(expected, ticket) else None
