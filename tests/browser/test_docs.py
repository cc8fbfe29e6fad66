import pytest
from playwright.sync_api import Page, expect

from tests.support.installation import Installation

pytestmark = pytest.mark.browser


def test_api_docs_list_and_execute_operations(page: Page, installed: Installation) -> None:
    page.goto(f"{installed.url}/docs")
    operation = page.locator("#operations-auth-read_me")
    expect(operation).to_be_visible()
    operation.click()
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    expect(operation.locator(".live-responses-table")).to_contain_text('"owner"')
