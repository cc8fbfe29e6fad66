"""Users who sign in by OpenID Connect: who they are, and their roles."""

from collections.abc import Mapping
from typing import Any

import structlog
from sqlalchemy.orm import Session

from backend.access.auth import repository
from backend.access.auth.oidc.identity import Identity, Refused
from backend.access.auth.service import OWNER, set_role
from backend.db import User
from backend.platform.principals import Role
from backend.platform.settings import Settings
from backend.platform.text import is_storable

MAX_NAME_CHARACTERS = 100
NAME_CLAIMS = ("preferred_username", "email", "name")

log = structlog.get_logger(__name__)


def role_of(settings: Settings, claims: Mapping[str, Any]) -> Role | None:
    """The highest role that the role claim gives, else the default one; None: no role."""
    values = _claim(claims, settings.oidc_role_claim)
    mapped = [
        Role(settings.oidc_roles[value])
        for value in (values if isinstance(values, list) else [values])
        if isinstance(value, str) and value in settings.oidc_roles
    ]
    if mapped:
        return max(mapped, key=list(Role).index)
    return Role(settings.oidc_default_role) if settings.oidc_default_role else None


def name_of(identity: Identity) -> str:
    """The name of a new user."""
    names = [identity.claims.get(claim) for claim in NAME_CLAIMS]
    usable = [name.strip() for name in names if isinstance(name, str) and is_storable(name)]
    return next(filter(None, usable), identity.subject)[:MAX_NAME_CHARACTERS]


def user_of(session: Session, settings: Settings, identity: Identity) -> User:
    """The user with this identity, created at the first sign-in, with the role that the provider gives.

    Only issuer and subject decide who it is: a user of the same name is another one, until an admin links
    them.

    Raises:
        Refused: the user does not exist and is not created, or has no role.
    """
    role = role_of(settings, identity.claims)
    user = repository.user_by_identity(session, identity.issuer, identity.subject)
    if user is None:
        return _create(session, settings, identity, role)
    if settings.oidc_roles:
        if role is None:
            raise Refused("no_role", f"the claim {settings.oidc_role_claim} has no value with a role")
        _set_role(session, user, role)
    return user


def _create(session: Session, settings: Settings, identity: Identity, role: Role | None) -> User:
    if not settings.oidc_create_users:
        raise Refused("unknown", "no user is linked to this identity, and none are created at sign-in")
    if role is None:
        raise Refused("no_role", f"the claim {settings.oidc_role_claim} has no value with a role")
    name = name_of(identity)
    # The owner may not exist yet; their links and passwords are created on the command line.
    same_name = repository.user_by_name(session, name)
    if same_name is not None and _is_theirs(same_name, identity):
        return same_name  # a concurrent first sign-in has just added them
    if name == OWNER or same_name is not None:
        raise Refused("name_taken", f"the name {name!r} belongs to a user who is not linked to this identity")
    user = repository.add_user(session, name, role)
    repository.set_identity(session, user, (identity.issuer, identity.subject))
    return user


def _is_theirs(user: User, identity: Identity) -> bool:
    return (user.oidc_issuer, user.oidc_subject) == (identity.issuer, identity.subject)


def _set_role(session: Session, user: User, role: Role) -> None:
    if user.role == role:
        return
    admins = repository.lock_admins(session)
    if admins == [user]:
        log.warning("oidc.role_kept", user=user.name, given=role, reason="the last admin")
        return
    set_role(session, user, role)


def _claim(claims: Mapping[str, Any], path: str) -> Any:
    if path in claims:
        return claims[path]
    value: Any = claims
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
