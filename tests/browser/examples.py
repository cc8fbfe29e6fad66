"""Rows that every page can show: an ended run, a stopped sweep and study, a recorded game."""

from typing import Any

import httpx

from tests.browser.pages import page_addresses
from tests.browser.stage import end, start, until_episodes
from tests.support.playing import open_session, playing
from tests.support.rows import CARTPOLE


def make(client: httpx.Client) -> dict[str, str]:
    """Make them; return an id for each parameter of the pages' paths."""
    recording = recorded_game(client)
    run = _ended_run(client)
    episodes = client.get(f"/api/v1/runs/{run}/episodes").json()["items"]
    return {
        "runId": run,
        "episodeId": episodes[0]["id"],
        "sweepId": _stopped(client, "sweeps", _SWEEP),
        "studyId": _stopped(client, "studies", {"study": _STUDY}),
        "sessionId": recording["session_id"],
        "recordingId": recording["id"],
        "view": _view(client),
    }


def addresses(examples: dict[str, str]) -> list[str]:
    """Every page with these rows, lists without rows, unknown addresses, and at last the run."""
    run = f"/runs/{examples['runId']}"
    return [
        *page_addresses(examples),
        "/?q=nothing-is-called-so",
        "/?group=seed",
        f"/new?fork={examples['runId']}",
        f"/compare?runs={examples['runId']}",
        "/nowhere",
        f"{run}/nothing",
        run,
    ]


_SWEEP = {
    "name": "checked rates",
    "run": CARTPOLE,
    "space": {"config.learning_rate": {"values": [0.001, 0.01]}},
    "concurrency": 1,
}
_STUDY = {
    "name": "checked study",
    "arms": [{"label": "PAAC", "algorithm": "paac"}],
    "environments": ["CartPole-v1"],
    "draws": {"n": 2},
    "run": {"stop": {"agent_steps": 1_000}},
    "figures": [{"id": "scores", "title": "Scores", "kind": "table"}],
    "concurrency": 1,
}


def _view(client: httpx.Client) -> str:
    body = {"name": "checked view", "document": {"filter": "tag:a"}}
    assert client.post("/api/v1/views", json=body).status_code == 201
    return "checked%20view"


def _ended_run(client: httpx.Client) -> str:
    run = start(client, name="checked", tags=["a"])
    until_episodes(client, run["id"], 20)
    end(client, run["id"])
    return str(run["id"])


def _stopped(client: httpx.Client, resource: str, body: dict[str, Any]) -> str:
    answer = client.post(f"/api/v1/{resource}", json=body)
    assert answer.status_code == 201, answer.text
    made = answer.json()["id"]
    assert client.post(f"/api/v1/{resource}/{made}/stop").is_success
    return str(made)


def recorded_game(client: httpx.Client) -> dict[str, Any]:
    """Play a game to its end; return its recording."""
    session = open_session(client, "Catch-v0", scripted=True)
    with playing(client, session["id"]) as player:
        player.until(paused=True)
        player.hold(0)
        player.until(over=True)
    assert client.delete(f"/api/v1/play/{session['id']}").is_success
    items = client.get("/api/v1/recordings", params={"environment": "Catch-v0"}).json()["items"]
    return next(item for item in items if item["session_id"] == session["id"])
