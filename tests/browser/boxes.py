"""Checkboxes and switches whose state is kept in the page's address."""

from playwright.sync_api import Locator, expect


def tick(box: Locator, checked: bool = True, *, hidden: bool = False) -> None:
    """Click a box and wait until it is checked, or not.

    Playwright's own `check` fails if the page has not drawn the box anew at once, and does nothing if a
    former state is still drawn. `hidden` is for switches, whose input has no size: a click at its place could
    miss it while the page's layout changes, so the space key is pressed.
    """
    expect(box).to_be_checked(checked=not checked)
    if hidden:
        box.press("Space")
    else:
        box.click()
    expect(box).to_be_checked(checked=checked)
