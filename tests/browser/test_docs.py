import pytest
from playwright.sync_api import Page, expect

from tests.support.installation import Installation

pytestmark = pytest.mark.browser


def test_help_opens_from_a_page(page: Page, installed: Installation) -> None:
    # Violations of the content security policy are errors of the console, which fail every test.
    page.goto("/machines")
    page.get_by_role("button", name="Slots").click()
    page.get_by_role("dialog", name="Slots").get_by_role("link", name="More in the documentation").click()
    page.wait_for_url("**/help/guides/hosts.html")
    page.goto("/machines")
    page.get_by_role("navigation", name="Pages").get_by_role("button", name="Help").click()
    page.get_by_role("menuitem", name="Documentation").click()
    page.wait_for_url("**/help/")


@pytest.mark.long
def test_search_of_the_help_finds_a_term(page: Page, installed: Installation) -> None:
    page.goto(f"{installed.url}/help/")
    page.get_by_role("textbox", name="Search").click()
    page.keyboard.type("interquartile")  # the theme searches after a key, not after a change
    # A result is a link around an article, which gives it no name.
    heading = page.get_by_role("heading", name="Interquartile mean")
    page.get_by_role("link").filter(has=heading).first.click()
    page.wait_for_url("**/help/reference/glossary.html*")
    expect(page.get_by_role("main")).to_contain_text("quarter")


def test_api_docs_list_and_execute_operations(page: Page, installed: Installation) -> None:
    page.goto(f"{installed.url}/docs")
    operation = page.locator("#operations-auth-read_me")
    expect(operation).to_be_visible()
    operation.click()
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    expect(operation.locator(".live-responses-table")).to_contain_text('"owner"')


@pytest.mark.long
def test_documentation_has_the_theme_of_the_pages(page: Page) -> None:
    page.goto("/machines")
    theme = page.get_by_role("button", name="Theme")
    scheme = page.locator("body")
    for chosen in ("slate", "default"):
        theme.click()
        page.get_by_role("button", name="Help").click()
        page.get_by_role("menuitem", name="Documentation").click()
        expect(scheme).to_have_attribute("data-md-color-scheme", chosen)
        page.go_back()
    page.goto("/help/")
    page.get_by_title("Dark").click()
    page.goto("/machines")
    expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")
