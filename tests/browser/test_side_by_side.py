"""Several agents playing on one time line."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from backend.db import Run
from backend.specs.states import RunState
from tests.support.artifacts import make_episode, make_video
from tests.support.runs import make_run
from tests.support.service import RunningService

pytestmark = pytest.mark.browser

VIDEOS = "[aria-label='Episodes side by side'] video"
TIMES = f'() => [...document.querySelectorAll("{VIDEOS}")].map(video => video.currentTime)'
"""Where each film is, in seconds."""


def _film(service: RunningService, run: Run, folder: Path, duration_s: float, **more: Any) -> None:
    path = folder / f"{run.id}-{duration_s}.mp4"
    make_video(path, duration_s)
    service.artifacts.put(path, run.id, "videos")
    make_episode(service.engine, run, video=path.name, **more)


def _wall(page: Page, service: RunningService, folder: Path, *durations_s: float) -> Locator:
    """Runs with a film each, side by side, all there."""
    runs = [
        make_run(service.engine, RunState.FINISHED, seed=at, name=f"film {at}")
        for at in range(len(durations_s))
    ]
    for run, duration_s in zip(runs, durations_s, strict=True):
        _film(service, run, folder, duration_s, episode_return=10 * duration_s)
    page.goto("/compare?runs=" + ",".join(run.id for run in runs))
    _await_films(page, min(6, len(runs)))
    return page.get_by_role("group", name="Episodes side by side")


def _await_films(page: Page, n: int) -> None:
    page.wait_for_function(
        f"""n => {{ const all = [...document.querySelectorAll("{VIDEOS}")];
          return all.length === n && all.every(video => video.duration > 0 && video.readyState >= 2); }}""",
        arg=n,
    )


def _await_times(page: Page, *times_s: float) -> None:
    page.wait_for_function(
        f"asked => ({TIMES})().every((at, index) => Math.abs(at - asked[index]) < 0.05)", arg=list(times_s)
    )


def test_one_time_line_for_films_of_any_length(
    service_page: Page, sqlite_service: RunningService, tmp_path: Path
) -> None:
    page = service_page
    wall = _wall(page, sqlite_service, tmp_path, 1.0, 2.0, 3.0)
    expect(wall.get_by_text("0:00 / 0:03")).to_be_visible()
    slider = wall.get_by_role("slider", name="Time")
    slider.press("End")
    _await_times(page, 1.0, 2.0, 3.0)
    slider.press("Home")
    _await_times(page, 0.0, 0.0, 0.0)

    # One second of the three is the whole of the first.
    box = wall.locator(".mantine-Slider-track").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    _await_times(page, 1.0, 1.5, 1.5)

    wall.get_by_role("button", name="Play all").click()
    page.wait_for_function(f"() => ({TIMES})()[1] > 1.6")
    wall.get_by_role("button", name="Pause all").click()
    first, second, third = page.evaluate(TIMES)
    assert first == pytest.approx(1.0, abs=0.05)
    assert second == pytest.approx(third, abs=0.5)
    wall.get_by_role("button", name="Play all").click()
    # At the end of the longest it stops by itself; from there it begins anew.
    expect(wall.get_by_role("button", name="Play all")).to_be_visible()
    _await_times(page, 1.0, 2.0, 3.0)
    wall.get_by_role("button", name="Play all").click()
    page.wait_for_function(f"() => ({TIMES})().every(at => at > 0.1 && at < 1)")


def test_by_the_keys_of_a_replay(service_page: Page, sqlite_service: RunningService, tmp_path: Path) -> None:
    page = service_page
    wall = _wall(page, sqlite_service, tmp_path, 2.0, 8.0)
    wall.focus()
    for key, times_s in ((".", (0.1, 0.1)), ("ArrowRight", (0.2, 0.2)), (",", (0.1, 0.1))):
        page.keyboard.press(key)
        _await_times(page, *times_s)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    _await_times(page, 0.0, 0.0)

    page.keyboard.press("3")
    expect(wall.get_by_role("combobox", name="Speed")).to_have_value("3")
    rates = f'() => [...document.querySelectorAll("{VIDEOS}")].map(video => video.playbackRate)'
    assert page.evaluate(rates) == [3, 3]
    page.keyboard.press("1")
    page.keyboard.press("Space")
    expect(wall.get_by_role("button", name="Pause all")).to_be_visible()
    page.wait_for_function(f"() => ({TIMES})().every(at => at > 0.2)")
    page.keyboard.press("Space")
    expect(wall.get_by_role("button", name="Play all")).to_be_visible()
    assert page.evaluate(f'[...document.querySelectorAll("{VIDEOS}")].every(video => video.paused)')


@pytest.mark.long
def test_six_at_most_and_the_newest_if_asked(
    service_page: Page, sqlite_service: RunningService, tmp_path: Path
) -> None:
    page = service_page
    wall = _wall(page, sqlite_service, tmp_path, *(1.0 + at for at in range(7)))
    expect(wall).to_contain_text("The first 6 of 7 runs.")
    seats = wall.get_by_role("figure")
    expect(seats).to_have_count(6)
    expect(seats.first).to_contain_text("return 10.0 after 100 agent steps")

    run = make_run(sqlite_service.engine, RunState.FINISHED, name="two films")
    _film(sqlite_service, run, tmp_path, 2.0, episode_return=50.0, agent_steps=100)
    _film(sqlite_service, run, tmp_path, 1.0, episode_return=5.0, agent_steps=900)
    bare = make_run(sqlite_service.engine, RunState.FINISHED, name="no film")
    page.goto(f"/compare?runs={run.id},{bare.id}")
    _await_films(page, 1)
    wall.get_by_role("combobox", name="Speed").select_option("4")
    expect(seats.first).to_contain_text("return 50.0")
    expect(seats.last).to_contain_text("no episode kept yet")
    wall.get_by_role("radiogroup", name="Which episodes").get_by_text("Newest").click()
    expect(seats.first).to_contain_text("return 5.0")
    _await_films(page, 1)
    assert page.evaluate(f'document.querySelector("{VIDEOS}").playbackRate') == 4
