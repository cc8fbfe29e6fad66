"""Routes of `/users`."""

from fastapi import APIRouter

from backend.auth.access import Admin
from backend.dependencies import ReadSession, WriteSession
from backend.idempotency.route import IdempotentRoute
from backend.ids import Ulid
from backend.pagination import Cursor, Limit
from backend.users import repository, service
from backend.users.schemas import UserChanges, UserOut, UserPage, UserRequest

router = APIRouter(prefix="/users", tags=["users"], route_class=IdempotentRoute)


@router.get("")
def list_users(actor: Admin, session: ReadSession, limit: Limit = 100, cursor: Cursor = None) -> UserPage:
    """Everyone who may log in."""
    rows, next_cursor = repository.page(session, limit=limit, cursor=cursor)
    return UserPage(items=[UserOut.model_validate(row) for row in rows], next_cursor=next_cursor)


@router.post("", status_code=201)
def create_user(body: UserRequest, actor: Admin, session: WriteSession) -> UserOut:
    """A new user with a first password."""
    return UserOut.model_validate(service.create(session, body))


@router.patch("/{user_id}")
def change_user(user_id: Ulid, body: UserChanges, actor: Admin, session: WriteSession) -> UserOut:
    """Change a user's role or password."""
    return UserOut.model_validate(service.change(session, user_id, body))


@router.delete("/{user_id}", status_code=204)
def delete_user(user_id: Ulid, actor: Admin, session: WriteSession) -> None:
    """Delete a user; their sessions and tokens end, their runs stay."""
    service.delete(session, user_id)
