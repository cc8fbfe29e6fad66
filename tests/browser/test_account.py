"""Who one is here: signing in and out, a password, keys for scripts, other people, and the theme."""

import re

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.service import RunningService

pytestmark = [pytest.mark.browser, pytest.mark.long]

PASSWORD = "five words are long enough"


def test_a_password_lets_in_and_a_used_link_does_not(
    service_page: Page, sqlite_service: RunningService, browser: Browser
) -> None:
    page = service_page
    page.goto("/settings")
    page.get_by_label("New password").fill("short")
    page.get_by_role("button", name="Change password").click()
    expect(page.get_by_text(re.compile("at least", re.IGNORECASE))).to_be_visible()
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_role("button", name="Change password").click()
    expect(page.get_by_text("Changed. Your other browsers are signed out.")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in to Callboard")).to_be_visible()

    page.goto("/login?token=used")
    expect(page.get_by_role("alert")).to_contain_text("too old")
    page.goto("/hosts")
    page.get_by_label("Name").fill("owner")
    page.get_by_role("textbox", name="Password").fill("another")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator(".mantine-PasswordInput-error")).to_be_visible()
    expect(page.get_by_role("textbox", name="Password")).to_be_focused()
    page.get_by_role("textbox", name="Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Hosts")).to_be_visible()


def test_a_key_for_scripts(service_page: Page, sqlite_service: RunningService) -> None:
    page = service_page
    page.goto("/settings")
    tokens = page.get_by_role("region", name="Tokens")
    tokens.get_by_label("What it is for").fill("nightly")
    tokens.get_by_label("May do as much as").select_option("viewer")
    tokens.get_by_role("button", name="Make a token").click()
    secret = tokens.get_by_role("status").locator("pre").inner_text()
    expect(tokens.get_by_role("button", name="Make a token")).to_be_focused()
    with httpx.Client(base_url=sqlite_service.url, headers={"Authorization": f"Bearer {secret}"}) as script:
        assert script.get("/api/v1/auth/me").json()["role"] == "viewer"
        tokens.get_by_role("button", name="Revoke nightly").click()
        page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        expect(tokens.get_by_text("You have no token.")).to_be_visible()
        expect(tokens).to_be_focused()
        assert script.get("/api/v1/auth/me").status_code == 401


def test_other_people(service_page: Page) -> None:
    page = service_page
    page.goto("/settings")
    users = page.get_by_role("region", name="Users")
    users.get_by_label("Name").fill("guest")
    users.get_by_label("First password").fill(PASSWORD)
    users.get_by_role("button", name="Add user").click()
    role = users.get_by_label("Role of guest")
    expect(role).to_have_value("operator")
    role.select_option("viewer")
    page.reload()
    expect(role).to_have_value("viewer")
    users.get_by_role("button", name="Remove guest").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(role).to_have_count(0)
    expect(users).to_be_focused()


def test_a_long_name_leaves_what_can_be_done_in_view(service_page: Page) -> None:
    page = service_page
    page.goto("/settings")
    name = "x" * 100
    tokens = page.get_by_role("region", name="Tokens")
    tokens.get_by_label("What it is for").fill(name)
    tokens.get_by_role("button", name="Make a token").click()
    users = page.get_by_role("region", name="Users")
    users.get_by_label("Name").fill(name)
    users.get_by_label("First password").fill(PASSWORD)
    users.get_by_role("button", name="Add user").click()
    for panel, button in ((tokens, "Revoke"), (users, "Remove")):
        place = panel.get_by_role("button", name=f"{button} {name}").bounding_box()
        whole = panel.bounding_box()
        assert place
        assert whole
        assert place["x"] + place["width"] <= whole["x"] + whole["width"]
        expect(panel.get_by_title(name)).to_be_visible()


def test_a_name_of_spaces_is_refused_at_its_field(service_page: Page) -> None:
    page = service_page
    page.goto("/settings")
    tokens = page.get_by_role("region", name="Tokens")
    tokens.get_by_label("What it is for").fill("   ")
    tokens.get_by_role("button", name="Make a token").click()
    expect(tokens.get_by_text("Say what it is for.")).to_be_visible()
    expect(tokens.get_by_label("What it is for")).to_have_attribute("aria-invalid", "true")
    expect(tokens.get_by_text("You have no token.")).to_be_visible()


def test_the_theme_is_kept(service_page: Page) -> None:
    page = service_page
    page.emulate_media(color_scheme="light")
    page.goto("/settings")
    root = page.locator("html")
    expect(root).to_have_attribute("data-mantine-color-scheme", "light")
    page.get_by_role("radiogroup", name="Appearance").get_by_text("Dark").click()
    page.goto("/")
    expect(root).to_have_attribute("data-mantine-color-scheme", "dark")
