"""The Worlds page tells of each world what it looks like, its spaces, settings and scores."""

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    ("world", "sees", "does", "setting", "told"),
    [
        ("ALE/Pong-v5", "84×84×4 pixels", "6 actions", "No-op starts", "30"),
        ("Labyrinth-Medium-v0", "84×84×3 pixels", "8 actions", "Episode", "60"),
        ("Racing-Slow-Continuous-v0", "84×84×3 pixels", "sets 2 numbers", "Action repeat", "4"),
        ("Humanoid-v5", "sees 348 numbers", "sets 17 numbers", "Normalise observations", "yes"),
        ("Memory-v0", "sees 3 numbers", "2 actions", "Delay", "8"),
    ],
)
def test_a_world_is_told(page: Page, world: str, sees: str, does: str, setting: str, told: str) -> None:
    page.goto("/worlds")
    page.get_by_role("searchbox", name="Search worlds").fill(world)
    row = page.get_by_role("row").filter(has=page.get_by_text(world, exact=True))
    expect(row).to_have_count(1)
    expect(row.get_by_text(sees, exact=True)).to_be_visible()
    expect(row.get_by_text(does, exact=True)).to_be_visible()
    picture = row.locator("img")
    page.wait_for_function("image => image.complete && image.naturalWidth > 0", arg=picture.element_handle())
    line = row.get_by_role("listitem").filter(has_text=setting)
    expect(line).to_be_hidden()
    row.locator("summary").click()
    expect(line).to_contain_text(told)


def test_scores_are_those_of_the_protocol_we_score_by(page: Page) -> None:
    page.goto("/worlds?q=ALE/Breakout-v5")
    row = page.get_by_role("row").filter(has_text="ALE/Breakout-v5")
    expect(row.get_by_title("random 1.7:")).to_have_text("1.7")
    expect(row.get_by_title("human 31.8:")).to_have_text("31.8")
