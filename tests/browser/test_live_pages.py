"""Pages keep up by the event stream alone, one stream a browser; without it they say so."""

import httpx
import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.browser.curves import await_points, await_state
from tests.browser.stage import end, start, until_episodes, until_state

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

EVENTS = "**/api/v1/events"


def _connection(page: Page, words: str) -> None:
    expect(page.get_by_role("banner").get_by_role("status").last).to_contain_text(words, timeout=30_000)


def test_points_stop_with_the_event_stream_and_come_back_with_it(page: Page, script: httpx.Client) -> None:
    run = start(script, name="cut off")
    page.goto(f"/runs/{run['id']}")
    await_state(page, "running")
    seen = await_points(page)
    await_points(page, more_than=len(seen))

    def refuse(route: Route) -> None:
        route.abort()

    # A stream that stands cannot be cut from here, so the page is opened anew without one.
    page.route(EVENTS, refuse)
    page.reload()
    _connection(page, "reconnecting")
    cut = len(await_points(page))
    trained = until_episodes(script, run["id"], until_state(script, run["id"], "running")["episodes"] + 20)
    page.wait_for_timeout(1500)
    assert len(await_points(page)) <= cut + 1, "nothing but events may bring new points"

    page.unroute(EVENTS, refuse)
    _connection(page, "live")
    await_points(page, more_than=cut)
    expect(page.locator("main header").first).to_contain_text("running")
    assert trained["episodes"] > 0


def test_a_change_made_elsewhere_is_seen_on_every_page(page: Page, script: httpx.Client) -> None:
    run = start(script, name="seen elsewhere")
    page.goto("/")
    row = page.get_by_role("row").filter(has_text="seen elsewhere")
    expect(row).to_contain_text("running", timeout=30_000)
    expect(page.get_by_role("banner")).to_contain_text("CartPole")
    end(script, run["id"])
    expect(row).to_contain_text("stopped")
    expect(page.get_by_role("banner")).to_contain_text("nothing running")
    script.delete(f"/api/v1/runs/{run['id']}")


def test_seven_tabs_share_one_stream(context: BrowserContext, script: httpx.Client) -> None:
    streams: list[str] = []
    context.on("request", lambda request: streams.append(request.url) if "/events" in request.url else None)
    run = start(script, name="seven tabs")
    pages = [context.new_page() for _ in range(7)]
    for page in pages:
        page.goto(f"/runs/{run['id']}?tab=settings")
    for page in pages:
        _connection(page, "live")
        await_state(page, "running")
    assert len(streams) == 1
    end(script, run["id"])
    for page in pages:
        await_state(page, "stopped")

    # The tab that listened goes; another takes over.
    pages[0].close()
    for page in pages[1:]:
        _connection(page, "live")
    script.post(f"/api/v1/runs/{run['id']}/archive")
    for page in pages[1:]:
        expect(page.locator("main header").first).to_contain_text("archived")
