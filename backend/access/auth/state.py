"""What logins and sessions share within one web process, and how it finds who sends a request."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request
from sqlalchemy import Engine
from starlette.requests import HTTPConnection

from backend.access.auth import service, tickets
from backend.access.auth.last_use import OpenStreams, Uses, end_streams, store_uses
from backend.access.auth.login_limits import LoginPool
from backend.access.auth.secrets import SessionSecrets
from backend.db.engine import reading
from backend.http.dependencies import SentSecrets
from backend.platform.principals import Principal

if TYPE_CHECKING:
    from backend.access.auth.oidc.provider import (
        Provider,  # Authlib is loaded only where a provider is configured
    )


@dataclass(frozen=True)
class AuthState:
    """What logins and sessions share within one web process."""

    db_engine: Engine
    session_idle: timedelta
    """A session ends when it was not used for this long."""
    oidc: "Provider | None" = None
    """None without an OpenID Connect provider."""
    logins: LoginPool = field(default_factory=LoginPool)
    uses: Uses = field(default_factory=Uses)
    streams: OpenStreams = field(default_factory=OpenStreams)

    def authenticate(self, sent: SentSecrets, address: str) -> Principal | None:
        """The user of a token, else of a session; None if it is unknown, revoked or expired. Its use from
        this address is recorded."""
        principal = None
        with reading(self.db_engine) as session:
            if sent.token is not None:
                principal = service.find_token_principal(session, sent.token)
            elif sent.cookie and sent.page:
                secrets = SessionSecrets(sent.cookie, sent.page)
                principal = service.find_principal(session, secrets, self.session_idle)
            elif sent.cookie and sent.ticket:
                principal = tickets.find_principal(session, sent.cookie, sent.ticket, self.session_idle)
        if principal is not None:
            self.uses.record(principal.credential, address)
        return principal

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Store uses, and end streams whose session or token has ended; close everything in the end."""
        tasks = [
            asyncio.create_task(end_streams(self.db_engine, self.streams, self.session_idle)),
            asyncio.create_task(store_uses(self.db_engine, self.uses)),
        ]
        yield
        for task in tasks:
            task.cancel()
        if self.oidc is not None:
            await self.oidc.close()
        self.logins.close()


def get_auth_state(connection: HTTPConnection) -> AuthState:
    """The state that `backend.app.create_app` created."""
    state: AuthState = connection.app.state.auth_state
    return state


async def _state(request: Request) -> AuthState:
    return get_auth_state(request)


AuthStateDep = Annotated[AuthState, Depends(_state)]
