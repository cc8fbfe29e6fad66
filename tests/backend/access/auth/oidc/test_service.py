from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from backend.access.auth import repository
from backend.access.auth.oidc.identity import Identity, Refused
from backend.access.auth.oidc.service import name_of, role_of, user_of
from backend.db.engine import writing
from backend.platform.principals import Role
from backend.platform.settings import Settings

ISSUER = "https://id.example"


def _settings(**changes: Any) -> Settings:
    given = {"oidc_roles": {"admins": "admin", "lab": "operator"}} | changes
    return Settings(home=Path("unused"), oidc_issuer=ISSUER, oidc_client_id="callboard", **given)


@pytest.mark.parametrize(
    ("claims", "role"),
    [
        ({"groups": ["lab"]}, Role.OPERATOR),
        ({"groups": ["other", "lab", "admins"]}, Role.ADMIN),
        ({"groups": "lab"}, Role.OPERATOR),
        ({"groups": ["Lab", "ADMINS"]}, None),
        ({"groups": {"lab": True}}, None),
        ({"groups": [{"lab": 1}, None, 3]}, None),
        ({}, None),
    ],
)
def test_highest_mapped_role_of_the_claim_applies(claims: dict[str, Any], role: Role | None) -> None:
    assert role_of(_settings(), claims) == role
    assert role_of(_settings(oidc_default_role="viewer"), claims) == (role or Role.VIEWER)


def test_role_claim_may_be_nested_or_have_dots_in_its_name() -> None:
    assert role_of(_settings(oidc_role_claim="a.b"), {"a": {"b": ["lab"]}}) == Role.OPERATOR
    assert role_of(_settings(oidc_role_claim="https://x.y/z"), {"https://x.y/z": "lab"}) == Role.OPERATOR
    assert role_of(_settings(oidc_role_claim="a.b"), {"a": "lab"}) is None


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({"preferred_username": "anna", "email": "a@b.example", "name": "Anna"}, "anna"),
        ({"preferred_username": " ", "email": "a@b.example"}, "a@b.example"),
        ({"preferred_username": 3, "name": "Anna"}, "Anna"),
        ({"preferred_username": "an\0na"}, "sub"),
        ({"name": "a" * 101}, "a" * 100),
    ],
)
def test_name_of_a_new_user_is_the_first_usable_claim(claims: dict[str, Any], name: str) -> None:
    assert name_of(Identity(ISSUER, "sub", claims)) == name


def test_same_subject_of_another_issuer_is_another_user(engine: Engine) -> None:
    claims = {"groups": "lab", "preferred_username": "anna"}
    with writing(engine) as session:
        user_of(session, _settings(), Identity(ISSUER, "1", claims))
        with pytest.raises(Refused) as refused:
            user_of(session, _settings(), Identity("https://other.example", "1", claims))
    assert refused.value.code == "name_taken"


def test_user_added_by_a_concurrent_sign_in_is_found_by_name(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = Identity(ISSUER, "1", {"groups": "lab", "preferred_username": "anna"})
    with writing(engine) as session:
        added = user_of(session, _settings(), identity)
    # Read before the other transaction was committed.
    monkeypatch.setattr(repository, "user_by_identity", lambda *_: None)
    with writing(engine) as session:
        assert user_of(session, _settings(), identity).id == added.id


def test_owner_is_a_reserved_name(engine: Engine) -> None:
    identity = Identity(ISSUER, "1", {"groups": "lab", "preferred_username": "owner"})
    with writing(engine) as session, pytest.raises(Refused) as refused:
        user_of(session, _settings(), identity)
    assert refused.value.code == "name_taken"


def test_last_admin_keeps_the_role(engine: Engine) -> None:
    def sign_in(group: str) -> str:
        with writing(engine) as session:
            claims = {"groups": group, "preferred_username": "anna"}
            return user_of(session, _settings(), Identity(ISSUER, "1", claims)).role

    assert sign_in("admins") == "admin"
    assert sign_in("lab") == "admin"
    with writing(engine) as session:
        repository.add_user(session, "Ben", Role.ADMIN)
    assert sign_in("lab") == "operator"


def test_roles_are_changed_in_callboard_only_if_none_are_mapped(engine: Engine) -> None:
    settings = _settings(oidc_roles={}, oidc_default_role="viewer")
    identity = Identity(ISSUER, "1", {"preferred_username": "anna"})
    with writing(engine) as session:
        user = user_of(session, settings, identity)
        assert user.role == "viewer"
        user.role = Role.OPERATOR
        assert user_of(session, settings, identity).role == "operator"
