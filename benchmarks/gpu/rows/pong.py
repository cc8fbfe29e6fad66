"""Pong as a run trains it, by the engine's own command, and the evaluation of its last checkpoint."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from backend.specs.events import AnyEvent, EndedEvent, ReportEvent, StartedEvent
from backend.specs.run import RunSpec, parse_run_spec
from workers.engine.training.event_log import read_frames

GAME = "ALE/Pong-v5"
EVALUATION_SEED = 1
_POLL_S = 0.5


class Point(NamedTuple):
    """One report of the run."""

    wall_time_s: float
    """Of the training."""
    agent_steps: int
    mean_return: float | None
    """Of the last 100 episodes."""


def train(
    *,
    device: str,
    config: dict[str, Any],
    seconds: float,
    annealed_over_agent_steps: int,
    run_dir: str,
) -> Iterator[dict[str, Any]]:
    """Train by PAAC; yields all points so far with each report of the run, one a second."""
    folder = Path(run_dir)
    folder.mkdir(parents=True)
    request = {
        "algorithm": "paac",
        "environment": GAME,
        "device": device,
        "config": config,
        "stop": {"wall_time_s": seconds},
        "annealing_agent_steps": annealed_over_agent_steps,
    }
    (folder / "spec.json").write_text(json.dumps(request), "utf-8")
    points: list[Point] = []
    record: dict[str, Any] = {"environment": GAME, "points": points}
    offset = 0
    log = folder / "attempts" / "1" / "events.log"
    command = [sys.executable, "-m", "workers.engine", "train", run_dir, "--parent", str(os.getpid())]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as engine:
        has_exited = False
        while not has_exited:
            has_exited = engine.poll() is not None  # before the last events are read
            n_points = len(points)
            for events, end in read_frames(log, offset):
                offset = end
                for event in events:
                    _add(event, record, points)
            if len(points) > n_points:
                yield record | {"agent_steps_per_s": points[-1].agent_steps / points[-1].wall_time_s}
            if not has_exited:
                time.sleep(_POLL_S)
    if engine.returncode:
        raise RuntimeError(f"the engine exited with status {engine.returncode}: {record.get('ended')}")


def _add(event: AnyEvent, record: dict[str, Any], points: list[Point]) -> None:
    match event:
        case StartedEvent():
            record["device"] = event.device
        case ReportEvent() if event.agent_steps:
            points.append(Point(event.wall_time_s, event.agent_steps, event.mean_return_100))
        case EndedEvent():
            record["ended"] = event.reason


def evaluate_run(*, device: str, run_dir: str, episodes: int, processes: int) -> Iterator[dict[str, Any]]:
    """The newest checkpoint's mean return over complete episodes with no-op starts."""
    from workers.engine.nn.devices import prepare_torch
    from workers.engine.training import checkpoint
    from workers.engine.training.evaluation import evaluate

    prepare_torch()
    folder = Path(run_dir)
    spec = parse_run_spec(json.loads((folder / "spec.json").read_text("utf-8")))
    newest = checkpoint.newest(folder / "checkpoints")
    if newest is None:
        raise FileNotFoundError("the training left no checkpoint")
    policy = _policy(spec, folder / "checkpoints" / newest, device)
    result = evaluate(
        policy, spec, episodes=episodes, seed=EVALUATION_SEED, processes=processes, protocol="noop_starts"
    )
    yield {
        "protocol": result.protocol,
        "checkpoint": newest,
        "mean_return": result.mean_return,
        "returns": result.returns,
    }


def _policy(spec: RunSpec, path: Path, device: str) -> Any:
    """The policy of a checkpoint on the device: `load_policy` has it on the CPU, where it would be slow."""
    import torch

    from workers.engine.envs import make_env
    from workers.engine.methods.registry import METHODS
    from workers.engine.nn.optimizers import FlatParameters
    from workers.engine.training.checkpoint import load

    method = METHODS[spec.algorithm]
    env = make_env(spec.environment, spec.environment_config)
    network = method.network(spec.config, env).to(device)
    env.close()
    FlatParameters(network).theta.copy_(load(path)["learner"]["theta"])
    return method.policy(network, torch.device(device), EVALUATION_SEED)
