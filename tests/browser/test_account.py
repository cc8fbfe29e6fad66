"""The settings: signing in and out, password, tokens, users and theme."""

import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, Route, ViewportSize, expect

from backend.http.dependencies import COOKIE
from backend.http.docs import STORED_PAGE_SECRET
from tests.support.oidc_provider import running_provider, wait_longer
from tests.support.rows import external_request
from tests.support.service import RunningService, running_service
from tests.support.waiting import PATIENCE_S

pytestmark = [pytest.mark.browser, pytest.mark.long]

PASSWORD = "five words are long enough"


def test_sign_in_accepts_a_password_and_rejects_a_used_link(
    service_page: Page, sqlite_service: RunningService, browser: Browser
) -> None:
    page = service_page
    page.goto("/settings")
    page.get_by_label("New password").fill("short")
    page.get_by_role("button", name="Change password").click()
    expect(page.get_by_text(re.compile("at least", re.IGNORECASE))).to_be_visible()
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_role("button", name="Change password").click()
    expect(page.get_by_text("Password changed. Your other sessions are signed out.")).to_be_visible()
    page.get_by_role("button", name="Sign out", exact=True).click()
    expect(page.get_by_role("heading", name="Sign in to Callboard")).to_be_visible()

    page.goto("/login?token=used")
    expect(page.get_by_role("alert")).to_contain_text("expired or has already been used")
    page.goto("/machines")
    page.get_by_label("Name").fill("owner")
    page.get_by_role("textbox", name="Password").fill("another")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator(".mantine-PasswordInput-error")).to_be_visible()
    expect(page.get_by_role("textbox", name="Password")).to_be_focused()
    page.get_by_role("textbox", name="Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Machines")).to_be_visible()


def test_page_requests_session_and_its_scripts_beside_the_scripts_of_all_pages(service_page: Page) -> None:
    page = service_page
    held: list[Route] = []
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    shared = re.compile(r"/assets/(index|shared)-[^/]+\.js")
    page.route(shared, lambda route: held.append(route))
    with (
        page.expect_request("**/api/v1/auth/me"),
        page.expect_request(re.compile(r"/assets/machines-[^/]+\.js")),
    ):
        page.goto("/machines", wait_until="commit")
    assert held
    page.route(shared, lambda route: route.continue_())
    for route in held:
        route.continue_()
    expect(page.get_by_role("heading", name="Machines")).to_be_visible()
    assert len([url for url in requested if url.endswith("/auth/me")]) == 1


def test_page_without_its_part_of_the_session_asks_for_another_login(
    service_page: Page, sqlite_service: RunningService
) -> None:
    page = service_page
    page.goto("/machines")
    expect(page.get_by_role("heading", name="Machines")).to_be_visible()
    page.evaluate(f"localStorage.removeItem({STORED_PAGE_SECRET!r})")
    page.goto("/machines")
    expect(page.get_by_role("alert")).to_contain_text("This browser no longer has its part of your session")
    page.goto(f"/login?token={sqlite_service.login_link()}")
    expect(page.get_by_role("banner").get_by_role("link", name="New run")).to_be_visible()
    assert page.url == f"{sqlite_service.url}/"
    page.goto("/machines")
    expect(page.get_by_role("heading", name="Machines")).to_be_visible()


def test_server_on_another_port_receives_a_cookie_that_opens_nothing(
    service_page: Page, sqlite_service: RunningService
) -> None:
    received: list[str] = []

    class OtherPort(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            received.append(self.headers.get("Cookie", ""))
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>Other</title>")

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), OtherPort) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        service_page.goto(f"http://127.0.0.1:{server.server_port}/")
        assert service_page.evaluate("localStorage.length") == 0
        server.shutdown()
        thread.join()
    assert COOKIE in received[0]
    stolen = httpx.get(
        f"{sqlite_service.url}/api/v1/auth/me", headers={"Cookie": received[0]}, timeout=PATIENCE_S
    )
    assert (stolen.status_code, stolen.json()["code"]) == (401, "page_secret_missing")


def test_sign_in_through_a_provider_on_another_site_returns_to_the_page(
    browser: Browser, sqlite_template: Path, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_longer(monkeypatch)
    database = tmp_path / "callboard.sqlite3"
    database.write_bytes(sqlite_template.read_bytes())
    # The session's cookie is not sent with requests that another site has begun: `localhost` is one.
    with running_provider("localhost") as provider:
        provider.set_user("a-1", preferred_username="anna", groups=["lab"])
        settings = {
            "oidc_issuer": provider.issuer,
            "oidc_client_id": "callboard",
            "oidc_client_secret": "a secret",
            "oidc_name": "Example",
            "oidc_roles": {"lab": "operator"},
        }
        with (
            running_service(f"sqlite:///{database}", redis_url, tmp_path, **settings) as service,
            browser.new_context(base_url=service.url) as context,
        ):
            context.set_default_timeout(1000 * PATIENCE_S)
            page = context.new_page()
            page.goto("/login?error=no_role&from=/hosts")
            expect(page.get_by_role("alert")).to_contain_text("Your account at Example has no role here.")
            page.get_by_role("link", name="Sign in with Example").click()
            page.locator("input[name=sub]").fill("a-1")
            page.get_by_role("button", name="Authorize").click()
            expect(page.get_by_role("heading", name="Machines")).to_be_visible()
            page.goto("/settings")
            expect(page.get_by_role("region", name="List of sessions")).to_contain_text("by single sign-on")


def test_token_works_until_it_is_revoked(service_page: Page, sqlite_service: RunningService) -> None:
    page = service_page
    page.goto("/settings/tokens")
    tokens = page.get_by_role("region", name="Tokens")
    tokens.get_by_label("Name").fill("nightly")
    tokens.get_by_label("Role").select_option("viewer")
    tokens.get_by_role("button", name="Create token").click()
    secret = tokens.get_by_role("status").locator("pre").inner_text()
    expect(tokens.get_by_role("button", name="Create token")).to_be_focused()
    headers = {"Authorization": f"Bearer {secret}"}
    with httpx.Client(base_url=sqlite_service.url, headers=headers, timeout=PATIENCE_S) as script:
        assert script.get("/api/v1/auth/me").json()["role"] == "viewer"
        tokens.get_by_role("button", name="Revoke nightly").click()
        page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        expect(tokens.get_by_text("You have no tokens.")).to_be_visible()
        expect(tokens).to_be_focused()
        assert script.get("/api/v1/auth/me").status_code == 401


def test_user_is_added_changed_and_removed(service_page: Page) -> None:
    page = service_page
    page.goto("/settings/users")
    users = page.get_by_role("region", name="Users")
    users.get_by_label("Name").fill("guest")
    users.get_by_label("Initial password").fill(PASSWORD)
    users.get_by_role("button", name="Add user").click()
    role = users.get_by_label("Role of guest")
    expect(role).to_have_value("operator")
    change = page.get_by_role("dialog", name="Change the role of guest")
    role.select_option("viewer")
    change.get_by_role("button", name="Cancel").click()
    expect(change).to_have_count(0)
    expect(role).to_have_value("operator")
    role.select_option("viewer")
    with page.expect_response(lambda response: response.request.method == "PATCH"):
        change.get_by_role("button", name="Make viewer").click()
    page.reload()
    expect(role).to_have_value("viewer")
    users.get_by_role("button", name="Remove guest").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(role).to_have_count(0)
    expect(users).to_be_focused()


def test_long_name_keeps_its_buttons_in_view(service_page: Page) -> None:
    page = service_page
    name = "x" * 100
    page.goto("/settings/tokens")
    tokens = page.get_by_role("region", name="Tokens")
    tokens.get_by_label("Name").fill(name)
    tokens.get_by_role("button", name="Create token").click()
    _expect_button_in_view(tokens, "Revoke", name)
    page.goto("/settings/users")
    users = page.get_by_role("region", name="Users")
    users.get_by_label("Name").fill(name)
    users.get_by_label("Initial password").fill(PASSWORD)
    users.get_by_role("button", name="Add user").click()
    _expect_button_in_view(users, "Remove", name)


def _expect_button_in_view(panel: Locator, button: str, name: str) -> None:
    place = panel.get_by_role("button", name=f"{button} {name}").bounding_box()
    whole = panel.bounding_box()
    assert place
    assert whole
    assert place["x"] + place["width"] <= whole["x"] + whole["width"]
    expect(panel.get_by_text(name, exact=True)).to_be_visible()


def test_former_addresses_lead_to_the_settings(service_page: Page) -> None:
    page = service_page
    for former, heading in (("storage", "Storage"), ("audit", "Audit trail"), ("tokens", "Tokens")):
        page.goto(f"/{former}")
        page.wait_for_url(f"**/settings/{former}")
        expect(page.get_by_role("heading", level=1)).to_have_text(heading)
    side = page.get_by_role("navigation", name="Settings")
    expect(side.get_by_role("link", name="Tokens")).to_have_attribute("aria-current", "page")
    side.get_by_role("link", name="Keyboard shortcuts").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Keyboard shortcuts")


def test_blank_token_name_is_rejected_at_its_field(service_page: Page) -> None:
    page = service_page
    page.goto("/settings/tokens")
    tokens = page.get_by_role("region", name="Tokens")
    tokens.get_by_label("Name").fill("   ")
    tokens.get_by_role("button", name="Create token").click()
    expect(tokens.get_by_text("Enter a name.")).to_be_visible()
    expect(tokens.get_by_label("Name")).to_have_attribute("aria-invalid", "true")
    expect(tokens.get_by_text("You have no tokens.")).to_be_visible()


def test_theme_is_kept_after_navigation(service_page: Page) -> None:
    page = service_page
    page.emulate_media(color_scheme="light")
    page.goto("/settings")
    root = page.locator("html")
    expect(root).to_have_attribute("data-mantine-color-scheme", "light")
    page.get_by_role("radiogroup", name="Appearance").get_by_text("Dark").click()
    page.goto("/")
    expect(root).to_have_attribute("data-mantine-color-scheme", "dark")


PHONE: ViewportSize = {"width": 390, "height": 844}


def test_settings_on_a_phone_are_one_row_that_shows_the_open_page(service_page: Page) -> None:
    page = service_page
    page.set_viewport_size(PHONE)
    page.goto("/settings/shortcuts")
    links = page.get_by_role("navigation", name="Settings").get_by_role("link")
    expect(links).to_have_count(6)  # two of them for administrators
    expect(links.last).to_be_in_viewport(ratio=1)
    assert len(set(links.evaluate_all("links => links.map(link => link.offsetTop)"))) == 1
    links.filter(has_text="Users").click()
    expect(links.filter(has_text="Users")).to_be_in_viewport(ratio=1)


def test_wide_table_on_a_phone_is_shaded_where_it_goes_on(
    service_page: Page, sqlite_service: RunningService
) -> None:
    sqlite_service.client.post("/api/v1/runs", json=external_request()).raise_for_status()
    page = service_page
    page.set_viewport_size(PHONE)
    page.goto("/settings/audit")
    table = page.get_by_role("region", name="Audit trail", exact=True)
    at_left, at_right = re.compile(r"\) 14px 0px"), re.compile(r"\) -14px 0px")
    expect(table).to_have_css("box-shadow", at_right)
    expect(table).not_to_have_css("box-shadow", at_left)
    table.evaluate("table => { table.scrollLeft = table.scrollWidth; }")
    expect(table).to_have_css("box-shadow", at_left)
    expect(table).not_to_have_css("box-shadow", at_right)
