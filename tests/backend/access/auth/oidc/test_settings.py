from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from backend.platform.settings import Settings

COMPLETE: dict[str, Any] = {
    "oidc_issuer": "https://id.example/realms/lab/",
    "oidc_client_id": "callboard",
    "oidc_default_role": "viewer",
}


def _settings(**changes: Any) -> Settings:
    return Settings(home=Path("unused"), **COMPLETE | changes)


def test_final_slash_of_an_issuer_is_removed() -> None:
    assert _settings().oidc_issuer == "https://id.example/realms/lab"


def test_issuer_on_this_machine_may_use_http() -> None:
    for issuer in ("http://localhost:9400", "http://127.0.0.1:9400", "http://[::1]:9400"):
        assert _settings(oidc_issuer=issuer).oidc_issuer == issuer


def test_secret_is_not_printed() -> None:
    assert "hidden" not in repr(_settings(oidc_client_secret="hidden"))


@pytest.mark.parametrize(
    ("changes", "field", "reason"),
    [
        ({"oidc_issuer": "http://id.example"}, "oidc_issuer", "https"),
        ({"oidc_issuer": "id.example"}, "oidc_issuer", "must be a URL"),
        ({"oidc_issuer": "https://["}, "oidc_issuer", "must be a URL"),
        ({"oidc_issuer": "https://id.example?a=b"}, "oidc_issuer", "must be a URL"),
        ({"public_url": "ftp://callboard.example"}, "public_url", "must be a URL"),
        ({"public_url": "https://example/callboard"}, "public_url", "no path"),
        ({"oidc_client_id": None}, "oidc_client_id", "is needed"),
        ({"oidc_client_secret": "a", "oidc_client_secret_file": "b"}, "oidc_client_secret_file", "unset one"),
        ({"oidc_scopes": ["profile"]}, "oidc_scopes", "openid"),
        ({"oidc_default_role": None}, "oidc_create_users", "would have no role"),
        ({"oidc_default_role": "owner"}, "oidc_default_role", "'viewer', 'operator' or 'admin'"),
        ({"oidc_roles": {"lab": "owner"}}, "oidc_roles", "'viewer', 'operator' or 'admin'"),
    ],
)
def test_invalid_setting_is_named_with_the_reason(changes: dict[str, Any], field: str, reason: str) -> None:
    with pytest.raises(ValidationError) as raised:
        _settings(**changes)
    [fault] = raised.value.errors()
    assert fault["loc"][0] == field
    assert reason in fault["msg"]


def test_no_role_is_needed_where_admins_create_the_users() -> None:
    assert _settings(oidc_default_role=None, oidc_create_users=False).oidc_default_role is None
