"""The runs of a home that shows every page with data: external runs of fixed values, and one that trains."""

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from backend.db.base import new_id
from tests.support.waiting import until

N_POINTS = 1_200
AGENT_STEPS = 3_000_000
RATES = (0.0005, 0.001, 0.002, 0.005, 0.01)
SEEDS = 5
_SLOW_S = 1_200.0
"""For a dozen short runs, two at a time, on a busy machine."""


def make(script: httpx.Client, poison: Path) -> dict[str, list[str]]:
    """Make the runs; their ids by what they show. The file `poison` makes runs of `FAILED` fail."""
    made = {
        "rates": [
            _external(script, f"lr {rate:g}", seed, _rate(rate, seed), config={"learning_rate": rate})
            for rate in RATES
            for seed in range(SEEDS)
        ],
        "nan": [_external(script, "Values that are not finite", 0, _gaps())],
        "catch": [_external(script, "Returns of minus one and one", 0, _coin(), environment="Catch-v0")],
        "collapse": [_external(script, "Collapse at two million", 0, _collapse(), environment="ALE/Pong-v5")],
        "names": [_external(script, "Ein langer Name / длинное имя / 很长的名字 " + "x" * 120, 0, _coin())],
    }  # fmt: skip
    [run] = train(script, TRAINED)
    failed = _failed(script, poison)
    sweep = script.post("/api/v1/sweeps", json=SWEEP).raise_for_status().json()["id"]
    study = script.post("/api/v1/studies", json={"study": STUDY}).raise_for_status().json()["id"]
    until(lambda: script.get(f"/api/v1/sweeps/{sweep}").json()["state"] == "finished", _SLOW_S, every_s=1)
    until(lambda: script.get(f"/api/v1/studies/{study}").json()["state"] == "finished", _SLOW_S, every_s=1)
    return made | {"trained": [run["id"]], "failed": [failed], "sweep": [sweep], "study": [study]}


TRAINED: dict[str, Any] = {
    "algorithm": "paac",
    "environment": "CartPole-v1",
    "name": "PAAC on CartPole",
    "stop": {"agent_steps": 60_000},
}


FAILED: dict[str, Any] = {
    "algorithm": "paac",
    "environment": "Custom/Poisonable-v0",
    "name": "PAAC with rewards that become NaN",
    "config": {"checkpoint_interval_s": 10},
    "stop": {"agent_steps": 100_000_000},
}


_QUICK: dict[str, Any] = {
    "algorithm": "paac",
    "environment": "CartPole-v1",
    "stop": {"agent_steps": 8_000},
    "config": {"n_e": 8, "n_w": 1, "evaluation_episodes": 0},
}
SWEEP: dict[str, Any] = {
    "name": "Three learning rates",
    "run": _QUICK,
    "space": {"config.learning_rate": {"values": [0.0003, 0.003, 0.03]}},
    "max_seeds": 4,
    "concurrency": 2,
}
STUDY: dict[str, Any] = {
    "name": "PAAC beside A3C",
    "arms": [{"label": "PAAC", "algorithm": "paac"}, {"label": "A3C", "algorithm": "a3c"}],
    "environments": ["CartPole-v1"],
    "draws": {"n": 2},
    "run": {"stop": {"agent_steps": 8_000}},
    "figures": [
        {"id": "scores", "title": "Scores", "kind": "table"},
        {"id": "curves", "title": "Learning curves", "kind": "curves"},
    ],
    "concurrency": 2,
}


def _external(
    script: httpx.Client,
    name: str,
    seed: int,
    series: dict[str, np.ndarray[Any, Any]],
    *,
    environment: str = "CartPole-v1",
    config: dict[str, float] | None = None,
) -> str:
    wanted = {
        "origin": "external", "algorithm": "my_ppo", "environment": environment, "name": name, "seed": seed,
        "config": config or {},
    }  # fmt: skip
    [run] = script.post("/api/v1/runs", json=wanted).raise_for_status().json()["items"]
    steps = np.linspace(0, AGENT_STEPS, N_POINTS, dtype=int).tolist()
    at_s = [at / 2_000 for at in steps]
    batch: dict[str, Any] = {"source": new_id(), "sequence": 1}
    columns = [
        {"metric": metric, "agent_steps": steps, "wall_time_s": at_s, "value": list(map(_sent, values))}
        for metric, values in series.items()
        if metric != "return"
    ]
    at = f"/api/v1/runs/{run['id']}"
    script.post(f"{at}/points", json=batch | {"series": columns}).raise_for_status()
    episodes = [
        {"agent_steps": step, "wall_time_s": s, "return": float(value), "length": 100}
        for step, s, value in zip(steps, at_s, series["return"], strict=True)
    ]
    script.post(f"{at}/episodes", json=batch | {"sequence": 2, "episodes": episodes}).raise_for_status()
    script.post(f"{at}/heartbeat", json={"state": "finished"}).raise_for_status()
    return str(run["id"])


def _sent(value: float) -> float | str:
    if math.isfinite(value):
        return float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _series(seed: int, returns: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    share = np.linspace(0, 1, N_POINTS)
    return {
        "return": returns,
        "loss/policy": 0.1 * np.exp(-3 * share) + rng.normal(0, 0.02, N_POINTS),
        "loss/value": 2 * np.exp(-2 * share) + rng.gamma(2, 0.1, N_POINTS),
        "loss/entropy": 0.7 - 0.5 * share + rng.normal(0, 0.02, N_POINTS),
        "optim/learning_rate": 7e-4 * (1 - share),
        "speed/agent_steps_per_s": rng.normal(8_000, 300, N_POINTS),
        "system/rss_bytes": 4.1e8 + 3e7 * share + rng.normal(0, 1e6, N_POINTS),
    }


def _rate(rate: float, seed: int) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng([seed, round(rate * 1e6)])
    height = 500 * math.exp(-(math.log(rate / 0.0015) ** 2) / 2) * rng.uniform(0.8, 1.0)
    learnt = height / (1 + np.exp(-12 * (np.linspace(0, 1, N_POINTS) - 0.35)))
    return _series(seed, np.maximum(9, learnt + rng.normal(0, 0.15, N_POINTS) * learnt))


def _gaps() -> dict[str, np.ndarray[Any, Any]]:
    series = _series(1, np.linspace(10, 200, N_POINTS))
    series["loss/policy"][700:999] = math.nan
    series["loss/policy"][1100] = math.inf
    return series | {"loss/td": np.full(N_POINTS, math.nan)}


def _coin() -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(2)
    return _series(2, np.where(rng.random(N_POINTS) < np.linspace(0.2, 0.95, N_POINTS), 1.0, -1.0))


def _collapse() -> dict[str, np.ndarray[Any, Any]]:
    share = np.linspace(0, 1, N_POINTS)
    fallen = share > 2 / 3
    series = _series(3, np.where(fallen, -20.0, -21 + 40 * np.minimum(1, share * 2)))
    series["loss/entropy"] = np.where(fallen, 0.02, series["loss/entropy"])
    return series


def train(script: httpx.Client, wanted: dict[str, Any]) -> list[dict[str, Any]]:
    """Train the runs of a request, and return them when they have finished."""
    runs: list[dict[str, Any]] = script.post("/api/v1/runs", json=wanted).raise_for_status().json()["items"]

    def has_finished(run_id: str) -> bool:
        state: str = script.get(f"/api/v1/runs/{run_id}").json()["state"]
        return state == "finished"

    for run in runs:
        until(partial(has_finished, run["id"]), _SLOW_S)
    return runs


def _failed(script: httpx.Client, poison: Path) -> str:
    # The worker, which starts after the web process, reports the environment with its host.
    environment = f"/api/v1/environments/{FAILED['environment']}"
    until(lambda: script.get(environment).is_success)
    [run] = script.post("/api/v1/runs", json=FAILED).raise_for_status().json()["items"]
    at = f"/api/v1/runs/{run['id']}"
    until(lambda: script.get(f"{at}/checkpoints").json()["items"], _SLOW_S)
    poison.touch()
    until(lambda: script.get(at).json()["state"] == "failed", _SLOW_S)
    return str(run["id"])


def addresses(made: dict[str, list[str]], episode: str) -> Iterator[tuple[str, str]]:
    """The views that a redesign is judged by: a name and an address each."""
    best = ",".join(made["rates"][::2][:10])
    [trained] = made["trained"]
    yield "02-first-run", f"/runs/{trained}"
    yield "03-runs-list", "/"
    yield "04-run-page", f"/runs/{made['collapse'][0]}"
    yield "05-two-valued-returns", f"/runs/{made['catch'][0]}"
    yield "06-not-finite", f"/runs/{made['nan'][0]}"
    yield "07-compare-ten-runs", f"/compare?runs={best}"
    yield "08-compare-small-charts", f"/compare?runs={best}&metrics=loss%2Fpolicy,loss%2Fvalue,loss%2Fentropy"
    yield "09-compare-seeds", f"/compare?runs={','.join(made['rates'])}&group=seed"
    yield "11-watch", f"/runs/{trained}?tab=episodes"
    yield "12-replay", f"/runs/{trained}/episodes/{episode}"
    yield "13-failed-run", f"/runs/{made['failed'][0]}"
