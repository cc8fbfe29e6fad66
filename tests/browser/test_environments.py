"""The environments page: image, spaces, settings and scores of each environment."""

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.long]


@pytest.mark.parametrize(
    ("environment", "observation", "actions", "setting", "default"),
    [
        ("ALE/Pong-v5", "84×84×4 pixels", "6 discrete actions", "No-op starts", "30"),
        ("Labyrinth-Medium-v0", "84×84×3 pixels", "8 discrete actions", "Episode", "60"),
        (
            "Racing-Slow-Continuous-v0",
            "84×84×3 pixels",
            "2-dimensional continuous action",
            "Action repeat",
            "4",
        ),
        (
            "Humanoid-v5",
            "348-dimensional vector",
            "17-dimensional continuous action",
            "Normalise observations",
            "yes",
        ),
        ("Memory-v0", "3-dimensional vector", "2 discrete actions", "Delay", "8"),
    ],
)
def test_environment_row_shows_image_spaces_and_settings(
    page: Page, environment: str, observation: str, actions: str, setting: str, default: str
) -> None:
    page.goto("/environments")
    page.get_by_role("searchbox", name="Search environments").fill(environment)
    row = page.get_by_role("row").filter(has=page.get_by_text(environment, exact=True))
    expect(row).to_have_count(1)
    expect(row.get_by_text(observation, exact=True)).to_be_visible()
    expect(row.get_by_text(actions, exact=True)).to_be_visible()
    image = row.locator("img")
    page.wait_for_function("image => image.complete && image.naturalWidth > 0", arg=image.element_handle())
    line = row.get_by_role("listitem").filter(has_text=setting)
    expect(line).to_be_hidden()
    row.locator("summary").click()
    expect(line).to_contain_text(default)


def test_score_columns_show_scores_with_their_protocol(page: Page) -> None:
    page.goto("/environments?q=ALE/Breakout-v5")
    row = page.get_by_role("row").filter(has_text="ALE/Breakout-v5")
    # Each under its own protocol: of at most 5 minutes, and of at most 30.
    for protocol, human in (("no-op starts, 5 min", "31.8"), ("no-op starts", "30.5")):
        random_agent = row.locator(f'[title^="random 1.7: "][title$="; {protocol}"]')
        expect(random_agent).to_have_text("1.7")
        expect(row.locator(f'[title^="human {human}: "][title$="; {protocol}"]')).to_have_text(human)
    header = page.get_by_role("columnheader")
    expect(header.filter(has_text="random")).to_have_text(["randomno-op starts, 5 min", "randomno-op starts"])
    expect(header.filter(has_text="PAAC nips")).to_contain_text("no-op starts")
    expect(header.filter(has_text="PAAC nips")).not_to_contain_text("5 min")
