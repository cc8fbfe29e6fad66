"""The engine as the golden tests use it: in this process, through the registry of learners.

Same-seed series are what a learner reports over its first updates, and its state afterwards. Everything that
depends on time, on the number of cores or on the device is left out or fixed by the request.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from backend.specs.run import parse_run_spec
from workers.engine.methods.registry import METHODS
from workers.engine.nn.devices import prepare_torch
from workers.engine.training import checkpoint
from workers.engine.training.evaluation import evaluate, load_policy
from workers.engine.training.event_log import read_frames
from workers.engine.training.loop import Training

_TIMED = "paac/time_"
"""Metrics that measure the machine."""

_CARTPOLE: dict[str, Any] = {"environment": "CartPole-v1", "seed": 5, "device": "cpu"}
_PONG: dict[str, Any] = {
    "environment": "ALE/Pong-v5",
    "environment_config": {"max_frames": 360},
    "seed": 5,
    "device": "cpu",
}
_PAAC = {"n_e": 4, "n_w": 1, "t_max": 5, "precision": "fp32"}
_DQN = {
    "learner_threads": 1,
    "precision": "fp32",
    "replay_capacity": 300,
    "learning_starts_agent_steps": 100,
    "target_update_updates": 20,
    "exploration_anneal_agent_steps": 400,
}

REQUESTS: dict[str, tuple[dict[str, Any], int]] = {
    "dqn-cartpole": (_CARTPOLE | {"algorithm": "dqn", "config": _DQN}, 125),
    "paac-cartpole": (_CARTPOLE | {"algorithm": "paac", "config": _PAAC}, 30),
    "paac_q-cartpole": (
        _CARTPOLE | {"algorithm": "paac_q", "config": _PAAC | {"exploration_anneal_frames": 400}},
        30,
    ),
    "dqn-pong": (_PONG | {"algorithm": "dqn", "config": _DQN | {"network": "nips", "batch_size": 8}}, 60),
    "paac-pong": (_PONG | {"algorithm": "paac", "config": _PAAC}, 20),
    "paac_q-pong": (
        _PONG
        | {
            "algorithm": "paac_q",
            "config": _PAAC | {"exploration_anneal_frames": 800, "target_update_frames": 400},
        },
        20,
    ),
}
"""Name -> the run's request and how often its learner advances."""


RESUMED = {"paac": 40, "paac_q": 40, "dqn": 60, "pong": 10}
"""Run of the golden home -> how often its learner advances from its newest checkpoint."""


def train(request: dict[str, Any], advances: int, *, resume: Path | None = None) -> dict[str, Any]:
    """Advance a learner so often; plain JSON values of what it reported and of its state at the end.

    Args:
        request: a run's, without bounds.
        advances: how often.
        resume: checkpoint to go on from.
    """
    spec = parse_run_spec(request | {"stop": {"agent_steps": 1_000_000}})
    prepare_torch()
    learner = METHODS[spec.algorithm].learner(spec)
    steps: dict[str, list[int]] = {"agent_steps": [], "frames": [], "updates": []}
    metrics: dict[str, list[list[float]]] = {}
    episodes: list[list[Any]] = []
    try:
        if resume is not None:
            learner.restore(checkpoint.load(resume)["learner"])
        for k in range(advances):
            step = learner.advance(0.0, watched=False)
            for name, column in steps.items():
                column.append(getattr(step, name))
            for source, values in {"": step.metrics, **step.metrics_by_source}.items():
                for metric, value in values.items():
                    if not metric.startswith(_TIMED):
                        metrics.setdefault(f"{metric} {source}".strip(), []).append([k, float(value)])
            episodes += [
                [k, e.source, e.seed, float(e.episode_return), e.length_steps, e.length_frames]
                for e in step.episodes
            ]
        state = summary(learner.state())
    finally:
        learner.close()
        torch.set_flush_denormal(False)
    return {"steps": steps, "metrics": metrics, "episodes": episodes, "state": state}


def go_on(run_dir: Path, stored: dict[str, Any], resume: str, agent_steps: int) -> list[dict[str, Any]]:
    """Train a run on from one of its checkpoints, as a second attempt; gives the events that it logged.

    Args:
        run_dir: the run's folder.
        stored: its spec, as it was stored.
        resume: file name of the checkpoint.
        agent_steps: the new bound.
    """
    config = stored["config"] | {"evaluation_episodes": 0}
    spec = parse_run_spec(stored | {"config": config, "stop": {"agent_steps": agent_steps}})
    prepare_torch()
    try:
        Training(spec, run_dir, attempt=2, resume=resume).run()
    finally:
        torch.set_flush_denormal(False)
    return list(events_of(run_dir, 2))


def score(stored: dict[str, Any], file: Path) -> list[float]:
    """Returns of two evaluation episodes played by a checkpoint."""
    spec = parse_run_spec(stored)
    prepare_torch()
    try:
        policy = load_policy(spec, file, 0)
        return evaluate(policy, spec, episodes=2, seed=0, processes=0).returns
    finally:
        torch.set_flush_denormal(False)


def events_of(run_dir: Path, attempt: int) -> Iterator[dict[str, Any]]:
    """Every event of an attempt's log as plain JSON values, in order."""
    for events, _ in read_frames(run_dir / "attempts" / str(attempt) / "events.log"):
        for event in events:
            yield event.model_dump(mode="json")


def summary(value: Any) -> Any:
    """A state's structure with each array as its type, shape, mean and norm; of integers, a digest."""
    if isinstance(value, dict):
        return {str(key): summary(its) for key, its in value.items()}
    if isinstance(value, list | tuple):
        return [summary(its) for its in value]
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        found: dict[str, Any] = {"array": str(value.dtype), "shape": list(value.shape)}
        if value.dtype.kind == "f":
            wide = value.astype(np.float64)
            return found | {
                "mean": float(wide.mean()) if wide.size else 0.0,
                "norm": float(np.sqrt((wide**2).sum())),
            }
        return found | {"sha256": hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}
    if isinstance(value, np.generic):
        return value.item()
    return value
