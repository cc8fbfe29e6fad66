"""User management."""

from sqlalchemy.orm import Session

from backend.access.auth import repository
from backend.access.auth import service as auth
from backend.access.auth.passwords import hash_password, require_uncommon
from backend.access.users.schemas import UserChanges, UserRequest
from backend.db import User
from backend.db.changes import record_change
from backend.platform.errors import Conflict, Invalid, NotFound
from backend.specs.problems import FieldProblem, quoted


def create(session: Session, request: UserRequest) -> User:
    """Create a user.

    Raises:
        Conflict: the name is taken.
        Invalid: the password is a common one.
    """
    require_uncommon("password", request.password, request.name)
    password_hash = hash_password(request.password)
    if repository.user_by_name(session, request.name) is not None:
        raise Conflict(
            f"a user {quoted(request.name)} exists already: use another name",
            [FieldProblem(field="name", message="is taken")],
        )
    return repository.add_user(session, request.name, request.role, password_hash)


def change(session: Session, user_id: str, changes: UserChanges, oidc_issuer: str | None = None) -> User:
    """Change role, password or identity. A new password ends the user's sessions, another identity those by
    OpenID Connect; a lower role lowers the roles of their tokens.

    Raises:
        NotFound: there is no such user.
        Conflict: it would leave no admin, or the identity is another user's.
        Invalid: the password is a common one.
    """
    password_hash = None
    if changes.password is not None:
        password_hash = hash_password(changes.password)  # slow: before anything is locked
    admins = repository.lock_admins(session)
    user = _get(session, user_id)
    if changes.password is not None:
        require_uncommon("password", changes.password, user.name)
    if changes.role is not None and changes.role != user.role:
        _keep_an_admin(user, admins)
        auth.set_role(session, user, changes.role)
    if password_hash is not None:
        auth.set_password(session, user, password_hash)
    if "oidc_subject" in changes.model_fields_set:
        _link(session, user, oidc_issuer, changes.oidc_subject)
    return user


def _link(session: Session, user: User, issuer: str | None, subject: str | None) -> None:
    if subject is None:
        repository.set_identity(session, user, None)
        repository.delete_sessions_of(session, user.id, method="oidc")
        return
    if issuer is None:
        raise Invalid.field(
            "oidc_subject", "no provider is configured: set CALLBOARD_OIDC_ISSUER on the server"
        )
    other = repository.user_by_identity(session, issuer, subject)
    if other not in (None, user):
        raise Conflict(
            "another user is linked to this subject: unlink that user first",
            [FieldProblem(field="oidc_subject", message="is taken")],
        )
    if user.oidc_subject is not None and (user.oidc_issuer, user.oidc_subject) != (issuer, subject):
        repository.delete_sessions_of(session, user.id, method="oidc")  # of whom it was linked to before
    repository.set_identity(session, user, (issuer, subject))


def delete(session: Session, user_id: str, by: str) -> None:
    """Delete a user with their sessions and tokens. Their views pass to the admin who does it, or to another.

    Args:
        session: a writing session.
        user_id: the user.
        by: id of the admin.

    Raises:
        NotFound: there is no such user.
        Conflict: they are the last admin.
    """
    admins = repository.lock_admins(session)
    user = _get(session, user_id)
    _keep_an_admin(user, admins)
    heirs = sorted((admin for admin in admins if admin is not user), key=lambda admin: admin.id != by)
    for view_id in repository.pass_views(session, user, heirs[0]):
        record_change(session, "view", view_id)
    repository.delete_user(session, user)


def _get(session: Session, user_id: str) -> User:
    user = repository.user_by_id(session, user_id, for_update=True)
    if user is None:
        raise NotFound(f"user {user_id} does not exist")
    return user


def _keep_an_admin(user: User, admins: list[User]) -> None:
    if admins == [user]:
        raise Conflict(f"{user.name} is the last admin: create another admin first")
