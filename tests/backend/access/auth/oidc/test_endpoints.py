"""Signing in through a real provider, `oidc-provider-mock`."""

import hashlib
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import pytest
from sqlalchemy import select

from backend.access.auth import login_limits
from backend.access.auth.oidc import attempt
from backend.access.auth.oidc import provider as provider_module
from backend.access.auth.oidc.endpoints import COOKIE
from backend.access.auth.service import create_token
from backend.db import AuditEntry, LoginSession, User
from backend.db.engine import reading, writing
from backend.platform.principals import Role
from tests.support.oidc_provider import OidcBrowser, OidcProvider, running_provider, wait_longer
from tests.support.pages import NONCE
from tests.support.service import RunningService, running_service
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.service

FAILED = "log_in_with_oidc_failed"


@pytest.fixture(scope="module")
def shared_provider() -> Iterator[OidcProvider]:
    with running_provider() as running:
        yield running


@pytest.fixture
def provider(shared_provider: OidcProvider, monkeypatch: pytest.MonkeyPatch) -> OidcProvider:
    wait_longer(monkeypatch)
    shared_provider.overrides.clear()
    shared_provider.userinfo.clear()
    shared_provider.token_requests.clear()
    return shared_provider


@pytest.fixture(scope="module")
def other_provider() -> Iterator[OidcProvider]:
    with running_provider() as running:
        yield running


class Installation:
    """A service whose users sign in through a provider."""

    def __init__(self, service: RunningService, provider: OidcProvider) -> None:
        self.service = service
        self._provider = provider

    @contextmanager
    def browser(self) -> Iterator[OidcBrowser]:
        browser = OidcBrowser(self.service, self._provider)
        with browser.client:
            yield browser

    def sign_in(self, subject: str | None, page: str | None = None) -> str:
        """Sign in with a new browser. Returns where it arrives."""
        with self.browser() as browser:
            return browser.sign_in(subject, page)

    def audit(self, action: str) -> list[AuditEntry]:
        with reading(self.service.engine) as session:
            statement = select(AuditEntry).where(AuditEntry.action == action).order_by(AuditEntry.id)
            return list(session.scalars(statement))

    def reasons(self) -> list[str]:
        """Why sign-ins were refused, by the audit trail."""
        return [entry.body["reason"] for entry in self.audit(FAILED)]

    def users(self) -> dict[str, User]:
        with reading(self.service.engine) as session:
            return {user.name: user for user in session.scalars(select(User)) if user.name != "owner"}


@contextmanager
def _installed(
    database_url: str, redis_url: str, home: Path, provider: OidcProvider, **changes: Any
) -> Iterator[Installation]:
    settings = {
        "oidc_issuer": provider.issuer,
        "oidc_client_id": "callboard",
        "oidc_client_secret": "a secret",
        "oidc_name": "Example",
        "oidc_roles": {"admins": "admin", "lab": "operator", "guests": "viewer"},
    } | changes
    with running_service(database_url, redis_url, home, **settings) as service:
        yield Installation(service, provider)


@pytest.fixture
def installation(
    database_url: str, redis_url: str, tmp_path: Path, provider: OidcProvider
) -> Iterator[Installation]:
    """On each database."""
    with _installed(database_url, redis_url, tmp_path, provider) as installed:
        yield installed


@pytest.fixture
def on_sqlite(
    request: pytest.FixtureRequest,
    sqlite_template: Path,
    redis_url: str,
    tmp_path: Path,
    provider: OidcProvider,
) -> Iterator[Installation]:
    """With the settings of the test's parameter."""
    path = tmp_path / "oidc.sqlite3"  # not the file of `sqlite_service`
    path.write_bytes(sqlite_template.read_bytes())
    changes = getattr(request, "param", {})
    with _installed(f"sqlite:///{path}", redis_url, tmp_path, provider, **changes) as installed:
        yield installed


def _with_settings(**changes: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("on_sqlite", [changes], indirect=True, ids=["settings"])


def test_first_sign_in_creates_the_user_and_the_second_finds_them(
    installation: Installation, provider: OidcProvider
) -> None:
    provider.set_user("a-1", preferred_username="anna", groups=["all", "lab"])
    with installation.browser() as first, installation.browser() as second:
        assert first.sign_in("a-1", page="/hosts?x=1") == "/hosts?x=1"
        assert second.sign_in("a-1") == "/"
        assert first.me is not None
        assert second.me is not None
        assert first.me["id"] == second.me["id"]
        assert (first.me["name"], first.me["role"]) == ("anna", "operator")
        sessions = first.client.get("/api/v1/auth/sessions").json()["items"]
        assert [(session["method"], session["current"]) for session in sessions] == [
            ("oidc", False),
            ("oidc", True),
        ]
        refused = first.client.post("/api/v1/auth/password", json={"new": "five words are long enough"})
        assert (refused.status_code, "OpenID Connect" in refused.json()["detail"]) == (403, True)
        assert COOKIE not in first.client.cookies
    assert list(installation.users()) == ["anna"]
    anna = installation.users()["anna"]
    assert (anna.oidc_issuer, anna.oidc_subject, anna.password_hash) == (provider.issuer, "a-1", None)
    identity = {"issuer": provider.issuer, "subject": "a-1", "role": "operator"}
    for entry in installation.audit("log_in_with_oidc"):
        assert (entry.actor_id, entry.actor_name, entry.body) == (anna.id, "anna", identity)
        assert entry.address == "127.0.0.1"
    assert len(installation.audit("log_in_with_oidc")) == 2


def test_concurrent_first_sign_ins_create_one_user(
    installation: Installation, provider: OidcProvider
) -> None:
    provider.set_user("c-1", preferred_username="carla", groups="lab")
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(installation.sign_in, ["c-1"] * 4)) == ["/"] * 4
    assert list(installation.users()) == ["carla"]


def test_code_is_requested_with_pkce_and_redeemed_with_the_secret(
    on_sqlite: Installation, provider: OidcProvider
) -> None:
    provider.set_user("p-1", groups="lab")
    with on_sqlite.browser() as browser:
        url = browser.start()
        browser.finish(provider.authorize(url, "p-1"))
    asked = dict(parse_qsl(urlsplit(url).query))
    [redeemed] = provider.token_requests
    assert (asked["response_type"], asked["scope"]) == ("code", "openid profile")
    assert asked["code_challenge_method"] == "S256"
    digest = hashlib.sha256(redeemed["code_verifier"].encode()).digest()
    assert asked["code_challenge"] == urlsafe_b64encode(digest).rstrip(b"=").decode()
    assert (
        asked["redirect_uri"]
        == redeemed["redirect_uri"]
        == f"{on_sqlite.service.address}/login/oidc/callback"
    )
    assert redeemed["Authorization"] == "Basic " + b64encode(b"callboard:a secret").decode()


@_with_settings(oidc_client_secret=None)
def test_public_client_sends_its_id_without_a_secret(on_sqlite: Installation, provider: OidcProvider) -> None:
    # The mock admits no public clients.
    assert on_sqlite.sign_in("q-1") == "/login?error=failed"
    assert on_sqlite.reasons() == ["the provider did not accept the code: 'invalid_client'"]
    [redeemed] = provider.token_requests
    assert (redeemed["client_id"], redeemed["Authorization"]) == ("callboard", "")
    assert "client_secret" not in redeemed


def test_secret_is_read_from_its_file(
    sqlite_template: Path, redis_url: str, tmp_path: Path, provider: OidcProvider
) -> None:
    database, file = tmp_path / "callboard.sqlite3", tmp_path / "secret"
    database.write_bytes(sqlite_template.read_bytes())
    changes = {"oidc_client_secret": None, "oidc_client_secret_file": file}
    provider.set_user("f-1", groups="lab")
    with _installed(f"sqlite:///{database}", redis_url, tmp_path, provider, **changes) as installed:
        assert installed.sign_in("f-1") == "/login?error=unavailable"
        assert "No such file" in installed.reasons()[0]
        file.write_text("from a file\n")
        assert installed.sign_in("f-1") == "/"
    [redeemed] = provider.token_requests
    assert redeemed["Authorization"] == "Basic " + b64encode(b"callboard:from a file").decode()


def test_role_follows_the_provider_and_limits_tokens(on_sqlite: Installation, provider: OidcProvider) -> None:
    def sign_in(group: str) -> str:
        provider.set_user("r-1", preferred_username="rosa", groups=[group])
        on_sqlite.sign_in("r-1")
        return on_sqlite.users()["rosa"].role

    assert sign_in("admins") == "admin"
    with writing(on_sqlite.service.engine) as session:
        rosa = session.get_one(User, on_sqlite.users()["rosa"].id)
        token, _ = create_token(session, rosa, "nightly", Role.ADMIN, None)
    assert sign_in("guests") == "viewer"
    with reading(on_sqlite.service.engine) as session:
        assert session.get_one(type(token), token.id).role == "viewer"
    assert sign_in("lab") == "operator"
    assert sign_in("none") == "operator"
    assert on_sqlite.reasons() == ["the claim groups has no value with a role"]


def test_user_without_a_role_is_refused(on_sqlite: Installation, provider: OidcProvider) -> None:
    provider.set_user("n-1", preferred_username="nina", groups=["other"])
    with on_sqlite.browser() as browser:
        assert browser.sign_in("n-1", page="/hosts") == "/login?error=no_role&from=%2Fhosts"
        assert browser.me is None
    assert on_sqlite.users() == {}
    [entry] = on_sqlite.audit(FAILED)
    assert (entry.actor_id, entry.actor_name) == (None, "nina")
    assert (entry.body["subject"], entry.body["issuer"]) == ("n-1", provider.issuer)


@_with_settings(oidc_roles={}, oidc_default_role="viewer")
def test_default_role_admits_every_user_of_the_provider(
    on_sqlite: Installation, provider: OidcProvider
) -> None:
    provider.set_user("d-1", preferred_username="dora")
    assert on_sqlite.sign_in("d-1") == "/"
    assert on_sqlite.users()["dora"].role == "viewer"


def test_user_of_the_same_name_is_used_only_after_an_admin_links_it(
    on_sqlite: Installation, provider: OidcProvider
) -> None:
    admin = on_sqlite.service.client
    body = {"name": "erik", "role": "operator", "password": "five words are long enough"}
    erik = admin.post("/api/v1/users", json=body).json()
    provider.set_user("e-1", preferred_username="erik", email="erik@x.example", groups="guests")
    assert on_sqlite.sign_in("e-1") == "/login?error=name_taken"
    assert list(on_sqlite.users()) == ["erik"]
    linked = admin.patch(f"/api/v1/users/{erik['id']}", json={"oidc_subject": "e-1"}).json()
    assert (linked["oidc_issuer"], linked["oidc_subject"]) == (provider.issuer, "e-1")
    with on_sqlite.browser() as browser:
        assert browser.sign_in("e-1") == "/"
        me = browser.me
        assert me is not None
        assert (me["id"], me["name"], me["role"]) == (erik["id"], "erik", "viewer")
        owner = admin.get("/api/v1/auth/me").json()["id"]
        taken = admin.patch(f"/api/v1/users/{owner}", json={"oidc_subject": "e-1"})
        assert (taken.status_code, taken.json()["errors"][0]["field"]) == (409, "oidc_subject")
        admin.patch(f"/api/v1/users/{erik['id']}", json={"role": "viewer"})
        assert browser.me is not None
        admin.patch(f"/api/v1/users/{erik['id']}", json={"oidc_subject": None})
        assert browser.me is None
        assert browser.sign_in("e-1") == "/login?error=name_taken"


def test_linking_a_user_to_another_subject_ends_the_sessions_of_the_former_one(
    on_sqlite: Installation, provider: OidcProvider
) -> None:
    provider.set_user("k-1", preferred_username="klara", groups="lab")
    with on_sqlite.browser() as browser:
        assert browser.sign_in("k-1") == "/"
        url = f"/api/v1/users/{on_sqlite.users()['klara'].id}"
        on_sqlite.service.client.patch(url, json={"oidc_subject": "k-1"}).raise_for_status()
        assert browser.me is not None
        on_sqlite.service.client.patch(url, json={"oidc_subject": "k-2"}).raise_for_status()
        assert browser.me is None


@_with_settings(oidc_create_users=False)
def test_unknown_user_is_refused_where_none_are_created(
    on_sqlite: Installation, provider: OidcProvider
) -> None:
    provider.set_user("u-1", groups="lab")
    assert on_sqlite.sign_in("u-1") == "/login?error=unknown"
    assert on_sqlite.users() == {}


def test_response_is_accepted_once_and_only_in_the_browser_of_its_request(
    on_sqlite: Installation, provider: OidcProvider
) -> None:
    provider.set_user("s-1", groups="lab")
    with on_sqlite.browser() as browser, on_sqlite.browser() as other:
        callback = provider.authorize(browser.start(), "s-1")
        assert other.finish(callback) == "/login?error=expired"
        other.start()
        assert other.finish(callback) == "/login?error=expired"
        assert browser.finish(callback.replace("state=", "state=x")) == "/login?error=expired"
        assert provider.token_requests == []
        cookie = browser.client.cookies[COOKIE]
        assert browser.finish(callback) == "/"
        assert browser.finish(callback) == "/login?error=expired"
        assert len(provider.token_requests) == 1
        browser.client.cookies.set(COOKIE, cookie, path="/login/oidc")
        assert browser.finish(callback) == "/login?error=failed"
        assert other.me is None
    assert on_sqlite.reasons()[-1] == "the provider did not accept the code: 'invalid_grant'"
    with reading(on_sqlite.service.engine) as session:
        methods = list(session.scalars(select(LoginSession.method)))
    assert set(methods) == {"link", "oidc"}
    assert len(methods) == 2


def test_expired_attempt_is_refused(
    on_sqlite: Installation, provider: OidcProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.set_user("x-1", groups="lab")
    with on_sqlite.browser() as browser:
        monkeypatch.setattr(attempt, "LIFETIME_S", 0)
        callback = provider.authorize(browser.start(), "x-1")
        assert browser.finish(callback) == "/login?error=expired"
    assert provider.token_requests == []


def test_code_of_another_attempt_is_refused_by_its_nonce(
    on_sqlite: Installation, provider: OidcProvider
) -> None:
    provider.set_user("v-1", preferred_username="victor", groups="admins")
    with on_sqlite.browser() as thief, on_sqlite.browser() as victim:
        stolen = dict(parse_qsl(urlsplit(provider.authorize(victim.start(), "v-1")).query))["code"]
        own = dict(parse_qsl(urlsplit(thief.start()).query))
        callback = f"{own['redirect_uri']}?{urlencode({'code': stolen, 'state': own['state']})}"
        assert thief.finish(callback) == "/login?error=failed"
        assert thief.me is None
    assert "nonce" in on_sqlite.reasons()[0]
    assert on_sqlite.users() == {}


def test_tokens_and_responses_of_another_issuer_are_refused(
    on_sqlite: Installation, provider: OidcProvider, other_provider: OidcProvider
) -> None:
    other_provider.set_user("o-1", groups="admins")
    other = httpx.get(f"{other_provider.issuer}/.well-known/openid-configuration", timeout=PATIENCE_S).json()
    del other["issuer"]
    provider.overrides.update(other)
    assert on_sqlite.sign_in("o-1") == "/login?error=failed"
    assert "iss" in on_sqlite.reasons()[-1]
    with on_sqlite.browser() as browser:
        callback = other_provider.authorize(browser.start(), "o-1")
        assert browser.finish(f"{callback}&iss=https://evil.example") == "/login?error=failed"
    assert "another issuer" in on_sqlite.reasons()[-1]
    assert on_sqlite.users() == {}


def test_token_signed_with_another_key_is_refused(
    on_sqlite: Installation, provider: OidcProvider, other_provider: OidcProvider
) -> None:
    provider.set_user("k-1", groups="admins")
    provider.overrides["jwks_uri"] = f"{other_provider.issuer}/jwks"
    assert on_sqlite.sign_in("k-1") == "/login?error=failed"
    assert "ID token is not valid" in on_sqlite.reasons()[-1]


def test_claims_missing_from_the_token_are_read_from_the_user_information(
    on_sqlite: Installation, provider: OidcProvider
) -> None:
    provider.set_user("i-1", preferred_username="ida")
    provider.userinfo["groups"] = ["lab"]
    assert on_sqlite.sign_in("i-1") == "/"
    assert on_sqlite.users()["ida"].role == "operator"
    provider.userinfo["sub"] = "i-2"
    assert on_sqlite.sign_in("i-1") == "/login?error=failed"
    assert "another subject" in on_sqlite.reasons()[-1]


def test_keys_that_the_provider_has_changed_are_read_again(
    on_sqlite: Installation,
    provider: OidcProvider,
    other_provider: OidcProvider,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(provider_module, "RETRY_S", 600)
    provider.set_user("y-1", groups="lab")
    provider.overrides["jwks_uri"] = f"{other_provider.issuer}/jwks"
    assert on_sqlite.sign_in("y-1") == "/login?error=failed"
    provider.overrides.clear()
    assert on_sqlite.sign_in("y-1") == "/login?error=failed"  # not so soon
    monkeypatch.setattr(provider_module, "RETRY_S", 0)
    assert on_sqlite.sign_in("y-1") == "/"


def test_sign_in_refused_by_the_provider_is_recorded(on_sqlite: Installation) -> None:
    assert on_sqlite.sign_in(None) == "/login?error=denied"
    assert on_sqlite.reasons() == ["the provider refused: 'access_denied'"]


def test_browser_is_never_sent_to_another_server(on_sqlite: Installation, provider: OidcProvider) -> None:
    provider.set_user("b-1", groups="lab")
    for page in ("//evil.example", "https://evil.example", "/\\evil.example", "/\t/evil.example"):
        assert on_sqlite.sign_in("b-1", page) == "/"


def test_too_many_failures_make_one_address_wait(
    on_sqlite: Installation, provider: OidcProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login_limits, "FREE_ADDRESS_FAILURES", 2)
    monkeypatch.setattr(login_limits, "FIRST_WAIT_S", 300.0)
    provider.set_user("w-1", groups="lab")
    callback = "/login/oidc/callback?code=x&state=y"
    with on_sqlite.browser() as browser:
        assert browser.sign_in("w-1") == "/"  # not counted
        arrived = [browser.finish(callback).partition("=")[2] for _ in range(3)]
        assert arrived == ["expired", "expired", "wait"]
    assert len(on_sqlite.audit(FAILED)) == 2
    password = {"name": "owner", "password": "wrong"}
    assert on_sqlite.service.client.post("/api/v1/auth/login", json=password).status_code == 401


@_with_settings(trusted_proxies=["127.0.0.1"], allowed_hosts=["127.0.0.1", "callboard.example"])
def test_forwarded_protocol_of_a_tls_proxy_is_used(on_sqlite: Installation) -> None:
    headers = {"X-Forwarded-Proto": "https", "Host": "callboard.example"}
    # uvicorn reads the header.
    address = f"{on_sqlite.service.url}/login/oidc?nonce={NONCE}"
    answer = httpx.get(address, headers=headers, timeout=PATIENCE_S)
    asked = dict(parse_qsl(urlsplit(answer.headers["location"]).query))
    assert asked["redirect_uri"] == "https://callboard.example/login/oidc/callback"
    cookie = answer.headers["set-cookie"]
    for attribute in ("HttpOnly", "Secure", "SameSite=lax", "Path=/login/oidc", "Max-Age=600"):
        assert attribute in cookie


@_with_settings(public_url="https://callboard.example/")
def test_public_url_is_where_the_provider_returns_to(on_sqlite: Installation) -> None:
    with on_sqlite.browser() as browser:
        asked = dict(parse_qsl(urlsplit(browser.start()).query))
    assert asked["redirect_uri"] == "https://callboard.example/login/oidc/callback"


def test_login_page_learns_the_name_of_the_provider(
    on_sqlite: Installation, sqlite_service: RunningService
) -> None:
    with on_sqlite.service.new_client() as anyone, sqlite_service.new_client() as elsewhere:
        assert anyone.get("/api/v1/auth/methods").json() == {"oidc": {"name": "Example"}}
        assert elsewhere.get("/api/v1/auth/methods").json() == {"oidc": None}
        for path in ("/login/oidc", "/login/oidc/callback"):
            assert elsewhere.get(path).status_code == 404
