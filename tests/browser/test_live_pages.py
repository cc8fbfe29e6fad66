"""Live updates: pages follow the event stream, one per browser, and show when it is interrupted."""

import httpx
import pytest
from playwright.sync_api import BrowserContext, Page, Request, Route, expect

from backend.specs.states import RunState
from tests.browser.curves import await_points, await_state
from tests.browser.stage import end, start, until_episodes, until_state
from tests.support.rows import make_run
from tests.support.service import RunningService
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.browser

EVENTS = "**/api/v1/events*"


def _connection(page: Page, words: str) -> None:
    expect(page.get_by_role("banner").get_by_role("status").last).to_contain_text(words)


@pytest.mark.long
def test_curve_stops_without_the_event_stream_and_resumes_with_it(page: Page, script: httpx.Client) -> None:
    run = start(script, name="cut off")
    page.goto(f"/runs/{run['id']}")
    await_state(page, "running")
    seen = await_points(page)
    await_points(page, more_than=len(seen))

    def refuse(route: Route) -> None:
        route.abort()

    # An open stream cannot be closed from here, so the page is reloaded without one.
    page.route(EVENTS, refuse)
    page.reload()
    _connection(page, "reconnecting")
    cut = len(await_points(page))
    # So many episodes later, a page that asked by itself would have asked several times.
    trained = until_episodes(script, run["id"], until_state(script, run["id"], "running")["episodes"] + 60)
    assert len(await_points(page)) <= cut + 1, "nothing but events may bring new points"

    page.unroute(EVENTS, refuse)
    _connection(page, "live")
    await_points(page, more_than=cut)
    expect(page.locator("main header").first).to_contain_text("running")
    assert trained["episodes"] > 0


@pytest.mark.long
def test_change_over_rest_appears_in_list_and_top_bar(page: Page, script: httpx.Client) -> None:
    run = start(script, name="seen elsewhere")
    page.goto("/")
    row = page.get_by_role("row").filter(has_text="seen elsewhere")
    expect(row).to_contain_text("running")
    expect(page.get_by_role("banner")).to_contain_text("Custom/Paced")
    end(script, run["id"])
    expect(row).to_contain_text("stopped")
    expect(page.get_by_role("banner")).to_contain_text("nothing running")
    script.delete(f"/api/v1/runs/{run['id']}")


@pytest.mark.long
@pytest.mark.parametrize("tabs", [3, 7])
def test_tabs_share_one_event_stream(context: BrowserContext, script: httpx.Client, tabs: int) -> None:
    streaming: set[Page] = set()  # a slow service's silence makes the tab with the stream open it again

    def note(request: Request) -> None:
        if "/events" in request.url:
            streaming.add(request.frame.page)

    context.on("request", note)
    run = start(script, name="many tabs")
    pages = [context.new_page() for _ in range(tabs)]
    for page in pages:
        page.goto(f"/runs/{run['id']}?tab=config")
    for page in pages:
        _connection(page, "live")
        await_state(page, "running")
    [owner] = streaming
    end(script, run["id"])
    for page in pages:
        await_state(page, "stopped")

    # The tab with the stream closes; another takes over.
    pages.remove(owner)
    owner.close()
    for page in pages:
        _connection(page, "live")
    script.post(f"/api/v1/runs/{run['id']}/archive")
    for page in pages:
        expect(page.locator("main header").first).to_contain_text("archived")
    assert len(streaming - {owner}) == 1


@pytest.mark.long
def test_film_strip_of_a_live_page_follows_the_training_and_is_complete_at_its_end(
    page: Page, script: httpx.Client
) -> None:
    run = start(script, name="filmed")
    page.goto(f"/runs/{run['id']}")
    frames = page.get_by_role("group", name="Recorded episodes").get_by_role("button")
    thumbnails = frames.locator("img")
    thumbnails.first.wait_for()
    expect(thumbnails.nth(1)).to_be_attached(timeout=1000 * PATIENCE_S)
    end(script, run["id"])
    await_state(page, "stopped")
    recorded = script.get(f"/api/v1/runs/{run['id']}/episodes", params={"spread": 9}).json()["items"]
    assert 2 <= len(recorded) < 9, "all of them fit into the strip"
    expect(thumbnails).to_have_count(len(recorded))


MIN_SEARCH_PX = 64
"""Of the search on a phone: its icon and a few letters."""
LIVE_S = 30
MAX_REQUESTS_PER_S = 2


@pytest.mark.long
def test_live_page_sends_at_most_two_requests_per_second(page: Page, script: httpx.Client) -> None:
    run = start(script, name="watched")
    page.goto(f"/runs/{run['id']}")
    await_state(page, "running")
    seen = await_points(page)
    page.wait_for_load_state("networkidle")
    sent: list[str] = []

    def note(request: Request) -> None:
        if "/api/" in request.url:
            sent.append(request.url)

    page.on("request", note)
    page.wait_for_timeout(1000 * LIVE_S)
    page.remove_listener("request", note)
    await_points(page, more_than=len(seen))
    assert any("/figures?" in url for url in sent), "the page was live"
    assert len(sent) <= MAX_REQUESTS_PER_S * LIVE_S, sent


@pytest.mark.long
@pytest.mark.parametrize("width", [390, pytest.param(320, marks=pytest.mark.long)])
def test_search_on_a_phone_has_room_beside_the_state_of_an_interrupted_connection(
    service_page: Page, sqlite_service: RunningService, width: int
) -> None:
    make_run(sqlite_service.engine, RunState.RUNNING)
    page = service_page
    page.clock.install()
    page.set_viewport_size({"width": width, "height": 844})
    page.goto("/")
    expect(page.get_by_role("banner").get_by_role("link", name="CartPole")).to_be_visible()
    _connection(page, "live")
    page.context.set_offline(True)
    _connection(page, "offline")
    page.clock.fast_forward("01:05:00")
    _connection(page, "offline, stale for 1 h")
    box = page.get_by_role("searchbox", name="Search runs").bounding_box()
    assert box
    assert box["width"] >= MIN_SEARCH_PX
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    page.context.set_offline(False)
