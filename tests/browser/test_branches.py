"""Branching from a replay, and the saliency of its decisions, with the real worker and engine."""

import base64
import re
from pathlib import Path

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Page, expect

from backend.specs.branches import BranchPlan
from backend.specs.run import parse_run_spec
from tests.browser.axe import serious_violations
from tests.browser.stage import start, until_state
from tests.support.playing import open_session, playing
from tests.workers.engine.training.recorded_episodes import simulate
from workers.engine.envs import make_env
from workers.engine.nn.policies import PolicyWithOutputs
from workers.engine.training.evaluation import load_policy
from workers.engine.training.saliency import perturbation_saliency

pytestmark = pytest.mark.browser

DECISION = 4


@pytest.mark.long
def test_fan_of_a_branch_agrees_with_a_simulation_of_the_same_seed(
    page: Page, script: httpx.Client, tmp_path: Path
) -> None:
    run = start(
        script,
        name="catcher",
        environment="Catch-v0",
        stop={"agent_steps": 400},
        config={"network": "compact", "n_e": 2, "n_w": 1, "evaluation_episodes": 0},
    )
    until_state(script, run["id"], "finished")
    episode = script.get(f"/api/v1/runs/{run['id']}/episodes").json()["items"][0]
    page.goto(f"/runs/{run['id']}/episodes/{episode['id']}?at={DECISION}")
    page.get_by_role("button", name="Branch from here").click()
    form = page.get_by_role("dialog", name="Branch from here")
    expect(form.get_by_label("Decision")).to_have_value(str(DECISION + 1))
    form.get_by_label("Continuations").fill("1000000")
    expect(form.get_by_role("alert")).to_have_text("A whole number from 1 to 64")
    form.get_by_label("Continuations").fill("6")
    form.get_by_label("Horizon").fill("20")
    form.get_by_label("First action").select_option("LEFT")
    form.get_by_role("button", name="Branch", exact=True).click()
    fan = page.get_by_role("img", name=re.compile("^Fan of Decision 5, 6 × 20"))
    expect(fan).to_be_visible()
    expect(fan.locator(".legend")).to_contain_text("the episode itself")
    expect(page.get_by_text(re.compile("V .* beside a mean discounted return of"))).to_be_visible()
    page.wait_for_url("**branch=*")
    assert serious_violations(page) == {}

    [branch] = script.get("/api/v1/branches", params={"episode": episode["id"]}).json()["items"]
    trace = script.get(f"/api/v1/episodes/{episode['id']}/trace").json()
    file = tmp_path / "checkpoint.pt"
    file.write_bytes(script.get(f"/api/v1/checkpoints/{branch['policy']['checkpoint']}/file").content)
    spec = parse_run_spec(script.get(f"/api/v1/runs/{run['id']}").json()["spec"])
    plan = BranchPlan(
        decision=DECISION,
        continuations=6,
        horizon=20,
        seed=branch["seed"],
        first_action=branch["first_action"],
    )
    policy = load_policy(spec, file, branch["seed"])
    played = simulate(spec, policy, trace["seed"], trace["actions"], plan, group=6)
    continuations = branch["outcome"]["continuations"]
    assert [line["true_return"] for line in continuations] == [sum(rewards) for rewards, _, _ in played]
    assert [line["length_steps"] for line in continuations] == [len(rewards) for rewards, _, _ in played]
    assert {line["end"] for line in continuations} == {"terminated"}

    page.get_by_role("button", name="Saliency").click()
    expect(page.get_by_role("img", name=re.compile("^Saliency of the policy’s logits"))).to_be_visible()
    page.get_by_role("radiogroup", name="Saliency of").get_by_text("V", exact=True).click()
    expect(page.get_by_role("img", name=re.compile("^Saliency of V over"))).to_be_visible()
    assert serious_violations(page) == {}
    answer = script.get(f"/api/v1/episodes/{episode['id']}/saliency", params={"decision": DECISION}).json()
    env = make_env(spec.environment, spec.environment_config)
    observation = np.empty(env.observation_shape, np.uint8)
    env.reset(trace["seed"], observation)
    for action in trace["actions"][:DECISION]:
        env.step(action, observation)
    frame = np.frombuffer(base64.b64decode(answer["map"]["frame"]), np.uint8)
    np.testing.assert_array_equal(frame, observation[:, :, 0].ravel())
    assert isinstance(policy, PolicyWithOutputs)
    explained = policy

    def outputs(observation_N: NDArray[np.uint8]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return explained.outputs(observation_N, np.arange(len(observation_N)))

    places = list(range(2, 84, 5))
    for quick, slow in zip(
        (answer["map"]["policy"], answer["map"]["value"]),
        perturbation_saliency(observation, places, places, outputs),
        strict=True,
    ):
        np.testing.assert_allclose(quick, slow, rtol=1e-2, atol=1e-3 * slow.max())

    session = open_session(
        script, "Catch-v0", scripted=True, **{"from": {"episode": episode["id"], "decision": DECISION}}
    )
    with playing(script, session["id"]) as player:
        player.until(paused=True)
        player.hold(0)
        player.until(over=True)
    script.delete(f"/api/v1/play/{session['id']}").raise_for_status()
    page.reload()
    expect(fan.locator(".legend")).to_contain_text("a script of")
    expect(page.get_by_text("Played from this decision on by")).to_be_visible()

    page.get_by_role("button", name=re.compile("^Delete branch")).click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert f"branch={branch['id']}" in page.url
    page.get_by_role("button", name=re.compile("^Delete branch")).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="Branches")).to_have_count(0)
