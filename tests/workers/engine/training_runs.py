"""What the tests of runs share: training CartPole for a moment, and reading what was told."""

from pathlib import Path
from typing import Any

from backend.specs.events import (
    AnyEvent,
    Points,
)
from backend.specs.run import RunSpec, parse_run_spec
from workers.engine.control import Control
from workers.engine.event_log import read_frames
from workers.engine.training import Training


def cartpole(stop: dict[str, Any], algorithm: str = "paac", **config: Any) -> RunSpec:
    quick = {"evaluation_episodes": 0, "n_e": 4}
    return parse_run_spec(
        {"algorithm": algorithm, "environment": "CartPole-v1", "stop": stop, "config": quick | config}
    )


def train(
    spec: RunSpec, run_dir: Path, attempt: int = 1, resume: str | None = None, control: Control | None = None
) -> list[AnyEvent]:
    Training(spec, run_dir, attempt=attempt, resume=resume, control=control).run()
    return events(run_dir, attempt)


def events(run_dir: Path, attempt: int) -> list[AnyEvent]:
    log = run_dir / "attempts" / str(attempt) / "events.log"
    return [event for frame, _ in read_frames(log) for event in frame]


def only(kind: type[Any], said: list[AnyEvent]) -> list[Any]:
    return [event for event in said if isinstance(event, kind)]


def columns(said: list[AnyEvent], metric: str) -> list[tuple[int, float]]:
    return [
        pair
        for points in only(Points, said)
        if points.metric == metric
        for pair in zip(points.agent_steps, points.value, strict=True)
    ]
