"""The replay page: reward, value and policy at each step of an episode."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.artifacts import make_episode
from tests.support.rows import make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.browser


def test_replay_seeks_by_lost_lives_keys_and_url(
    service_page: Page, sqlite_service: RunningService, tmp_path: Path
) -> None:
    run = make_run(sqlite_service.engine)
    episode = make_episode(
        sqlite_service.engine, run, sqlite_service.artifacts, tmp_path, lives=(3, 3, 2, 2, 1)
    )
    page = service_page
    page.goto(f"/runs/{run.id}/episodes/{episode.id}")
    position = page.get_by_role("slider", name="Position in the episode")
    for step in (2, 4, 2):
        page.get_by_role("button", name="Next lost life").click()
        expect(position).to_have_attribute("aria-valuenow", str(step))
    expect(page.get_by_role("list", name="Policy: probability of each action")).to_contain_text("50%")
    page.keyboard.press(".")
    expect(position).to_have_attribute("aria-valuenow", "3")
    page.wait_for_url("**at=3")
    page.reload()
    expect(position).to_have_attribute("aria-valuenow", "3")
    page.keyboard.press(".")  # without focus on any element
    expect(position).to_have_attribute("aria-valuenow", "4")
    position.press("ArrowLeft")
    expect(position).to_have_attribute("aria-valuenow", "3")
    for key, step in (("e", 0), ("Shift+L", 4), ("r", 0), ("Shift+R", 4)):
        page.keyboard.press(key)
        expect(position).to_have_attribute("aria-valuenow", str(step))


def test_replay_of_a_value_method_shows_q_values(
    service_page: Page, sqlite_service: RunningService, tmp_path: Path
) -> None:
    run = make_run(sqlite_service.engine, algorithm="one_step_q")
    episode = make_episode(sqlite_service.engine, run, sqlite_service.artifacts, tmp_path)
    page = service_page
    page.goto(f"/runs/{run.id}/episodes/{episode.id}")
    bars = page.get_by_role("list", name="Q value of each action")
    expect(bars).to_contain_text("0.5")
    expect(page.get_by_text("max Q").first).to_be_visible()
    expect(page.get_by_text("%")).to_have_count(0)
    expect(page.get_by_role("button", name="Next lost life")).to_have_count(0)
    page.get_by_role("link", name="Play CartPole yourself").click()
    page.wait_for_url("**/play?environment=CartPole-v1")


@pytest.mark.long
@pytest.mark.parametrize(("width", "height"), [(1280, 800), pytest.param(1920, 1080, marks=pytest.mark.long)])
def test_video_is_as_high_as_the_window_allows_with_the_panels_beside_it(
    service_page: Page, sqlite_service: RunningService, tmp_path: Path, width: int, height: int
) -> None:
    run = make_run(sqlite_service.engine, environment="ALE/Pong-v5")
    episode = make_episode(sqlite_service.engine, run, sqlite_service.artifacts, tmp_path)
    page = service_page
    page.set_viewport_size({"width": width, "height": height})
    page.goto(f"/runs/{run.id}/episodes/{episode.id}")
    timeline = page.get_by_role("slider", name="Position in the episode")
    timeline.wait_for()
    video, beside = page.locator("[class*=stage]").bounding_box(), timeline.bounding_box()
    assert video
    assert beside
    assert video["height"] > 0.7 * height
    assert 0 < beside["x"] - (video["x"] + video["width"]) < 100
    assert beside["y"] < video["y"] + video["height"] / 2
    below = page.get_by_role("combobox", name="Speed").bounding_box()
    assert below
    assert below["y"] + below["height"] < height


@pytest.mark.long
def test_controls_stay_in_the_window_beside_the_bars_of_many_actions(
    service_page: Page, sqlite_service: RunningService, tmp_path: Path
) -> None:
    run = make_run(sqlite_service.engine, environment="ALE/Pong-v5")
    names = tuple(f"ACTION{number}" for number in range(18))
    episode = make_episode(sqlite_service.engine, run, sqlite_service.artifacts, tmp_path, action_names=names)
    page = service_page
    page.set_viewport_size({"width": 1100, "height": 700})
    page.goto(f"/runs/{run.id}/episodes/{episode.id}")
    bars = page.get_by_role("list", name="Policy: probability of each action").bounding_box()
    stage = page.locator("[class*=stage]").bounding_box()
    controls = page.get_by_role("combobox", name="Speed").bounding_box()
    assert bars
    assert stage
    assert controls
    assert bars["y"] + bars["height"] > stage["y"] + stage["height"], "they need more room than the video"
    assert controls["y"] + controls["height"] < 700
