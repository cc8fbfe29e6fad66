"""Users and their roles."""

from typing import Annotated

from fastapi import Path

from backend.access.auth import repository
from backend.access.users import service
from backend.access.users.schemas import UserChanges, UserOut, UserPage, UserRequest
from backend.http.access import Admin
from backend.http.dependencies import AppStateDep, ReadSession, WriteSession
from backend.http.pages import Cursor, Limit
from backend.http.routing import ResourceRouter, WritingRoute
from backend.specs.fields import ULID

# Without `Idempotency-Key`, whose fingerprint would be a fast hash of a password: names are unique.
router = ResourceRouter(prefix="/users", tags=["users"], route_class=WritingRoute)

UserId = Annotated[str, Path(pattern=ULID, description="Id of the user.")]


@router.get("")
def list_users(principal: Admin, session: ReadSession, limit: Limit = 100, cursor: Cursor = None) -> UserPage:
    """All users."""
    rows, next_cursor = repository.users_page(session, limit=limit, cursor=cursor)
    return UserPage(items=[UserOut.model_validate(row) for row in rows], next_cursor=next_cursor)


@router.post("", status_code=201)
def create_user(body: UserRequest, principal: Admin, session: WriteSession) -> UserOut:
    """Create a user with an initial password."""
    return UserOut.model_validate(service.create(session, body))


@router.patch("/{user_id}")
def change_user(
    user_id: UserId, body: UserChanges, principal: Admin, state: AppStateDep, session: WriteSession
) -> UserOut:
    """Change a user's role, password, or linked identity of the OpenID Connect provider."""
    return UserOut.model_validate(service.change(session, user_id, body, state.settings.oidc_issuer))


@router.delete("/{user_id}", status_code=204)
def delete_user(user_id: UserId, principal: Admin, session: WriteSession) -> None:
    """Delete a user with their sessions and tokens. Their runs stay, and their views pass to an admin."""
    service.delete(session, user_id, principal.id)
