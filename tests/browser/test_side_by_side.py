"""Side-by-side replay of several runs on one timeline."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from backend.db import Run
from backend.specs.states import RunState
from tests.support.artifacts import make_episode, make_video
from tests.support.rows import make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.browser

VIDEOS = "[aria-label='Side-by-side replay'] video"
TIMES = f'() => [...document.querySelectorAll("{VIDEOS}")].map(video => video.currentTime)'
"""The position of each video, in seconds."""


def _video(service: RunningService, run: Run, folder: Path, duration_s: float, **more: Any) -> None:
    path = folder / f"{run.id}-{duration_s}.mp4"
    make_video(path, duration_s)
    service.artifacts.put(path, run.id, "videos")
    make_episode(service.engine, run, video=path.name, **more)


def _replay(page: Page, service: RunningService, folder: Path, *durations_s: float) -> Locator:
    """Open the side-by-side replay of runs with one video each, and wait until all have loaded."""
    runs = [
        make_run(service.engine, RunState.FINISHED, seed=at, name=f"video {at}")
        for at in range(len(durations_s))
    ]
    for run, duration_s in zip(runs, durations_s, strict=True):
        _video(service, run, folder, duration_s, episode_return=10 * duration_s)
    page.goto("/compare?hidden=none&runs=" + ",".join(run.id for run in runs))
    _await_videos(page, min(6, len(runs)))
    return page.get_by_role("group", name="Side-by-side replay")


def _await_videos(page: Page, n: int) -> None:
    page.wait_for_function(
        f"""n => {{ const all = [...document.querySelectorAll("{VIDEOS}")];
          return all.length === n && all.every(video => video.duration > 0 && video.readyState >= 2); }}""",
        arg=n,
    )


def _await_times(page: Page, *times_s: float) -> None:
    page.wait_for_function(
        f"expected => ({TIMES})().every((at, index) => Math.abs(at - expected[index]) < 0.05)",
        arg=list(times_s),
    )


@pytest.mark.long
def test_one_timeline_controls_videos_of_different_lengths(
    service_page: Page, sqlite_service: RunningService, tmp_path: Path
) -> None:
    page = service_page
    replay = _replay(page, sqlite_service, tmp_path, 4.0, 8.0, 12.0)
    expect(replay.get_by_text("0:00 / 0:12")).to_be_visible()
    slider = replay.get_by_role("slider", name="Time")
    slider.press("End")
    _await_times(page, 4.0, 8.0, 12.0)
    slider.press("Home")
    _await_times(page, 0.0, 0.0, 0.0)

    # The middle of the timeline is past the end of the first video.
    box = replay.locator(".mantine-Slider-track").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    _await_times(page, 4.0, 6.0, 6.0)

    replay.get_by_role("button", name="Play all").click()
    # Pressed by the page itself: until a click from here arrives, the second video may have ended.
    page.wait_for_function(
        f"""() => {{ const late = ({TIMES})()[1] > 6.1;
          if (late) document.querySelector("[aria-label='Pause all']").click();
          return late; }}"""
    )
    expect(replay.get_by_role("button", name="Play all")).to_be_visible()
    first, second, third = page.evaluate(TIMES)
    assert first == pytest.approx(4.0, abs=0.05)
    assert second == pytest.approx(third, abs=0.5)
    speed = replay.get_by_role("combobox", name="Speed")
    speed.select_option("8")
    replay.get_by_role("button", name="Play all").click()
    # Playback stops at the end of the longest video, and starts over from there.
    expect(replay.get_by_role("button", name="Play all")).to_be_visible()
    _await_times(page, 4.0, 8.0, 12.0)
    speed.select_option("0.5")  # so that none has ended again before it is looked at
    replay.get_by_role("button", name="Play all").click()
    page.wait_for_function(f"() => ({TIMES})().every(at => at > 0.1 && at < 4)")


@pytest.mark.long
def test_keys_seek_play_and_set_the_speed_of_all_videos(
    service_page: Page, sqlite_service: RunningService, tmp_path: Path
) -> None:
    page = service_page
    replay = _replay(page, sqlite_service, tmp_path, 2.0, 60.0)
    expect(replay.get_by_text("0:00 / 1:00")).to_be_visible()
    replay.focus()
    for key, times_s in ((".", (0.1, 0.1)), ("ArrowRight", (0.2, 0.2)), (",", (0.1, 0.1))):
        page.keyboard.press(key)
        _await_times(page, *times_s)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    _await_times(page, 0.0, 0.0)

    page.keyboard.press("3")
    expect(replay.get_by_role("combobox", name="Speed")).to_have_value("3")
    rates = f'() => [...document.querySelectorAll("{VIDEOS}")].map(video => video.playbackRate)'
    assert page.evaluate(rates) == [3, 3]
    page.keyboard.press("1")
    page.keyboard.press("Space")
    expect(replay.get_by_role("button", name="Pause all")).to_be_visible()
    page.wait_for_function(f"() => ({TIMES})().every(at => at > 0.2)")
    page.keyboard.press("Space")
    expect(replay.get_by_role("button", name="Play all")).to_be_visible()
    assert page.evaluate(f'[...document.querySelectorAll("{VIDEOS}")].every(video => video.paused)')


@pytest.mark.long
def test_at_most_six_runs_are_shown_with_best_or_latest_episode(
    service_page: Page, sqlite_service: RunningService, tmp_path: Path
) -> None:
    page = service_page
    replay = _replay(page, sqlite_service, tmp_path, *(1.0 + at for at in range(7)))
    expect(replay.get_by_role("status").last).to_have_text("Runs 1 to 6 of 7")
    replay.get_by_role("button", name="Next").click()
    _await_videos(page, 1)
    replay.get_by_role("button", name="Previous").click()
    _await_videos(page, 6)
    tiles = replay.get_by_role("figure")
    expect(tiles).to_have_count(6)
    expect(tiles.first).to_contain_text("return 10.0 at agent step 100")
    frame = tiles.first.locator("video").locator("..")  # keeps a video's edge visible on any ground
    expect(frame).to_have_css("border-top-width", "1px")

    run = make_run(sqlite_service.engine, RunState.FINISHED, name="two videos")
    _video(sqlite_service, run, tmp_path, 2.0, episode_return=50.0, agent_steps=100)
    _video(sqlite_service, run, tmp_path, 1.0, episode_return=5.0, agent_steps=900)
    bare = make_run(sqlite_service.engine, RunState.FINISHED, name="no video")
    page.goto(f"/compare?runs={run.id},{bare.id}")
    _await_videos(page, 1)
    replay.get_by_role("combobox", name="Speed").select_option("4")
    expect(tiles.first).to_contain_text("return 50.0")
    expect(tiles.last).to_contain_text("No recorded episode")
    replay.get_by_role("radiogroup", name="Episodes").get_by_text("Latest").click()
    expect(tiles.first).to_contain_text("return 5.0")
    replay.get_by_role("radiogroup", name="Episodes").get_by_text("Equal training step").click()
    replay.get_by_role("textbox", name="Training step").fill("899")
    expect(tiles.first).to_contain_text("return 50.0")
    _await_videos(page, 1)
    page.wait_for_function(f'document.querySelector("{VIDEOS}").playbackRate === 4')
