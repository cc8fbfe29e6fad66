"""Setting the stage by script: runs that are quick to start and to end."""

from time import monotonic, sleep
from typing import Any

import httpx

QUICK = {
    "algorithm": "paac",
    "environment": "CartPole-v1",
    "stop": {"agent_steps": 10_000_000},
    "config": {"n_e": 8, "evaluation_episodes": 0},
}


def start(script: httpx.Client, **changes: Any) -> dict[str, Any]:
    """Start a run on CartPole that goes on until it is stopped."""
    answer = script.post("/api/v1/runs", json=QUICK | changes)
    assert answer.status_code == 201, answer.text
    run: dict[str, Any] = answer.json()
    return run


def read(script: httpx.Client, run_id: str) -> dict[str, Any]:
    """A run as it is now."""
    run: dict[str, Any] = script.get(f"/api/v1/runs/{run_id}").json()
    return run


def until_state(script: httpx.Client, run_id: str, *states: str, timeout_s: float = 60) -> dict[str, Any]:
    """Wait until a run is in one of the states."""
    deadline = monotonic() + timeout_s
    while (run := read(script, run_id))["state"] not in states:
        assert monotonic() < deadline, f"the run is still {run['state']}"
        sleep(0.1)
    return run


def until_episodes(script: httpx.Client, run_id: str, least: int, timeout_s: float = 60) -> dict[str, Any]:
    """Wait until a run has finished that many training episodes."""
    deadline = monotonic() + timeout_s
    while (run := read(script, run_id))["episodes"] < least:
        assert monotonic() < deadline, f"{run['episodes']} episodes; the run is {run['state']}"
        sleep(0.1)
    return run


def end(script: httpx.Client, run_id: str) -> None:
    """Kill a run and wait until it has ended."""
    script.post(f"/api/v1/runs/{run_id}/kill")
    until_state(script, run_id, "stopped", "finished", "failed")


def delete_all(script: httpx.Client, timeout_s: float = 60) -> None:
    """Delete every run, each as soon as no worker holds it."""
    deadline = monotonic() + timeout_s
    while runs := script.get("/api/v1/runs", params={"archived": "all"}).json()["items"]:
        for run in runs:
            if script.delete(f"/api/v1/runs/{run['id']}").status_code == 409:
                script.post(f"/api/v1/runs/{run['id']}/kill")
        assert monotonic() < deadline
        sleep(0.2)
