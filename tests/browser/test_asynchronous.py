"""Asynchronous methods: config changes during training last through a resume and into a fork."""

import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.curves import await_state
from tests.browser.stage import end, read, start, until_state
from tests.support.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.timeout(3_600)]

STARTS_MS = 400_000
"""Actor-learners are processes that load torch: on a busy machine they are long in coming."""
_MARKED = """() => document.querySelector('[role=img][aria-label^="Learning curve"]')
  ?.data?.some(trace => trace.meta?.marks === 'setting changes' && trace.x.length > 0)"""


def _in_force(script: httpx.Client, run_id: str, metric: str, value: float, source: str = "") -> None:
    """Wait until training reports this value."""
    asked = {"run": run_id, "metric": metric, "source": source}

    def reported() -> bool:
        series = script.get("/api/v1/series", params=asked).json()["series"]
        return bool(series and series[0]["last"]) and series[0]["last"][-1] == pytest.approx(value)

    until(reported, every_s=0.1)


@pytest.mark.parametrize(
    ("algorithm", "explores"),
    [
        ("a3c", {"beta": "0.02"}),
        ("n_step_q", {"exploration_eps": "0.3", "exploration_eps_low": "0.3", "exploration_eps_high": "0.3"}),
    ],
)
def test_live_config_changes_last_through_resume_and_fork(
    page: Page, script: httpx.Client, algorithm: str, explores: dict[str, str]
) -> None:
    config = {"n_actors": 2, "evaluation_episodes": 0}
    if algorithm == "n_step_q":
        config["exploration_anneal_frames"] = 0
    run_id = start(script, algorithm=algorithm, name=f"{algorithm} by hand", config=config)["id"]
    page.goto(f"/runs/{run_id}?tab=config")
    await_state(page, "running", timeout_ms=STARTS_MS)
    page.get_by_role("button", name="Change config…").click()
    typed = explores | {
        "learning_rate": "0.00125",
        "evaluation_interval_agent_steps": "70,000",
        "n_actors": "3",
    }
    dialog = page.get_by_role("dialog")
    for name, value in typed.items():
        dialog.locator(f"[name='config.{name}']").fill(value)
    dialog.get_by_role("button", name="Apply").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_text(re.compile(r"applied at agent step"))).to_be_visible(timeout=STARTS_MS)
    changes = {name: float(value.replace(",", "")) for name, value in typed.items()}

    def has_changes(config: dict[str, Any]) -> bool:
        return {name: config[name] for name in changes} == changes

    assert has_changes(read(script, run_id)["spec"]["config"])
    _in_force(script, run_id, "optim/learning_rate", 0.00125)
    if algorithm == "n_step_q":
        for actor in range(3):
            _in_force(script, run_id, "exploration/epsilon", 0.3, source=f"actor {actor}")
    page.get_by_role("tab", name="Curves").click()
    page.wait_for_function(_MARKED, timeout=STARTS_MS)

    page.get_by_role("button", name="Stop and keep a checkpoint").click()
    dialog.get_by_role("button", name="Stop and keep a checkpoint").click()
    await_state(page, "stopped")
    stopped_at = read(script, run_id)["agent_steps"]
    page.get_by_role("button", name="Resume").click()
    dialog.get_by_role("button", name="Resume").click()
    await_state(page, "running", timeout_ms=STARTS_MS)
    until(lambda: read(script, run_id)["agent_steps"] > stopped_at, every_s=0.1)
    _in_force(script, run_id, "optim/learning_rate", 0.00125)
    assert has_changes(read(script, run_id)["spec"]["config"])
    end(script, run_id)

    await_state(page, "stopped")
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Fork", exact=True).click()
    page.locator("[name='config.gamma']").fill("0.98")
    page.get_by_role("button", name="Start fork").click()
    expect(page.get_by_text("forked from")).to_be_visible()
    fork = read(script, page.url.rsplit("/", 1)[1])
    assert fork["parent_id"] == run_id
    assert has_changes(fork["spec"]["config"])
    assert fork["spec"]["config"]["gamma"] == 0.98
    started = until_state(script, fork["id"], "running", timeout_s=STARTS_MS / 1_000)
    until(lambda: read(script, fork["id"])["agent_steps"] > started["forked_at_agent_steps"], every_s=0.1)
    page.get_by_role("link", name=f"{algorithm} by hand", exact=True).click()
    expect(page.get_by_text("forked as")).to_be_visible()
    end(script, fork["id"])
