"""The algorithm of `examples/algorithm_package`, installed with pip, from the form to Compare."""

import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import opened
from tests.browser.curves import await_points, await_state
from tests.browser.stage import read, until_state
from tests.support.databases import short_folder
from tests.support.installation import Installation, installation
from tests.support.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.long]

ROOT = Path(__file__).parents[2]
PACKAGE = "callboard-a2c-gae==1.0"
RENDERED_MS = 120_000


@pytest.fixture(scope="module")
def with_package() -> Iterator[Installation]:
    """An installation in an environment of its own, which has the packages of this one and the example."""
    with short_folder() as folder:
        environment = folder / "environment"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
        [site] = environment.glob("lib/python*/site-packages")
        ours = sysconfig.get_path("purelib")
        (site / "of_the_tests.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
        source = folder / "source"
        shutil.copytree(ROOT / "examples" / "algorithm_package", source)  # a build leaves files there
        python = str(environment / "bin" / "python")
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            python,
            "install",
            "--quiet",
            "--no-index",
            "--no-deps",
        ]
        subprocess.run([*pip, "--no-build-isolation", str(source)], check=True)
        with installation(folder / "home", python=python) as running:
            running.log_in()
            yield running


@pytest.fixture
def page(
    with_package: Installation, browser: Browser, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Page]:
    with opened(browser, with_package.client, request) as context:
        yield context.new_page()


def stop(page: Page) -> None:
    page.get_by_role("button", name="Stop and keep a checkpoint").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop and keep a checkpoint").click()
    await_state(page, "stopped")


def test_run_of_an_installed_package_is_launched_stopped_resumed_forked_replayed_and_compared(
    page: Page, with_package: Installation
) -> None:
    script = with_package.client
    page.goto("/machines")
    expect(page.get_by_text("callboard-a2c-gae 1.0")).to_be_visible()
    page.goto("/new?environment=CartPole-v1&algorithm=a2c_gae&all=true")
    expect(page.locator("[name='config.gae_lambda']")).to_have_value("0.95")
    page.locator("[name='config.gae_lambda']").fill("2")
    page.locator("[name='config.n_e']").fill("8")
    page.locator("[name='config.n_w']").fill("1")
    page.locator("[name='stop.agent_steps']").fill("10,000,000")
    page.get_by_label("Name", exact=True).fill("mine")
    page.get_by_role("button", name="Start run").click()
    expect(page.get_by_text("Must be 0 to 1").first).to_be_visible()
    page.locator("[name='config.gae_lambda']").fill("0.9")
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url(re.compile(r"/runs/\w{26}"))
    run = page.url.rsplit("/", 1)[1]
    await_state(page, "running")
    await_points(page, more_than=2)
    spec = read(script, run)["spec"]
    assert (spec["algorithm"], spec["package"], spec["config"]["gae_lambda"]) == ("a2c_gae", PACKAGE, 0.9)

    stop(page)
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    await_state(page, "running")
    stopped_at = read(script, run)["agent_steps"]
    until(lambda: read(script, run)["agent_steps"] > stopped_at)
    stop(page)

    page.goto(f"/runs/{run}?tab=checkpoints")
    page.get_by_role("link", name="Fork from here").first.click()
    page.locator("[name='config.gae_lambda']").fill("0.5")
    steps = read(script, run)["agent_steps"] + 2_000
    page.locator("[name='stop.agent_steps']").fill(f"{steps:,}")
    page.get_by_role("button", name="Start fork").click()
    expect(page.get_by_text("forked from")).to_be_visible()
    fork = page.url.rsplit("/", 1)[1]
    forked = until_state(script, fork, "finished")["spec"]
    assert (forked["package"], forked["config"]["gae_lambda"]) == (PACKAGE, 0.5)

    [episode, *_] = script.get(f"/api/v1/runs/{run}/episodes", params={"limit": 1}).json()["items"]
    page.goto(f"/runs/{run}/episodes/{episode['id']}")
    page.get_by_role("slider", name="Position in the episode").wait_for(timeout=RENDERED_MS)
    page.wait_for_function("() => document.querySelector('video')?.duration > 0", timeout=RENDERED_MS)

    page.goto(f"/compare?runs={run},{fork}")
    expect(page.get_by_role("list", name="Compared runs").get_by_role("link")).to_have_count(2)
    expect(page.get_by_text("λ 0.5").first).to_be_visible()
