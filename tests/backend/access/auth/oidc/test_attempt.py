import pytest

from backend.access.auth.oidc import attempt
from backend.access.auth.oidc.attempt import SignInAttempt, own_path


@pytest.mark.parametrize("path", ["/", "/runs/01ABC?tab=log#end", "/?q=tag%3Abaseline", "/é"])
def test_path_of_this_server_is_kept(path: str) -> None:
    assert own_path(path) == path
    assert SignInAttempt.start(path).path == path


@pytest.mark.parametrize(
    "path",
    [
        None,
        "",
        "runs",
        "//evil.example",
        "/\\evil.example",
        "\\/evil.example",
        "/\t/evil.example",
        "/\n/evil.example",
        "/a\\..\\b",
        " /runs",
        "https://evil.example",
        "javascript:alert(1)",
        "/" + "a" * 1000,
    ],
)
def test_other_path_becomes_the_first_page(path: str | None) -> None:
    assert own_path(path) == "/"


def test_path_of_a_cookie_is_checked_again() -> None:
    assert SignInAttempt.start("//evil.example").path == "/"


def test_attempt_is_resumed_by_its_own_cookie_and_state_only() -> None:
    first, second = SignInAttempt.start("/hosts"), SignInAttempt.start("/hosts")
    assert SignInAttempt.resume(first.cookie, first.state) == first
    assert SignInAttempt.resume(first.cookie, second.state) is None
    assert SignInAttempt.resume(None, first.state) is None
    for cookie in ("", "x", "é", "a.b.c", first.cookie + "x"):
        assert SignInAttempt.resume(cookie, first.state) is None
    for state in ("", "é", "\ud800", first.state + "x"):
        assert SignInAttempt.resume(first.cookie, state) is None


@pytest.mark.parametrize(
    ("cookie", "accepted"),
    [
        ("x", False),
        ("a.b.c", False),
        ("x" * 43 + ".9999999999.Lw.", True),
        ("x" * 43 + ".9999999999.Lw.!", False),
        ("x" * 43 + ".9999999999.A.n", True),
        ("x" * 43 + ".9999999999._w.", True),
        ("x" * 43 + "." + "9" * 5000 + ".Lw.", False),
        ("x" * 43 + ".\u0663.Lw.", False),
    ],
)
def test_forged_cookie_is_refused_or_leads_to_the_first_page(cookie: str, accepted: bool) -> None:
    forged = SignInAttempt.resume(cookie, SignInAttempt(cookie).state)
    assert (forged is not None) == accepted
    assert forged is None or forged.path == "/"


def test_attempt_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "LIFETIME_S", 0)
    expired = SignInAttempt.start("/")
    assert SignInAttempt.resume(expired.cookie, expired.state) is None


def test_cookie_with_a_later_expiry_is_refused() -> None:
    begun = SignInAttempt.start("/")
    secret, expires_at, rest = begun.cookie.split(".", 2)
    assert SignInAttempt.resume(f"{secret}.{int(expires_at) + 1}.{rest}", begun.state) is None


def test_state_nonce_and_verifier_differ_and_reveal_no_secret() -> None:
    begun = SignInAttempt.start("/")
    derived = {begun.state, begun.nonce, begun.code_verifier}
    assert len(derived) == 3
    assert all(len(value) == 43 for value in derived)  # PKCE: 43 to 128 characters
    assert begun.cookie.split(".")[0] not in derived
