"""Test set-up over REST: runs that start and end quickly."""

from typing import Any

import httpx

from tests.support.waiting import PATIENCE_S, until

QUICK = {
    "algorithm": "paac",
    "environment": "Custom/Paced-v0",
    "stop": {"agent_steps": 10_000_000},
    "config": {"n_e": 8, "n_w": 1, "evaluation_episodes": 0},
}


def start(script: httpx.Client, **changes: Any) -> dict[str, Any]:
    """Start a run on a paced CartPole that trains until it is stopped."""
    answer = script.post("/api/v1/runs", json=QUICK | changes)
    assert answer.status_code == 201, answer.text
    run: dict[str, Any]
    [run] = answer.json()["items"]
    return run


def read(script: httpx.Client, run_id: str) -> dict[str, Any]:
    """The current state of a run."""
    run: dict[str, Any] = script.get(f"/api/v1/runs/{run_id}").json()
    return run


def until_state(
    script: httpx.Client, run_id: str, *states: str, timeout_s: float = PATIENCE_S
) -> dict[str, Any]:
    """Wait until a run is in one of the states."""

    def in_state() -> dict[str, Any] | None:
        run = read(script, run_id)
        return run if run["state"] in states else None

    return until(
        in_state, timeout_s, every_s=0.1, detail=lambda: f"the run is {read(script, run_id)['state']}"
    )


def until_episodes(
    script: httpx.Client, run_id: str, least: int, timeout_s: float = PATIENCE_S
) -> dict[str, Any]:
    """Wait until a run has finished that many training episodes."""

    def has_episodes() -> dict[str, Any] | None:
        run = read(script, run_id)
        return run if run["episodes"] >= least else None

    return until(has_episodes, timeout_s, every_s=0.1, detail=lambda: read(script, run_id)["episodes"])


def end(script: httpx.Client, run_id: str) -> None:
    """Kill a run and wait until it has ended."""
    script.post(f"/api/v1/runs/{run_id}/kill")
    until_state(script, run_id, "stopped", "finished", "failed")


def delete_all(script: httpx.Client) -> None:
    """Delete every run, each as soon as no worker holds it."""

    def all_gone() -> bool:
        runs = script.get("/api/v1/runs", params={"archived": "all"}).json()["items"]
        for run in runs:
            if script.delete(f"/api/v1/runs/{run['id']}").status_code == 409:
                script.post(f"/api/v1/runs/{run['id']}/kill")
        return not runs

    until(all_gone, every_s=0.2)
