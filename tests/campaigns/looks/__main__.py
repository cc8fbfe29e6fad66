"""Screenshots of the views that a redesign is judged by, and of every page, on one home.

    python -m tests.campaigns.looks FOLDER [--sizes 1280 1920 390] [--only run play]
    python -m tests.campaigns.looks docs/images --documentation

Starts an installation in an empty home, fills it with runs of fixed values and one that trains, and writes a
screenshot of each page in both themes and each width, and of the dialog Export figure; or the pictures that
the documentation shows.
"""

import argparse
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
from playwright.sync_api import Page, sync_playwright

from tests.browser.examples import recorded_game
from tests.browser.pages import page_addresses
from tests.campaigns.looks import home
from tests.support import custom_environment
from tests.support.installation import CALLBOARD, Installation, environment, installation
from tests.support.pages import page_client
from tests.support.waiting import until

SIZES = {1280: 800, 1920: 1080, 390: 844}
THEMES = ("light", "dark")
SETTLED_MS = 1_500
"""Before a screenshot, for what moves in."""
_RENDERED_MS = 8_000
"""For thumbnails."""
_POISON = "poison"


def main() -> None:
    """Write the screenshots."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.looks")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--only", nargs="+", default=[""], help="parts of the names of views")
    parser.add_argument("--documentation", action="store_true", help="the pictures of docs/ alone")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="looks-") as name,
        _installed(Path(name)) as running,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(base_url=running.url)
        only = given.only
        if not given.documentation:
            _take(page, given.folder, given.sizes, only, [("page-login", "/login")])
        page.goto(running.login_url)
        if given.documentation:
            with _script(running) as script:
                _document(page, given.folder, script)
            return
        _take(page, given.folder, given.sizes, only, [("01-empty-home", "/")])
        with _script(running) as script:
            made = home.make(script, Path(name) / _POISON)
            recording = recorded_game(_player(running))
            made |= {"session": [recording["session_id"]], "recording": [recording["id"]]}
            _take(page, given.folder, given.sizes, only, _views(script, made))
        for theme in THEMES if any(part in "10-export" for part in only) else ():
            page.set_viewport_size({"width": 1280, "height": SIZES[1280]})
            page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
            page.goto(f"/compare?runs={','.join(made['rates'])}&group=seed")
            page.get_by_role("button", name="Options for").first.click()
            page.get_by_role("menuitem", name="Export figure…").click()
            page.get_by_role("img", name="Preview").locator("svg").wait_for()
            page.screenshot(path=given.folder / f"10-export-1280-{theme}.png")
        browser.close()


def _installed(folder: Path) -> AbstractContextManager[Installation]:
    """An installation in `folder` with an environment in which runs fail once the file `_POISON` exists."""
    entry = custom_environment.POISONED_BY.format(path=folder / _POISON)
    environments = custom_environment.write(folder, entry)
    return installation(folder / "home", demo="true", environments_file=environments)


def _script(running: Installation) -> httpx.Client:
    """A client with a token of its own."""
    command = [*CALLBOARD, "token", "create", "looks"]
    token = subprocess.run(
        command, env=environment(running.home), check=True, capture_output=True, text=True
    ).stdout.strip()
    return httpx.Client(base_url=running.url, headers={"Authorization": f"Bearer {token}"}, timeout=60)


def _player(running: Installation) -> httpx.Client:
    """A client with the session of a page, which play needs."""
    command = [*CALLBOARD, "login-link"]
    printed = subprocess.run(
        command, env=environment(running.home), check=True, capture_output=True, text=True
    ).stdout
    link = re.search(r"http://\S+", printed)
    assert link is not None, printed
    client = page_client(running.url)
    client.get(link[0])
    return client


def _views(script: httpx.Client, made: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    [trained] = made["trained"]
    episodes = until(lambda: script.get(f"/api/v1/runs/{trained}/episodes").json()["items"])
    episode = episodes[-1]["id"]
    yield from home.addresses(made, episode)
    ids = {"runId": trained, "episodeId": episode}
    ids |= {f"{name}Id": made[name][0] for name in ("sweep", "study", "session", "recording")}
    for address in page_addresses(ids):
        if address != "/login":  # taken before signing in
            name = address
            for parameter, id in ids.items():
                name = name.replace(id, parameter.removesuffix("Id"))
            yield f"page{name.replace('/', '-')}", address
    yield "page-help", "/help/"


def _take(
    page: Page, folder: Path, sizes: list[int], only: list[str], views: Iterable[tuple[str, str]]
) -> None:
    for name, address in views:
        if not any(part in name for part in only):
            continue
        for width in sizes:
            page.set_viewport_size({"width": width, "height": SIZES[width]})
            for theme in THEMES:
                page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
                page.goto(address)
                page.wait_for_timeout(SETTLED_MS)
                page.screenshot(path=folder / f"{name}-{width}-{theme}.png")


def _document(page: Page, folder: Path, script: httpx.Client) -> None:
    """The pictures of the documentation: of the tutorial's runs, and of a longer one."""
    rates = [
        run["id"]
        for rate in (0.0028, 0.0224)
        for run in home.train(
            script,
            {
                "algorithm": "paac",
                "environment": "CartPole-v1",
                "config": {"learning_rate": rate},
                "seeds": list(range(5)),
                "stop": {"agent_steps": 30_000},
            },
        )
    ]
    [run] = home.train(script, home.TRAINED)
    listed = script.get(f"/api/v1/runs/{run['id']}/episodes", params={"sort": "-episode_return"})
    best = listed.json()["items"][0]["id"]
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light")
    for name, address in (
        ("launch", "/new?environment=ALE/Pong-v5&algorithm=paac"),
        ("run", f"/runs/{run['id']}"),
        ("replay", f"/runs/{run['id']}/episodes/{best}?at=150"),
        ("compare", f"/compare?runs={','.join(rates)}&group=seed"),
    ):
        page.goto(address)
        if name in ("run", "replay"):
            page.wait_for_function("() => document.querySelector('video')?.duration > 0")
        page.wait_for_timeout(_RENDERED_MS)
        page.screenshot(path=folder / f"{name}.png")


if __name__ == "__main__":
    main()
