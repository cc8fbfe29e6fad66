"""Managing users."""

from sqlalchemy.orm import Session

from backend.auth import repository as auth_rows
from backend.auth import service as auth
from backend.auth.passwords import hash_password
from backend.db import User
from backend.errors import Conflict, NotFound
from backend.specs.run import FieldProblem
from backend.users import repository
from backend.users.schemas import UserChanges, UserRequest


def create(session: Session, asked: UserRequest) -> User:
    """A new user.

    Raises:
        Conflict: the name is taken.
    """
    password_hash = hash_password(asked.password)
    if auth_rows.user_by_name(session, asked.name) is not None:
        raise Conflict(
            f"there is a user {asked.name!r:.120} already", [FieldProblem(field="name", message="taken")]
        )
    return auth_rows.add_user(session, asked.name, asked.role, password_hash)


def change(session: Session, user_id: str, changes: UserChanges) -> User:
    """Change role or password; a new password logs the user out everywhere.

    Raises:
        NotFound: there is no such user.
        Conflict: the last admin would be none.
    """
    admins = repository.lock_admins(session)
    user = _get(session, user_id)
    if changes.role is not None and changes.role != user.role:
        _keep_an_admin(user, admins)
        user.role = changes.role
    if changes.password is not None:
        auth.set_password(session, user, changes.password)
    return user


def delete(session: Session, user_id: str) -> None:
    """Delete a user; their sessions and tokens end.

    Raises:
        NotFound: there is no such user.
        Conflict: they are the last admin.
    """
    admins = repository.lock_admins(session)
    user = _get(session, user_id)
    _keep_an_admin(user, admins)
    repository.delete(session, user)


def _get(session: Session, user_id: str) -> User:
    user = auth_rows.user_by_id(session, user_id, for_update=True)
    if user is None:
        raise NotFound(f"there is no user {user_id}")
    return user


def _keep_an_admin(user: User, admins: list[User]) -> None:
    if admins == [user]:
        raise Conflict(f"{user.name} is the last admin: make another one first")
