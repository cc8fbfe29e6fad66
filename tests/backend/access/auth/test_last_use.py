import asyncio
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from backend.access.auth import repository, service
from backend.access.auth.last_use import CHECK_INTERVAL_S, OpenStreams, Uses, find_ended
from backend.access.auth.service import Browser
from backend.db import Token, User
from backend.db.engine import make_engine, reading, writing
from backend.platform.principals import Credential, Principal, Role
from backend.replays.live.endpoints import WAIT_S
from tests.support import asynchronous

IDLE = timedelta(days=7)


def _make_token(engine: Engine) -> Token:
    with writing(engine) as session:
        user = repository.add_user(session, "Anna", Role.VIEWER)
        return service.create_token(session, user, "script", Role.VIEWER, None)[0]


def _last_use(engine: Engine, token: Token) -> tuple[datetime | None, str | None]:
    with reading(engine) as session:
        stored = session.get_one(Token, token.id)
        return stored.last_used_at, stored.last_used_address


def test_use_of_a_token_is_stored_with_its_address_once_a_minute(engine: Engine) -> None:
    token, uses = _make_token(engine), Uses()
    credential = Credential("token", token.id)
    uses.store(engine)
    assert _last_use(engine, token) == (None, None)
    uses.record(credential, "192.0.2.1")
    uses.store(engine)
    first_at, address = _last_use(engine, token)
    assert (first_at is not None, address) == (True, "192.0.2.1")
    uses.record(credential, "192.0.2.1")
    uses.store(engine)
    assert _last_use(engine, token) == (first_at, address)
    uses.record(credential, "192.0.2.2")
    uses.store(engine)
    assert _last_use(engine, token)[1] == "192.0.2.2"


def test_uses_are_kept_while_the_database_is_unavailable(engine: Engine, tmp_path: Path) -> None:
    token, uses = _make_token(engine), Uses()
    uses.record(Credential("token", token.id), "192.0.2.1")
    empty = make_engine(f"sqlite:///{tmp_path / 'empty.sqlite3'}")
    with pytest.raises(OperationalError):
        uses.store(empty)
    empty.dispose()
    uses.store(engine)
    assert _last_use(engine, token)[1] == "192.0.2.1"


def test_ended_sessions_and_tokens_are_found(engine: Engine) -> None:
    with writing(engine) as session:
        user = repository.add_user(session, "Anna", Role.VIEWER)
        opened = [service.open_session(session, user, "link", Browser("", ""))[0] for _ in range(2)]
        tokens = [service.create_token(session, user, "x", Role.VIEWER, None)[0] for _ in range(2)]
        credentials = [login.credential for login in opened]
        credentials += [Credential("token", token.id) for token in tokens]
        principals = [Principal(user.id, user.name, Role.VIEWER, credential) for credential in credentials]
        gone, kept = principals[::2], principals[1::2]
        repository.delete_session(session, opened[0].credential.id, user.id)
        repository.delete_token(session, tokens[0])
    assert find_ended(engine, [*kept, *gone], IDLE) == gone
    assert find_ended(engine, kept, timedelta(0)) == kept[:1]
    with writing(engine) as session:
        repository.delete_user(session, session.get_one(User, user.id))
    assert find_ended(engine, kept, IDLE) == kept


@pytest.mark.parametrize(
    ("role", "ended"), [(Role.VIEWER, True), (Role.OPERATOR, False), (Role.ADMIN, False)]
)
def test_streams_of_a_lowered_role_end(engine: Engine, role: Role, ended: bool) -> None:
    with writing(engine) as session:
        user = repository.add_user(session, "Anna", Role.OPERATOR)
        login = service.open_session(session, user, "link", Browser("", ""))[0]
        token = service.create_token(session, user, "x", Role.OPERATOR, None)[0]
        credentials = [login.credential, Credential("token", token.id)]
        opened = [Principal(user.id, user.name, Role.OPERATOR, credential) for credential in credentials]
        service.set_role(session, user, role)
    assert find_ended(engine, opened, IDLE) == (opened if ended else [])
    with writing(engine) as session:
        session.get_one(User, user.id).role = "another"  # of a later version
    assert opened[0] in find_ended(engine, opened, IDLE)


def test_streams_of_one_credential_end_together_and_are_forgotten() -> None:
    async def check() -> None:
        streams = OpenStreams()
        session, other = (
            Principal("1", "Anna", Role.VIEWER, Credential("session", number)) for number in ("1", "2")
        )
        with streams.opened(session) as first, streams.opened(other) as third:
            with streams.opened(session) as second:
                assert streams.principals() == [session, other]
            assert streams.principals() == [session, other]
            streams.end([session])
            assert (first.is_set(), second.is_set(), third.is_set()) == (True, True, False)
            await asyncio.wait_for(first.wait(), 1)
        assert streams.principals() == []

    asynchronous.run(check())


def test_ended_streams_close_within_five_seconds() -> None:
    assert CHECK_INTERVAL_S + WAIT_S <= 3
