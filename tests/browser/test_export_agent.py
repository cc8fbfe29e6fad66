"""An agent exported from the run's page by a real worker."""

from zipfile import ZipFile

import httpx
import pytest
from playwright.sync_api import Page

from tests.browser.stage import start, until_state
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.browser


@pytest.mark.long
def test_agent_of_a_checkpoint_is_exported_as_onnx(page: Page, script: httpx.Client) -> None:
    run = start(script, environment="CartPole-v1", stop={"agent_steps": 2_000})
    until_state(script, run["id"], "finished")
    page.goto(f"/runs/{run['id']}?tab=checkpoints")
    with page.expect_download(timeout=10_000 * PATIENCE_S) as downloading:
        page.get_by_role("button", name="Export the agent of").first.click()
        page.get_by_role("menuitem", name="ONNX").click()
    assert downloading.value.suggested_filename.endswith("-agent.zip")
    with ZipFile(downloading.value.path()) as archive:
        assert {"README.md", "model.onnx", "replay.mp4"} <= set(archive.namelist())
